// Package authz decides what a principal may do. It has the principals, with what they
// hold and where; the policies of all operations; the ceiling, which keeps principals
// from granting, taking or taking over more than they hold; and what a principal may read of
// events. The decisions are pure: they read neither a store nor a clock. The package imports
// only the nouns.
package authz
