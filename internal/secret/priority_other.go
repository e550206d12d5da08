//go:build !linux

package secret

// lowerPriority does nothing: only Linux has a priority per thread.
func lowerPriority() {}
