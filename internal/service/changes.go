package service

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
)

// silenceLimit is how long after the last word from the store a process still
// counts as being told of changes: one word may be late.
const silenceLimit = 500 * time.Millisecond

// changes remembers when something last changed: each change takes the next
// number, and a slot keeps the number of the last change of the ids that share
// it. The slots are fixed, so memory does not grow with what is served.
//
// It also knows up to which moment it has been told what other processes changed.
type changes struct {
	now   func() rolecall.Time
	told  atomic.Int64 // until when: a rolecall.Time
	last  atomic.Uint64
	all   atomic.Uint64 // the last change of everything
	slots [4096]atomic.Uint64
}

// newChanges returns changes of which none concerns anybody yet: nothing is cached.
func newChanges(now func() rolecall.Time) *changes {
	c := &changes{now: now}
	c.Current(0)
	return c
}

func (c *changes) slot(id [16]byte) *atomic.Uint64 {
	return &c.slots[binary.BigEndian.Uint16(id[14:])%uint16(len(c.slots))] // the tail of an id is random
}

// mark records a change of what id names. It comes after the commit and before
// the answer.
func (c *changes) mark(id [16]byte) { c.raise(c.slot(id)) }

func (c *changes) raise(slot *atomic.Uint64) {
	number := c.last.Add(1)
	for old := slot.Load(); old < number && !slot.CompareAndSwap(old, number); old = slot.Load() {
	}
}

// since reports whether one of the ids may have changed after the change of that
// number.
func (c *changes) since(number uint64, ids ...[16]byte) bool {
	for _, id := range ids {
		if c.slot(id).Load() > number {
			return true
		}
	}
	return c.all.Load() > number
}

// Changed marks what id names, or everything if it is zero (Watcher).
func (c *changes) Changed(id rolecall.AnyID) {
	if id.IsZero() {
		c.raise(&c.all)
		return
	}
	c.mark(id)
}

// Current notes that the changes until lag ago are marked (Watcher).
func (c *changes) Current(lag time.Duration) { c.told.Store(int64(c.now().Add(-lag))) }

// behind returns for how long now changes by other processes may have gone unseen.
func (c *changes) behind(now rolecall.Time) time.Duration {
	return now.Sub(rolecall.Time(c.told.Load()))
}

// watched reports whether this process is being told what others change. A clock
// that was set back ends it too.
func (c *changes) watched(now rolecall.Time) bool { return c.behind(now).Abs() < silenceLimit }

// announcing is the store as the verbs use it. What they change counts no more in
// the caches: here from the commit on, elsewhere as soon as the announcement that
// is committed with it arrives. So no verb can forget to say so. And mail that they
// commit is sent at once.
type announcing struct {
	Store
	changes *changes
	outbox  *outbox
}

// Update runs fn, with what it changes marked and announced. A failure is marked
// too: its outcome may be unknown.
func (a announcing) Update(ctx context.Context, tenant rolecall.TenantID, fn func(Tx) error) error {
	tx := &announcingTx{tenant: tenant}
	err := a.Store.Update(ctx, tenant, func(inner Tx) error {
		tx.Tx, tx.changed, tx.mailed = inner, nil, false
		return fn(tx)
	})
	for _, id := range tx.changed {
		a.changes.mark(id)
	}
	if tx.mailed {
		a.outbox.filled()
	}
	return err
}

// announcingTx announces each write of what is cached: tenants, who a session, a
// token or an operator's key is and may do. The last use of these is only marked,
// because a node that thinks them unused looks again. What is created, nobody has
// cached; only the name of a tenant can be cached as unknown.
type announcingTx struct {
	Tx
	tenant  rolecall.TenantID
	changed [][16]byte
	mailed  bool
}

func (t *announcingTx) changes(id [16]byte) {
	t.changed = append(t.changed, id)
	t.Announce(id)
}

// changesIf is changes for a write that tells whether it changed anything.
func (t *announcingTx) changesIf(ok bool, err error, id [16]byte) (bool, error) {
	if ok && err == nil {
		t.changes(id)
	}
	return ok, err
}

// UpdateUser announces the user.
func (t *announcingTx) UpdateUser(old, changed rolecall.User) (bool, error) {
	ok, err := t.Tx.UpdateUser(old, changed)
	return t.changesIf(ok, err, old.ID)
}

// DeleteUser announces the user.
func (t *announcingTx) DeleteUser(u rolecall.User, at rolecall.Time) (bool, error) {
	ok, err := t.Tx.DeleteUser(u, at)
	return t.changesIf(ok, err, u.ID)
}

