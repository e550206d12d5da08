package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // RFC 6238 and every authenticator app use SHA-1; it is safe in an HMAC
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/rolecall/rolecall"
)

// TOTP is a user's secret for time-based one-time codes (RFC 6238). It has 160 bits. The
// codes use SHA-1, six digits and a period of 30 seconds, because every authenticator app
// supports these parameters.
type TOTP []byte

const (
	totpBytes  = 20
	totpPeriod = 30 * time.Second

	// totpDrift is the number of periods by which the clock of the user's device may be
	// slow or fast (RFC 6238, 5.2).
	totpDrift = 1
)

// NewTOTP returns a new random secret.
func NewTOTP() TOTP {
	t := make(TOTP, totpBytes)
	_, _ = rand.Read(t) // never fails: it ends the process instead
	return t
}

// Base32 returns the secret in base32 (RFC 4648). Users can type it into an authenticator
// app in this form.
func (t TOTP) Base32() string { return base32.StdEncoding.EncodeToString(t) }

// URI returns the otpauth URI for a QR code that authenticator apps scan. It contains the
// secret. The app shows issuer and account as the name of the entry. A colon separates the two, so the issuer is
// written without colons, and in the same way in both places, because apps compare them.
func (t TOTP) URI(issuer, account string) string {
	issuer = strings.Join(strings.Fields(strings.ReplaceAll(issuer, ":", " ")), " ")
	parameters := url.Values{"secret": {t.Base32()}, "issuer": {issuer}}
	label := url.PathEscape(issuer) + ":" + url.PathEscape(account)
	return "otpauth://totp/" + label + "?" + strings.ReplaceAll(parameters.Encode(), "+", "%20") // some apps do not decode + as a space
}

// Step returns the time step in which the code is valid. It returns false if the code is
// wrong at the time at. The argument used is the time step of the last accepted code.
// Step also returns false if the code's time step is not later than used, so that each
// code is accepted only once. The code can have digits of any script, because some keyboards have no others.
// Spaces in the code are ignored.
func (t TOTP) Step(code string, at rolecall.Time, used int64) (step int64, ok bool) {
	code = strings.Map(asTyped, code)
	now := at.Std().Unix() / int64(totpPeriod/time.Second)
	for s := now - totpDrift; s <= now+totpDrift; s++ { // the loop always compares with every step, so that its duration does not depend on the code
		if subtle.ConstantTimeCompare([]byte(code), []byte(t.Code(s))) == 1 && s > used {
			step, ok = s, true
		}
	}
	return step, ok
}

// Code returns the six-digit code of the time step (RFC 4226, 5.3). The time step is the
// number of whole periods since the beginning of 1970.
func (t TOTP) Code(step int64) string {
	mac := hmac.New(sha1.New, t)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(step)))
	sum := mac.Sum(nil)
	number := binary.BigEndian.Uint32(sum[sum[len(sum)-1]&0xf:]) & 0x7fffffff
	return fmt.Sprintf("%06d", number%1_000_000)
}

// asTyped returns the ASCII digit in place of a digit of another script. It returns -1, which removes the character, for
// spaces and for invisible characters, which can surround a copied code. It returns other characters unchanged.
func asTyped(r rune) rune {
	switch {
	case unicode.IsSpace(r) || unicode.Is(unicode.Cf, r):
		return -1
	case r > unicode.MaxASCII && unicode.Is(unicode.Nd, r):
		return digitOf(r)
	}
	return r
}

// digitOf returns the ASCII digit of a decimal digit. The digits of each script follow each other, from 0 to 9.
func digitOf(r rune) rune {
	for _, digits := range unicode.Nd.R16 {
		if rune(digits.Lo) <= r && r <= rune(digits.Hi) {
			return '0' + (r-rune(digits.Lo))%10
		}
	}
	for _, digits := range unicode.Nd.R32 {
		if rune(digits.Lo) <= r && r <= rune(digits.Hi) {
			return '0' + (r-rune(digits.Lo))%10
		}
	}
	return r
}
