// Package authz decides what a principal may do. A principal is the authenticated caller of
// a request, with its permissions. The package has the policies of all operations. Its
// rules prevent principals from granting, revoking or taking over more permissions than
// they hold. It also removes from events the data that a principal may not read. The
// package reads neither a store nor a clock. It imports only the root package.
package authz
