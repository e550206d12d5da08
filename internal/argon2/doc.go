// Package argon2 computes the same Argon2id keys (RFC 9106) as golang.org/x/crypto/argon2
// in less time. It uses AVX2 instructions, and reuses the memory of earlier hashes. Under
// load, a hash takes 55 % of the processor time of golang.org/x/crypto/argon2 (ADR 0042).
// On processors without AVX2, and on systems other than Linux on amd64, this package
// calls golang.org/x/crypto/argon2.
package argon2

import "golang.org/x/crypto/argon2"

// Version is the version of Argon2 that IDKey computes, as it appears in PHC strings.
const Version = argon2.Version
