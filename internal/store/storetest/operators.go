package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var operatorCases = []testCase{
	{"The users with an address are found in all tenants, in the order of the tenants", func(f *fixture) {
		type found = rolecall.UserInTenant
		var want []found
		for i := range 4 {
			in := f
			if i > 0 {
				in = f.in(f.newTenant(fmt.Sprintf("other-%d", i)))
			}
			u, neighbor := aUser("Ada Lovelace"), aUser("Not Ada")
			u.Email, u.Status = "Ada.L'Or@Example.com", []rolecall.UserStatus{rolecall.UserActive, rolecall.UserPending, rolecall.UserSuspended, rolecall.UserActive}[i]
			in.write(func(tx *store.Tx) { tx.InsertUsers([]rolecall.User{u, neighbor}) })
			want = append(want, found{Tenant: rolecall.Tenant{ID: in.tenant}, UserID: u.ID, Status: u.Status})
		}
		slices.SortFunc(want, func(a, b found) int { return bytes.Compare(a.Tenant.ID[:], b.Tenant.ID[:]) })
		nobody := f.in(rolecall.TenantID{})
		searchIn := func(names []string, email string, after rolecall.TenantID, limit int) []found {
			return read(nobody, func(tx *store.Tx) ([]found, error) {
				return tx.UsersWithAddress(rolecall.EmailKey(email), names, after, limit)
			})
		}
		search := func(email string, after rolecall.TenantID, limit int) []found {
			return searchIn(nil, email, after, limit)
		}
		same(f, search("ada.l'or@example.com", rolecall.TenantID{}, 9), want)
		same(f, search("ada.l'or@example.com", rolecall.TenantID{}, 2), want[:2])
		same(f, search("ada.l'or@example.com", want[1].Tenant.ID, 9), want[2:])
		same(f, search("ada.l'or@example.com", want[3].Tenant.ID, 9), nil)
		same(f, search("ada.l_or@example.com", rolecall.TenantID{}, 9), nil)
		same(f, search("nobody@example.com", rolecall.TenantID{}, 9), nil)

		var names []string
		for _, w := range want {
			tenant := read(nobody, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.TenantByID(w.Tenant.ID) })
			names = append(names, tenant.Name)
		}
		same(f, searchIn([]string{names[3]}, "ada.l'or@example.com", rolecall.TenantID{}, 1), want[3:])
		same(f, searchIn([]string{names[3], names[1], "none"}, "ada.l'or@example.com", rolecall.TenantID{}, 1), want[1:2])
		same(f, searchIn([]string{names[3], names[1]}, "ada.l'or@example.com", want[1].Tenant.ID, 9), want[3:])
		same(f, searchIn([]string{"none"}, "ada.l'or@example.com", rolecall.TenantID{}, 1), nil)

		deleted := want[2].Tenant.ID
		f.in(deleted).update(func(tx *store.Tx) error {
			tenant, err := tx.TenantByID(deleted)
			if err == nil {
				_, err = tx.DeleteTenant(tenant, start)
			}
			return err
		})
		tenants := read(nobody, func(tx *store.Tx) ([]rolecall.Tenant, error) {
			return tx.TenantsByID([]rolecall.TenantID{want[0].Tenant.ID, deleted, want[3].Tenant.ID})
		})
		slices.SortFunc(tenants, func(a, b rolecall.Tenant) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		same(f, len(tenants), 2)
		same(f, search("ada.l'or@example.com", want[1].Tenant.ID, 1), want[3:])
		same(f, []rolecall.TenantID{tenants[0].ID, tenants[1].ID}, []rolecall.TenantID{want[0].Tenant.ID, want[3].Tenant.ID})
	}},
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

var tenantsChangeCases = []testCase{
	{"The numbers of all tenants get the places 1, 2, 3, and those of a tenant are in their order", func(f *fixture) {
		other := f.in(f.newTenant("other"))
		same(f, f.feedOfTenants(), rolecall.FeedOfTenants{})
		same(f, f.hasNews(), false)
		f.grow(2)
		other.grow(1)
		f.grow(1)
		same(f, f.hasNews(), true)
		same(f, f.givePlaces(), 3)
		same(f, f.hasNews(), false)
		same(f, f.givePlaces(), 0)
		other.grow(2)
		same(f, other.givePlaces(), 1)
		places := f.feedPlaces(0, 10)
		same(f, stretches(places), []stretch{{1, f.tenant, 1, 3}, {2, other.tenant, 1, 1}, {3, other.tenant, 2, 3}})
		same(f, places[0].Mark == places[1].Mark, true)
		same(f, places[0].Mark == places[2].Mark || places[2].Mark.IsZero(), false)
		same(f, f.feedPlaces(2, 2), places[1:2])
		same(f, f.feedOfTenants(), rolecall.FeedOfTenants{Last: 3})
	}},
	{"Numbers get no place if their transaction fails, or if no tenant has them", func(f *fixture) {
		f.record(anEvent(aUser("Ada Lovelace").ID))
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			_, err := tx.NumberEvents(start)
			return errors.Join(err, errRefused)
		}), errRefused)
		f.in(rolecall.TenantID{15: 1}).grow(2)
		same(f, f.hasNews(), false)
		f.number()
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			_, err := tx.GivePlaces(start)
			return errors.Join(err, errRefused)
		}), errRefused)
		same(f, f.givePlaces(), 1)
		same(f, stretches(f.feedPlaces(0, 10)), []stretch{{1, f.tenant, 1, 1}})
	}},
	{"Numbers that an older program gave get a place with the next ones, without those of deleted events", func(f *fixture) {
		published := func() bool { return read(f, func(tx *store.Tx) (bool, error) { return tx.IsPublished() }) }
		same(f, published(), true)
		f.grow(3)
		f.olderNumbers(0)
		same(f, published(), false)
		same(f, f.number(), 0)
		same(f, published(), true)
		same(f, f.givePlaces(), 1)
		f.grow(1)
		f.olderNumbers(3)
		same(f, f.purge(start, start+minute, 2), 2)
		same(f, f.feedOfTenants().Begin, rolecall.TenantsMark{Place: 1, Number: 2})
		f.olderNumbers(0)
		f.grow(1)
		same(f, f.givePlaces(), 1)
		same(f, stretches(f.feedPlaces(0, 10)), []stretch{{1, f.tenant, 1, 3}, {2, f.tenant, 4, 4}, {3, f.tenant, 3, 5}})
	}},
	{"A purge begins the feed of all tenants after the newest deleted event", func(f *fixture) {
		other := f.in(f.newTenant("other"))
		f.grow(3)
		f.givePlaces()
		other.grow(1)
		f.grow(2)
		f.givePlaces()
		other.grow(1)
		same(f, f.purge(start, start+second, 2), 2)
		same(f, f.feedOfTenants(), rolecall.FeedOfTenants{Last: 4, Begin: rolecall.TenantsMark{Place: 1, Number: 2}})
		same(f, f.purge(start, start+second, 2), 2)
		same(f, f.feedOfTenants().Begin, rolecall.TenantsMark{Place: 3, Number: 4})
		same(f, other.purge(start, start+second, 1), 1)
		same(f, f.feedOfTenants().Begin, rolecall.TenantsMark{Place: 3, Number: 4}) // it never goes back
		f.in(rolecall.TenantID{15: 1}).grow(1)
		same(f, f.in(rolecall.TenantID{15: 1}).purge(start, start+second, 10), 1)
		same(f, f.feedOfTenants().Begin, rolecall.TenantsMark{Place: 3, Number: 4})
		purged := func(limit int) int {
			return change(f, func(tx *store.Tx) (int, error) { return tx.PurgePlaces(start, limit) })
		}
		same(f, []int{purged(1), purged(10), purged(10)}, []int{1, 1, 0})
		same(f, stretches(f.feedPlaces(0, 10)), []stretch{{3, f.tenant, 4, 5}, {4, other.tenant, 2, 2}})
		f.grow(1)
		same(f, f.purge(start, start+second, 10), 2) // the last two, of which one has no place yet
		same(f, f.feedOfTenants(), rolecall.FeedOfTenants{Last: 5, Begin: rolecall.TenantsMark{Place: 5, Number: 6}})
	}},
	{"The feed of all tenants begins after the events of a tenant that is purged", func(f *fixture) {
		gone := f.in(f.newTenant("gone"))
		f.grow(1)
		gone.grow(2)
		f.grow(1)
		f.givePlaces()
		gone.record(anEvent(aUser("Ada Lovelace").ID))
		same(f, change(gone, func(tx *store.Tx) (bool, error) { return tx.DeleteTenant(gone.tenantByName("gone"), start) }), true)
		for !change(gone, func(tx *store.Tx) (bool, error) { return tx.PurgeTenant(start, 1) }) {
			same(f, f.feedOfTenants(), rolecall.FeedOfTenants{Last: 3, Begin: rolecall.TenantsMark{Place: 3, Number: 3}})
		}
		gone.grow(1)
		same(f, f.hasNews(), false)
		f.grow(1)
		same(f, f.givePlaces(), 1)
		same(f, stretches(f.feedPlaces(0, 10)), []stretch{{1, f.tenant, 1, 2}, {2, gone.tenant, 1, 2}, {3, gone.tenant, 3, 3}, {4, f.tenant, 3, 3}})
	}},
	{"A place has a limited number of numbers", func(f *fixture) {
		const most = rolecall.PlaceNumbersMax
		news := func(first, last int64) {
			f.is(f.database.Update(f.Context(), f.tenant, func(q store.Querier) error {
				q.Exec("insert into feed_news (tenant, first_number, last_number) values ($1, $2, $3)", f.tenant, first, last)
				return nil
			}), nil)
		}
		news(1, 5)
		news(6, 2*most+2)
		news(2*most+3, 2*most+4)
		same(f, f.givePlaces(), 3)
		places := f.feedPlaces(0, 10)
		same(f, stretches(places), []stretch{{1, f.tenant, 1, most}, {2, f.tenant, most + 1, 2 * most}, {3, f.tenant, 2*most + 1, 2*most + 4}})
		same(f, []int64{rolecall.PositionBefore(1), places[0].PositionOf(1), places[0].PositionOf(most), rolecall.PositionBefore(2), places[1].PositionOf(most + 1)},
			[]int64{1 << 24, 1<<24 + 1, 1<<24 + most, 2 << 24, 2<<24 + 1})
		place, passed := rolecall.PlaceAt(places[0].PositionOf(most))
		same(f, []int64{place, passed}, []int64{1, most})
		same(f, change(f, func(tx *store.Tx) (int64, error) { return tx.LockPlaces() }), 4<<24)
	}},
	{"New places wake the webhooks of operators, and no others", func(f *fixture) {
		operators := f.in(rolecall.OperatorsTenant)
		followed := func() bool { return read(f, func(tx *store.Tx) (bool, error) { return tx.IsFollowed() }) }
		same(f, followed(), false)
		of, w := f.newWebhook(start), operators.newWebhook(start)
		same(f, followed(), true)
		f.number()
		for _, c := range f.claimWebhooks(rolecall.QueueNew, start, 50) {
			same(f, f.settleWebhook(c, rolecall.WebhookIdle, start+minute), true)
		}
		woken := func() (ids []rolecall.WebhookID) {
			for _, c := range f.claimWebhooks(rolecall.QueueNew, start, 50) {
				ids = append(ids, c.WebhookID)
				same(f, f.settleWebhook(c, rolecall.WebhookIdle, start+minute), true)
			}
			return ids
		}
		same(f, len(woken()), 0)
		f.in(f.newTenant("other")).grow(1) // its feed has no webhooks
		same(f, len(woken()), 0)
		same(f, f.givePlaces(), 1)
		same(f, woken(), slices.Repeat([]rolecall.WebhookID{w.ID}, rolecall.WebhookPartitions))
		same(f, f.givePlaces(), 0)
		same(f, len(woken()), 0)
		f.grow(1)
		same(f, woken(), slices.Repeat([]rolecall.WebhookID{of.ID}, rolecall.WebhookPartitions))
		off := w
		off.Enabled, off.Version = false, 2
		same(f, operators.updateWebhook(w, off), true)
		same(f, followed(), false)
		same(f, f.givePlaces(), 1)
		same(f, len(woken()), 0)
	}},
	{"A purge keeps the places that webhooks of operators have not read", func(f *fixture) {
		operators := f.in(rolecall.OperatorsTenant)
		w := operators.newWebhook(start)
		f.growPlaces(6)
		same(f, f.purge(start, start+second, 5), 5)
		same(f, f.feedOfTenants().Begin, rolecall.TenantsMark{Place: 5, Number: 5})
		purged := func(now rolecall.Time) int {
			return change(f, func(tx *store.Tx) (int, error) { return tx.PurgePlaces(now, 10) })
		}
		same(f, purged(start), 0)
		parts := f.claimWebhooks(rolecall.QueueNew, start, 50)
		for i, c := range parts {
			c.Number = rolecall.PositionBefore(3)
			if i == 2 {
				c.Number--
			}
			same(f, f.settleWebhook(c, rolecall.WebhookIdle, start+minute), true)
		}
		same(f, purged(start), 1)
		operators.write(func(tx *store.Tx) { tx.SkipAll(w.ID, rolecall.PositionBefore(4), start) })
		operators.write(func(tx *store.Tx) {
			tx.ReplayWebhook(&w, rolecall.PositionBefore(3), rolecall.PositionBefore(7), start, start+1, start)
			tx.TestWebhook(w.ID, rolecall.NewID[rolecall.Event](start), start)
		})
		same(f, purged(start), 1) // the replay needs the third
		operators.write(func(tx *store.Tx) { tx.SkipAll(w.ID, rolecall.PositionBefore(4), start) })
		same(f, purged(start), 1)
		off := w
		off.Enabled, off.Version = false, 2
		same(f, operators.updateWebhook(w, off), true)
		same(f, purged(start.Add(rolecall.PlacesKept)), 0)
		same(f, purged(start.Add(100*365*24*time.Hour)), 1) // the times of marks can be later than those of the tests
		same(f, stretches(f.feedPlaces(0, 10)), []stretch{{5, f.tenant, 5, 5}, {6, f.tenant, 6, 6}})
	}},
	{"A purge keeps the places of a replay that continues when its webhook is enabled", func(f *fixture) {
		operators := f.in(rolecall.OperatorsTenant)
		w := operators.newWebhook(start)
		f.growPlaces(9)
		same(f, f.purge(start, start+second, 8), 8)
		purged := func() int {
			return change(f, func(tx *store.Tx) (int, error) { return tx.PurgePlaces(start, 10) })
		}
		off := w
		off.Enabled, off.Version = false, 2
		operators.write(func(tx *store.Tx) {
			tx.SkipAll(w.ID, rolecall.PositionBefore(10), start)
			tx.ReplayWebhook(&w, rolecall.PositionBefore(2), rolecall.PositionBefore(6), start, start+1, start)
		})
		same(f, operators.updateWebhook(w, off), true)
		same(f, []int{purged(), purged()}, []int{1, 0})
		operators.write(func(tx *store.Tx) {
			tx.ReplayWebhook(&off, rolecall.PositionBefore(4), rolecall.PositionBefore(6), start, start+1, start)
		})
		same(f, []int{purged(), purged()}, []int{2, 0})
		on := off
		on.Enabled, on.Version = true, 3
		same(f, operators.updateWebhook(off, on), true)
		for _, c := range f.claimWebhooks(rolecall.QueueNew, start, 50) {
			if c.Part >= rolecall.WebhookReplayPart { // the end of the replay
				c.Number = c.Until
				same(f, f.settleWebhook(c, rolecall.WebhookParked, rolecall.Never), true)
			}
		}
		same(f, []int{purged(), purged()}, []int{4, 0})
		same(f, stretches(f.feedPlaces(0, 10)), []stretch{{8, f.tenant, 8, 8}, {9, f.tenant, 9, 9}})
	}},
	{"Each number of each tenant has one place while many number and give places", placesOfManyWriters},
}

