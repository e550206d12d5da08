package secret

import (
	"hash/crc32"
	"strings"
)

// The prefixes of tokens for programs. People and secret scanners recognize a leaked
// token by its prefix.
const (
	apiTokenPrefix       = "rc_"
	directoryTokenPrefix = "rd_"
	operatorKeyPrefix    = "rco_"
)

// checksumLength is the length of a CRC-32 in base62 digits.
const checksumLength = 6

// HasTokenPrefix reports whether s begins with the prefix of a session token for the Authorization header, of an API
// token, of a token of a directory or of an operator key. Other tokens there are not for Rolecall, for example those that a proxy adds.
func HasTokenPrefix(s string) bool {
	return strings.HasPrefix(s, bearerPrefix) || strings.HasPrefix(s, apiTokenPrefix) || strings.HasPrefix(s, directoryTokenPrefix) ||
		strings.HasPrefix(s, operatorKeyPrefix)
}

// NewAPIToken returns a new API token: rc_, a random Token, and a checksum.
func NewAPIToken() Token { return newChecked(apiTokenPrefix) }

// ParseAPIToken returns s as an API token. It returns false if the prefix, the length,
// the encoding or the checksum is wrong. Such a text was never issued as a token, so no
// lookup in the store is necessary.
func ParseAPIToken(s string) (Token, bool) { return parseChecked(apiTokenPrefix, s) }

// NewDirectoryToken returns a new token of a directory: an API token with the prefix rd_.
func NewDirectoryToken() Token { return newChecked(directoryTokenPrefix) }

// ParseDirectoryToken returns s as a token of a directory. It returns false if the prefix, the length, the encoding or
// the checksum is wrong.
func ParseDirectoryToken(s string) (Token, bool) { return parseChecked(directoryTokenPrefix, s) }

// NewOperatorKey returns a new operator key: an API token with the prefix rco_.
func NewOperatorKey() Token { return newChecked(operatorKeyPrefix) }

// ParseOperatorKey returns s as an operator key. It returns false if the prefix, the
// length, the encoding or the checksum is wrong.
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

// checksum returns the CRC-32 (IEEE 802.3) of the text in base62. Anybody can compute it.
// It detects mistyped and truncated tokens without a query to the store.
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
