// Package authz decides what a principal may do. It has the principals with their
// permissions, and the policies of all operations. Its rules keep principals from
// granting, revoking or taking over more permissions than they hold. It also redacts
// events. The package does no I/O: it reads neither a store nor a clock. It imports only
// the root package.
package authz
