// Package authz decides what a principal may do: it has the principals, with what they
// hold and where, and the rules about them. The decisions are pure: they read neither a
// store nor a clock. The package imports only the nouns.
package authz
