package storetest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var apiTokenCases = []testCase{
	{"An API token resolves to its user and all assignments", func(f *fixture) {
		u := aUser("Ada Lovelace")
		u.Department, u.ExternalID, u.Metadata = ptr("Sales"), ptr("7"), rolecall.NewMetadata(map[string]string{"k": "v"})
		f.write(func(tx *store.Tx) { tx.InsertUser(u) })
		live := f.assign(u, f.newRole("Support"))
		over := rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: f.newRole("Over"), Reach: rolecall.Within("Sales"), ExpiresAt: 1, GrantedBy: u.ID, GrantedAt: start}
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(over) })
		token := tokenOfUser(u)
		token.CreatedBy, token.LastUsedAt = u.ID, start+1
		state := f.apiToken(f.newAPIToken(token))
		same(f, state, rolecall.APITokenState{Token: token, Holder: u, Assignments: byRole(live, over)})
		same(f, read(f, func(tx *store.Tx) (rolecall.APIToken, error) { return tx.APIToken(token.ID) }), token)
	}},
	{"An API token says whether its user has a second factor", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		hash := f.newAPIToken(tokenOfUser(u))
		f.enrol(other)
		for _, change := range []struct {
			write   func(*store.Tx)
			guarded bool
		}{
			{func(tx *store.Tx) { tx.UpsertPendingTOTP(u.ID, []byte("pending")) }, false},
			{func(tx *store.Tx) { tx.ReplaceRecoveryCodes(u.ID, [][]byte{aHash()}) }, false},
			{func(tx *store.Tx) { _, _ = tx.ConfirmTOTP(u.ID, []byte("pending"), 1, start) }, true},
			{func(tx *store.Tx) { tx.InsertPasskey(aPasskey(u)) }, true},
			{func(tx *store.Tx) { tx.DeleteTOTP(u.ID) }, true},
			{func(tx *store.Tx) { tx.DeleteFactors(u.ID) }, false},
		} {
			f.write(change.write)
			same(f, f.apiToken(hash).Guarded, change.guarded)
		}
	}},
	{"An API token resolves to its service account and all assignments", func(f *fixture) {
		account := f.newServiceAccount("Import")
		token := tokenOfAccount(account)
		hash := f.newAPIToken(token)
		holder := rolecall.User{
			ID: rolecall.UserID(account.ID), Name: "Import", Status: rolecall.UserActive, Metadata: rolecall.NewMetadata(nil),
			CreatedAt: start, UpdatedAt: start, Version: 1,
		}
		same(f, f.apiToken(hash), rolecall.APITokenState{Token: token, Holder: holder})
		var held []rolecall.Assignment
		for _, name := range []string{"One", "Two", "Three"} {
			held = append(held, f.assignToAccount(account, f.newRole(name)))
		}
		same(f, f.apiToken(hash), rolecall.APITokenState{Token: token, Holder: holder, Assignments: byRole(held...)})
	}},
	{"An unknown API token is not found", func(f *fixture) {
		_, session := f.signIn(f.newUser("Ada Lovelace"), start)
		for _, hash := range [][]byte{aHash(), {}, nil, session} {
			f.is(f.tryAPIToken(hash), rolecall.ErrNotFound)
		}
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.APIToken, error) { return tx.APIToken(tokenOfUser(aUser("None")).ID) })
		f.is(err, rolecall.ErrNotFound)
	}},
	{"The store also returns expired API tokens", func(f *fixture) {
		token := tokenOfUser(f.newUser("Ada Lovelace"))
		token.ExpiresAt = 1
		same(f, f.apiToken(f.newAPIToken(token)).Token, token)
	}},
	{"An API token of an unknown user is not found", func(f *fixture) {
		for _, token := range []rolecall.APIToken{tokenOfUser(aUser("Nobody")), tokenOfAccount(aServiceAccount("None"))} {
			f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertAPIToken(token, aHash()) }), rolecall.ErrNotFound)
		}
	}},
	{"Deleting a user deletes their API tokens", func(f *fixture) {
		u, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		gone, kept := f.newAPIToken(tokenOfUser(u)), f.newAPIToken(tokenOfUser(stays))
		same(f, f.deleteUser(u), true)
		f.is(f.tryAPIToken(gone), rolecall.ErrNotFound)
		f.is(f.tryAPIToken(kept), nil)
	}},
	{"A touch changes the last use of an API token only if it is at least a minute later", func(f *fixture) {
		token := tokenOfUser(f.newUser("Ada Lovelace"))
		hash := f.newAPIToken(token)
		for _, touch := range []struct{ at, want rolecall.Time }{
			{start, start}, {start + hour, start + hour}, {start + hour + minute - 1, start + hour}, {start + minute, start + hour}, {start + 2*hour, start + 2*hour},
		} {
			f.write(func(tx *store.Tx) { tx.TouchAPIToken(token.ID, touch.at) })
			same(f, f.apiToken(hash).Token.LastUsedAt, touch.want)
		}
	}},
	{"Only one of twenty concurrent revocations of an API token succeeds", func(f *fixture) {
		token := tokenOfUser(f.newUser("Ada Lovelace"))
		hash := f.newAPIToken(token)
		f.oneWins(parallel(20, func(int) error {
			return f.tryUpdate(func(tx *store.Tx) error {
				if revoked, err := tx.DeleteAPIToken(token.ID); err != nil || revoked {
					return err
				}
				return errRefused
			})
		}), errRefused)
		f.is(f.tryAPIToken(hash), rolecall.ErrNotFound)
	}},
	{"Revoking all API tokens of a user revokes only unexpired tokens of that user", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		over := tokenOfUser(u)
		over.ExpiresAt = start
		want := []rolecall.APIToken{tokenOfUser(u), tokenOfUser(u)}
		gone := f.newAPIToken(want[0])
		f.newAPIToken(want[1])
		kept := [][]byte{f.newAPIToken(over), f.newAPIToken(tokenOfUser(other)), f.newAPIToken(tokenOfAccount(f.newServiceAccount("Import")))}
		revoke := func() []rolecall.APIToken {
			return change(f, func(tx *store.Tx) ([]rolecall.APIToken, error) { return tx.DeleteUserAPITokens(u.ID, start) })
		}
		same(f, byID(revoke()), byID(want))
		same(f, len(revoke()), 0)
		f.is(f.tryAPIToken(gone), rolecall.ErrNotFound)
		for _, hash := range kept {
			f.is(f.tryAPIToken(hash), nil)
		}
	}},
	{"Pages of API tokens are complete, in order, and contain one holder's tokens", func(f *fixture) {
		u, other, account := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper"), f.newServiceAccount("Import")
		var ofUser, ofAccount []rolecall.APIToken
		for i := range 7 {
			ofUser, ofAccount = append(ofUser, tokenOfUser(u)), append(ofAccount, tokenOfAccount(account))
			ofUser[i].Name, ofAccount[i].LastUsedAt = fmt.Sprintf("Token %d", i), start+rolecall.Time(i)
			f.newAPIToken(ofUser[i])
			f.newAPIToken(ofAccount[i])
			f.newAPIToken(tokenOfUser(other))
		}
		for _, limit := range []int{3, rolecall.MaxLimit} {
			same(f, f.apiTokens(rolecall.APITokenQuery{Holder: rolecall.HolderOf(u.ID), Limit: limit}), byID(ofUser))
			same(f, f.apiTokens(rolecall.APITokenQuery{Holder: rolecall.HolderOf(account.ID), Limit: limit}), byID(ofAccount))
		}
		same(f, len(f.apiTokens(rolecall.APITokenQuery{Holder: rolecall.HolderOf(aUser("Nobody").ID), Limit: 3})), 0)
		same(f, len(f.apiTokens(rolecall.APITokenQuery{Limit: 3})), 0)
	}},
	{"A purge deletes API tokens a month after their expiry, up to the limit", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		var live []byte
		for i := range 5 {
			token := tokenOfUser(u)
			token.ExpiresAt = start + rolecall.Time(i)
			live = f.newAPIToken(token)
		}
		same(f, f.purge(start+29*day, 0, 3), 0)
		for _, want := range []int{3, 1, 0} {
			same(f, f.purge(start+30*day+3, 0, 3), want)
		}
		f.is(f.tryAPIToken(live), nil)
	}},
}

