//go:build cheap_hashes

package secret

// CheapHashes reports whether the program was built for tests, with password hashes
// that are easy to guess.
const CheapHashes = true

// DefaultParameters is a cost for tests: about 0.1 ms of a core.
var DefaultParameters = Parameters{Time: 1, MemoryKiB: 64, Threads: 1}
