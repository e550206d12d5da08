package storetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var oneTimeTokenCases = []testCase{
	{"A one-time token reads back by its hash and purpose", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		for _, want := range []rolecall.OneTimeToken{
			aReset(u),
			{Purpose: rolecall.TokenEmailChange, UserID: u.ID, Data: "ädä@example.com", CreatedAt: start, ExpiresAt: start + day},
			{Purpose: rolecall.TokenPasswordReset, CreatedAt: start, ExpiresAt: start + hour}, // of an unknown address, without a user
			{Purpose: rolecall.TokenEmailChange, UserID: u.ID, CreatedAt: start, ExpiresAt: start + day, Origin: rolecall.Origin{Credential: rolecall.NewID[any](start)}},
		} {
			same(f, f.oneTimeToken(f.handOut(want), want.Purpose), want)
		}
		f.is(f.tryOneTimeToken(aHash(), rolecall.TokenPasswordReset), rolecall.ErrNotFound)
	}},
	{"A one-time token works only for its own purpose", func(f *fixture) {
		hash := f.handOut(aReset(f.newUser("Ada Lovelace")))
		for _, purpose := range []rolecall.TokenPurpose{rolecall.TokenEmailChange, rolecall.TokenSignIn, rolecall.TokenPasskey, ""} {
			f.is(f.tryOneTimeToken(hash, purpose), rolecall.ErrNotFound)
		}
		f.is(f.tryOneTimeToken(hash, rolecall.TokenPasswordReset), nil)
	}},
	{"Only one of twenty concurrent uses of a one-time token succeeds", func(f *fixture) {
		hash := f.handOut(aReset(f.newUser("Ada Lovelace")))
		f.oneWins(parallel(20, func(int) error { return f.consumeOneTimeToken(hash) }), errRefused)
		f.is(f.tryOneTimeToken(hash, rolecall.TokenPasswordReset), rolecall.ErrNotFound)
	}},
	{"A failed update doesn't consume a one-time token", func(f *fixture) {
		hash := f.handOut(aReset(f.newUser("Ada Lovelace")))
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			if taken, err := tx.DeleteOneTimeToken(hash); err != nil || !taken {
				return err
			}
			return errRefused
		}), errRefused)
		f.is(f.tryOneTimeToken(hash, rolecall.TokenPasswordReset), nil)
	}},
	{"The tokens of a user for one purpose are replaced, and no others", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		first, second := f.handOut(aReset(u)), f.handOut(aReset(u))
		change := aReset(u)
		change.Purpose = rolecall.TokenEmailChange
		kept, foreign, decoy := f.handOut(change), f.handOut(aReset(other)), f.handOut(aReset(rolecall.User{}))
		newer := aHash()
		f.write(func(tx *store.Tx) {
			tx.DeleteOneTimeTokens(u.ID, rolecall.TokenPasswordReset)
			tx.InsertOneTimeToken(aReset(u), newer)
		})
		for _, old := range [][]byte{first, second} {
			f.is(f.tryOneTimeToken(old, rolecall.TokenPasswordReset), rolecall.ErrNotFound)
		}
		for _, hash := range [][]byte{newer, foreign, decoy} {
			f.is(f.tryOneTimeToken(hash, rolecall.TokenPasswordReset), nil)
		}
		f.is(f.tryOneTimeToken(kept, rolecall.TokenEmailChange), nil)
	}},
	{"A dummy token belongs to no user and is not deleted with the tokens of the zero user", func(f *fixture) {
		decoy := f.handOut(aReset(rolecall.User{}))
		f.write(func(tx *store.Tx) {
			tx.DeleteOneTimeTokens(rolecall.UserID{}, rolecall.TokenPasswordReset)
			tx.DeleteAllOneTimeTokens(rolecall.UserID{})
		})
		f.is(f.tryOneTimeToken(decoy, rolecall.TokenPasswordReset), nil)
	}},
	{"The one-time token of a revoked operator key is not found", func(f *fixture) {
		key, token := anOperatorKey(), aReset(f.newUser("Ada Lovelace"))
		f.putOperatorKey(key)
		token.OperatorKey = key.ID
		hash := f.handOut(token)
		same(f, f.reset(hash), token)
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteOperatorKey(key.ID) }), true)
		f.is(f.tryOneTimeToken(hash, rolecall.TokenPasswordReset), rolecall.ErrNotFound)
	}},
	{"The links of the given credentials are removed in one tenant, and no others", func(f *fixture) {
		ada, other := f.newUser("Ada Lovelace"), f.in(f.newTenant("other"))
		session, token, kept := rolecall.NewID[any](start), rolecall.NewID[any](start), rolecall.NewID[any](start)
		links := func(f *fixture, credential rolecall.AnyID) (invitation, reset []byte) {
			invited, mailed := anInvitation(f.newUser("Grace Hopper")), aReset(ada)
			invited.Credential, mailed.Credential = credential, credential
			return f.invite(invited), f.handOut(mailed)
		}
		found := func(f *fixture, invitation, reset []byte) bool {
			invited, mailed := f.tryInvitation(invitation), f.tryOneTimeToken(reset, rolecall.TokenPasswordReset)
			same(f, invited, mailed)
			return invited == nil
		}
		ofSession, resetOfSession := links(f, session)
		ofToken, resetOfToken := links(f, token)
		ofKept, resetOfKept := links(f, kept)
		ofNone, resetOfNone := links(f, rolecall.AnyID{})
		elsewhere, resetElsewhere := links(other, session)
		f.write(func(tx *store.Tx) { tx.DeleteLinks() })
		same(f, found(f, ofSession, resetOfSession), true)
		f.write(func(tx *store.Tx) { tx.DeleteLinks(session, token) })
		same(f, found(f, ofSession, resetOfSession), false)
		same(f, found(f, ofToken, resetOfToken), false)
		same(f, found(f, ofKept, resetOfKept), true)
		same(f, found(f, ofNone, resetOfNone), true)
		same(f, found(other, elsewhere, resetElsewhere), true)
	}},
	{"The changes of a user's own address that were requested in sessions are removed, and no others", func(f *fixture) {
		ada, grace, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper"), f.in(f.newTenant("other"))
		session, kept := rolecall.NewID[rolecall.Session](start), rolecall.NewID[rolecall.Session](start)
		request := func(f *fixture, of rolecall.User, purpose rolecall.TokenPurpose, in rolecall.SessionID) []byte {
			token := aReset(of)
			token.Purpose, token.Credential = purpose, rolecall.AnyID(in)
			return f.handOut(token)
		}
		own := request(f, ada, rolecall.TokenEmailChange, session)
		ownKept := request(f, ada, rolecall.TokenEmailChange, kept)
		ofOther := request(f, grace, rolecall.TokenEmailChange, session)
		reset := request(f, ada, rolecall.TokenPasswordReset, session)
		elsewhere := request(other, ada, rolecall.TokenEmailChange, session)
		f.write(func(tx *store.Tx) { tx.DeleteOwnEmailChanges(ada.ID) })
		f.is(f.tryOneTimeToken(own, rolecall.TokenEmailChange), nil)
		f.write(func(tx *store.Tx) { tx.DeleteOwnEmailChanges(ada.ID, session) })
		f.is(f.tryOneTimeToken(own, rolecall.TokenEmailChange), rolecall.ErrNotFound)
		f.is(f.tryOneTimeToken(ownKept, rolecall.TokenEmailChange), nil)
		f.is(f.tryOneTimeToken(ofOther, rolecall.TokenEmailChange), nil)
		f.is(f.tryOneTimeToken(reset, rolecall.TokenPasswordReset), nil)
		f.is(other.tryOneTimeToken(elsewhere, rolecall.TokenEmailChange), nil)
	}},
	{"A link that is requested while its credential is revoked does not outlive it", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		session, _ := f.signIn(u, start)
		token := tokenOfUser(u)
		f.newAPIToken(token)
		for _, c := range []struct {
			id           rolecall.AnyID
			lock, revoke func(*store.Tx) (bool, error)
		}{
			{rolecall.AnyID(session.ID), func(tx *store.Tx) (bool, error) { return tx.LockSession(session.ID) },
				func(tx *store.Tx) (bool, error) { return tx.DeleteSession(session.ID) }},
			{rolecall.AnyID(token.ID), func(tx *store.Tx) (bool, error) { return tx.LockAPIToken(token.ID) },
				func(tx *store.Tx) (bool, error) { return tx.DeleteAPIToken(token.ID) }},
		} {
			same(f, change(f, c.lock), true)
			hashes := make([][]byte, 20)
			for _, err := range parallel(len(hashes), func(i int) error {
				return f.tryUpdate(func(tx *store.Tx) error {
					if i == len(hashes)/2 {
						_, err := c.revoke(tx)
						tx.DeleteLinks(c.id)
						return err
					}
					held, err := c.lock(tx)
					if held {
						link := aReset(u)
						link.Credential = c.id
						hashes[i] = aHash()
						tx.InsertOneTimeToken(link, hashes[i])
					}
					return err
				})
			}) {
				f.is(err, nil)
			}
			same(f, change(f, c.lock), false)
			for _, hash := range hashes {
				f.is(f.tryOneTimeToken(hash, rolecall.TokenPasswordReset), rolecall.ErrNotFound)
			}
		}
	}},
	{"All one-time tokens of a user are deleted together, alone or with the user", func(f *fixture) {
		deleted, asking, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper"), f.newUser("Alan Turing")
		hashes := map[rolecall.UserID][]byte{}
		for _, u := range []rolecall.User{deleted, asking, stays} {
			change := aReset(u)
			change.Purpose = rolecall.TokenEmailChange
			f.handOut(aReset(u))
			hashes[u.ID] = f.handOut(change)
		}
		same(f, f.deleteUser(deleted), true)
		f.write(func(tx *store.Tx) { tx.DeleteAllOneTimeTokens(asking.ID) })
		f.is(f.tryOneTimeToken(hashes[deleted.ID], rolecall.TokenEmailChange), rolecall.ErrNotFound)
		f.is(f.tryOneTimeToken(hashes[asking.ID], rolecall.TokenEmailChange), rolecall.ErrNotFound)
		f.is(f.tryOneTimeToken(hashes[stays.ID], rolecall.TokenEmailChange), nil)
		same(f, f.purge(start+day, 0, 10), 2) // only the data of the third token is left
	}},
	{"A purge removes expired one-time tokens and dummy tokens, up to the limit", func(f *fixture) {
		u := f.newUser("Ada Lovelace")
		var live []byte
		for i := range 5 {
			token := aReset(u)
			if i%2 == 1 {
				token.UserID = rolecall.UserID{}
			}
			token.ExpiresAt = start + rolecall.Time(i)
			live = f.handOut(token)
		}
		for _, want := range []int{3, 1, 0} {
			same(f, f.purge(start+3, 0, 3), want)
		}
		f.is(f.tryOneTimeToken(live, rolecall.TokenPasswordReset), nil)
	}},
	{"A tenant that does not exist can hold one-time tokens, and they are purged", func(f *fixture) {
		nobodys := f.in(rolecall.NewID[rolecall.Tenant](start))
		hash := nobodys.handOut(aReset(rolecall.User{}))
		f.is(f.tryOneTimeToken(hash, rolecall.TokenPasswordReset), rolecall.ErrNotFound)
		f.is(nobodys.tryOneTimeToken(hash, rolecall.TokenPasswordReset), nil)
		same(f, nobodys.purge(start+hour, 0, 10), 1)
		f.is(nobodys.tryOneTimeToken(hash, rolecall.TokenPasswordReset), rolecall.ErrNotFound)
	}},
}

