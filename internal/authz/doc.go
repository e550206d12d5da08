// Package authz decides what a principal may do. It has the principals with their
// permissions and reaches, the policies of all operations, the rules that keep
// principals from granting, revoking or taking over more than they hold, and the
// redaction of events. The decisions are pure: they read neither a store nor a
// clock. The package imports only the root package.
package authz
