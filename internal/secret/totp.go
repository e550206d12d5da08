package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // what RFC 6238 and every authenticator app use; HMAC needs no more of it
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
)

// TOTP is the secret of somebody's one-time codes by time (RFC 6238): 160 bits,
// from which SHA-1 makes a code of six digits every 30 seconds. That is what every
// authenticator app can do.
type TOTP []byte

const (
	totpBytes  = 20
	totpPeriod = 30 * time.Second

	// totpDrift is by how many periods the clock of a device may be off, in both
	// directions (RFC 6238, 5.2).
	totpDrift = 1
)

// NewTOTP returns a new random secret.
func NewTOTP() TOTP {
	t := make(TOTP, totpBytes)
	_, _ = rand.Read(t) // never fails: it ends the process instead
	return t
}

// Base32 returns the secret in base32 (RFC 4648), in which people type it into an
// app.
func (t TOTP) Base32() string { return base32.StdEncoding.EncodeToString(t) }

// URI returns what a QR code for authenticator apps holds: the secret, with the
// names under which the app shows it.
func (t TOTP) URI(issuer, account string) string {
	parameters := url.Values{"secret": {t.Base32()}, "issuer": {issuer}}
	label := url.PathEscape(strings.ReplaceAll(issuer, ":", " ")) + ":" + url.PathEscape(account)
	return "otpauth://totp/" + label + "?" + strings.ReplaceAll(parameters.Encode(), "+", "%20") // apps do not all know + as a space
}

// Step returns the step whose code this is, and whether there is one that is later
// than used, the last step of which a code was taken: so no code is taken twice.
// Spaces in the code do not count.
func (t TOTP) Step(code string, at rolecall.Time, used int64) (step int64, ok bool) {
	code = strings.ReplaceAll(code, " ", "")
	now := at.Std().Unix() / int64(totpPeriod/time.Second)
	for s := now - totpDrift; s <= now+totpDrift; s++ { // all of them, so that the time tells nothing
		if subtle.ConstantTimeCompare([]byte(code), []byte(t.Code(s))) == 1 && s > used {
			step, ok = s, true
		}
	}
	return step, ok
}

// Code returns the code of the step, which is the number of whole periods since
// 1970 (RFC 4226, 5.3).
func (t TOTP) Code(step int64) string {
	mac := hmac.New(sha1.New, t)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(step)))
	sum := mac.Sum(nil)
	number := binary.BigEndian.Uint32(sum[sum[len(sum)-1]&0xf:]) & 0x7fffffff
	return fmt.Sprintf("%06d", number%1_000_000)
}