// anAPIToken returns an unstored API token without a holder. Its creator is an operator.
func anAPIToken() rolecall.APIToken {
	return rolecall.APIToken{
		ID: rolecall.NewID[rolecall.APIToken](start), Name: "Nightly \"run\"", Permissions: []rolecall.Permission{rolecall.RolesRead, rolecall.UsersRead},
		CreatedAt: start, ExpiresAt: start + 90*day,
	}
}

func tokenOfUser(u rolecall.User) rolecall.APIToken {
	token := anAPIToken()
	token.UserID = u.ID
	return token
}

func tokenOfAccount(a rolecall.ServiceAccount) rolecall.APIToken {
	token := anAPIToken()
	token.ServiceAccountID = a.ID
	return token
}

// newAPIToken writes the token and returns its hash.
func (f *fixture) newAPIToken(token rolecall.APIToken) []byte {
	f.Helper()
	hash := aHash()
	f.write(func(tx *store.Tx) { tx.InsertAPIToken(token, hash) })
	return hash
}

func (f *fixture) apiToken(hash []byte) rolecall.APITokenState {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.APITokenState, error) { return tx.APITokenByHash(hash, math.MaxInt) })
}

func (f *fixture) tryAPIToken(hash []byte) error {
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.APITokenState, error) { return tx.APITokenByHash(hash, math.MaxInt) })
	return err
}

