package storetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

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
	{"A newer invitation takes the place of the older one", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		old, untouched := f.invite(anInvitation(u)), f.invite(anInvitation(other))
		newer := anInvitation(u)
		newer.CreatedAt, newer.ExpiresAt, newer.CreatedBy = start+hour, start+73*hour, other.ID
		hash := f.invite(newer)
		f.is(f.tryInvitation(old), rolecall.ErrNotFound)
		same(f, f.invitation(hash), newer)
		f.is(f.tryInvitation(untouched), nil)
	}},
	{"Open invitations are listed with their users, in pages and within a reach", func(f *fixture) {
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
	{"An invitation of nobody is not found", func(f *fixture) {
		f.is(f.tryWrite(func(tx *store.Tx) { tx.PutInvitation(anInvitation(aUser("Nobody")), aHash()) }), rolecall.ErrNotFound)
	}},
	{"Of twenty who take an invitation at the same time one gets it", func(f *fixture) {
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
	{"An invitation that is taken in a failed update is still there", func(f *fixture) {
		hash := f.invite(anInvitation(f.newUser("Ada Lovelace")))
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			if taken, err := tx.DeleteInvitation(hash); err != nil || !taken {
				return err
			}
			return errRefused
		}), errRefused)
		f.is(f.tryInvitation(hash), nil)
	}},
	{"The invitation of a user is removed without its token", func(f *fixture) {
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
	{"A deleted user takes the invitation along", func(f *fixture) {
		u, stays := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		gone, kept := f.invite(anInvitation(u)), f.invite(anInvitation(stays))
		same(f, f.deleteUser(u), true)
		f.is(f.tryInvitation(gone), rolecall.ErrNotFound)
		f.is(f.tryInvitation(kept), nil)
	}},
	{"Purging what expired removes invitations that have been over for 30 days, up to the limit", func(f *fixture) {
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

// anInvitation returns an invitation of the user by an operator that is not
// stored yet.
func anInvitation(u rolecall.User) rolecall.Invitation {
	return rolecall.Invitation{UserID: u.ID, CreatedAt: start, ExpiresAt: start + 72*hour}
}

// invite writes the invitation and returns the hash of its token.
func (f *fixture) invite(i rolecall.Invitation) []byte {
	f.Helper()
	hash := aHash()
	f.write(func(tx *store.Tx) { tx.PutInvitation(i, hash) })
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