// stretch is a place in the feed of all tenants without its mark.
type stretch struct {
	place       int64
	tenant      rolecall.TenantID
	first, last int64
}

func stretches(places []rolecall.FeedPlace) []stretch {
	all := []stretch{}
	for _, p := range places {
		all = append(all, stretch{p.Place, p.Tenant, p.First, p.Last})
	}
	return all
}

// grow records n events, each in its own transaction, and numbers them.
func (f *fixture) grow(n int) {
	f.Helper()
	for range n {
		f.record(anEventAt(aUser("Ada Lovelace").ID, start))
	}
	f.number()
}

// growPlaces gives the tenant n numbers, each with its own place in the feed of all tenants.
func (f *fixture) growPlaces(n int) {
	f.Helper()
	for range n {
		f.grow(1)
		f.givePlaces()
	}
}

// olderNumbers changes the stored state as if an older program had given all numbers after published.
func (f *fixture) olderNumbers(published int64) {
	f.Helper()
	f.is(f.database.Update(f.Context(), f.tenant, func(q store.Querier) error {
		q.Exec("update feeds set published = $1 where tenant_id = $2", published, f.tenant)
		q.Exec("delete from feed_news where n > 0 and tenant = $1 and last_number > $2", f.tenant, published)
		return nil
	}), nil)
}

