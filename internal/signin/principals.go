package signin

import (
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/invalidation"
)

// cachedPrincipals is the approximate maximum size of the principal cache in bytes. It is
// enough for 13,000 users with one role. Principals that are not in the cache are read
// from the store at each request.
const cachedPrincipals = 28 << 20

// principalCache caches the principals of session tokens and API tokens by the hash of
// the token. An entry is used only while the data that it depends on is unchanged.
type principalCache = otter.Cache[principalKey, *principalEntry]

type principalKey struct {
	tenant rolecall.TenantID
	hash   [32]byte
}

// principalEntry is an entry of principalCache. Only the member touched changes after
// the entry was created.
type principalEntry struct {
	principal  *authz.Principal
	token      rolecall.SessionToken
	generation int64 // generation of the newest session token that a client has sent
	guarded    bool  // for an API token: its holder has a second factor
	stamp      invalidation.Stamp
	touched    atomic.Int64 // the last use that touch has written, a rolecall.Time
}

func newPrincipalCache() *principalCache {
	return otter.Must(&otter.Options[principalKey, *principalEntry]{
		MaximumWeight: cachedPrincipals,
		Weigher:       func(_ principalKey, e *principalEntry) uint32 { return uint32(e.principal.Size()) },
	})
}
