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

	// trustOfAll is the same for the feed of all tenants, into which a node puts events some milliseconds after
	// their commit.
	trustOfAll = 500 * time.Millisecond

	// nodeLag is the time by which the answer of a node of Rolecall can be late.
	nodeLag = time.Second

	// readAgain is the age at which an entry is read again, which extends the idle time of the session. It is the
	// default time for which a replaced session token works, so that Rolecall sees a later use of the token.
	readAgain = 10 * time.Second

	// slowestLoad is the time after which the response to a load is not kept.
	slowestLoad = 10 * time.Second

	// textsPerEntry limits the permissions and departments of all principals together: their average number for an
	// entry of a full memory.
	textsPerEntry = 100
)

// harmless are the types of changes that do not affect what a caller may do: those with KeepsAccess in event.go of
// Rolecall. Other types, also those of later versions, do.
var harmless = map[string]bool{
	"group.created": true, "user.created": true, "user.invited": true, "user.invitation_withdrawn": true, "user.email_change_requested": true,
	"role.created": true, "session.started": true, "session.sign_in_failed": true, "user.password_reset_requested": true,
	"user.recovery_codes_made": true, "user.recovery_code_used": true, "connection.created": true,
	"connection.tested":         true,
	"connection.groups_skipped": true,
	"directory.created":         true, "directory.updated": true, "directory.deleted": true, "directory.token_created": true, "directory.token_revoked": true,
	"token.created": true, "service_account.created": true, "tenant.logo_changed": true,
	"tenant.logo_removed": true, "request.refused": true, "mail.undeliverable": true, "users.exported": true,
	"role.users_exported": true, "events.exported": true, "job.started": true, "job.canceled": true, "job.ended": true,
}

// memoryKey is the hash of a credential, so that the memory has no secrets.
type memoryKey [sha256.Size]byte

type memoryEntry struct {
	key       memoryKey
	tenant    string
	principal *Principal
	texts     int
	loaded    time.Time // when the request began
	expires   time.Time // zero: never
}

// memory keeps principals by their credentials, without the least recently used: at most capacity, with at most
// textsPerEntry times as many permissions and departments, because a principal can have 50,000 of them. It is
// safe for concurrent use. Times are those at which a request to Rolecall began.
type memory struct {
	capacity int
	trust    time.Duration

	mu        sync.Mutex
	entries   map[memoryKey]*list.Element   // of memoryEntry
	texts     int                           // of all entries
	used      *list.List                    // the most recently used entry is first
	byName    map[string]map[memoryKey]bool // by the ID of the principal, and by the tenant
	confirmed time.Time                     // the feed had no further changes after this time
	evicted   map[string]time.Time          // when a principal or a tenant was removed because of a change
	cleared   time.Time                     // when all were removed
}

func newMemory(capacity int, trust time.Duration) *memory {
	m := &memory{capacity: capacity, trust: trust}
	m.reset()
	return m
}

func (m *memory) reset() {
	m.texts, m.entries, m.used, m.byName, m.evicted = 0, map[memoryKey]*list.Element{}, list.New(), map[string]map[memoryKey]bool{}, map[string]time.Time{}
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
	if now.Sub(m.confirmed) >= m.trust {
		return nil
	}
	m.used.MoveToFront(element)
	return e.principal
}

// add keeps a principal, unless it may have changed since the request began. The answer of a node can be
// up to a second old, so a principal that has changed in the second before is not kept either.
func (m *memory) add(key memoryKey, tenant string, p *Principal, began time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
	changed := m.cleared
	for _, name := range []string{p.Caller.ID, tenant} {
		if at := m.evicted[name]; at.After(changed) {
			changed = at
		}
	}
	isKept := p.Caller.Type == "user" || p.Caller.Type == "service_account"
	if !isKept || time.Since(began) > slowestLoad || changed.After(began.Add(-nodeLag)) {
		return
	}
	m.entries[key] = m.used.PushFront(&memoryEntry{key, tenant, p, textsOf(p), began, expiry(p)})
	m.texts += textsOf(p)
	for _, name := range []string{p.Caller.ID, tenant} {
		if m.byName[name] == nil {
			m.byName[name] = map[memoryKey]bool{}
		}
		m.byName[name][key] = true
	}
	for len(m.entries) > m.capacity || m.texts > m.capacity*textsPerEntry {
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
		case changes[i].Data.Tenant != "": // a role or the settings of the tenant, or a later version
			m.evict(changes[i].Data.Tenant)
		default:
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

// evict removes the principal with the ID, or the principals of the tenant with the name.
func (m *memory) evict(name string) {
	now := time.Now()
	for key := range m.byName[name] {
		m.remove(key)
	}
	m.evicted[name] = now
	if len(m.evicted) <= m.capacity {
		return
	}
	for name, at := range m.evicted {
		if now.Sub(at) > slowestLoad+nodeLag {
			delete(m.evicted, name)
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
	e := element.Value.(*memoryEntry)
	m.used.Remove(element)
	m.texts -= e.texts
	delete(m.entries, key)
	for _, name := range []string{e.principal.Caller.ID, e.tenant} {
		delete(m.byName[name], key)
		if len(m.byName[name]) == 0 {
			delete(m.byName, name)
		}
	}
}

// textsOf returns the number of the permissions and departments of the principal.
func textsOf(p *Principal) int {
	n := len(p.Permissions)
	for i := range p.ScopedPermissions {
		n += len(p.ScopedPermissions[i].Reach.Departments) + len(p.ScopedPermissions[i].Permissions)
	}
	return n
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