// UpdateRole announces the tenant: anybody may hold the role.
func (t *announcingTx) UpdateRole(old, changed rolecall.Role) (bool, error) {
	ok, err := t.Tx.UpdateRole(old, changed)
	return t.changesIf(ok, err, t.tenant)
}

// DeleteRole announces the tenant.
func (t *announcingTx) DeleteRole(r rolecall.Role) (bool, error) {
	ok, err := t.Tx.DeleteRole(r)
	return t.changesIf(ok, err, t.tenant)
}

// TakeAssignments announces the tenant, instead of very many users.
func (t *announcingTx) TakeAssignments(role rolecall.Role, limit int) ([]rolecall.Assignment, error) {
	taken, err := t.Tx.TakeAssignments(role, limit)
	if len(taken) > 0 {
		t.changes(t.tenant)
	}
	return taken, err
}

// PutAssignment announces the user.
func (t *announcingTx) PutAssignment(a rolecall.Assignment) {
	t.Tx.PutAssignment(a)
	t.changes(a.UserID)
}

// DeleteAssignment announces the user.
func (t *announcingTx) DeleteAssignment(user rolecall.UserID, role rolecall.RoleID) (bool, error) {
	ok, err := t.Tx.DeleteAssignment(user, role)
	return t.changesIf(ok, err, user)
}

// InsertMail notes that there is something to send.
func (t *announcingTx) InsertMail(m rolecall.OutboxMail) {
	t.Tx.InsertMail(m)
	t.mailed = true
}

// TouchSession marks the session.
func (t *announcingTx) TouchSession(id rolecall.SessionID, at rolecall.Time) {
	t.Tx.TouchSession(id, at)
	t.changed = append(t.changed, id)
}

// ConfirmGeneration announces the session.
func (t *announcingTx) ConfirmGeneration(id rolecall.SessionID, generation int64, at rolecall.Time) {
	t.Tx.ConfirmGeneration(id, generation, at)
	t.changes(id)
}

// ConfirmSession announces the session.
func (t *announcingTx) ConfirmSession(id rolecall.SessionID, at rolecall.Time) (bool, error) {
	ok, err := t.Tx.ConfirmSession(id, at)
	return t.changesIf(ok, err, id)
}

// DeleteSession announces the session.
func (t *announcingTx) DeleteSession(id rolecall.SessionID) (bool, error) {
	ok, err := t.Tx.DeleteSession(id)
	return t.changesIf(ok, err, id)
}

// DeleteUserSession announces the session.
func (t *announcingTx) DeleteUserSession(user rolecall.UserID, id rolecall.SessionID, settings rolecall.TenantSettings, now rolecall.Time) (bool, error) {
	ok, err := t.Tx.DeleteUserSession(user, id, settings, now)
	return t.changesIf(ok, err, id)
}

// DeleteOldestSessions announces the user.
func (t *announcingTx) DeleteOldestSessions(user rolecall.UserID, keep int, settings rolecall.TenantSettings, now rolecall.Time) ([]rolecall.SessionID, error) {
	ended, err := t.Tx.DeleteOldestSessions(user, keep, settings, now)
	if len(ended) > 0 {
		t.changes(user)
	}
	return ended, err
}

// DeleteSessions announces the user.
func (t *announcingTx) DeleteSessions(user rolecall.UserID, except rolecall.SessionID) ([]rolecall.SessionID, error) {
	ended, err := t.Tx.DeleteSessions(user, except)
	if len(ended) > 0 {
		t.changes(user)
	}
	return ended, err
}

// UpdateServiceAccount announces the service account.
func (t *announcingTx) UpdateServiceAccount(old, changed rolecall.ServiceAccount) (bool, error) {
	ok, err := t.Tx.UpdateServiceAccount(old, changed)
	return t.changesIf(ok, err, old.ID)
}

// DeleteServiceAccount announces the service account.
func (t *announcingTx) DeleteServiceAccount(a rolecall.ServiceAccount) (bool, error) {
	ok, err := t.Tx.DeleteServiceAccount(a)
	return t.changesIf(ok, err, a.ID)
}

// PutServiceAccountRole announces the service account.
func (t *announcingTx) PutServiceAccountRole(a rolecall.Assignment) {
	t.Tx.PutServiceAccountRole(a)
	t.changes(a.UserID)
}

// DeleteServiceAccountRole announces the service account.
func (t *announcingTx) DeleteServiceAccountRole(id rolecall.ServiceAccountID, role rolecall.RoleID) (bool, error) {
	ok, err := t.Tx.DeleteServiceAccountRole(id, role)
	return t.changesIf(ok, err, id)
}

