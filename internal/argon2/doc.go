// Package argon2 computes Argon2id (RFC 9106) as golang.org/x/crypto/argon2 does, but
// with AVX2 and with memory that is used again. A hash under load takes 55 % of the
// processor time that it takes there (ADR 0042). Processors without AVX2, and systems
// other than Linux on amd64, use that package.
package argon2

import "golang.org/x/crypto/argon2"

// Version is the version of Argon2 that IDKey computes, as in PHC strings.
const Version = argon2.Version
