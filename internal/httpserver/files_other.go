//go:build !linux

package httpserver

// openFiles returns how many files the process is taken to have open at most:
// enough for all connections.
func openFiles() uint64 { return 4 * maxConnections }
