package access

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/limiter"
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

// providerCallsAtOnce is the maximum number of calls of identity providers that run at the same time in one
// process, so that slow providers do not use up its memory and its connections.
const providerCallsAtOnce = 256

// newProviderCalls returns the limit of the calls of identity providers, with shares between tenants.
func newProviderCalls() *limiter.Shares[rolecall.TenantID] {
	return limiter.NewShares[rolecall.TenantID](providerCallsAtOnce)
}

// BeginProviderCall begins a call of an identity provider. The caller must use the returned context for it, and
// call end after it. If too many calls run, the tenant with most of them loses its newest. BeginProviderCall
// returns ErrConnectionUnavailable if no tenant has more than this one would have. Calls are counted by tenant
// and not by issuer, so that one tenant cannot block an issuer that others use too.
func (s *Service) BeginProviderCall(ctx context.Context, tenant rolecall.TenantID) (call context.Context, end func(), err error) {
	call, end, ok := s.calls.Begin(ctx, tenant)
	if !ok {
		return nil, nil, rolecall.ErrConnectionUnavailable
	}
	return call, end, nil
}
