// Package e2e tests the Go client and its helper for tests of applications against the program.
package e2e
