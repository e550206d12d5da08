package secret

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/internal/argon2"
)

// Parameters are the cost of a password hash with Argon2id (RFC 9106).
type Parameters struct {
	Time      uint32 // passes over the memory
	MemoryKiB uint32
	Threads   uint8
}

const (
	saltBytes = 16
	hashBytes = 32
)

// mostParameters are the highest costs that Verify accepts in a stored hash. A hash with
// a higher cost was not written by Rolecall. It could be an attack that makes each
// sign-in slow.
var mostParameters = Parameters{Time: 64, MemoryKiB: 1 << 20, Threads: 16}

var errHash = errors.New("malformed password hash")

// passwordHash is a password hash with its salt and its cost. Its text form is a PHC
// string: $argon2id$v=19$m=19456,t=2,p=1$salt$hash.
type passwordHash struct {
	Parameters
	salt, sum []byte
}

var phcText = base64.RawStdEncoding.Strict()

func (h *passwordHash) String() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.MemoryKiB, h.Time, h.Threads,
		phcText.EncodeToString(h.salt), phcText.EncodeToString(h.sum))
}

func parseHash(phc string) (passwordHash, error) {
	var h passwordHash
	fields := strings.Split(phc, "$")
	if len(phc) > 512 || len(fields) != 6 || fields[0] != "" || fields[1] != "argon2id" || fields[2] != "v="+strconv.Itoa(argon2.Version) {
		return h, errHash
	}
	costs := strings.Split(fields[3], ",")
	if len(costs) != 3 {
		return h, errHash
	}
	var err error
	number := func(text, name string, most uint64) uint64 {
		digits, found := strings.CutPrefix(text, name+"=")
		n, parseErr := strconv.ParseUint(digits, 10, 32)
		if !found || parseErr != nil || n < 1 || n > most || digits[0] == '0' || digits[0] == '+' {
			err = errHash
		}
		return n
	}
	bytes := func(text string, least int) []byte {
		b, decodeErr := phcText.DecodeString(text)
		if decodeErr != nil || len(b) < least || len(b) > 64 || phcText.EncodedLen(len(b)) != len(text) {
			err = errHash
		}
		return b
	}
	h.MemoryKiB = uint32(number(costs[0], "m", uint64(mostParameters.MemoryKiB)))
	h.Time = uint32(number(costs[1], "t", uint64(mostParameters.Time)))
	h.Threads = uint8(number(costs[2], "p", uint64(mostParameters.Threads)))
	h.salt = bytes(fields[4], 8)
	h.sum = bytes(fields[5], 16)
	return h, err
}

// of returns the hash of the password with the salt and the cost of h.
func (h *passwordHash) of(password []byte) []byte {
	return argon2.IDKey(password, h.salt, h.Time, h.MemoryKiB, h.Threads, uint32(len(h.sum)))
}

func (h *passwordHash) matches(password []byte) bool {
	return subtle.ConstantTimeCompare(h.of(password), h.sum) == 1
}

// weaker reports whether h is cheaper to guess than a new hash with the cost p. It
// compares the cost, and the lengths of the salt and of the hash.
func (h *passwordHash) weaker(p Parameters) bool {
	return h.Time < p.Time || h.MemoryKiB < p.MemoryKiB || h.Threads < p.Threads || len(h.salt) < saltBytes || len(h.sum) < hashBytes
}
