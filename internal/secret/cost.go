//go:build !cheap_hashes

package secret

// CheapHashes reports whether the program was built for tests, with password hashes
// that are easy to guess.
const CheapHashes = false

// DefaultParameters is the cost that OWASP recommends where memory is shared by
// many sign-ins: about 20 ms of a core and 19 MiB.
var DefaultParameters = Parameters{Time: 2, MemoryKiB: 19 * 1024, Threads: 1}
