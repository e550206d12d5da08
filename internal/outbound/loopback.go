//go:build !loopback_endpoints

package outbound

// LoopbackEndpoints reports whether the program was built for tests. Requests of such a program also
// reach this machine.
const LoopbackEndpoints = false
