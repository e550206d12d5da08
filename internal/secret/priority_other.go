//go:build !linux

package secret

// lowerPriority does nothing, because only Linux has a priority for each thread.
func lowerPriority() {}