// aReset returns a token for a password reset of the user that is not stored yet. If u is
// zero, the token belongs to no user.
func aReset(u rolecall.User) rolecall.OneTimeToken {
	return rolecall.OneTimeToken{Purpose: rolecall.TokenPasswordReset, UserID: u.ID, Data: u.Email, CreatedAt: start, ExpiresAt: start + hour}
}

// handOut inserts the token and returns its hash.
func (f *fixture) handOut(t rolecall.OneTimeToken) []byte {
	f.Helper()
	hash := aHash()
	f.write(func(tx *store.Tx) { tx.InsertOneTimeToken(t, hash) })
	return hash
}

// consumeOneTimeToken deletes the token with this hash. It returns errRefused if the token
// does not exist.
func (f *fixture) consumeOneTimeToken(hash []byte) error {
	return f.tryUpdate(func(tx *store.Tx) error {
		if taken, err := tx.DeleteOneTimeToken(hash); err != nil || taken {
			return err
		}
		return errRefused
	})
}

func (f *fixture) oneTimeToken(hash []byte, purpose rolecall.TokenPurpose) rolecall.OneTimeToken {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.OneTimeToken, error) { return tx.OneTimeToken(hash, purpose) })
}

func (f *fixture) reset(hash []byte) rolecall.OneTimeToken {
	f.Helper()
	return f.oneTimeToken(hash, rolecall.TokenPasswordReset)
}