func (f *fixture) givePlaces() int {
	f.Helper()
	return change(f, func(tx *store.Tx) (int, error) { return tx.GivePlaces(start) })
}

func (f *fixture) hasNews() bool {
	f.Helper()
	return read(f, func(tx *store.Tx) (bool, error) { return tx.HasNews() })
}

func (f *fixture) feedOfTenants() rolecall.FeedOfTenants {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.FeedOfTenants, error) { return tx.FeedOfTenants() })
}

func (f *fixture) feedPlaces(from, to int64) []rolecall.FeedPlace {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.FeedPlace, error) { return tx.FeedPlaces(from, to, 1000) })
}

// placesOfManyWriters checks that the places are without gaps, and that each tenant has the numbers 1, 2,
// 3 in the order of the places, while many record events, number them and give places. A follower must
// read the same places while they are given.
func placesOfManyWriters(f *fixture) {
	const tenants, rounds = 4, 15
	var writing, placing sync.WaitGroup
	for i := range tenants {
		of := f.in(f.newTenant(fmt.Sprintf("writer-%d", i)))
		for range 2 {
			writing.Go(func() {
				for range rounds {
					if err := of.tryWrite(func(tx *store.Tx) { tx.InsertEvent(anEvent(aUser("Ada Lovelace").ID)) }); err != nil {
						f.Error(err)
					}
					if err := of.tryUpdate(func(tx *store.Tx) error { _, err := tx.NumberEvents(start); return err }); err != nil {
						f.Error(err)
					}
				}
			})
		}
	}
	done := make(chan struct{})
	var followed []rolecall.FeedPlace
	for i := range 3 {
		placing.Go(func() {
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true // and once more
				default:
				}
				if err := f.tryUpdate(func(tx *store.Tx) error { _, err := tx.GivePlaces(start); return err }); err != nil {
					f.Error(err)
				}
				if i == 0 {
					followed = append(followed, f.feedPlaces(int64(len(followed))+1, rolecall.MaxScan)...)
				}
			}
		})
	}
	writing.Wait()
	close(done)
	placing.Wait()
	followed = append(followed, f.feedPlaces(int64(len(followed))+1, rolecall.MaxScan)...)
	same(f, followed, f.feedPlaces(0, rolecall.MaxScan))
	last := map[rolecall.TenantID]int64{}
	for i, p := range followed {
		if p.Place != int64(i)+1 || p.First != last[p.Tenant]+1 || p.Last < p.First {
			f.Fatalf("the place %d is %+v, after the number %d of its tenant", i+1, p, last[p.Tenant])
		}
		last[p.Tenant] = p.Last
	}
	for tenant, n := range last {
		if n != 2*rounds {
			f.Errorf("%s has %d numbers with a place", tenant, n)
		}
	}
	same(f, len(last), tenants)
}
