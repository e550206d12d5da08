//go:build !cheap_hashes

package secret

// CheapHashes reports whether the program was built for tests. Such a program computes
// password hashes that are easy to guess.
const CheapHashes = false

// DefaultParameters is a cost that OWASP recommends for Argon2id. A hash takes about 20
// ms of a core and 19 MiB of memory.
var DefaultParameters = Parameters{Time: 2, MemoryKiB: 19 * 1024, Threads: 1}
