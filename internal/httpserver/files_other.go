//go:build !linux

package httpserver

// openFiles returns how many files the process may have open. On this system, the number is an
// assumption that allows maxConnections.
func openFiles() uint64 { return 4 * maxConnections }
