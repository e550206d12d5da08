package feed

import "github.com/rolecall/rolecall"

// backlog has tenants with events without a number, and since when they have them. It is not safe for
// concurrent use.
type backlog struct {
	wake  chan struct{} // signals new tenants
	round turn          // is held during a round

	due   map[rolecall.TenantID]rolecall.Time
	order []rolecall.TenantID // the same tenants, in the order of their turns
	at    rolecall.TenantID   // the tenant that a round works on
	since rolecall.Time       // since when that tenant has such events; 0: no round works on a tenant
}

func newBacklog() *backlog {
	return &backlog{wake: make(chan struct{}, 1), round: make(turn, 1), due: map[rolecall.TenantID]rolecall.Time{}}
}

// signal starts a round. It can be called concurrently.
func (b *backlog) signal() {
	select {
	case b.wake <- struct{}{}:
	default: // a signal is already pending
	}
}

// has reports whether the tenant waits, or a round works on it.
func (b *backlog) has(tenant rolecall.TenantID) bool {
	_, waits := b.due[tenant]
	return waits || b.since != 0 && b.at == tenant
}

// add adds the tenant, which has had events without a number since the given time.
func (b *backlog) add(tenant rolecall.TenantID, since rolecall.Time) {
	known, waits := b.due[tenant]
	if !waits {
		b.order = append(b.order, tenant)
	}
	if !waits || since < known {
		b.due[tenant] = since
	}
}

// next begins to work on the next tenant. It returns false if no tenant waits.
func (b *backlog) next() (ok bool) {
	if len(b.order) == 0 {
		return false
	}
	b.at = b.order[0]
	b.order, b.since = b.order[1:], b.due[b.at]
	delete(b.due, b.at)
	return true
}

// oldest returns the earlier one of the given time, if it is not 0, and the times of all tenants.
func (b *backlog) oldest(than rolecall.Time) rolecall.Time {
	earlier := func(t rolecall.Time) {
		if t != 0 && (than == 0 || t < than) {
			than = t
		}
	}
	earlier(b.since)
	for _, since := range b.due {
		earlier(since)
	}
	return than
}
