// Package rolecall has the types of a multi-tenant service for users and roles, and
// their rules without I/O: which names are valid, which permission covers another
// one, and which members of a user can be changed.
//
// The package contains no HTTP or SQL code and imports no other package of this module.
// Only the HTTP API is stable. This package may change.
package rolecall
