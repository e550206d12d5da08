// Package signin authenticates users and programs. It contains passwords, sessions,
// second factors, passkeys, known devices, bearer tokens, and connections to identity
// providers (OpenID Connect). It also contains the mailed links that reset a password,
// change an address or accept an invitation. Package signin may import package access and
// the packages that access may import, but not package directory.
package signin

import (
	"log/slog"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/limiter"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Service has the sign-in methods. It is safe for concurrent use.
type Service struct {
	access       *access.Service
	store        *store.Store
	now          func() rolecall.Time
	passwords    *secret.Passwords
	keys         *secret.Keys
	passkeys     *passkey.RelyingParty // nil: passkeys are unavailable, because no domain is configured
	log          *slog.Logger
	limiter      *ratelimit.Limiter
	invalidation *invalidation.Table
	refusals     *access.Refusals
	outbox       *outbox.Outbox
	principals   *principalCache
	largeLoads   *limiter.Shared[rolecall.TenantID]
	operators    *operatorCache
	calls        *limiter.Shares[rolecall.TenantID] // of identity providers
}

// New returns a Service.
func New(a *access.Service) *Service {
	return &Service{
		access: a, store: a.Store, now: a.Now, passwords: a.Passwords, keys: a.Keys, passkeys: a.Passkeys, log: a.Log,
		limiter: a.Limiter, invalidation: a.Invalidation, refusals: a.Refusals, outbox: a.Outbox,
		principals: newPrincipalCache(), largeLoads: newLargeLoads(), operators: newOperatorCache(), calls: newProviderCalls(),
	}
}
