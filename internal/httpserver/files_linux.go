package httpserver

import "golang.org/x/sys/unix"

// openFiles returns how many files the process may have open.
func openFiles() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 4 * maxConnections
	}
	return limit.Cur
}
