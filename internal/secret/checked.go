package secret

import (
	"hash/crc32"
	"strings"
)

// What tokens of programs begin with, so that people and scanners of source code
// recognise one that lies where it should not.
const (
	apiTokenPrefix    = "rc_"
	operatorKeyPrefix = "rco_"
)

// checksumLength is how many base62 digits a CRC-32 takes.
const checksumLength = 6

// NewAPIToken returns a new token for an API: rc_, a random Token, and a checksum.
func NewAPIToken() Token { return newChecked(apiTokenPrefix) }

// ParseAPIToken returns the token that s is, or false if s is not whole: then it
// was mistyped, cut or made up, and there is nothing to look up.
func ParseAPIToken(s string) (Token, bool) { return parseChecked(apiTokenPrefix, s) }

// NewOperatorKey returns a new key of an operator, an API token that begins with
// rco_.
func NewOperatorKey() Token { return newChecked(operatorKeyPrefix) }

// ParseOperatorKey returns the key that s is, or false if s is not whole.
func ParseOperatorKey(s string) (Token, bool) { return parseChecked(operatorKeyPrefix, s) }

func newChecked(prefix string) Token {
	body := prefix + string(NewToken())
	return Token(body + checksum(body))
}

func parseChecked(prefix, s string) (Token, bool) {
	random, ok := strings.CutPrefix(s, prefix)
	if !ok || len(random) <= checksumLength {
		return "", false
	}
	_, ok = ParseToken(random[:len(random)-checksumLength])
	body := s[:len(s)-checksumLength]
	if !ok || s != body+checksum(body) {
		return "", false
	}
	return Token(s), true
}

// checksum returns the CRC-32 (IEEE 802.3) of the text in base62. It is no secret:
// it tells a token from what only looks like one without asking the store.
func checksum(text string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var sum [checksumLength]byte
	rest := crc32.ChecksumIEEE([]byte(text))
	for i := range sum {
		sum[checksumLength-1-i] = digits[rest%62]
		rest /= 62
	}
	return string(sum[:])
}
