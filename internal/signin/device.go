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

// deviceToken is the content of a known-device token, which is stored encrypted in
// the device cookie.
type deviceToken struct {
	ID       rolecall.AnyID `json:"id"`
	Account  string         `json:"account"`
	Password []byte         `json:"password"` // digest of the stored hash
	IssuedAt rolecall.Time  `json:"issuedAt"`
}

// newDevice returns a known-device token for the account. It is valid until the
// password with this hash is changed.
func (s *Service) newDevice(tenant rolecall.TenantID, email, hash string) string {
	now := s.now()
	content, err := json.Marshal(deviceToken{rolecall.NewID[any](now), rolecall.EmailKey(email), secret.Digest([]byte(hash)), now})
	if err != nil {
		return ""
	}
	return s.keys.Seal("device", content, tenant[:])
}

// isStale reports whether the password of the account has changed since the token
// was made.
func (m *deviceToken) isStale(hash string) bool {
	return !bytes.Equal(m.Password, secret.Digest([]byte(hash)))
}

// currentDevice is like device, but also returns nil if the token is stale. The argument
// hash is the stored hash of the account's password.
func (s *Service) currentDevice(a *access.Anonymous, email, hash string) *deviceToken {
	if token := s.device(a, email); token != nil && !token.isStale(hash) {
		return token
	}
	return nil
}

// device returns the known-device token of the request for the account, or nil. The
// token may be stale. A sibling host can set additional cookies, but cannot replace
// the right one.
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

// KeptDevices returns the known-device tokens that a browser keeps, the newest
// first: the new one, and the existing ones of other accounts, so that users who
// share a browser stay known. Tokens of other tenants cannot be decrypted and are
// kept too.
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
