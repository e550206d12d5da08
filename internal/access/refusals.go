package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// RefusalInterval is the time between two writes of the counted refusals as events.
const RefusalInterval = time.Second

// The maximum number of events for the refusals of one interval on one node.
const (
	mostSubjects     = 3      // maximum number of subjects with a separate event, per caller and operation
	mostCallerEvents = 10     // maximum number of events per caller, with different operations
	mostTenantEvents = 50     // maximum number of events per tenant, and per reason of failed sign-ins
	mostRefusals     = 10_000 // maximum number of events of all tenants
)

// The reasons of events that combine refusals of several operations or of several callers.
const (
	severalOperations = "several operations"
	severalCallers    = "several callers"
)

// refusalCounter counts refused requests in memory until Flush writes their events, so
// that a flood of refused requests becomes few events. Counting takes the same time
// whether or not the subject of a request exists.
type refusalCounter struct {
	mu      sync.Mutex
	pending map[refusalKey]refusal
	events  map[refusalKey]int // how many pending keys a wider key could replace
}

// refusalKey identifies the refusals that become one event.
type refusalKey struct {
	tenant  rolecall.TenantID
	kind    rolecall.EventType
	actor   rolecall.Actor
	subject rolecall.UserID // zero: the tenant
	reason  string
	source  string // of a throttled sign-in; otherwise empty
}

type refusal struct {
	count  int
	source string // source of the first refusal
}

// widerKey is a refusalKey that omits details, such as the subject. Once the number most of
// more specific keys is pending, further refusals are counted under the wider key.
type widerKey struct {
	refusalKey
	most int
}

// wider returns the keys that can replace k. Each one omits more details than the one
// before. Anonymous callers have the same actor and few different reasons, so their keys
// can omit only the subject.
func (k refusalKey) wider() []widerKey {
	operation := k
	operation.subject, operation.source = rolecall.UserID{}, ""
	if k.actor == AnonymousActor {
		return []widerKey{{operation, mostTenantEvents}}
	}
	caller := operation
	caller.reason = severalOperations
	tenant := refusalKey{tenant: k.tenant, kind: k.kind, actor: AnonymousActor, reason: severalCallers}
	return []widerKey{{operation, mostSubjects}, {caller, mostCallerEvents}, {tenant, mostTenantEvents}}
}

// Refusals counts refused requests and writes them as events. It is safe for concurrent
// use.
type Refusals struct {
	store   *store.Store
	now     func() rolecall.Time
	counter refusalCounter

	failedSignIns atomic.Int64
	throttled     throttled
}

// NewRefusals returns Refusals without counted requests.
func NewRefusals(s *store.Store, now func() rolecall.Time) *Refusals {
	return &Refusals{store: s, now: now}
}

// Count counts a refused request, or another event that any client can cause. It ignores
// requests without a known tenant.
func (r *Refusals) Count(tenant rolecall.TenantID, kind rolecall.EventType, actor rolecall.Actor, subject rolecall.UserID, reason, source string) {
	if tenant.IsZero() {
		return
	}
	if kind == rolecall.EventSignInFailed {
		r.failedSignIns.Add(1)
	}
	r.counter.add(map[refusalKey]refusal{{tenant, kind, actor, subject, reason, ""}: {1, source}})
}

// FailedSignIns returns how many failed sign-ins and re-authentications this process has counted.
func (r *Refusals) FailedSignIns() int64 { return r.failedSignIns.Load() }

// Flush writes events for the refusals since the last Flush. If the write for a tenant
// fails, the next Flush writes its refusals again.
func (r *Refusals) Flush(ctx context.Context) error {
	var failures []error
	for tenant, counted := range r.counter.drain() {
		err := r.store.Update(ctx, tenant, func(tx *store.Tx) error {
			for key, refused := range counted {
				tx.InsertEvent(r.event(key, refused))
			}
			return nil
		})
		if err != nil {
			failures = append(failures, err)
			r.counter.add(counted)
		}
	}
	return errors.Join(failures...)
}

// event returns the event for the refusals of one key. OccurredAt and the id have the same
// time, because lists with an end time compare ids.
func (r *Refusals) event(key refusalKey, refused refusal) rolecall.Event {
	now := r.now()
	event := rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](now), Type: key.kind, OccurredAt: now,
		Actor: key.actor, Subject: rolecall.About(key.subject), Source: refused.source, Reason: key.reason,
	}
	if key.subject.IsZero() {
		event.Subject = rolecall.About(key.tenant)
	}
	if refused.count > 1 {
		event.Reason = fmt.Sprintf("%s, %d times", key.reason, refused.count)
	}
	return event
}

// add adds counted refusals to the pending refusals.
func (c *refusalCounter) add(counted map[refusalKey]refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == nil {
		c.pending, c.events = map[refusalKey]refusal{}, map[refusalKey]int{}
	}
	for exact, more := range counted {
		key := c.choose(exact)
		pending, ok := c.pending[key]
		if !ok {
			for _, w := range key.wider() {
				if w.refusalKey != key {
					c.events[w.refusalKey]++
				}
			}
			pending.source = more.source
			if key.reason == severalCallers {
				pending.source = ""
			}
		}
		pending.count += more.count
		c.pending[key] = pending
	}
}

// choose returns the key under which a refusal is counted. If the key is not pending yet
// and a limit on the number of events is reached, choose returns a wider key.
func (c *refusalCounter) choose(key refusalKey) refusalKey {
	for _, w := range key.wider() {
		if _, ok := c.pending[key]; ok {
			return key
		}
		if c.events[w.refusalKey] >= w.most || len(c.pending) >= mostRefusals {
			key = w.refusalKey
		}
	}
	return key
}

// drain returns the pending refusals, grouped by tenant, and resets the counter.
func (c *refusalCounter) drain() map[rolecall.TenantID]map[refusalKey]refusal {
	c.mu.Lock()
	pending := c.pending
	c.pending, c.events = nil, nil
	c.mu.Unlock()

	byTenant := map[rolecall.TenantID]map[refusalKey]refusal{}
	for key, counted := range pending {
		if byTenant[key.tenant] == nil {
			byTenant[key.tenant] = map[refusalKey]refusal{}
		}
		byTenant[key.tenant][key] = counted
	}
	return byTenant
}
