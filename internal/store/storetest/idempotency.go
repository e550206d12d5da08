package storetest

import (
	"bytes"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var idempotencyCases = []testCase{
	{"A key reads back in every member", func(f *fixture) {
		k := f.insertedKey()
		same(f, f.key(k), k)
	}},
	{"An unknown key is not found", func(f *fixture) {
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.IdempotencyKey, error) { return tx.Key(f.aKey()) })
		f.is(err, rolecall.ErrNotFound)
	}},
	{"One of many concurrent requests claims the key and only it has an effect", func(f *fixture) {
		k := f.aKey()
		f.oneWins(parallel(20, func(int) error {
			u := aUser("Ada Lovelace")
			return f.tryWrite(func(tx *store.Tx) {
				tx.InsertKey(k)
				tx.InsertUser(u)
			})
		}), rolecall.ErrKeyClaimed)
		same(f, len(f.readAll(everyone(), nil)), 1)
	}},
	{"A claimed key is reported before any other violation", func(f *fixture) {
		k, u := f.aKey(), aUser("Ada Lovelace")
		repeat := func() error {
			return f.tryWrite(func(tx *store.Tx) {
				tx.InsertKey(k)
				tx.InsertUser(u)
			})
		}
		f.is(repeat(), nil)
		f.is(repeat(), rolecall.ErrKeyClaimed)
	}},
	{"A failed request does not claim its key", func(f *fixture) {
		taken, k := f.newUser("Ada Lovelace"), f.aKey()
		u := aUser("Ada Byron")
		u.Email = taken.Email
		f.is(f.tryWrite(func(tx *store.Tx) {
			tx.InsertKey(k)
			tx.InsertUser(u)
		}), rolecall.ErrEmailTaken)
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertKey(k) }), nil)
	}},
	{"User and operation are part of the key", func(f *fixture) {
		k := f.aKey()
		otherUser, otherOperation, otherKey := k, k, k
		otherUser.UserID = f.newUser("Grace Hopper").ID
		otherOperation.Operation = "createRole"
		otherKey.Hash = aHash()
		for _, key := range []rolecall.IdempotencyKey{k, otherUser, otherOperation, otherKey} {
			f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertKey(key) }), nil)
		}
		f.is(f.in(f.newTenant("other")).tryWrite(func(tx *store.Tx) { tx.InsertKey(k) }), nil)
	}},
	{"Only expired keys are removed", func(f *fixture) {
		k := f.insertedKey()
		f.write(func(tx *store.Tx) { tx.DeleteKey(k, k.ExpiresAt-1) })
		same(f, f.key(k), k)
		f.write(func(tx *store.Tx) { tx.DeleteKey(k, k.ExpiresAt+1) })
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.IdempotencyKey, error) { return tx.Key(k) })
		f.is(err, rolecall.ErrNotFound)
	}},
	{"An expired key can be claimed anew in one update", func(f *fixture) {
		k := f.insertedKey()
		next := k
		next.Fingerprint, next.ExpiresAt = aHash(), k.ExpiresAt+day
		f.write(func(tx *store.Tx) {
			tx.DeleteKey(next, k.ExpiresAt+1)
			tx.InsertKey(next)
		})
		same(f, f.key(k), next)
	}},
	{"Keys of a user are counted up to the limit", func(f *fixture) {
		k := f.aKey()
		for range 5 {
			k.Hash = aHash()
			f.write(func(tx *store.Tx) { tx.InsertKey(k) })
		}
		f.write(func(tx *store.Tx) { tx.InsertKey(f.aKey()) })
		for limit, want := range map[int]int{3: 3, 5: 5, 100: 5} {
			same(f, read(f, func(tx *store.Tx) (int, error) { return tx.CountKeys(k, limit) }), want)
		}
		same(f, read(f, func(tx *store.Tx) (int, error) { return tx.CountKeys(f.aKey(), 10) }), 0)
	}},
	{"A key keeps no personal data of a deleted user", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.insertedKey()
		k := f.aKey()
		k.ResourceID = rolecall.AnyID(u.ID)
		f.insertKey(k)
		same(f, f.key(k), k)
		f.deleteAt(u, start)
		unknown := k
		unknown.Resource = nil
		same(f, f.key(k), unknown)
		same(f, f.key(other), other)
	}},
}

// insertedKey inserts a new key and the event of the creation, and returns the key.
func (f *fixture) insertedKey() rolecall.IdempotencyKey {
	f.Helper()
	k := f.aKey()
	f.insertKey(k)
	return k
}

// insertKey inserts the key and the event of the creation.
func (f *fixture) insertKey(k rolecall.IdempotencyKey) {
	f.Helper()
	e := anEvent(rolecall.UserID(k.ResourceID))
	e.ID, e.Values = k.EventID, &rolecall.EventValues{After: k.Resource}
	f.write(func(tx *store.Tx) {
		tx.InsertKey(k)
		tx.InsertEvent(e)
	})
}

// aKey returns a key that is not stored yet. Its user is not stored either.
func (f *fixture) aKey() rolecall.IdempotencyKey {
	return rolecall.IdempotencyKey{
		UserID: aUser("Ada Lovelace").ID, Operation: "createUser", Hash: aHash(), Fingerprint: bytes.Repeat([]byte{0, 0xff}, 16),
		ExpiresAt: start + day, ResourceID: rolecall.NewID[any](start), EventID: rolecall.NewID[rolecall.Event](start), Resource: []byte(`{"name":"Zoë \"Z\""}`),
	}
}

func (f *fixture) key(k rolecall.IdempotencyKey) rolecall.IdempotencyKey {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.IdempotencyKey, error) {
		return tx.Key(rolecall.IdempotencyKey{UserID: k.UserID, Operation: k.Operation, Hash: k.Hash})
	})
}