// apiTokens returns all tokens of the query, page by page.
func (f *fixture) apiTokens(q rolecall.APITokenQuery) []rolecall.APIToken {
	f.Helper()
	return everyPage(f, q.Limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.APIToken], error) {
		q.After = after
		return tx.APITokens(q)
	}, nil)
}

func byRole(assignments ...rolecall.Assignment) []rolecall.Assignment {
	slices.SortFunc(assignments, func(a, b rolecall.Assignment) int { return bytes.Compare(a.Role.ID[:], b.Role.ID[:]) })
	return assignments
}

func byID(tokens []rolecall.APIToken) []rolecall.APIToken {
	slices.SortFunc(tokens, func(a, b rolecall.APIToken) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return tokens
}

var serviceAccountCases = []testCase{
	{"A service account reads back in every member", func(f *fixture) {
		want := aServiceAccount("Nächtlicher Import")
		want.Description, want.Status, want.UpdatedAt, want.Version = "Brings \"people\", 100 %", rolecall.ServiceAccountSuspended, start+1, 3
		f.write(func(tx *store.Tx) { tx.InsertServiceAccount(want) })
		same(f, f.serviceAccount(want.ID), want)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.ServiceAccount, error) {
			return tx.ServiceAccountByID(aServiceAccount("None").ID)
		})
		f.is(err, rolecall.ErrNotFound)
	}},
	{"A read of many service accounts returns the existing ones", func(f *fixture) {
		a := f.newServiceAccount("Import")
		f.newServiceAccount("Export")
		asked := []rolecall.ServiceAccountID{aServiceAccount("None").ID, a.ID}
		same(f, read(f, func(tx *store.Tx) ([]rolecall.ServiceAccount, error) { return tx.ServiceAccountsByID(asked) }), []rolecall.ServiceAccount{a})
	}},
	{"The name of a service account is unique per tenant", func(f *fixture) {
		insert := func(f *fixture, name string) error {
			return f.tryWrite(func(tx *store.Tx) { tx.InsertServiceAccount(aServiceAccount(name)) })
		}
		f.is(insert(f, "Käufer"), nil)
		f.is(insert(f, "KÄUFER"), rolecall.ErrAccountNameTaken)
		f.is(insert(f, "ka\u0308ufer"), rolecall.ErrAccountNameTaken)
		f.is(insert(f, "Kä\u200Bufer"), rolecall.ErrAccountNameTaken)
		f.is(insert(f, " Käufer "), rolecall.ErrAccountNameTaken)
		f.is(insert(f, "Kaufer"), nil)
		f.is(insert(f, "カード事業部"), nil)
		f.is(insert(f, "ガード事業部"), nil)
		f.is(insert(f, "ΠΩΛΉΣΕΙΣ"), nil)
		f.is(insert(f, "Πωλήσεις"), rolecall.ErrAccountNameTaken)
		f.is(insert(f, "Straße"), nil)
		f.is(insert(f, "STRASSE"), rolecall.ErrAccountNameTaken)
		f.is(insert(f, strings.Repeat("ﷺ", 128)), nil)
		f.is(insert(f, strings.Repeat("ﷺ", 127)+"ﷻ"), nil)
		f.is(insert(f, strings.Repeat("ﷺ", 128)), rolecall.ErrAccountNameTaken)
		f.is(insert(f.in(f.newTenant("other")), "Käufer"), nil)
	}},
	{"A change replaces name, description and status, unless it is stale", func(f *fixture) {
		old, taken := f.newServiceAccount("Import"), f.newServiceAccount("Export")
		changed := old
		changed.Name, changed.Description, changed.Status = "Nightly import", "", rolecall.ServiceAccountSuspended
		changed.UpdatedAt, changed.Version = start+1, old.Version+1
		alter := func(old, changed rolecall.ServiceAccount) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateServiceAccount(old, changed) })
		}
		same(f, alter(old, changed), true)
		same(f, f.serviceAccount(old.ID), changed)
		same(f, alter(old, old), false)
		same(f, f.serviceAccount(old.ID), changed)
		same(f, f.serviceAccountNames(rolecall.ServiceAccountQuery{Words: []string{"night", "imp"}}), []string{"Nightly import"})
		late := changed
		late.Name, late.Version = taken.Name, changed.Version+1
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			_, err := tx.UpdateServiceAccount(changed, late)
			return err
		}), rolecall.ErrAccountNameTaken)
	}},
	{"Deleting a service account deletes its assignments and tokens", func(f *fixture) {
		a, stays, role := f.newServiceAccount("Import"), f.newServiceAccount("Export"), f.newRole("Support")
		kept := f.assignToAccount(stays, role)
		f.assignToAccount(a, role)
		gone, live := f.newAPIToken(tokenOfAccount(a)), f.newAPIToken(tokenOfAccount(stays))
		remove := func(a rolecall.ServiceAccount) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteServiceAccount(a) })
		}
		stale := a
		stale.Version++
		same(f, remove(stale), false)
		same(f, remove(a), true)
		same(f, remove(a), false)
		f.is(f.tryAPIToken(gone), rolecall.ErrNotFound)
		same(f, len(f.serviceAccountRoles(a.ID)), 0)
		f.is(f.tryAPIToken(live), nil)
		same(f, f.serviceAccountRoles(stays.ID), []rolecall.Assignment{kept})
	}},
	{"Pages of service accounts are complete and in order", func(f *fixture) {
		for i := range 12 {
			f.newServiceAccount(fmt.Sprintf("Tâche %c", 'A'+(i*7)%12))
		}
		pagesInOrder(f, 12, func(byName, desc bool, limit int) []rolecall.ServiceAccount {
			return f.serviceAccounts(rolecall.ServiceAccountQuery{ByName: byName, Desc: desc, Limit: limit})
		}, func(a *rolecall.ServiceAccount) ([16]byte, string) { return a.ID, a.NameKey() })
		page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.ServiceAccount], error) {
			return tx.ServiceAccounts(rolecall.ServiceAccountQuery{Words: []string{"tache"}, Limit: 1, Count: true})
		})
		same(f, page.Total, &rolecall.Total{Count: 12, Exact: true})
	}},
	{"A role of a service account reads back in every member, and is replaced", func(f *fixture) {
		account, role, granter := f.newServiceAccount("Import"), f.newRole("Support"), f.newUser("Grace Hopper")
		a := f.assignToAccount(account, role)
		same(f, f.serviceAccountRoles(account.ID), []rolecall.Assignment{a})
		a.Reach, a.ExpiresAt, a.GrantedBy, a.GrantedAt = rolecall.Within("Sales"), start+1, granter.ID, start+2
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
		same(f, f.serviceAccountRoles(account.ID), []rolecall.Assignment{a})
		same(f, read(f, func(tx *store.Tx) (rolecall.Assignment, error) { return tx.Assignment(a.Holder, role.ID) }), a)
		same(f, len(f.assignments(rolecall.UserID(account.ID))), 0)
	}},
	{"A role of a deleted service account, and a deleted role, are not found", func(f *fixture) {
		account, role := f.newServiceAccount("Import"), f.newRole("Support")
		for _, a := range []rolecall.Assignment{
			{Holder: rolecall.HolderOf(aServiceAccount("None").ID), Role: role}, {Holder: rolecall.HolderOf(account.ID), Role: aRole("None")},
			{Holder: rolecall.HolderOf(rolecall.ServiceAccountID(f.newUser("Ada Lovelace").ID)), Role: role},
		} {
			a.Reach, a.ExpiresAt, a.GrantedAt = rolecall.Everywhere(), rolecall.Never, start
			f.is(f.tryWrite(func(tx *store.Tx) { tx.UpsertAssignment(a) }), rolecall.ErrNotFound)
			_, err := tryRead(f, func(tx *store.Tx) (rolecall.Assignment, error) {
				return tx.Assignment(a.Holder, a.Role.ID)
			})
			f.is(err, rolecall.ErrNotFound)
		}
	}},
	{"A role that a service account holds is in use, and deleting the role deletes the assignment", func(f *fixture) {
		account, role := f.newServiceAccount("Import"), f.newRole("Support")
		inUse := func(now rolecall.Time) bool {
			return read(f, func(tx *store.Tx) (bool, error) { return tx.RoleInUse(role.ID, now) })
		}
		same(f, inUse(start), false)
		a := f.assignToAccount(account, role)
		same(f, inUse(start), true)
		a.ExpiresAt = start + hour
		f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
		same(f, inUse(start+hour-1), true)
		same(f, inUse(start+hour), false)
		same(f, f.deleteRole(role), true)
		same(f, len(f.serviceAccountRoles(account.ID)), 0)
	}},
	{"Removing a role from a service account reports whether it had the role", func(f *fixture) {
		account, role := f.newServiceAccount("Import"), f.newRole("Support")
		f.assignToAccount(account, role)
		take := func() bool {
			return change(f, func(tx *store.Tx) (bool, error) {
				return tx.DeleteAssignment(rolecall.HolderOf(account.ID), role.ID, start)
			})
		}
		same(f, take(), true)
		same(f, take(), false)
	}},
	{"A service account is not an owner with any role", func(f *fixture) {
		f.assignToAccount(f.newServiceAccount("Import"), f.owner())
		same(f, f.owners(), 0)
	}},
}