// TakeServiceAccountRoles announces the tenant, as TakeAssignments does.
func (t *announcingTx) TakeServiceAccountRoles(role rolecall.Role, limit int) ([]rolecall.Assignment, error) {
	taken, err := t.Tx.TakeServiceAccountRoles(role, limit)
	if len(taken) > 0 {
		t.changes(t.tenant)
	}
	return taken, err
}

// TouchAPIToken marks the token.
func (t *announcingTx) TouchAPIToken(id rolecall.APITokenID, at rolecall.Time) {
	t.Tx.TouchAPIToken(id, at)
	t.changed = append(t.changed, id)
}

// DeleteAPIToken announces the token.
func (t *announcingTx) DeleteAPIToken(id rolecall.APITokenID) (bool, error) {
	ok, err := t.Tx.DeleteAPIToken(id)
	return t.changesIf(ok, err, id)
}

// DeleteUserAPITokens announces the user.
func (t *announcingTx) DeleteUserAPITokens(user rolecall.UserID, now rolecall.Time) ([]rolecall.APIToken, error) {
	revoked, err := t.Tx.DeleteUserAPITokens(user, now)
	if len(revoked) > 0 {
		t.changes(user)
	}
	return revoked, err
}

// ConfirmTOTP announces the user.
func (t *announcingTx) ConfirmTOTP(user rolecall.UserID, pending []byte, step int64, at rolecall.Time) (bool, error) {
	ok, err := t.Tx.ConfirmTOTP(user, pending, step, at)
	return t.changesIf(ok, err, user)
}

// DeleteTOTP announces the user.
func (t *announcingTx) DeleteTOTP(user rolecall.UserID) {
	t.Tx.DeleteTOTP(user)
	t.changes(user)
}

// InsertPasskey announces the user.
func (t *announcingTx) InsertPasskey(key rolecall.Passkey) {
	t.Tx.InsertPasskey(key)
	t.changes(key.UserID)
}

// DeletePasskey announces the user.
func (t *announcingTx) DeletePasskey(user rolecall.UserID, id []byte) (bool, error) {
	ok, err := t.Tx.DeletePasskey(user, id)
	return t.changesIf(ok, err, user)
}

// DeleteFactors announces the user.
func (t *announcingTx) DeleteFactors(user rolecall.UserID) {
	t.Tx.DeleteFactors(user)
	t.changes(user)
}

// UpdateTenant announces the tenant.
func (t *announcingTx) UpdateTenant(old, changed rolecall.Tenant) (bool, error) {
	ok, err := t.Tx.UpdateTenant(old, changed)
	return t.changesIf(ok, err, old.ID)
}

// DeleteTenant announces the tenant.
func (t *announcingTx) DeleteTenant(tenant rolecall.Tenant, purgeAt rolecall.Time) (bool, error) {
	ok, err := t.Tx.DeleteTenant(tenant, purgeAt)
	return t.changesIf(ok, err, tenant.ID)
}

// InsertTenant marks the name, which this process may remember as unknown.
func (t *announcingTx) InsertTenant(tenant rolecall.Tenant) {
	t.Tx.InsertTenant(tenant)
	t.changed = append(t.changed, nameMark(tenant.Name))
}

// RestoreTenant announces the tenant and marks its name.
func (t *announcingTx) RestoreTenant(tenant rolecall.Tenant, at rolecall.Time) (bool, error) {
	t.changed = append(t.changed, nameMark(tenant.Name))
	ok, err := t.Tx.RestoreTenant(tenant, at)
	return t.changesIf(ok, err, tenant.ID)
}

// TouchOperatorKey marks the key.
func (t *announcingTx) TouchOperatorKey(id rolecall.OperatorKeyID, at rolecall.Time) {
	t.Tx.TouchOperatorKey(id, at)
	t.changed = append(t.changed, id)
}

// ClearAttempts announces the buckets, which nodes may remember as full.
func (t *announcingTx) ClearAttempts(buckets []rolecall.Bucket) {
	t.Tx.ClearAttempts(buckets)
	for _, bucket := range buckets {
		t.changes(bucketID(bucket))
	}
}

// DeleteOperatorKey announces the key.
func (t *announcingTx) DeleteOperatorKey(id rolecall.OperatorKeyID) (bool, error) {
	ok, err := t.Tx.DeleteOperatorKey(id)
	return t.changesIf(ok, err, id)
}
