package signin

import (
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/invalidation"
)

// cachedPrincipals is about how many bytes the cached principals take. It is enough for
// 13,000 users with one role. The others are read again for each request.
const cachedPrincipals = 28 << 20

// principalCache keeps who a token is, of a session or of an API, as long as nothing
// that it depends on has changed.
type principalCache = otter.Cache[principalKey, *principalEntry]

type principalKey struct {
	tenant rolecall.TenantID
	hash   [32]byte
}

// principalEntry is immutable but for touching.
type principalEntry struct {
	principal  *authz.Principal
	token      rolecall.SessionToken
	generation int64 // the newest that was presented
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
