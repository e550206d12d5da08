package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var userCases = []testCase{
	{"A user reads back in every member", func(f *fixture) {
		full := aUser("Ada Lovelace, née Byron 🦉")
		full.Email, full.Department, full.ExternalID = "Ada+X@Example.COM", ptr("Forschung & Entwicklung"), ptr("HR-0001")
		full.Metadata = rolecall.NewMetadata(map[string]string{"cost centre": "4711", "quote\"\\": "línea ☃", "empty": ""})
		full.Status, full.Version = rolecall.UserSuspended, 7
		full.CreatedAt, full.UpdatedAt = 1, start+1
		bare := aUser("Bob")
		f.write(func(tx *store.Tx) {
			tx.InsertUser(full)
			tx.InsertUser(bare)
		})
		for _, want := range []rolecall.User{full, bare} {
			same(f, f.userByID(want.ID), want)
			same(f, f.userByEmail(want.Email), want)
		}
	}},
	{"Times keep their microsecond", func(f *fixture) {
		for _, at := range []rolecall.Time{1, 999_999, start, start + 1, 253_402_300_799_999_999} {
			u := aUser("Ada Lovelace")
			u.CreatedAt, u.UpdatedAt = at, at
			f.write(func(tx *store.Tx) { tx.InsertUser(u) })
			same(f, f.userByID(u.ID), u)
		}
	}},
	{"An unknown user is not found", func(f *fixture) {
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.User, error) { return tx.UserByID(aUser("Nobody").ID) })
		f.is(err, rolecall.ErrNotFound)
		_, err = tryRead(f, func(tx *store.Tx) (rolecall.User, error) { return tx.UserByID(rolecall.UserID{}) })
		f.is(err, rolecall.ErrNotFound)
		_, err = tryRead(f, func(tx *store.Tx) (rolecall.User, error) {
			u, _, err := tx.UserByEmail("nobody@example.com")
			return u, err
		})
		f.is(err, rolecall.ErrNotFound)
	}},
	{"A read of many users returns the existing ones", func(f *fixture) {
		users := f.crowd(300)
		asked := []rolecall.UserID{aUser("Nobody").ID}
		for _, u := range users {
			asked = append(asked, u.ID)
		}
		found := read(f, func(tx *store.Tx) ([]rolecall.User, error) { return tx.UsersByID(asked) })
		slices.SortFunc(found, func(a, b rolecall.User) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		same(f, ids(found), asked[1:])
		same(f, found[0], f.userByID(found[0].ID))
		same(f, len(read(f, func(tx *store.Tx) ([]rolecall.User, error) { return tx.UsersByID(nil) })), 0)
	}},
	{"The sign-in details of many users have their last sign-in and second factors", func(f *fixture) {
		never, user := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		f.pend(never, aHash()) // not confirmed
		f.enrol(user)
		f.write(func(tx *store.Tx) { tx.InsertPasskey(aPasskey(user)) })
		signedIn := rolecall.Session{ID: rolecall.NewID[rolecall.Session](start), UserID: user.ID, AuthenticatedAt: start, LastUsedAt: start, ExpiresAt: start + day}
		f.write(func(tx *store.Tx) { tx.InsertSession(signedIn, aHash()) })
		found := read(f, func(tx *store.Tx) ([]rolecall.SignInDetails, error) {
			return tx.SignInDetails([]rolecall.UserID{user.ID, aUser("Nobody").ID, never.ID})
		})
		slices.SortFunc(found, func(a, b rolecall.SignInDetails) int { return cmp.Compare(a.LastLoginAt, b.LastLoginAt) })
		same(f, found, []rolecall.SignInDetails{{User: never.ID}, {User: user.ID, LastLoginAt: signedIn.AuthenticatedAt, TOTP: 1, Passkeys: len(f.factors(user).Passkeys)}})
	}},
	{"The role names of many users are limited, and leave out expired assignments", func(f *fixture) {
		many, one, none := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper"), f.newUser("Tony Hoare")
		var all []rolecall.Role
		for i := range rolecall.RoleNamesMax + 3 {
			r := f.newRole(fmt.Sprintf("Role %d", i))
			f.assign(many, r)
			all = append(all, rolecall.Role{ID: r.ID, Key: r.Key, Name: r.Name})
		}
		slices.SortFunc(all, func(a, b rolecall.Role) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		for i, user := range []rolecall.User{many, one} {
			expired := rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: f.newRole(fmt.Sprintf("Expired %d", i)), Reach: rolecall.Everywhere(), ExpiresAt: start, GrantedAt: start}
			f.write(func(tx *store.Tx) { tx.UpsertAssignment(expired) })
		}
		held := f.newRole("Support")
		f.assign(one, held)
		found := read(f, func(tx *store.Tx) (map[rolecall.UserID][]rolecall.Role, error) {
			return tx.RoleNames([]rolecall.UserID{many.ID, one.ID, none.ID}, start)
		})
		same(f, found, map[rolecall.UserID][]rolecall.Role{many.ID: all[:rolecall.RoleNamesMax+1], one.ID: {{ID: held.ID, Key: held.Key, Name: held.Name}}})
		same(f, len(read(f, func(tx *store.Tx) (map[rolecall.UserID][]rolecall.Role, error) { return tx.RoleNames(nil, start) })), 0)
	}},
	{"An address is unique per tenant regardless of case and composition", func(f *fixture) {
		insert := func(f *fixture, email string) error {
			u := aUser("Ada Lovelace")
			u.Email = email
			return f.tryWrite(func(tx *store.Tx) { tx.InsertUser(u) })
		}
		f.is(insert(f, "Ada@Example.com"), nil)
		f.is(insert(f, "ADA@example.COM"), rolecall.ErrEmailTaken)
		f.is(insert(f, "zo\u00eb@example.com"), nil)
		f.is(insert(f, "zoe\u0308@example.com"), rolecall.ErrEmailTaken)
		f.is(insert(f, "ZO\u00cb@example.com"), rolecall.ErrEmailTaken)
		f.is(insert(f, "zoe@example.com"), nil)
		f.is(insert(f.in(f.newTenant("other")), "ada@example.com"), nil)
	}},
	{"An external id is unique per tenant and case-sensitive", func(f *fixture) {
		insert := func(f *fixture, id *string) error {
			u := aUser("Ada Lovelace")
			u.ExternalID = id
			return f.tryWrite(func(tx *store.Tx) { tx.InsertUser(u) })
		}
		f.is(insert(f, ptr("HR-1")), nil)
		f.is(insert(f, ptr("HR-1")), rolecall.ErrExternalIDTaken)
		f.is(insert(f, ptr("hr-1")), nil)
		f.is(insert(f, nil), nil)
		f.is(insert(f, nil), nil)
		f.is(insert(f.in(f.newTenant("other")), ptr("HR-1")), nil)
	}},
	{"A change replaces every member", func(f *fixture) {
		old := f.newUser("Ada Lovelace")
		changed := old
		changed.Email, changed.Name, changed.Department, changed.ExternalID = "countess@example.org", "Augusta King", ptr("Sales"), ptr("X")
		changed.Metadata, changed.Status = rolecall.NewMetadata(map[string]string{"a": "b"}), rolecall.UserPending
		changed.UpdatedAt, changed.Version = start+1, old.Version+1
		same(f, f.changeUser(old, changed), true)
		same(f, f.userByID(old.ID), changed)
		same(f, f.userByEmail(changed.Email), changed)
		again := changed
		again.Department, again.ExternalID, again.Metadata, again.Version = nil, nil, rolecall.Metadata{}, changed.Version+1
		same(f, f.changeUser(changed, again), true)
		same(f, f.userByID(old.ID), again)
	}},
	{"A stale change is refused and changes nothing", func(f *fixture) {
		old := f.newUser("Ada Lovelace")
		changed := old
		changed.Name, changed.Version = "Augusta King", old.Version+1
		same(f, f.changeUser(old, changed), true)
		late := old
		late.Name, late.Version = "Another Name", old.Version+1
		same(f, f.changeUser(old, late), false)
		same(f, f.userByID(old.ID), changed)
		same(f, f.found(withWords("somebody")), []string{})
	}},
	{"A change to a taken address or external id is refused", func(f *fixture) {
		taken := aUser("Ada Lovelace")
		taken.ExternalID = ptr("HR-1")
		f.write(func(tx *store.Tx) { tx.InsertUser(taken) })
		old := f.newUser("Grace Hopper")
		for _, c := range []struct {
			change func(*rolecall.User)
			want   error
		}{
			{func(u *rolecall.User) { u.Email = taken.Email }, rolecall.ErrEmailTaken},
			{func(u *rolecall.User) { u.ExternalID = taken.ExternalID }, rolecall.ErrExternalIDTaken},
		} {
			changed := old
			changed.Version++
			c.change(&changed)
			f.is(f.tryUpdate(func(tx *store.Tx) error {
				_, err := tx.UpdateUser(old, changed)
				return err
			}), c.want)
			same(f, f.userByID(old.ID), old)
		}
	}},
	{"A change of the name or the address replaces the search words", func(f *fixture) {
		old := f.newUser("Ada Lovelace")
		changed := old
		changed.Name, changed.Email, changed.Version = "Augusta King", "countess@analytical.example", old.Version+1
		same(f, f.changeUser(old, changed), true)
		same(f, f.found(withWords("lovelace")), []string{})
		same(f, f.found(withWords("ada")), []string{})
		same(f, f.found(withWords(rolecall.Words(old.Email)[0])), []string{})
		same(f, f.found(withWords("king", "analyt")), []string{"Augusta King"})
	}},
	{"A word in both name and email is found until neither contains it", func(f *fixture) {
		both := aUser("Ada Lovelace")
		both.Email = "ada@analytical.example"
		f.write(func(tx *store.Tx) { tx.InsertUser(both) })
		same(f, f.found(withWords("ada")), []string{"Ada Lovelace"})
		one := both
		one.Name, one.Version = "Augusta King", both.Version+1
		same(f, f.changeUser(both, one), true)
		same(f, f.found(withWords("ada")), []string{"Augusta King"})
		neither := one
		neither.Email, neither.Version = "countess@analytical.example", one.Version+1
		same(f, f.changeUser(one, neither), true)
		same(f, f.found(withWords("ada")), []string{})
	}},
	{"Users written in bulk are like those written one by one", func(f *fixture) {
		one := f.crowd(700) // more than one statement inserts
		other := f.in(f.newTenant("other"))
		other.write(func(tx *store.Tx) { tx.InsertUsers(one) })
		for _, q := range []rolecall.UserQuery{everyone(), withWords("ada"), withWords("east", "l"), withWords("nobody")} {
			same(f, other.readAll(q, nil), f.readAll(q, nil))
		}
		for _, u := range one {
			same(f, other.deleteUser(u), true)
		}
		same(f, other.found(withWords("example")), []string{})
		taken := aUser("Hypatia of Athens")
		taken.Email = one[3].Email
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertUsers([]rolecall.User{aUser("Hypatia of Alexandria"), taken}) }), rolecall.ErrEmailTaken)
		same(f, f.found(withWords("hypatia")), []string{})
	}},
	{"A password is stored, replaced, and read with the user", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		same(f, f.password(u), "")
		for _, hash := range []string{"first", "second"} {
			f.write(func(tx *store.Tx) { tx.SetPassword(u.ID, hash, start) })
			same(f, f.password(u), hash)
		}
	}},
	{"A password is replaced only if the stored hash is the expected one", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		replace := func(old, hash string) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.ReplacePassword(u.ID, old, hash, start) })
		}
		same(f, replace("", "first"), false)
		f.write(func(tx *store.Tx) { tx.SetPassword(u.ID, "first", start) })
		same(f, replace("other", "second"), false)
		same(f, replace("first", "first"), true)
		same(f, replace("first", "second"), true)
		same(f, replace("first", "third"), false)
		same(f, f.password(u), "second")
	}},
	{"Only active users can be locked as active", func(f *fixture) {
		active := func(u rolecall.User) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.LockActiveUser(u.ID) })
		}
		u := f.newUser("Ada Lovelace")
		for _, status := range []rolecall.UserStatus{rolecall.UserActive, rolecall.UserSuspended, rolecall.UserPending} {
			changed := u
			changed.Status = status
			changed.Version++
			same(f, f.changeUser(u, changed), true)
			u = changed
			same(f, active(u), status == rolecall.UserActive)
		}
		same(f, active(aUser("Nobody")), false)
	}},
	{"A password of an unknown user is not found", func(f *fixture) {
		f.is(f.tryWrite(func(tx *store.Tx) { tx.SetPassword(aUser("Nobody").ID, "hash", start) }), rolecall.ErrNotFound)
	}},
	{"Deleting a user deletes the rows that refer to the user", deleteTakesAll},
	{"A stale deletion is refused", func(f *fixture) {
		old := f.newUser("Ada Lovelace")
		changed := old
		changed.Version++
		same(f, f.changeUser(old, changed), true)
		same(f, f.deleteUser(old), false)
		same(f, f.hasUser(old.ID), true)
		same(f, f.deleteUser(changed), true)
		same(f, f.deleteUser(changed), false)
	}},
	{"A deleted user's address and external id are free again", func(f *fixture) {
		old := aUser("Ada Lovelace")
		old.ExternalID = ptr("HR-1")
		f.write(func(tx *store.Tx) { tx.InsertUser(old) })
		same(f, f.deleteUser(old), true)
		next := aUser("Ada Byron")
		next.Email, next.ExternalID = old.Email, old.ExternalID
		f.write(func(tx *store.Tx) { tx.InsertUser(next) })
		same(f, f.userByEmail(old.Email), next)
	}},
}

