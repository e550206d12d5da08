package storetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var operatorCases = []testCase{
	{"An operator's key reads back in every member, in every tenant's transaction", func(f *fixture) {
		all, some := anOperatorKey(), anOperatorKey()
		some.Tenants, some.LastUsedAt = []string{"acme", "other"}, start+second
		follower, support := anOperatorKey(), anOperatorKey()
		follower.Scopes = []rolecall.OperatorScope{rolecall.ScopeChanges}
		support.Scopes, support.Tenants = []rolecall.OperatorScope{rolecall.ScopeLookup, rolecall.ScopeTenants}, []string{"acme"}
		for _, k := range []rolecall.OperatorKey{all, some, follower, support} {
			hash := f.putOperatorKey(k)
			same(f, f.operatorKey(hash), k)
			same(f, read(f, func(tx *store.Tx) (rolecall.OperatorKey, error) { return tx.OperatorKeyByID(k.ID) }), k)
			same(f, f.in(rolecall.TenantID{}).operatorKey(hash), k)
		}
	}},
	{"An unknown hash of an operator key is not found", func(f *fixture) {
		f.putOperatorKey(anOperatorKey())
		f.is(f.tryOperatorKey(aHash()), rolecall.ErrNotFound)
	}},
	{"Operator keys are listed by id, after a given id", func(f *fixture) {
		var ids []rolecall.OperatorKeyID
		for range 5 {
			k := anOperatorKey()
			f.putOperatorKey(k)
			ids = append(ids, k.ID)
		}
		list := func(after rolecall.OperatorKeyID, limit int) (listed []rolecall.OperatorKeyID) {
			for _, k := range read(f, func(tx *store.Tx) ([]rolecall.OperatorKey, error) { return tx.OperatorKeys(after, limit) }) {
				listed = append(listed, k.ID)
			}
			return listed
		}
		same(f, list(rolecall.OperatorKeyID{}, 2), ids[:2])
		same(f, list(ids[1], 2), ids[2:4])
		same(f, list(ids[3], 2), ids[4:])
		same(f, list(ids[4], 2), nil)
	}},
	{"The last use of an operator's key is written once a minute at most", func(f *fixture) {
		k := anOperatorKey()
		hash := f.putOperatorKey(k)
		for _, use := range []struct{ at, want rolecall.Time }{
			{start, start}, {start + minute - 1, start}, {start + minute, start + minute}, {start, start + minute},
		} {
			f.write(func(tx *store.Tx) { tx.TouchOperatorKey(k.ID, use.at) })
			same(f, f.operatorKey(hash).LastUsedAt, use.want)
		}
	}},
	{"A removed operator's key is not found, and others stay", func(f *fixture) {
		k, other := anOperatorKey(), anOperatorKey()
		hash, kept := f.putOperatorKey(k), f.putOperatorKey(other)
		remove := func() bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteOperatorKey(k.ID) })
		}
		same(f, remove(), true)
		same(f, remove(), false)
		f.is(f.tryOperatorKey(hash), rolecall.ErrNotFound)
		same(f, f.operatorKey(kept), other)
	}},
	{"An operator's request reads back in every member, from every tenant", func(f *fixture) {
		k := f.aRequest()
		f.write(func(tx *store.Tx) { tx.InsertKey(k) })
		same(f, f.request(k), k)
		same(f, f.in(rolecall.TenantID{}).request(k), k)
	}},
	{"One of many concurrent requests creates a tenant, in the transaction that claims its key", func(f *fixture) {
		k := f.aRequest()
		f.oneWins(parallel(20, func(i int) error {
			tenant := aTenant("made")
			return f.in(tenant.ID).tryWrite(func(tx *store.Tx) {
				tx.InsertKey(k)
				tx.InsertTenant(tenant)
			})
		}), rolecall.ErrKeyClaimed)
		f.is(f.tryTenant("made"), nil)
	}},
	{"The key of an operator's request is unique per operator and operation, and differs from keys of users", func(f *fixture) {
		k := f.aRequest()
		otherKey, otherOperation, ofUser := k, k, k
		otherKey.Operator = anOperatorKey().ID
		otherOperation.Operation = "other"
		ofUser.UserID, ofUser.Operator = rolecall.UserID(k.Operator), rolecall.OperatorKeyID{}
		for _, key := range []rolecall.IdempotencyKey{k, otherKey, otherOperation, ofUser} {
			f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertKey(key) }), nil)
		}
		same(f, f.key(ofUser).UserID, ofUser.UserID)
	}},
	{"Only an expired request of an operator is removed", func(f *fixture) {
		k := f.aRequest()
		f.write(func(tx *store.Tx) { tx.InsertKey(k) })
		f.write(func(tx *store.Tx) { tx.DeleteKey(k, k.ExpiresAt-1) })
		same(f, f.request(k), k)
		f.write(func(tx *store.Tx) { tx.DeleteKey(k, k.ExpiresAt+1) })
		f.is(f.tryRequest(k), rolecall.ErrNotFound)
	}},
	{"Requests of an operator are counted up to the limit, and purged in bounded steps", func(f *fixture) {
		k, other := f.aRequest(), f.aRequest()
		other.ExpiresAt = start + 30*day
		f.write(func(tx *store.Tx) { tx.InsertKey(other) })
		for range 5 {
			k.Hash = aHash()
			f.write(func(tx *store.Tx) { tx.InsertKey(k) })
		}
		for limit, want := range map[int]int{3: 3, 5: 5, 100: 5} {
			same(f, read(f, func(tx *store.Tx) (int, error) { return tx.CountKeys(k, limit) }), want)
		}
		for _, purge := range []struct {
			now  rolecall.Time
			want int
		}{{k.ExpiresAt - 1, 0}, {k.ExpiresAt, 3}, {k.ExpiresAt, 2}, {k.ExpiresAt, 0}} {
			same(f, change(f, func(tx *store.Tx) (int, error) { return tx.PurgeRequests(purge.now, 3) }), purge.want)
		}
		same(f, f.request(other), other)
	}},
}

// anOperatorKey returns a key for all tenants that is not stored yet.
func anOperatorKey() rolecall.OperatorKey {
	draft := rolecall.OperatorKeyDraft{Name: "Sign-ups", Lifetime: rolecall.OperatorKeyLifetimeMax}
	return draft.OperatorKey(start)
}

// putOperatorKey writes the key and returns its hash.
func (f *fixture) putOperatorKey(k rolecall.OperatorKey) []byte {
	f.Helper()
	hash := aHash()
	f.write(func(tx *store.Tx) { tx.InsertOperatorKey(k, hash) })
	return hash
}

func (f *fixture) operatorKey(hash []byte) rolecall.OperatorKey {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.OperatorKey, error) { return tx.OperatorKeyByToken(hash) })
}

func (f *fixture) tryOperatorKey(hash []byte) error {
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.OperatorKey, error) { return tx.OperatorKeyByToken(hash) })
	return err
}

// aRequest returns an unstored idempotency key of a new operator key.
func (f *fixture) aRequest() rolecall.IdempotencyKey {
	k := f.aKey()
	k.UserID, k.EventID, k.Operator = rolecall.UserID{}, rolecall.EventID{}, anOperatorKey().ID
	return k
}

func (f *fixture) request(k rolecall.IdempotencyKey) rolecall.IdempotencyKey {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.IdempotencyKey, error) { return tx.Key(k) })
}

func (f *fixture) tryRequest(k rolecall.IdempotencyKey) error {
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.IdempotencyKey, error) { return tx.Key(k) })
	return err
}
