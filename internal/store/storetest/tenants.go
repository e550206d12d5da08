package storetest

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var tenantCases = []testCase{
	{"A tenant reads back in every member", func(f *fixture) {
		want := rolecall.Tenant{
			ID: rolecall.NewID[rolecall.Tenant](start), Name: "other", DisplayName: "Ändere & Söhne", Status: rolecall.TenantSuspended,
			Settings:  rolecall.TenantSettings{SessionIdle: new(rolecall.Seconds(60)), SessionAbsolute: new(rolecall.Seconds(3600)), RefreshGrace: ptr(rolecall.Seconds(0)), IdempotencyKept: new(rolecall.Seconds(5))},
			CreatedAt: start, UpdatedAt: start + 1, Version: 4,
		}
		f.in(want.ID).write(func(tx *store.Tx) { tx.InsertTenant(want) })
		same(f, f.tenantByName("other"), want)
		same(f, f.in(rolecall.TenantID{}).tenantByName("other"), want)
		same(f, read(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.TenantByID(want.ID) }), want)
	}},
	{"An unknown tenant name is not found", func(f *fixture) {
		for _, name := range []string{"nobody", "ACME", "acme ", ""} {
			f.is(f.tryTenant(name), rolecall.ErrNotFound)
		}
	}},
	{"The name of a tenant is unique", func(f *fixture) {
		f.oneWins(parallel(10, func(int) error {
			t := aTenant("other")
			return f.in(t.ID).tryWrite(func(tx *store.Tx) { tx.InsertTenant(t) })
		}), rolecall.ErrTenantExists)
	}},
	{"Tenants are listed by name, after a given one", func(f *fixture) {
		for i := range 7 {
			f.newTenant(fmt.Sprintf("t-%d", (i*3)%7))
		}
		list := func(after string, limit int) (names []string) {
			for _, t := range read(f, func(tx *store.Tx) ([]rolecall.Tenant, error) {
				return tx.Tenants(rolecall.TenantQuery{After: after, Limit: limit})
			}) {
				names = append(names, t.Name)
			}
			return names
		}
		same(f, list("", 3), []string{"acme", "t-0", "t-1"})
		same(f, list("t-1", 3), []string{"t-2", "t-3", "t-4"})
		same(f, list("t-5", 3), []string{"t-6"})
		same(f, list("t-6", 3), nil)
	}},
	{"Tenants among some names are listed by name, after a given one", func(f *fixture) {
		for i := range 5 {
			f.newTenant(fmt.Sprintf("t-%d", i))
		}
		f.deleteTenant(f.tenantByName("t-3"))
		list := func(after string, limit int, among ...string) (names []string) {
			for _, t := range read(f, func(tx *store.Tx) ([]rolecall.Tenant, error) {
				return tx.Tenants(rolecall.TenantQuery{Among: among, After: after, Limit: limit})
			}) {
				names = append(names, t.Name)
			}
			return names
		}
		same(f, list("", 10, "t-4", "nobody", "t-3", "acme"), []string{"acme", "t-4"})
		same(f, list("", 1, "t-4", "t-1", "acme"), []string{"acme"})
		same(f, list("acme", 10, "t-4", "t-1", "acme"), []string{"t-1", "t-4"})
		same(f, list("t-4", 10, "t-4"), nil)
	}},
	{"A change replaces display name, status and settings, unless it is stale", func(f *fixture) {
		old := f.tenantByName("acme")
		changed := old
		changed.DisplayName, changed.Status, changed.UpdatedAt, changed.Version = "ACME Inc.", rolecall.TenantSuspended, start+1, old.Version+1
		changed.Settings.SessionIdle = new(rolecall.Seconds(60))
		alter := func(old, changed rolecall.Tenant) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateTenant(old, changed) })
		}
		same(f, alter(old, changed), true)
		same(f, f.tenantByName("acme"), changed)
		same(f, alter(old, old), false)
		same(f, f.tenantByName("acme"), changed)
	}},
	{"A logo is set, replaced and removed with the version of the tenant, unless the change is stale", func(f *fixture) {
		old, other := f.tenantByName("acme"), f.in(f.newTenant("other"))
		logo := rolecall.Logo{MediaType: aLogoFile.MediaType, Width: 640, Height: 16, Size: len(aLogoFile.Content), Hash: "abc", UpdatedAt: start + 5}
		set := old.WithLogo(&logo, start+5)
		same(f, f.setLogo(old, set, &aLogoFile), true)
		same(f, f.tenantByName("acme"), set)
		same(f, read(f, (*store.Tx).LogoFile), aLogoFile)
		_, err := tryRead(other, (*store.Tx).LogoFile)
		f.is(err, rolecall.ErrNotFound)

		next := rolecall.LogoFile{MediaType: "image/webp", Content: []byte{0, 1, 2}}
		same(f, f.setLogo(old, old.WithLogo(nil, start), &next), false)
		same(f, f.setLogo(old, old.WithLogo(nil, start), nil), false)
		same(f, f.tenantByName("acme"), set)
		same(f, read(f, (*store.Tx).LogoFile), aLogoFile)
		replaced := set.WithLogo(&rolecall.Logo{MediaType: next.MediaType, Hash: "def"}, start)
		same(f, f.setLogo(set, replaced, &next), true)
		same(f, read(f, (*store.Tx).LogoFile), next)

		renamed := replaced
		renamed.DisplayName, renamed.Version = "ACME Inc.", replaced.Version+1
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateTenant(replaced, renamed) }), true)
		same(f, f.tenantByName("acme"), renamed) // with the logo
		removed := renamed.WithLogo(nil, start)
		same(f, f.setLogo(renamed, removed, nil), true)
		same(f, f.tenantByName("acme"), removed)
		_, err = tryRead(f, (*store.Tx).LogoFile)
		f.is(err, rolecall.ErrNotFound)
		f.deleteTenant(removed)
		removed.Version++
		same(f, f.setLogo(removed, removed.WithLogo(&logo, start), &aLogoFile), false)
	}},
	{"A deleted tenant is unknown at once and its name stays reserved, unless the deletion is stale", func(f *fixture) {
		old := f.tenantByName("acme")
		stale := old
		stale.Version--
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteTenant(stale, start+day) }), false)
		f.deleteTenant(old)
		f.is(f.tryTenant("acme"), rolecall.ErrNotFound)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.TenantByID(old.ID) })
		f.is(err, rolecall.ErrNotFound)
		same(f, f.tenants("", start), nil)
		again := change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteTenant(old, start+day) })
		same(f, again, false)
		next := aTenant("acme")
		f.is(f.in(next.ID).tryWrite(func(tx *store.Tx) { tx.InsertTenant(next) }), rolecall.ErrTenantExists)
	}},
	{"A deleted tenant is found until it is purged, and restored as it was", func(f *fixture) {
		for _, status := range []rolecall.TenantStatus{rolecall.TenantActive, rolecall.TenantSuspended} {
			old := aTenant(string(status))
			old.Status = status
			there := f.in(old.ID)
			there.write(func(tx *store.Tx) { tx.InsertTenant(old) })
			c := there.fill()
			before := there.state(c)
			there.deleteTenant(old)
			deleted := old
			deleted.Status, deleted.PurgeAt, deleted.UpdatedAt, deleted.Version = rolecall.TenantDeleted, start+day, start, old.Version+1
			found := func(now rolecall.Time) (rolecall.Tenant, error) {
				return tryRead(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.DeletedTenant(old.Name, now) })
			}
			got, err := found(start + day - 1)
			f.is(err, nil)
			same(f, got, deleted)
			_, err = found(start + day)
			f.is(err, rolecall.ErrNotFound)
			restore := func(t rolecall.Tenant, now rolecall.Time) bool {
				return change(there, func(tx *store.Tx) (bool, error) { return tx.RestoreTenant(t, now) })
			}
			same(f, restore(old, start+1), false) // the version is stale
			same(f, restore(deleted, start+day), false)
			same(f, restore(deleted, start+day-1), true)
			same(f, restore(deleted, start+day-1), false)
			want := old
			want.UpdatedAt, want.Version = start+day-1, old.Version+2
			same(f, f.tenantByName(old.Name), want)
			same(f, there.state(c), before)
			_, err = found(start + 1)
			f.is(err, rolecall.ErrNotFound)
		}
	}},
	{"A tenant is not purged before its time, and not restored after the purge began", func(f *fixture) {
		c := f.fill()
		before := f.state(c)
		f.deleteTenant(f.tenantByName("acme"))
		deleted := read(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.DeletedTenant("acme", start) })
		purge := func(before rolecall.Time) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.BeginPurge(before) })
		}
		restore := func() bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.RestoreTenant(deleted, start+1) })
		}
		same(f, f.tenantsToPurge(start+day-1), nil)
		same(f, f.tenantsToPurge(start+day), []rolecall.TenantID{f.tenant})
		same(f, purge(start+day-1), false)
		same(f, f.state(c), before)
		same(f, restore(), true)
		same(f, purge(start+day), false) // it was restored after the purge had been scheduled
		same(f, f.state(c), before)
		f.deleteTenant(f.tenantByName("acme"))
		deleted.Version += 2
		same(f, purge(start+day), true)
		same(f, purge(start+day), true) // the next batch
		same(f, restore(), false)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.DeletedTenant("acme", start) })
		f.is(err, rolecall.ErrNotFound)
		same(f, f.tenants(rolecall.TenantDeleted, start), nil)
		same(f, f.tenantsToPurge(start+day), []rolecall.TenantID{f.tenant})
	}},
	{"Only one of a concurrent restore and purge succeeds, and a restored tenant is complete", func(f *fixture) {
		for range 5 {
			there := f.in(f.newTenant(fmt.Sprintf("t-%d", serial.Add(1))))
			c := there.fill()
			before := there.state(c)
			old := read(there, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.TenantByID(there.tenant) })
			there.deleteTenant(old)
			deleted := read(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.DeletedTenant(old.Name, start) })
			restored, purged := false, false
			for _, err := range parallel(2, func(i int) error {
				return there.tryUpdate(func(tx *store.Tx) (err error) {
					if i == 0 {
						restored, err = tx.RestoreTenant(deleted, start+1)
						return err
					}
					if purged, err = tx.BeginPurge(rolecall.Never); !purged {
						return err
					}
					_, err = tx.PurgeTenant(start, 1)
					return err
				})
			}) {
				f.is(err, nil)
			}
			if restored == purged {
				f.Errorf("restored is %v, and purged is %v", restored, purged)
			}
			if restored {
				same(f, there.state(c), before)
			}
		}
	}},
	{"Tenants are listed by their status, a deleted one until it is purged", func(f *fixture) {
		for i, status := range []rolecall.TenantStatus{rolecall.TenantActive, rolecall.TenantSuspended, rolecall.TenantActive, rolecall.TenantSuspended} {
			t := aTenant(fmt.Sprintf("t-%d", i))
			t.Status = status
			f.in(t.ID).write(func(tx *store.Tx) { tx.InsertTenant(t) })
			if i > 1 {
				f.deleteTenant(t)
			}
		}
		same(f, f.tenants("", start), []string{"acme", "t-0", "t-1"})
		same(f, f.tenants(rolecall.TenantActive, start), []string{"acme", "t-0"})
		same(f, f.tenants(rolecall.TenantSuspended, start), []string{"t-1"})
		same(f, f.tenants(rolecall.TenantDeleted, start+day-1), []string{"t-2", "t-3"})
		same(f, f.tenants(rolecall.TenantDeleted, start+day), nil)
		q := rolecall.TenantQuery{Status: rolecall.TenantDeleted, Among: []string{"t-3", "t-1"}, Now: start, Limit: 10}
		page := read(f, func(tx *store.Tx) ([]rolecall.Tenant, error) { return tx.Tenants(q) })
		same(f, len(page), 1)
		same(f, page[0], read(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.DeletedTenant("t-3", start) }))
	}},
	{"Purging a deleted tenant removes its rows in bounded steps and no others", purgeRemovesAll},
	{"A purge deletes expired keys and sessions", purgeExpired},
	{"The fingerprint of a key is recorded once", func(f *fixture) {
		fingerprints := func() [][]byte {
			return read(f, func(tx *store.Tx) ([][]byte, error) { return tx.KeyFingerprints() })
		}
		before, added := fingerprints(), aHash()
		f.write(func(tx *store.Tx) { tx.InsertKeyFingerprint(added) })
		f.write(func(tx *store.Tx) { tx.InsertKeyFingerprint(added) })
		same(f, len(fingerprints()), len(before)+1)
		same(f, slices.ContainsFunc(fingerprints(), func(f []byte) bool { return bytes.Equal(f, added) }), true)
	}},
	{"The newest instance key is the current one", func(f *fixture) {
		keys := func() [][]byte {
			return read(f, func(tx *store.Tx) ([][]byte, error) { return tx.InstanceKeys() })
		}
		before := keys()
		first, second := aHash(), aHash()
		f.write(func(tx *store.Tx) { tx.InsertInstanceKey(first, start) })
		f.write(func(tx *store.Tx) { tx.InsertInstanceKey(second, start+1) })
		same(f, keys(), append([][]byte{second, first}, before...))
	}},
}

