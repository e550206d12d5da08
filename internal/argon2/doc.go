// Package argon2 computes Argon2id (RFC 9106) as golang.org/x/crypto/argon2 does, but
// with AVX2 and with memory that consecutive hashes reuse. Under load, a hash takes 55 %
// of the processor time of golang.org/x/crypto/argon2 (ADR 0042). On processors without
// AVX2, and on systems other than Linux on amd64, this package calls
// golang.org/x/crypto/argon2.
package argon2

import "golang.org/x/crypto/argon2"

// Version is the version of Argon2 that IDKey computes, as in PHC strings.
const Version = argon2.Version
