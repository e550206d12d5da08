// Package rolecall has the types of a multi-tenant service for users and roles, such as
// User and Role. It also has their rules: for example, which names are valid, which
// permissions cover another permission, and which members of a user can be changed.
//
// The package contains no HTTP or SQL code and imports no other package of this module.
// Only the HTTP API is stable. This package may change.
package rolecall
