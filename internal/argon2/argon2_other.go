//go:build !linux || !amd64

package argon2

import "golang.org/x/crypto/argon2"

// IDKey derives a key of length bytes from the password and the salt with Argon2id (RFC
// 9106). The argument threads is the number of lanes.
func IDKey(password, salt []byte, passes, memoryKiB uint32, threads uint8, length uint32) []byte {
	return argon2.IDKey(password, salt, passes, memoryKiB, threads, length)
}
