package service

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall"
)

// DeviceLifetime is how long a browser is known after a sign-in.
const DeviceLifetime = 90 * 24 * time.Hour

// deviceMark is what the device cookie holds, sealed: which browser it is, for
// which account, since when.
type deviceMark struct {
	ID       rolecall.AnyID `json:"id"`
	Account  string         `json:"account"`
	IssuedAt rolecall.Time  `json:"issuedAt"`
}

// newDevice returns what makes the browser known for the account.
func (s *Service) newDevice(a *Attempt, email string) string {
	now := s.now()
	content, err := json.Marshal(deviceMark{rolecall.NewID[any](now), rolecall.EmailKey(email), now})
	if err != nil {
		return ""
	}
	return s.keys.Seal("device", content, a.Tenant.ID[:])
}

// device returns which browser the attempt comes from, if that is known for the
// account. A sibling host can put other marks beside the right one, not replace it.
func (s *Service) device(a *Attempt, account string) (id string, known bool) {
	for _, sealed := range a.Devices {
		content, err := s.keys.Open("device", sealed, a.Tenant.ID[:])
		if err != nil {
			continue
		}
		var mark deviceMark
		if err := json.Unmarshal(content, &mark); err != nil {
			continue
		}
		if mark.Account == account && s.now() < mark.IssuedAt.Add(DeviceLifetime) {
			return mark.ID.String(), true
		}
	}
	return "", false
}
