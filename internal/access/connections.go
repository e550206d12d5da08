package access

import (
	"sync"

	"github.com/rolecall/rolecall"
)

// connectionPurpose is the purpose of the encryption of client secrets.
const connectionPurpose = "connection"

// SealConnectionSecret encrypts the client secret of the connection.
func (s *Service) SealConnectionSecret(tenant rolecall.TenantID, id rolecall.ConnectionID, text string) []byte {
	return []byte(s.Keys.Seal(connectionPurpose, []byte(text), append(tenant[:], id[:]...)))
}

// ConnectionSecret returns the client secret of the connection.
func (s *Service) ConnectionSecret(tenant rolecall.TenantID, c *rolecall.Connection) (string, error) {
	plain, err := s.Keys.Open(connectionPurpose, string(c.Secret), append(tenant[:], c.ID[:]...))
	return string(plain), err
}

// RenewConnectionSecret returns the client secret of the connection, encrypted with the current key of the
// instance. It returns the stored one if the current key has encrypted it.
func (s *Service) RenewConnectionSecret(tenant rolecall.TenantID, c *rolecall.Connection) []byte {
	return []byte(s.Keys.Renew(connectionPurpose, string(c.Secret), append(tenant[:], c.ID[:]...)))
}

// The limits of calls of identity providers that run at the same time, so that slow providers do not use up
// the memory and the connections of the process.
const (
	providerCallsAtOnce   = 256 // of one process
	providerCallsOfTenant = 32
)

// providerCalls counts the calls of identity providers that run. It is safe for concurrent use.
type providerCalls struct {
	mu      sync.Mutex
	running int
	of      map[rolecall.TenantID]int
}

// BeginProviderCall counts a call of an identity provider. The caller must call end after it. If too many
// calls of the tenant or of the process run, BeginProviderCall returns ErrConnectionUnavailable. Calls are
// counted by tenant and not by issuer, so that one tenant cannot block an issuer that others use too.
func (s *Service) BeginProviderCall(tenant rolecall.TenantID) (end func(), err error) {
	p := &s.calls
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running >= providerCallsAtOnce || p.of[tenant] >= providerCallsOfTenant {
		return nil, rolecall.ErrConnectionUnavailable
	}
	if p.of == nil {
		p.of = map[rolecall.TenantID]int{}
	}
	p.running++
	p.of[tenant]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running--
		if p.of[tenant]--; p.of[tenant] == 0 {
			delete(p.of, tenant)
		}
	}, nil
}
