package access

import (
	"sync"
	"time"

	"github.com/rolecall/rolecall"
)

// mostThrottled is the maximum number of accounts of throttled sign-ins that a process remembers in a minute.
const mostThrottled = 10_000

// throttled remembers the throttled sign-ins of the current minute. A flood of them becomes one event per
// account and source.
type throttled struct {
	mu     sync.Mutex
	minute rolecall.Time
	seen   map[throttledKey]bool
}

type throttledKey struct {
	tenant          rolecall.TenantID
	account, source string
}

// IsFirstThrottled reports whether the throttled sign-in is the first one to the account from the source in
// this minute and process. It returns false if it remembers too many accounts.
func (r *Refusals) IsFirstThrottled(tenant rolecall.TenantID, account, source string) bool {
	if tenant.IsZero() {
		return false
	}
	t := &r.throttled
	t.mu.Lock()
	defer t.mu.Unlock()
	if minute := r.now() / rolecall.Time(time.Minute/time.Microsecond); minute != t.minute || t.seen == nil {
		t.minute, t.seen = minute, map[throttledKey]bool{}
	}
	key := throttledKey{tenant, account, source}
	if t.seen[key] || len(t.seen) >= mostThrottled {
		return false
	}
	t.seen[key] = true
	return true
}

// CountThrottled counts a sign-in that a limit refused. Unlike Count, it makes an event for each source.
func (r *Refusals) CountThrottled(tenant rolecall.TenantID, subject rolecall.UserID, source string) {
	key := refusalKey{tenant, rolecall.EventSignInFailed, AnonymousActor, subject, rolecall.ErrTooManyAttempts.Code, source}
	r.counter.add(map[refusalKey]refusal{key: {1, source}})
}
