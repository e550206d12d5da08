package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"

	"github.com/rolecall/rolecall"
)

// challengeHead is the length in bytes of the first part of a challenge: 8 bytes with the
// expiry and 8 random bytes. The rest of the challenge is the first half of the MAC of
// this part.
const challengeHead = 16

// Challenge returns a token that expires at until. VerifyChallenge accepts the token only
// for the same purpose and parts. The token contains its own MAC and need not be stored.
// So anonymous requests for challenges do not fill the database.
func (k *Keys) Challenge(purpose string, until rolecall.Time, parts ...string) Token {
	head := binary.BigEndian.AppendUint64(make([]byte, 0, tokenBytes), uint64(until))
	head = head[:challengeHead]
	_, _ = rand.Read(head[8:]) // never fails: it ends the process instead
	return Token(text.EncodeToString(append(head, k.challengeMAC(0, purpose, head, parts)...)))
}

// VerifyChallenge reports whether the token is unexpired and was returned by Challenge
// for the same purpose and parts. It accepts tokens of the current key and of previous
// keys.
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