func aTenant(name string) rolecall.Tenant {
	return rolecall.Tenant{
		ID: rolecall.NewID[rolecall.Tenant](start), Name: name, DisplayName: name, Status: rolecall.TenantActive,
		CreatedAt: start, UpdatedAt: start, Version: 1,
	}
}

var aLogoFile = rolecall.LogoFile{MediaType: "image/png", Content: bytes.Repeat([]byte{0, 0xff, 'x'}, 10_000)}

// setLogo calls UpdateLogo, and returns whether it changed the tenant.
func (f *fixture) setLogo(old, changed rolecall.Tenant, file *rolecall.LogoFile) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateLogo(old, changed, file) })
}

func (f *fixture) tenantByName(name string) rolecall.Tenant {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.TenantByName(name) })
}

func (f *fixture) tryTenant(name string) error {
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.TenantByName(name) })
	return err
}

func (f *fixture) deleteTenant(t rolecall.Tenant) {
	f.Helper()
	same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteTenant(t, start+day) }), true)
}

func (f *fixture) tenantsToPurge(before rolecall.Time) []rolecall.TenantID {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.TenantID, error) { return tx.TenantsToPurge(before, 10) })
}

// tenants returns the names of the tenants that have the status at this time.
func (f *fixture) tenants(status rolecall.TenantStatus, now rolecall.Time) (names []string) {
	f.Helper()
	q := rolecall.TenantQuery{Status: status, Now: now, Limit: 10}
	for _, t := range read(f, func(tx *store.Tx) ([]rolecall.Tenant, error) { return tx.Tenants(q) }) {
		names = append(names, t.Name)
	}
	return names
}

