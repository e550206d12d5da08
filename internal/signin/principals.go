package signin

import (
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/invalidation"
)

// cachedPrincipals is the approximate size of the principal cache in bytes. It is
// enough for 13,000 users with one role. Other principals are read for each request.
const cachedPrincipals = 28 << 20

// principalCache caches the principals of session tokens and API tokens until data
// on which they depend changes.
type principalCache = otter.Cache[principalKey, *principalEntry]

type principalKey struct {
	tenant rolecall.TenantID
	hash   [32]byte
}

// principalEntry is immutable except for touching.
type principalEntry struct {
	principal  *authz.Principal
	token      rolecall.SessionToken
	generation int64 // the newest token generation that a client has sent
	guarded    bool  // the holder of an API token has a second factor
	stamp      invalidation.Stamp
	touching   atomic.Bool
}

func newPrincipalCache() *principalCache {
	return otter.Must(&otter.Options[principalKey, *principalEntry]{
		MaximumWeight: cachedPrincipals,
		Weigher:       func(_ principalKey, e *principalEntry) uint32 { return uint32(e.principal.Size()) },
	})
}