func (f *fixture) tryOneTimeToken(hash []byte, purpose rolecall.TokenPurpose) error {
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.OneTimeToken, error) { return tx.OneTimeToken(hash, purpose) })
	return err
}

var invitationCases = []testCase{
	{"An invitation reads back by its token", func(f *fixture) {
		u, author := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		want := anInvitation(u)
		want.CreatedBy = author.ID
		same(f, f.invitation(f.invite(want)), want)
		byOperator := anInvitation(author)
		same(f, f.invitation(f.invite(byOperator)), byOperator)
		want.Credential = rolecall.NewID[any](start)
		same(f, f.invitation(f.invite(want)), want)
		f.is(f.tryInvitation(aHash()), rolecall.ErrNotFound)
	}},
	{"A new invitation replaces the older one", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		old, untouched := f.invite(anInvitation(u)), f.invite(anInvitation(other))
		newer := anInvitation(u)
		newer.CreatedAt, newer.ExpiresAt, newer.CreatedBy = start+hour, start+73*hour, other.ID
		hash := f.invite(newer)
		f.is(f.tryInvitation(old), rolecall.ErrNotFound)
		same(f, f.invitation(hash), newer)
		f.is(f.tryInvitation(untouched), nil)
	}},
	{"Unexpired invitations are listed with their users, in pages and within a reach", func(f *fixture) {
		var want []rolecall.Invited
		for i, department := range []string{"Sales", "Ops", "Sales", "Sales"} {
			u := aUser("Ada Lovelace")
			u.Department = &department
			f.write(func(tx *store.Tx) { tx.InsertUser(u) })
			invitation := anInvitation(u)
			invitation.CreatedBy = u.ID
			if i == 2 {
				invitation.ExpiresAt = start + hour
			}
			f.invite(invitation)
			want = append(want, rolecall.Invited{Invitation: invitation, User: u})
		}
		f.newUser("Grace Hopper")
		q := rolecall.InvitationQuery{Within: rolecall.Everywhere(), Now: start, Limit: 3}
		page := f.invitations(q)
		same(f, page.Items, want[:3])
		q.After = page.Next
		same(f, f.invitations(q).Items, want[3:])
		q.After, q.Now = nil, start+hour
		same(f, f.invitations(q).Items, []rolecall.Invited{want[0], want[1], want[3]})
		q.Within = rolecall.Within("sales")
		page = f.invitations(q)
		same(f, page.Items, []rolecall.Invited{want[0], want[3]})
		same(f, page.Next, nil)
	}},
	{"An invitation of an unknown user is not found", func(f *fixture) {
		f.is(f.tryWrite(func(tx *store.Tx) { tx.UpsertInvitation(anInvitation(aUser("Nobody")), aHash()) }), rolecall.ErrNotFound)
	}},
	{"Only one of twenty concurrent uses of an invitation succeeds", func(f *fixture) {
		hash := f.invite(anInvitation(f.newUser("Ada Lovelace")))
		f.oneWins(parallel(20, func(int) error {
			return f.tryUpdate(func(tx *store.Tx) error {
				if taken, err := tx.DeleteInvitation(hash); err != nil || taken {
					return err
				}
				return errRefused
			})
		}), errRefused)
		f.is(f.tryInvitation(hash), rolecall.ErrNotFound)
	}},
	{"A failed update doesn't consume an invitation", func(f *fixture) {
		hash := f.invite(anInvitation(f.newUser("Ada Lovelace")))
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			if taken, err := tx.DeleteInvitation(hash); err != nil || !taken {
				return err
			}
			return errRefused
		}), errRefused)
		f.is(f.tryInvitation(hash), nil)
	}},
	{"The invitation of a user can be deleted without its token", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		gone, kept := f.invite(anInvitation(u)), f.invite(anInvitation(other))
		remove := func() bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteInvitationOf(u.ID) })
		}
		same(f, remove(), true)
		same(f, remove(), false)
		f.is(f.tryInvitation(gone), rolecall.ErrNotFound)
		f.is(f.tryInvitation(kept), nil)
	}},
	{"The invitation of a revoked operator key is not found, listed or summarized", func(f *fixture) {
		u, key := f.newUser("Ada Lovelace"), anOperatorKey()
		f.putOperatorKey(key)
		want := anInvitation(u)
		want.OperatorKey = key.ID
		hash := f.invite(want)
		listed := func() int {
			return len(f.invitations(rolecall.InvitationQuery{Within: rolecall.Everywhere(), Now: start, Limit: 3}).Items)
		}
		same(f, f.invitation(hash), want)
		same(f, listed(), 1)
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteOperatorKey(key.ID) }), true)
		f.is(f.tryInvitation(hash), rolecall.ErrNotFound)
		same(f, listed(), 0)
		same(f, f.signInSummary(u, aHash(), aHash(), start), rolecall.SignInSummary{})
	}},
	{"Deleting a user deletes their invitation", func(f *fixture) {
		u, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		gone, kept := f.invite(anInvitation(u)), f.invite(anInvitation(stays))
		same(f, f.deleteUser(u), true)
		f.is(f.tryInvitation(gone), rolecall.ErrNotFound)
		f.is(f.tryInvitation(kept), nil)
	}},
	{"A purge deletes invitations 30 days after their expiry, up to the limit", func(f *fixture) {
		var live []byte
		for i := range 5 {
			i := rolecall.Time(i)
			invitation := anInvitation(f.newUser("Ada Lovelace"))
			invitation.ExpiresAt = start + i
			live = f.invite(invitation)
		}
		for _, want := range []int{3, 1, 0} {
			same(f, f.purge(start+3+30*day, 0, 3), want)
		}
		f.is(f.tryInvitation(live), nil)
	}},
}

// anInvitation returns an invitation of the user that is not stored yet. An operator has
// created it.
func anInvitation(u rolecall.User) rolecall.Invitation {
	return rolecall.Invitation{UserID: u.ID, CreatedAt: start, ExpiresAt: start + 72*hour}
}

// invite writes the invitation and returns the hash of its token.
func (f *fixture) invite(i rolecall.Invitation) []byte {
	f.Helper()
	hash := aHash()
	f.write(func(tx *store.Tx) { tx.UpsertInvitation(i, hash) })
	return hash
}

func (f *fixture) invitation(hash []byte) rolecall.Invitation {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Invitation, error) { return tx.InvitationByToken(hash) })
}

func (f *fixture) tryInvitation(hash []byte) error {
	_, err := tryRead(f, func(tx *store.Tx) (rolecall.Invitation, error) { return tx.InvitationByToken(hash) })
	return err
}

func (f *fixture) invitations(q rolecall.InvitationQuery) rolecall.Page[rolecall.Invited] {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Page[rolecall.Invited], error) { return tx.Invitations(q) })
}