// aServiceAccount returns a service account that is not stored yet.
func aServiceAccount(name string) rolecall.ServiceAccount {
	draft := rolecall.ServiceAccountDraft{Name: name, Description: "A program."}
	return draft.ServiceAccount(start)
}

// newServiceAccount writes a service account.
func (f *fixture) newServiceAccount(name string) rolecall.ServiceAccount {
	f.Helper()
	a := aServiceAccount(name)
	f.write(func(tx *store.Tx) { tx.InsertServiceAccount(a) })
	return a
}

// assignToAccount gives the service account the role in the whole tenant and without
// expiry.
func (f *fixture) assignToAccount(account rolecall.ServiceAccount, r rolecall.Role) rolecall.Assignment {
	f.Helper()
	a := rolecall.Assignment{Holder: rolecall.HolderOf(account.ID), Role: r, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
	f.write(func(tx *store.Tx) { tx.UpsertAssignment(a) })
	return a
}

func (f *fixture) serviceAccount(id rolecall.ServiceAccountID) rolecall.ServiceAccount {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.ServiceAccount, error) { return tx.ServiceAccountByID(id) })
}

func (f *fixture) serviceAccountRoles(id rolecall.ServiceAccountID) []rolecall.Assignment {
	f.Helper()
	return f.assignmentsOf(rolecall.HolderOf(id))
}

// serviceAccounts returns all service accounts of the query, page by page.
func (f *fixture) serviceAccounts(q rolecall.ServiceAccountQuery) []rolecall.ServiceAccount {
	f.Helper()
	return everyPage(f, q.Limit, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.ServiceAccount], error) {
		q.After = after
		return tx.ServiceAccounts(q)
	}, nil)
}

// serviceAccountNames returns the names of the service accounts of the query.
func (f *fixture) serviceAccountNames(q rolecall.ServiceAccountQuery) []string {
	f.Helper()
	q.Limit = 2
	names := []string{}
	for _, a := range f.serviceAccounts(q) {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return names
}
