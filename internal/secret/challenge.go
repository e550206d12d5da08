package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"

	"github.com/rolecall/rolecall"
)

// challengeHead is the length of the first part of a challenge in bytes: 8 bytes of
// expiry and 8 random bytes. The rest of the challenge is half of the MAC of the first
// part.
const challengeHead = 16

// Challenge returns a token that VerifyChallenge accepts until it expires, for the same purpose
// and parts. The token contains its MAC, so nothing is stored for anonymous callers.
func (k *Keys) Challenge(purpose string, until rolecall.Time, parts ...string) Token {
	head := binary.BigEndian.AppendUint64(make([]byte, 0, tokenBytes), uint64(until))
	head = head[:challengeHead]
	_, _ = rand.Read(head[8:]) // never fails: it ends the process instead
	return Token(text.EncodeToString(append(head, k.challengeMAC(0, purpose, head, parts)...)))
}

// VerifyChallenge reports whether Challenge returned the token for the purpose and the parts,
// under the current or a previous key, and the token has not expired.
func (k *Keys) VerifyChallenge(purpose string, token Token, now rolecall.Time, parts ...string) bool {
	raw, err := text.DecodeString(string(token))
	if err != nil || len(raw) != tokenBytes || rolecall.Time(binary.BigEndian.Uint64(raw)) <= now {
		return false
	}
	for i := range k.secrets {
		if hmac.Equal(raw[challengeHead:], k.challengeMAC(i, purpose, raw[:challengeHead], parts)) {
			return true
		}
	}
	return false
}

func (k *Keys) challengeMAC(key int, purpose string, head []byte, parts []string) []byte {
	mac := NewKeys(k.secrets[key]).MAC(purpose, append([]string{string(head)}, parts...)...)
	return mac[:tokenBytes-challengeHead]
}
