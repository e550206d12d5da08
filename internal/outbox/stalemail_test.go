package outbox_test

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// stale are events that make a waiting mail void. Each case has its own user, and lists
// the mails that this user still receives when a mail server becomes available.
var stale = []struct {
	name string
	void func(f *nodetest.Fixture, name string)
	sent []string
}{
	{"accepted", func(f *nodetest.Fixture, name string) {
		_, err := f.AcceptInvitation(f.Invite(f.NewUser(name).ID), nodetest.AnotherPassword)
		f.OK(err)
	}, nil},
	{"replaced", func(f *nodetest.Fixture, name string) {
		ada := f.NewUser(name)
		f.Invite(ada.ID)
		f.Invite(ada.ID)
	}, []string{"invitation"}},
	{"withdrawn", func(f *nodetest.Fixture, name string) {
		ada := f.NewUser(name)
		f.Invite(ada.ID)
		f.OK(f.Directory.WithdrawInvitation(f.Context(), f.Owner, ada.ID))
	}, nil},
	{"moved", func(f *nodetest.Fixture, name string) {
		f.Invite(f.NewUser(name).ID)
		f.OK(f.SignIn.SetEmail(f.Context(), f.Tenant.Name, nodetest.Address(name), nodetest.Address("elsewhere")))
	}, []string{"notice"}},
	{"by-nobody", func(f *nodetest.Fixture, name string) {
		inviter := f.CallerWith(nodetest.Held{Permissions: []string{"users:*"}})
		f.OK(nodetest.ErrorOf(f.Directory.InviteUser(f.Context(), inviter, nodetest.NewKey(), f.NewUser(name).ID)))
		f.DeleteUser(inviter.User.ID)
	}, nil},
	{"removed", func(f *nodetest.Fixture, name string) {
		ada := f.NewUser(name)
		f.Invite(ada.ID)
		f.DeleteUser(ada.ID)
	}, nil},
	{"reset", func(f *nodetest.Fixture, name string) {
		f.NewMember(name)
		f.OK(f.ResetPassword(f.ResetLink(name), nodetest.AnotherPassword))
	}, []string{"notice"}},
	{"reset-again", func(f *nodetest.Fixture, name string) {
		f.NewMember(name)
		f.ResetLink(name)
		f.ResetLink(name)
	}, []string{"password-reset"}},
	{"remembered", func(f *nodetest.Fixture, name string) {
		f.NewMember(name)
		f.ResetLink(name)
		_, err := f.SignIn.ChangePassword(f.Context(), f.CallerOf(f.LogIn(name)), nodetest.Password, nodetest.AnotherPassword)
		f.OK(err)
	}, []string{"notice"}},
	{"changed", func(f *nodetest.Fixture, name string) {
		ada := f.NewMember(name)
		f.OK(f.ConfirmEmailChange(f.EmailLink(f.CallerOf(f.LogIn(name)), ada.ID, name+"-new")))
	}, []string{"notice", "notice"}},
	{"changed-again", func(f *nodetest.Fixture, name string) {
		ada, call := f.NewMember(name), f.CallerOf(f.LogIn(name))
		f.EmailLink(call, ada.ID, name+"-first")
		f.EmailLink(call, ada.ID, name+"-second")
	}, []string{"email-change-second", "notice", "notice"}},
	{"live", func(f *nodetest.Fixture, name string) { f.Invite(f.NewUser(name).ID) }, []string{"invitation"}},
}

func TestMailWithAnInvalidLinkIsNotSent(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		var want []string
		for _, c := range stale {
			c.void(f, c.name)
			for _, sent := range c.sent {
				want = append(want, c.name+": "+sent)
			}
		}
		server := mailtest.Start(f, mailtest.Options{})
		node, stop := f.NewSender(server)
		f.Eventually(func() bool { return f.WaitingMails() == 0 })
		stop()
		var got []string
		for _, m := range server.Messages() {
			kind, name := "notice", strings.TrimSuffix(m.To, "@example.com")
			if link := m.Link(); link != nil {
				kind = path.Base(link.Path)
			}
			if base, rest, ok := strings.Cut(name, "-second"); ok {
				name, kind = base+rest, kind+"-second"
			}
			got = append(got, name+": "+kind)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("sent were\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		// Mail about a user is deleted with the user, so the mail of "removed" is not
		// among the dropped mails.
		if counts := node.Access.Outbox.Counts(); counts.Dropped != 10 || counts.Failed != 0 || counts.GivenUp != 0 {
			t.Errorf("counted were %+v", counts)
		}
	})
}

// A user can be deleted after a node has claimed their mail.
func TestMailAboutADeletedUserIsDropped(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for _, kind := range []rolecall.MailKind{rolecall.MailInvitation, rolecall.MailPasswordReset, rolecall.MailEmailChange, rolecall.MailEmailChanged, rolecall.MailCredentialsChanged} {
			m := rolecall.Mail{Kind: kind, To: nodetest.Address("ada"), UserID: rolecall.NewID[rolecall.User](nodetest.Start), Token: string(secret.NewToken())}
			f.OK(store.New(f.DB.Database, nil).Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
				tx.InsertMail(sealed(f, f.Tenant.ID, m))
				return nil
			}))
		}
		server := mailtest.Start(f, mailtest.Options{})
		node, stop := f.NewSender(server)
		f.Eventually(func() bool { return f.WaitingMails() == 0 })
		stop()
		if got := node.Access.Outbox.Counts(); got != (outbox.Counts{Dropped: 5}) || len(server.Messages()) != 0 {
			t.Errorf("counted were %+v, %d came", got, len(server.Messages()))
		}
	})
}

// A suspension can be lifted, so the mail waits until it expires.
func TestMailWaitsWhileItsUserOrTenantIsSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		suspend, resume func(*nodetest.Fixture, rolecall.UserID) error
	}{
		"user": {
			func(f *nodetest.Fixture, id rolecall.UserID) error {
				return nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, id, ""))
			},
			func(f *nodetest.Fixture, id rolecall.UserID) error {
				return nodetest.ErrorOf(f.Directory.ResumeUser(f.Context(), f.Owner, id, ""))
			},
		},
		"tenant": {
			func(f *nodetest.Fixture, _ rolecall.UserID) error {
				return nodetest.ErrorOf(f.Directory.SuspendTenant(f.Context(), access.Command, f.Tenant.Name, ""))
			},
			func(f *nodetest.Fixture, _ rolecall.UserID) error {
				return nodetest.ErrorOf(f.Directory.ResumeTenant(f.Context(), access.Command, f.Tenant.Name, ""))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
				ada := f.NewUser("ada")
				token := f.Invite(ada.ID)
				f.OK(c.suspend(f, ada.ID))
				server := mailtest.Start(f, mailtest.Options{})
				node, stop := f.NewSender(server)
				f.Eventually(func() bool { return f.DueIn() == 30*time.Second })
				stop()
				if got := node.Access.Outbox.Counts(); got != (outbox.Counts{}) || len(server.Messages()) != 0 {
					t.Errorf("counted were %+v, %d came", got, len(server.Messages()))
				}
				f.OK(c.resume(f, ada.ID))
				f.Clock.Advance(30 * time.Second)
				f.NewSender(server)
				f.Eventually(func() bool { return f.WaitingMails() == 0 })
				if got := server.Messages(); len(got) != 1 || got[0].Token() != string(token) {
					t.Errorf("came: %+v", got)
				}
			})
		})
	}
}
