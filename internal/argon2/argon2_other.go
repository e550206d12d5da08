//go:build !linux || !amd64

package argon2

import "golang.org/x/crypto/argon2"

// IDKey returns a key of length bytes by Argon2id (RFC 9106) of the password and
// the salt, after passes over memoryKiB of memory in as many lanes as threads.
func IDKey(password, salt []byte, passes, memoryKiB uint32, threads uint8, length uint32) []byte {
	return argon2.IDKey(password, salt, passes, memoryKiB, threads, length)
}