func purgeRemovesAll(f *fixture) {
	other := f.in(f.newTenant("other"))
	f.fill()
	kept := other.fill()
	before := other.state(kept)
	same(f, len(f.tenantsToPurge(rolecall.Never)), 0)
	f.deleteTenant(f.tenantByName("acme"))
	same(f, f.tenantsToPurge(rolecall.Never), []rolecall.TenantID{f.tenant})

	steps := 0
	for done := false; !done; steps++ {
		done = change(f, func(tx *store.Tx) (bool, error) { return tx.PurgeTenant(start, 10) })
		if steps > 1000 {
			f.Fatal("the purge does not end")
		}
	}
	if steps < 5 {
		f.Errorf("purged in %d steps of 10 rows, want more", steps)
	}
	_, err := tryRead(f, (*store.Tx).LogoFile)
	f.is(err, rolecall.ErrNotFound)
	same(f, len(f.readAll(everyone(), nil)), 0)
	same(f, len(f.roles(rolecall.RoleQuery{Limit: 10})), 0)
	same(f, len(f.serviceAccounts(rolecall.ServiceAccountQuery{Limit: 10})), 0)
	same(f, len(f.tenantsToPurge(rolecall.Never)), 0)
	same(f, other.state(kept), before)
}

// purge calls PurgeExpired once, and returns the number of rows that it changed.
func (f *fixture) purge(now, eventsBefore rolecall.Time, limit int) int {
	f.Helper()
	return change(f, func(tx *store.Tx) (int, error) { return tx.PurgeExpired(now, eventsBefore, limit) })
}

