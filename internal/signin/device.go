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

// DeviceLifetime is how long a browser is known after a sign-in.
const DeviceLifetime = 90 * 24 * time.Hour

// deviceMark is what the device cookie holds, sealed: which browser it is, for
// which account and password, since when.
type deviceMark struct {
	ID       rolecall.AnyID `json:"id"`
	Account  string         `json:"account"`
	Password []byte         `json:"password"` // digest of the stored hash
	IssuedAt rolecall.Time  `json:"issuedAt"`
}

// newDevice returns what makes the browser known for the account, until its password
// is another one than that of the hash.
func (s *Service) newDevice(tenant rolecall.TenantID, email, hash string) string {
	now := s.now()
	content, err := json.Marshal(deviceMark{rolecall.NewID[any](now), rolecall.EmailKey(email), secret.Digest([]byte(hash)), now})
	if err != nil {
		return ""
	}
	return s.keys.Seal("device", content, tenant[:])
}

// isStale reports whether the account has another password than when the mark was
// made: whoever signed in by the old one is known no more.
func (m *deviceMark) isStale(hash string) bool {
	return !bytes.Equal(m.Password, secret.Digest([]byte(hash)))
}

// currentDevice is device for an account whose password's hash is known.
func (s *Service) currentDevice(a *access.Anonymous, email, hash string) *deviceMark {
	if mark := s.device(a, email); mark != nil && !mark.isStale(hash) {
		return mark
	}
	return nil
}

// device returns which browser the attempt comes from, nil if that is not known for
// the account; it may be stale. A sibling host can put other marks beside the right
// one, not replace it.
func (s *Service) device(a *access.Anonymous, email string) *deviceMark {
	account := rolecall.EmailKey(email)
	for _, sealed := range a.Devices {
		if mark, ok := s.openDevice(a.Tenant.ID, sealed); ok && mark.Account == account && s.now() < mark.IssuedAt.Add(DeviceLifetime) {
			return &mark
		}
	}
	return nil
}

func (s *Service) openDevice(tenant rolecall.TenantID, sealed string) (mark deviceMark, ok bool) {
	content, err := s.keys.Open("device", sealed, tenant[:])
	return mark, err == nil && json.Unmarshal(content, &mark) == nil
}

// What a browser keeps at most of known-device tokens, so that they fit into a cookie.
const (
	devicesKept     = 5
	deviceBytesKept = 3500
)

// KeptDevices returns the known-device tokens that a browser keeps, the newest first:
// a new one, and those of other accounts that the browser has. So people who share a
// browser stay known. Those of other tenants cannot be read, and are kept too.
func (s *Service) KeptDevices(tenant rolecall.TenantID, newest string, others []string) []string {
	kept, bytes := []string{newest}, len(newest)
	mark, _ := s.openDevice(tenant, newest)
	for _, sealed := range others {
		other, ok := s.openDevice(tenant, sealed)
		isOf := ok && other.Account == mark.Account
		if isOf || sealed == "" || slices.Contains(kept, sealed) || len(kept) == devicesKept || bytes+len(sealed) > deviceBytesKept {
			continue
		}
		kept, bytes = append(kept, sealed), bytes+len(sealed)
	}
	return kept
}
