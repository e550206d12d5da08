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
// secret. The app shows issuer and account as the name of the entry.
func (t TOTP) URI(issuer, account string) string {
	parameters := url.Values{"secret": {t.Base32()}, "issuer": {issuer}}
	label := url.PathEscape(strings.ReplaceAll(issuer, ":", " ")) + ":" + url.PathEscape(account)
	return "otpauth://totp/" + label + "?" + strings.ReplaceAll(parameters.Encode(), "+", "%20") // some apps do not decode + as a space
}

// Step returns the time step in which the code is valid. It returns false if the code is
// wrong at the time at. The argument used is the time step of the last accepted code.
// Step also returns false if the code's time step is not later than used, so that each
// code is accepted only once. Spaces in the code are ignored.
func (t TOTP) Step(code string, at rolecall.Time, used int64) (step int64, ok bool) {
	code = strings.ReplaceAll(code, " ", "")
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
