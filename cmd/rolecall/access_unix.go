//go:build linux || darwin

package main

import "syscall"

// canWrite reports whether this process may write to the folder.
func canWrite(folder string) bool {
	const write = 2 // W_OK of access(2)
	return syscall.Access(folder, write) == nil
}