func purgeExpired(f *fixture) {
	u := f.newUser("Ada Lovelace")
	_, over := f.signIn(u, start)
	_, live := f.signIn(u, start+day)
	expired, valid := f.aKey(), f.aKey()
	valid.ExpiresAt = start + 30*day
	f.write(func(tx *store.Tx) {
		tx.InsertKey(expired)
		tx.InsertKey(valid)
	})
	purge := func(now rolecall.Time, limit int) int {
		f.Helper()
		return f.purge(now, 0, limit)
	}
	same(f, purge(start, 10), 0)
	now := start + 7*day + hour
	same(f, purge(now, 10), 2)
	same(f, purge(now, 10), 0)
	f.is(f.trySession(over), rolecall.ErrNotFound)
	f.is(f.trySession(live), nil)
	same(f, f.key(valid).Hash, valid.Hash)

	same(f, f.deleteUser(f.newUser("Deleted Tomorrow")), true)
	same(f, purge(start+29*day, 10), 1) // the second session
	same(f, purge(start+31*day, 10), 4) // the valid key, the tombstone, the event of the erasure and the erasure

	for range 5 {
		k := f.aKey()
		f.write(func(tx *store.Tx) { tx.InsertKey(k) })
	}
	for _, want := range []int{2, 2, 1, 0} {
		same(f, purge(now, 2), want)
	}
}

