package directory_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
)

func TestARepeatedInvitationIsMailedOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, key := f.NewUser("ada"), nodetest.NewKey()
		first, err := f.Directory.InviteUser(f.Context(), f.Owner, key, ada.ID)
		f.OK(err)
		f.Clock.Advance(time.Hour)
		again, err := f.NewNode().Directory.InviteUser(f.Context(), f.Owner, key, ada.ID)
		f.OK(err)
		if first.Replayed || first.Value.CreatedAt != nodetest.Start || first.Value.ExpiresAt != f.Clock.Now().Add(71*time.Hour) {
			t.Errorf("the first answer is %+v", first)
		}
		if !again.Replayed || again.Value.UserID != ada.ID || again.Value.CreatedAt != nodetest.Start || again.Value.ExpiresAt != first.Value.ExpiresAt {
			t.Errorf("the repeat is %+v", again)
		}
		if got := f.EventTypes(ada.ID); len(got) != 2 {
			t.Errorf("the events are %v", got)
		}
		mails := f.Mails()
		if len(mails) != 1 || mails[0].To != ada.Email || mails[0].ExpiresAt != first.Value.ExpiresAt {
			t.Fatalf("mailed: %+v", mails)
		}
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(secret.Token(mails[0].Token), nodetest.Password)))
	})
}

func TestInviteUserIsAuthorized(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		sales, _ := f.Person("Sales")
		research, _ := f.Person("Research")
		for _, c := range []struct {
			what   string
			caller access.Caller
			user   rolecall.UserID
			want   error
		}{
			{"without the permission", f.CallerWith(nodetest.Holding("users:read")), sales.ID, rolecall.ErrPermissionDenied},
			{"within the reach", f.CallerWith(nodetest.Holding("users:invite").Within("sales")), sales.ID, nil},
			{"outside of it", f.CallerWith(nodetest.Holding("users:invite").Within("Sales")), research.ID, rolecall.ErrNotFound},
			{"outside of it, but seen", f.CallerWith(nodetest.Holding("users:read"), nodetest.Holding("users:invite").Within("Sales")), research.ID, rolecall.ErrPermissionDenied},
			{"somebody who is not there", f.Owner, rolecall.NewID[rolecall.User](nodetest.Start), rolecall.ErrNotFound},
		} {
			if _, err := f.Directory.InviteUser(f.Context(), c.caller, nodetest.NewKey(), c.user); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", c.what, err)
			}
		}
	})
}

func TestCreateUserWithInvitation(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		draft, key := rolecall.UserDraft{Email: nodetest.Address("ada"), Name: "Ada Lovelace", Invite: true}, nodetest.NewKey()
		created, err := f.Directory.CreateUser(f.Context(), f.Owner, key, draft)
		f.OK(err)
		again, err := f.Directory.CreateUser(f.Context(), f.Owner, key, draft)
		f.OK(err)
		if !again.Replayed || again.Value.ID != created.Value.ID || len(f.Mails()) != 1 {
			t.Errorf("the repeat is %+v, and %d mails wait", again, len(f.Mails()))
		}
		if got := f.EventTypes(created.Value.ID); len(got) != 2 || !slices.Contains(got, rolecall.EventUserInvited) {
			t.Errorf("the events are %v", got)
		}
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(f.LastToken(rolecall.MailInvitation, "ada"), nodetest.Password)))

		draft.Email = nodetest.Address("eve")
		f.Is(nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), f.CallerWith(nodetest.Holding("users:create")), nodetest.NewKey(), draft)), rolecall.ErrPermissionDenied)
		sales := f.CallerWith(nodetest.Holding("users:create"), nodetest.Holding("users:invite").Within("Sales"))
		f.Is(nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), sales, nodetest.NewKey(), draft)), rolecall.ErrPermissionDenied)
		draft.Department = new("sales")
		f.ExpectMailed(func() { f.OK(nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), sales, nodetest.NewKey(), draft))) }, "invitation eve")
	})
}

func TestWithdrawnInvitationsAreRefused(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewUser("ada")
		token := f.Invite(ada.ID)
		f.Is(f.Directory.WithdrawInvitation(f.Context(), f.CallerWith(nodetest.Holding("users:read")), ada.ID), rolecall.ErrPermissionDenied)
		for range 2 {
			f.OK(f.Directory.WithdrawInvitation(f.Context(), f.Owner, ada.ID))
		}
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password)), rolecall.ErrInvitationInvalid)
		if got := f.EventTypes(ada.ID); !slices.Equal(got, []rolecall.EventType{rolecall.EventInvitationWithdrawn, rolecall.EventUserInvited, rolecall.EventUserCreated}) {
			t.Errorf("the events are %v", got)
		}
		page, err := f.Directory.Invitations(f.Context(), f.Owner, directory.InvitationListing{Limit: 10})
		f.OK(err)
		if len(page.Items) != 0 {
			t.Errorf("listed: %+v", page.Items)
		}
	})
}
