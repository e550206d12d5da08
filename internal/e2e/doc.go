// Package e2e contains the black-box tests. The built program serves a store, and the
// scenarios use only HTTP and the command line. Every response is compared with the OpenAPI
// document.
package e2e
