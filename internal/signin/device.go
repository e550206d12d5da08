package signin

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
)

// DeviceLifetime is how long a known-device token is valid.
const DeviceLifetime = 90 * 24 * time.Hour

// deviceToken is the content of a known-device token. A known-device token shows that a
// user of the account has signed in from this browser before. The device cookie contains
// it in encrypted form.
type deviceToken struct {
	ID       rolecall.AnyID `json:"id"`
	Account  string         `json:"account"`
	Password []byte         `json:"password"` // digest of the password hash when the token was issued
	IssuedAt rolecall.Time  `json:"issuedAt"`
}

// newDevice returns a known-device token for the account, in encrypted form. The argument
// hash is the hash of the account's password. The token becomes invalid when the password
// is changed, and at the latest after DeviceLifetime.
func (s *Service) newDevice(tenant rolecall.TenantID, email, hash string) string {
	now := s.now()
	content, err := json.Marshal(deviceToken{rolecall.NewID[any](now), rolecall.EmailKey(email), secret.Digest([]byte(hash)), now})
	if err != nil {
		return ""
	}
	return s.keys.Seal("device", content, tenant[:])
}

// isStale reports whether the password of the account has changed since the token was
// created. The argument hash is the current hash of the password.
func (m *deviceToken) isStale(hash string) bool {
	return !bytes.Equal(m.Password, secret.Digest([]byte(hash)))
}

// currentDevice returns the known-device token of the request for the account. It returns
// nil if the request has no such token, or if the password has changed since. The
// argument hash is the stored hash of the account's password.
func (s *Service) currentDevice(a *access.Anonymous, email, hash string) *deviceToken {
	if token := s.device(a, email); token != nil && !token.isStale(hash) {
		return token
	}
	return nil
}

// device returns the known-device token of the request for the account, or nil. It does
// not check whether the password has changed since. It searches all device cookies of the
// request, because a page on a sibling host can set additional cookies with the same
// name.
func (s *Service) device(a *access.Anonymous, email string) *deviceToken {
	account := rolecall.EmailKey(email)
	for _, sealed := range a.Devices {
		if token, ok := s.openDevice(a.Tenant.ID, sealed); ok && token.Account == account && s.now() < token.IssuedAt.Add(DeviceLifetime) {
			return &token
		}
	}
	return nil
}

func (s *Service) openDevice(tenant rolecall.TenantID, sealed string) (token deviceToken, ok bool) {
	content, err := s.keys.Open("device", sealed, tenant[:])
	return token, err == nil && json.Unmarshal(content, &token) == nil
}

// The maximum number of known-device tokens of a browser and their maximum size, so
// that they fit into a cookie.
const (
	devicesKept     = 5
	deviceBytesKept = 3500
)

// KeptDevices returns the known-device tokens to store in the cookie of a browser, the
// newest first. These are the new token and the earlier tokens of other accounts, so that
// each user of a shared browser stays known. Earlier tokens of the same account are
// dropped. Tokens of other tenants cannot be decrypted here and are kept.
func (s *Service) KeptDevices(tenant rolecall.TenantID, newest string, others []string) []string {
	kept, bytes := []string{newest}, len(newest)
	token, _ := s.openDevice(tenant, newest)
	for _, sealed := range others {
		other, ok := s.openDevice(tenant, sealed)
		isOf := ok && other.Account == token.Account
		if isOf || sealed == "" || slices.Contains(kept, sealed) || len(kept) == devicesKept || bytes+len(sealed) > deviceBytesKept {
			continue
		}
		kept, bytes = append(kept, sealed), bytes+len(sealed)
	}
	return kept
}
