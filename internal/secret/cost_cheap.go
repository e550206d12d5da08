//go:build cheap_hashes

package secret

// CheapHashes reports whether the program was built for tests. Such a program computes
// password hashes that are easy to guess.
const CheapHashes = true

// DefaultParameters is a cost for tests. A hash takes about 0.1 ms of a core.
var DefaultParameters = Parameters{Time: 1, MemoryKiB: 64, Threads: 1}
