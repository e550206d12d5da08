// Package scim has SCIM 2.0 (RFC 7643, RFC 7644) for directories: it reads filters, resources and patches as Entra
// and Okta send them, and renders resources and schemas.
package scim
