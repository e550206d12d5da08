//go:build race

package e2e

// buildFlags make the program under test watch for races when the tests do.
var buildFlags = []string{"-race"}
