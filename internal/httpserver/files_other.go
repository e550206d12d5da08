//go:build !linux

package httpserver

// openFiles returns the assumed number of files that the process may open. It is enough for the
// maximum number of connections.
func openFiles() uint64 { return 4 * maxConnections }
