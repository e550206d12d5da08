package node_test

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// stale are events that make a waiting mail void. Each case has its own user, and lists
// the mails that this user still receives when a mail server becomes available.
var stale = []struct {
	name string
	void func(f *fixture, name string)
	sent []string
}{
	{"accepted", func(f *fixture, name string) {
		_, err := f.accept(f.invite(f.user(name).ID), anotherPassword)
		f.ok(err)
	}, nil},
	{"replaced", func(f *fixture, name string) {
		ada := f.user(name)
		f.invite(ada.ID)
		f.invite(ada.ID)
	}, []string{"invitation"}},
	{"withdrawn", func(f *fixture, name string) {
		ada := f.user(name)
		f.invite(ada.ID)
		f.ok(f.Directory.WithdrawInvitation(f.Context(), f.owner, ada.ID))
	}, nil},
	{"moved", func(f *fixture, name string) {
		f.invite(f.user(name).ID)
		f.ok(f.SignIn.SetEmail(f.Context(), f.tenant.Name, address(name), address("elsewhere")))
	}, []string{"notice"}},
	{"by-nobody", func(f *fixture, name string) {
		inviter := f.caller(held{permissions: []string{"users:*"}})
		f.ok(errorOf(f.Directory.InviteUser(f.Context(), inviter, newKey(), f.user(name).ID)))
		f.remove(inviter.User.ID)
	}, nil},
	{"removed", func(f *fixture, name string) {
		ada := f.user(name)
		f.invite(ada.ID)
		f.remove(ada.ID)
	}, nil},
	{"reset", func(f *fixture, name string) {
		f.member(name)
		f.ok(f.reset(f.resetLink(name), anotherPassword))
	}, []string{"notice"}},
	{"reset-again", func(f *fixture, name string) {
		f.member(name)
		f.resetLink(name)
		f.resetLink(name)
	}, []string{"password-reset"}},
	{"remembered", func(f *fixture, name string) {
		f.member(name)
		f.resetLink(name)
		_, err := f.SignIn.ChangePassword(f.Context(), f.call(f.signIn(name)), password, anotherPassword)
		f.ok(err)
	}, []string{"notice"}},
	{"changed", func(f *fixture, name string) {
		ada := f.member(name)
		f.ok(f.confirm(f.emailLink(f.call(f.signIn(name)), ada.ID, name+"-new")))
	}, []string{"notice", "notice"}},
	{"changed-again", func(f *fixture, name string) {
		ada, call := f.member(name), f.call(f.signIn(name))
		f.emailLink(call, ada.ID, name+"-first")
		f.emailLink(call, ada.ID, name+"-second")
	}, []string{"email-change-second", "notice", "notice"}},
	{"live", func(f *fixture, name string) { f.invite(f.user(name).ID) }, []string{"invitation"}},
}

func TestMailWithAnInvalidLinkIsNotSent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		var want []string
		for _, c := range stale {
			c.void(f, c.name)
			for _, sent := range c.sent {
				want = append(want, c.name+": "+sent)
			}
		}
		server := mailtest.Start(f, mailtest.Options{})
		node, stop := f.sender(server)
		f.eventually(func() bool { return f.waiting() == 0 })
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
	onEachStore(t, func(f *fixture) {
		for _, kind := range []rolecall.MailKind{rolecall.MailInvitation, rolecall.MailPasswordReset, rolecall.MailEmailChange, rolecall.MailEmailChanged, rolecall.MailCredentialsChanged} {
			m := rolecall.Mail{Kind: kind, To: address("ada"), UserID: rolecall.NewID[rolecall.User](start), Token: string(secret.NewToken())}
			f.ok(store.New(f.db.Database, nil).Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
				tx.InsertMail(f.sealed(f.tenant.ID, m))
				return nil
			}))
		}
		server := mailtest.Start(f, mailtest.Options{})
		node, stop := f.sender(server)
		f.eventually(func() bool { return f.waiting() == 0 })
		stop()
		if got := node.Access.Outbox.Counts(); got != (outbox.Counts{Dropped: 5}) || len(server.Messages()) != 0 {
			t.Errorf("counted were %+v, %d came", got, len(server.Messages()))
		}
	})
}

// A suspension can be lifted, so the mail waits until it expires.
func TestMailWaitsWhileItsUserOrTenantIsSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		suspend, resume func(*fixture, rolecall.UserID) error
	}{
		"user": {
			func(f *fixture, id rolecall.UserID) error {
				return errorOf(f.Directory.SuspendUser(f.Context(), f.owner, id, ""))
			},
			func(f *fixture, id rolecall.UserID) error {
				return errorOf(f.Directory.ResumeUser(f.Context(), f.owner, id, ""))
			},
		},
		"tenant": {
			func(f *fixture, _ rolecall.UserID) error {
				return errorOf(f.Directory.SuspendTenant(f.Context(), access.Command, f.tenant.Name, ""))
			},
			func(f *fixture, _ rolecall.UserID) error {
				return errorOf(f.Directory.ResumeTenant(f.Context(), access.Command, f.tenant.Name, ""))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStore(t, func(f *fixture) {
				ada := f.user("ada")
				token := f.invite(ada.ID)
				f.ok(c.suspend(f, ada.ID))
				server := mailtest.Start(f, mailtest.Options{})
				node, stop := f.sender(server)
				f.eventually(func() bool { return f.dueIn() == 30*time.Second })
				stop()
				if got := node.Access.Outbox.Counts(); got != (outbox.Counts{}) || len(server.Messages()) != 0 {
					t.Errorf("counted were %+v, %d came", got, len(server.Messages()))
				}
				f.ok(c.resume(f, ada.ID))
				f.clock.advance(30 * time.Second)
				f.sender(server)
				f.eventually(func() bool { return f.waiting() == 0 })
				if got := server.Messages(); len(got) != 1 || got[0].Token() != string(token) {
					t.Errorf("came: %+v", got)
				}
			})
		})
	}
}
