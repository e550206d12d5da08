// Package e2e holds the black-box tests: the built program serves a store, and
// scenarios see nothing of it but HTTP and the command line. Every answer is
// held against the OpenAPI document on the way.
package e2e
