// Package rolecall holds the nouns of a multi-tenant user and role service, and
// the pure rules that belong to them: what a valid name is, which permission
// covers which, what a principal may see of a user.
//
// It knows neither HTTP nor SQL and imports no other package of this module.
// Only the HTTP contract is a public promise; this package may change.
package rolecall
