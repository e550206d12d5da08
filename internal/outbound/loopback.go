//go:build !loopback_endpoints

package outbound

// LoopbackEndpoints reports whether requests also reach this machine. Only a program that was built for
// tests can do this.
const LoopbackEndpoints = false