// The summary of a tenant.
var summaryCases = []testCase{
	{"Open invitations are counted up to a limit", func(f *fixture) {
		count := func(at rolecall.Time) rolecall.Total {
			return read(f, func(tx *store.Tx) (rolecall.Total, error) { return tx.CountInvitations(at) })
		}
		same(f, count(start), rolecall.Total{Exact: true})
		f.invite(anInvitation(f.newUser("Ada Lovelace")))
		short := anInvitation(f.newUser("Grace Hopper"))
		short.ExpiresAt = start + hour
		f.invite(short)
		same(f, count(start), rolecall.Total{Count: 2, Exact: true})
		same(f, count(start+hour), rolecall.Total{Count: 1, Exact: true})

		many := make([]rolecall.User, rolecall.SummaryCountMax)
		for i := range many {
			many[i] = aUser(fmt.Sprintf("Many %04d", i))
		}
		f.write(func(tx *store.Tx) {
			tx.InsertUsers(many)
			for i := range many {
				tx.UpsertInvitation(anInvitation(many[i]), aHash())
			}
		})
		same(f, count(start), rolecall.Total{Count: rolecall.SummaryCountMax})
	}},
	{"The coverage of second factors counts active users", func(f *fixture) {
		f.enrol(f.newUser("Ada Lovelace"))
		withPasskey := f.newUser("Grace Hopper")
		f.write(func(tx *store.Tx) { tx.InsertPasskey(aPasskey(withPasskey)) })
		f.pend(f.newUser("Alan Turing"), aHash()) // not confirmed
		suspended := aUser("Tony Hoare")
		suspended.Status = rolecall.UserSuspended
		f.write(func(tx *store.Tx) { tx.InsertUser(suspended) })
		f.enrol(suspended)
		got := read(f, func(tx *store.Tx) (rolecall.FactorCoverage, error) { return tx.FactorCoverage() })
		same(f, got, rolecall.FactorCoverage{Users: 3, Protected: 2, Exact: true})
	}},
	{"Failed sign-ins are read since a time, newest first", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		failed := func(at rolecall.Time, reason, source string) {
			e := anEventAt(u.ID, at)
			e.Type, e.Reason, e.Source = rolecall.EventSignInFailed, reason, source
			f.write(func(tx *store.Tx) { tx.InsertEvent(e) })
		}
		failed(start, "early", "192.0.2.1")
		failed(start+hour, "wrong-credentials, 3 times", "192.0.2.2")
		f.write(func(tx *store.Tx) { tx.InsertEvent(anEventAt(u.ID, start+hour)) })
		failed(start+2*hour, "wrong-code", "192.0.2.3")
		type answer struct {
			failed []rolecall.FailedSignIn
			exact  bool
		}
		got := read(f, func(tx *store.Tx) (a answer, err error) {
			a.failed, a.exact, err = tx.FailedSignIns(start + hour)
			return a, err
		})
		same(f, got, answer{[]rolecall.FailedSignIn{{Reason: "wrong-code", Source: "192.0.2.3"}, {Reason: "wrong-credentials, 3 times", Source: "192.0.2.2"}}, true})
	}},
	{"The events of days are counted up to a limit", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		days := []rolecall.Day{{From: start, To: start + day}, {From: start + day, To: start + 2*day}, {From: start + 2*day, To: start + 3*day}}
		f.write(func(tx *store.Tx) {
			for range 3 {
				tx.InsertEvent(anEventAt(u.ID, start))
			}
			tx.InsertEvent(anEventAt(u.ID, start+day-rolecall.Time(1000)))
			for range rolecall.SummaryDayMax + 5 {
				tx.InsertEvent(anEventAt(u.ID, start+2*day))
			}
			tx.InsertEvent(anEventAt(u.ID, start+3*day))
		})
		same(f, read(f, func(tx *store.Tx) ([]int, error) { return tx.EventsOfDays(days) }), []int{4, 0, rolecall.SummaryDayMax})
	}},
	{"Roles that expire soon are listed in order, without hidden roles", func(f *fixture) {
		u, account := f.newUser("Ada Lovelace"), f.newServiceAccount("Nightly import")
		assign := func(h rolecall.Holder, r rolecall.Role, until rolecall.Time) {
			f.write(func(tx *store.Tx) {
				tx.UpsertAssignment(rolecall.Assignment{Holder: h, Role: r, Reach: rolecall.Everywhere(), ExpiresAt: until, GrantedAt: start})
			})
		}
		second, first, hidden := f.newRole("Second"), f.newRole("First"), f.newRole("Hidden")
		expired, far := f.newRole("Expired"), f.newRole("Far")
		for _, h := range []rolecall.Holder{rolecall.HolderOf(u.ID), rolecall.HolderOf(account.ID)} {
			assign(h, second, start+2*day)
			assign(h, first, start+day)
			assign(h, hidden, start+day)
			assign(h, expired, start)
			assign(h, far, start+3*day+1)
			assign(h, f.newRole("Forever "+h.ID.String()), rolecall.Never)
		}
		same(f, f.hideRole(hidden, rolecall.NewID[rolecall.Event](start)), true)
		for accounts, holder := range map[bool]rolecall.Holder{false: rolecall.HolderOf(u.ID), true: rolecall.HolderOf(account.ID)} {
			got := read(f, func(tx *store.Tx) ([]rolecall.ExpiringRole, error) {
				return tx.ExpiringRoles(accounts, start, start+3*day)
			})
			same(f, got, []rolecall.ExpiringRole{{Holder: holder, RoleID: first.ID, RoleName: "First", ExpiresAt: start + day}, {Holder: holder, RoleID: second.ID, RoleName: "Second", ExpiresAt: start + 2*day}})
		}
	}},
	{"Many assignments of a hidden role do not keep out roles that expire later", func(f *fixture) {
		hidden, later := f.newRole("Hidden"), f.newRole("Later")
		crowd := f.crowd(101)
		f.write(func(tx *store.Tx) {
			for _, u := range crowd {
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: hidden, Reach: rolecall.Everywhere(), ExpiresAt: start + day, GrantedAt: start})
			}
			tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(crowd[0].ID), Role: later, Reach: rolecall.Everywhere(), ExpiresAt: start + 2*day, GrantedAt: start})
		})
		same(f, f.hideRole(hidden, rolecall.NewID[rolecall.Event](start)), true)
		got := read(f, func(tx *store.Tx) ([]rolecall.ExpiringRole, error) {
			return tx.ExpiringRoles(false, start, start+3*day)
		})
		same(f, got, []rolecall.ExpiringRole{{Holder: rolecall.HolderOf(crowd[0].ID), RoleID: later.ID, RoleName: "Later", ExpiresAt: start + 2*day}})
	}},
	{"At most eleven roles that expire soon are listed", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		for i := range 15 {
			r := f.newRole(fmt.Sprintf("Role %d", i))
			f.write(func(tx *store.Tx) {
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: r, Reach: rolecall.Everywhere(), ExpiresAt: start + day, GrantedAt: start})
			})
		}
		got := read(f, func(tx *store.Tx) ([]rolecall.ExpiringRole, error) {
			return tx.ExpiringRoles(false, start, start+3*day)
		})
		same(f, len(got), rolecall.SummaryItems+1)
	}},
	{"API tokens that expire soon are listed in order", func(f *fixture) {
		ofUser, ofAccount := tokenOfUser(f.newUser("Ada Lovelace")), tokenOfAccount(f.newServiceAccount("Nightly import"))
		ofUser.ExpiresAt, ofAccount.ExpiresAt = start+2*day, start+day
		expired, far := tokenOfUser(f.newUser("Grace Hopper")), tokenOfUser(f.newUser("Alan Turing"))
		expired.ExpiresAt, far.ExpiresAt = start, start+3*day+1
		for _, token := range []rolecall.APIToken{ofUser, ofAccount, expired, far} {
			f.newAPIToken(token)
		}
		got := read(f, func(tx *store.Tx) ([]rolecall.APIToken, error) {
			return tx.ExpiringTokens(true, true, start, start+3*day)
		})
		same(f, got, []rolecall.APIToken{ofAccount, ofUser})
		of := func(users, accounts bool) []rolecall.APIToken {
			return read(f, func(tx *store.Tx) ([]rolecall.APIToken, error) {
				return tx.ExpiringTokens(users, accounts, start, start+3*day)
			})
		}
		same(f, of(true, false), []rolecall.APIToken{ofUser})
		same(f, of(false, true), []rolecall.APIToken{ofAccount})
		for range 100 { // the others do not fill the list
			earlier := tokenOfAccount(f.newServiceAccount("Earlier " + rolecall.NewID[rolecall.Event](start).String()))
			earlier.ExpiresAt = start + second
			f.newAPIToken(earlier)
		}
		same(f, of(true, false), []rolecall.APIToken{ofUser})
	}},
}
