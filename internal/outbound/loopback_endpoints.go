//go:build loopback_endpoints

package outbound

import "os"

// LoopbackEndpoints reports whether requests also reach this machine. Only a program that was built for
// tests can do this, if ROLECALL_TEST_LOOPBACK is 1.
var LoopbackEndpoints = os.Getenv("ROLECALL_TEST_LOOPBACK") == "1"
