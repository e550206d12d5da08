package client

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// trust is how old the last read of a feed without further changes may be. It is less than a second, to
	// leave time for the request that follows.
	trust = 800 * time.Millisecond

	// nodeLag is the time by which the answer of a node of Rolecall can be late.
	nodeLag = time.Second

	// readAgain is the age at which an entry is read again, which extends the idle time of the session. It is the
	// default time for which a replaced session token works, so that Rolecall sees a later use of the token.
	readAgain = 10 * time.Second

	// slowestLoad is the time after which the response to a load is not kept.
	slowestLoad = 10 * time.Second
)

// harmless are the types of changes that do not affect what a caller may do. Other types, also those of
// later versions, do.
var harmless = map[string]bool{
	"session.sign_in_failed": true, "request.refused": true, "user.created": true, "user.invited": true, "role.created": true,
	"service_account.created": true, "token.created": true, "mail.undeliverable": true, "users.exported": true, "role.users_exported": true,
	"events.exported": true, "job.started": true, "job.canceled": true, "job.ended": true, "tenant.logo_changed": true, "tenant.logo_removed": true,
}

// memoryKey is the hash of a credential, so that the memory has no secrets.
type memoryKey [sha256.Size]byte

type memoryEntry struct {
	key       memoryKey
	principal *Principal
	loaded    time.Time // when the request began
	expires   time.Time // zero: never
}

// memory keeps principals by their credentials: at most capacity, without the least recently used. It is
// safe for concurrent use. Times are those at which a request to Rolecall began.
type memory struct {
	capacity int

	mu        sync.Mutex
	entries   map[memoryKey]*list.Element // of memoryEntry
	used      *list.List                  // the most recently used entry is first
	byID      map[string]map[memoryKey]bool
	confirmed time.Time            // the feed had no further changes after this time
	evicted   map[string]time.Time // when a principal was removed because of a change
	cleared   time.Time            // when all were removed
}

func newMemory(capacity int) *memory {
	m := &memory{capacity: capacity}
	m.reset()
	return m
}

func (m *memory) reset() {
	m.entries, m.used, m.byID, m.evicted = map[memoryKey]*list.Element{}, list.New(), map[string]map[memoryKey]bool{}, map[string]time.Time{}
}

// get returns the principal of a credential, or nil if it may have changed. Its age alone proves nothing:
// the node that answered can be a second behind.
func (m *memory) get(key memoryKey) *Principal {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	element := m.entries[key]
	if element == nil {
		return nil
	}
	e := element.Value.(*memoryEntry)
	age := now.Sub(e.loaded)
	if age >= readAgain || !e.expires.IsZero() && !now.Before(e.expires) {
		m.remove(key)
		return nil
	}
	if now.Sub(m.confirmed) >= trust {
		return nil
	}
	m.used.MoveToFront(element)
	return e.principal
}

// add keeps a principal, unless it may have changed since the request began. The answer of a node can be
// up to a second old, so a principal that has changed in the second before is not kept either.
func (m *memory) add(key memoryKey, p *Principal, began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	changed := m.cleared
	if at := m.evicted[p.Caller.ID]; at.After(changed) {
		changed = at
	}
	isKept := p.Caller.Type == "user" || p.Caller.Type == "service_account"
	if !isKept || time.Since(began) > slowestLoad || changed.After(began.Add(-nodeLag)) {
		return
	}
	m.entries[key] = m.used.PushFront(&memoryEntry{key, p, began, expiry(p)})
	if m.byID[p.Caller.ID] == nil {
		m.byID[p.Caller.ID] = map[memoryKey]bool{}
	}
	m.byID[p.Caller.ID][key] = true
	for len(m.entries) > m.capacity {
		m.remove(m.used.Back().Value.(*memoryEntry).key)
	}
}

// forget removes a credential that was refused.
func (m *memory) forget(key memoryKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
}

// apply removes the principals that the changes affect.
func (m *memory) apply(changes []Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range changes {
		subject := changes[i].Data.Subject
		switch {
		case harmless[changes[i].Type] || subject.Type == "webhook":
		case (subject.Type == "user" || subject.Type == "service_account") && subject.ID != "":
			m.evict(subject.ID)
		default: // a role or the settings of the tenant, or a later version
			m.clearAll()
		}
	}
}

// confirm records that the feed had no further changes after the time.
func (m *memory) confirm(began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if began.After(m.confirmed) {
		m.confirmed = began
	}
}

// clear removes all principals, because changes may have been missed.
func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clearAll()
}

func (m *memory) evict(id string) {
	now := time.Now()
	for key := range m.byID[id] {
		m.remove(key)
	}
	m.evicted[id] = now
	if len(m.evicted) <= m.capacity {
		return
	}
	for id, at := range m.evicted {
		if now.Sub(at) > slowestLoad+nodeLag {
			delete(m.evicted, id)
		}
	}
	if len(m.evicted) > m.capacity {
		m.clearAll()
	}
}

func (m *memory) clearAll() {
	m.cleared = time.Now()
	m.reset()
}

func (m *memory) remove(key memoryKey) {
	element := m.entries[key]
	if element == nil {
		return
	}
	id := element.Value.(*memoryEntry).principal.Caller.ID
	m.used.Remove(element)
	delete(m.entries, key)
	delete(m.byID[id], key)
	if len(m.byID[id]) == 0 {
		delete(m.byID, id)
	}
}

// expiry returns when the session, the token or the first assignment expires, or zero.
func expiry(p *Principal) (first time.Time) {
	times := []time.Time{p.Session.ExpiresAt, p.Session.IdleExpiresAt}
	for _, t := range []*time.Time{p.Session.TokenExpiresAt, p.PermissionsExpireAt} {
		if t != nil {
			times = append(times, *t)
		}
	}
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