func deleteTakesAll(f *fixture) {
	u, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
	role := f.newRole("Support")
	for _, who := range []rolecall.User{u, stays} {
		f.assign(who, role)
		f.write(func(tx *store.Tx) { tx.SetPassword(who.ID, "hash", start) })
	}
	_, token := f.signIn(u, start)
	_, other := f.signIn(stays, start)

	same(f, f.deleteUser(u), true)
	same(f, f.hasUser(u.ID), false)
	same(f, f.found(withWords("ada")), []string{})
	same(f, len(f.assignments(u.ID)), 0)
	hash, err := tryRead(f, func(tx *store.Tx) (string, error) { return tx.PasswordHash(u.ID) })
	if hash != "" {
		f.Errorf("the password is still there (error %v)", err)
	}
	_, err = tryRead(f, func(tx *store.Tx) (rolecall.SessionState, error) { return tx.SessionByToken(token) })
	f.is(err, rolecall.ErrNotFound)

	same(f, f.found(withWords("grace")), []string{"Grace Hopper"})
	same(f, len(f.assignments(stays.ID)), 1)
	same(f, f.password(stays), "hash")
	same(f, f.session(other).User.ID, stays.ID)
}

func (f *fixture) userByID(id rolecall.UserID) rolecall.User {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.User, error) { return tx.UserByID(id) })
}

func (f *fixture) userByEmail(email string) rolecall.User {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.User, error) {
		u, _, err := tx.UserByEmail(email)
		return u, err
	})
}

func (f *fixture) changeUser(old, changed rolecall.User) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateUser(old, changed) })
}

func (f *fixture) deleteUser(u rolecall.User) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteUser(u, start) })
}

// password returns the hash of the user's password. It checks that both methods that
// return the hash return the same.
func (f *fixture) password(u rolecall.User) string {
	f.Helper()
	hash := read(f, func(tx *store.Tx) (string, error) { return tx.PasswordHash(u.ID) })
	same(f, read(f, func(tx *store.Tx) (string, error) {
		_, hash, err := tx.UserByEmail(u.EmailKey())
		return hash, err
	}), hash)
	return hash
}

func withWords(words ...string) rolecall.UserQuery {
	q := everyone()
	q.Words = words
	return q
}
