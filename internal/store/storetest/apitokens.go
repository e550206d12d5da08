package storetest

import (
	"bytes"
	"fmt"
	"slices"

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
	return read(f, func(tx *store.Tx) (rolecall.APITokenState, error) { return tx.APITokenByHash(hash) })
}

func (f *fixture) tryAPIToken(hash []byte) error {
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.APITokenState, error) { return tx.APITokenByHash(hash) })
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
