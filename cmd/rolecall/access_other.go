//go:build !linux && !darwin

package main

// canWrite reports whether this process may write to the folder. Only Linux and macOS can answer this
// without a change.
func canWrite(string) bool { return true }
