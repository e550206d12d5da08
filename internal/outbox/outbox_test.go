package outbox_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/store"
)

// recipients returns the recipients of the mails that the server received, sorted.
func recipients(server *mailtest.Server) (all []string) {
	for _, m := range server.Messages() {
		all = append(all, m.To)
	}
	slices.Sort(all)
	return all
}

func TestMailOfEveryNodeIsSentOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		one, _ := f.NewSender(server)
		other, _ := f.NewSender(server)
		var want []string
		for i := range 20 {
			peer := []*node.Node{f.Node, one, other}[i%3]
			name := "guest-" + string(rune('a'+i))
			_, err := peer.Directory.CreateUser(f.Context(), f.Owner, nodetest.NewKey(), rolecall.UserDraft{Email: nodetest.Address(name), Name: "Guest", Invite: true})
			f.OK(err)
			want = append(want, nodetest.Address(name))
		}
		f.Eventually(func() bool { return f.WaitingMails() == 0 })
		if got := recipients(server); !slices.Equal(got, want) {
			t.Errorf("mail came to %q, want %q", got, want)
		}
		if a, b := one.Access.Outbox.Counts(), other.Access.Outbox.Counts(); a.Sent+b.Sent != 20 || a.Failed+b.Failed != 0 {
			t.Errorf("counted were %+v and %+v", a, b)
		}
	})
}

func TestMailWaitsForItsServerAndBacksOff(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		server.Refuse("RCPT", "451 4.3.0 later")
		token := f.Invite(f.NewUser("ada").ID)
		for _, pause := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
			peer, stop := f.NewSender(server)
			f.Eventually(func() bool { return peer.Access.Outbox.Counts().Failed == 1 })
			stop() // now the outcome of the attempt is stored
			if due := f.DueIn(); due != pause {
				t.Errorf("the mail is due in %v, want %v", due, pause)
			}
			f.Clock.Advance(pause)
		}
		server.Heal()
		f.NewSender(server)
		f.Eventually(func() bool { return f.WaitingMails() == 0 })
		if got := server.Messages(); len(got) != 1 || got[0].Token() != string(token) {
			t.Errorf("came: %+v", got)
		}
	})
}

func TestExpiredMailIsGivenUpWithAnEvent(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewUser("ada")
		f.Invite(ada.ID)
		f.Clock.Advance(f.Tenant.Settings.InvitationLifetime() - time.Microsecond)
		f.OK(f.Node.Purge(f.Context()))
		if n := f.WaitingMails(); n != 1 {
			t.Errorf("%d mails wait, want one", n)
		}
		f.Clock.Advance(time.Microsecond)
		f.OK(f.Node.Purge(f.Context()))
		if n := f.WaitingMails(); n != 0 {
			t.Errorf("%d mails wait, want none", n)
		}
		if got := f.EventTypes(ada.ID); !slices.Equal(got, []rolecall.EventType{rolecall.EventMailUndeliverable, rolecall.EventUserInvited, rolecall.EventUserCreated}) {
			t.Errorf("the events are %v", got)
		}
	})
}

// Mail that the server rejects because of its recipient does not delay other mail. In the end, the
// log, a counter and an event report the failure.
func TestMailToARefusedRecipientDoesNotBlockOthers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		server.Refuse("RCPT "+nodetest.Address("ada"), "550 5.7.1 not for you")
		peer, _ := f.NewSender(server)
		ada := f.NewUser("ada")
		f.Invite(ada.ID)
		f.Eventually(func() bool { return peer.Access.Outbox.Counts().Failed == 1 })
		f.Invite(f.NewUser("eve").ID)
		f.Eventually(func() bool { return f.WaitingMails() == 1 })
		if got := recipients(server); !slices.Equal(got, []string{nodetest.Address("eve")}) {
			t.Errorf("mail came to %q", got)
		}
		f.Clock.Advance(f.Tenant.Settings.InvitationLifetime())
		var log strings.Builder
		purging := node.New(f.Open(), access.Options{Clock: f.Clock.Now, Keys: f.Keys, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		f.OK(purging.Purge(f.Context()))
		f.OK(purging.Purge(f.Context()))
		if got := purging.Access.Outbox.Counts(); got != (outbox.Counts{GivenUp: 1}) || f.WaitingMails() != 0 {
			t.Errorf("counted were %+v, and %d wait", got, f.WaitingMails())
		}
		if lines := log.String(); strings.Count(lines, "given up") != 1 || !strings.Contains(lines, "mails=1") || strings.Contains(lines, "ada") {
			t.Errorf("the log says %s", lines)
		}
		if got := f.EventTypes(ada.ID); !slices.Contains(got, rolecall.EventMailUndeliverable) {
			t.Errorf("the events are %v", got)
		}
	})
}

// If a failed mail cannot be recorded in one tenant, expired mail of other tenants is
// still given up.
func TestFailingMailOfOneTenantDoesNotBlockOthers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		other := f.NewTenant("other")
		for _, tenant := range []rolecall.TenantID{other.ID, f.Tenant.ID} {
			f.OK(store.New(f.DB.Database, nil).Update(f.Context(), tenant, func(tx *store.Tx) error {
				tx.InsertMail(sealed(f, tenant, rolecall.Mail{Kind: rolecall.MailCredentialsChanged, To: nodetest.Address("ada"), UserID: f.Owner.User.ID}))
				return nil
			}))
		}
		f.Clock.Advance(time.Hour)
		peer := node.New(nodetest.Broken{Database: f.DB, Tenant: other.ID}, access.Options{Clock: f.Clock.Now, Keys: f.Keys, Logger: slog.New(slog.DiscardHandler)})
		f.Is(peer.Purge(f.Context()), nodetest.ErrBroken)
		if n := f.WaitingMails(); n != 1 {
			t.Errorf("%d mails wait, want that of the tenant that cannot be written", n)
		}
	})
}

func TestMailToAnUnknownMailboxIsGivenUpAtOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		server.Refuse("RCPT "+nodetest.Address("ada"), "550 5.1.1 no such user")
		peer, _ := f.NewSender(server)
		ada := f.NewUser("ada")
		f.Invite(ada.ID)
		f.Eventually(func() bool { return peer.Access.Outbox.Counts() == outbox.Counts{Failed: 1, GivenUp: 1} })
		if n := f.WaitingMails(); n != 0 {
			t.Errorf("%d mails wait", n)
		}
		if got := f.EventTypes(ada.ID); !slices.Equal(got, []rolecall.EventType{rolecall.EventMailUndeliverable, rolecall.EventUserInvited, rolecall.EventUserCreated}) {
			t.Errorf("the events are %v", got)
		}
	})
}

// If a node dies while it sends a mail, another node sends the mail after the claim has
// expired.
func TestMailOfANodeThatDiedIsSentByAnother(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.Invite(f.NewUser("ada").ID)
		f.OK(f.Store.Update(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
			_, err := tx.ClaimMail(rolecall.TenantID{}, f.Clock.Now(), f.Clock.Now().Add(time.Minute))
			return err
		}))
		server := mailtest.Start(f, mailtest.Options{})
		f.NewSender(server)
		f.Invite(f.NewUser("eve").ID)
		f.Eventually(func() bool { return f.WaitingMails() == 1 })
		if got := recipients(server); !slices.Equal(got, []string{nodetest.Address("eve")}) {
			t.Errorf("mail came to %q", got)
		}
		f.Clock.Advance(time.Minute)
		f.Eventually(func() bool { return f.WaitingMails() == 0 })
		if got := recipients(server); !slices.Equal(got, []string{nodetest.Address("ada"), nodetest.Address("eve")}) {
			t.Errorf("mail came to %q", got)
		}
	})
}

func TestStoppingFinishesMailInProgress(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		server.Hang(mailtest.Taken)
		f.Invite(f.NewUser("ada").ID)
		peer, stop := f.NewSender(server)
		f.Eventually(func() bool { return len(server.Messages()) == 1 })
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			stop()
		}()
		select {
		case <-stopped:
		case <-time.After(patience.Limit):
			f.Fatal("stopping does not end")
		}
		if failed := peer.Access.Outbox.Counts().Failed; failed != 1 || f.DueIn() != 30*time.Second {
			t.Errorf("%d attempts failed, and the mail is due in %v", failed, f.DueIn())
		}
	})
}

func TestDummyMailIsNotSent(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.OK(store.New(f.DB.Database, nil).Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.InsertMail(sealed(f, f.Tenant.ID, rolecall.Mail{Kind: rolecall.MailNothing, To: nodetest.Address("nobody")}))
			return nil
		}))
		server := mailtest.Start(f, mailtest.Options{})
		peer, _ := f.NewSender(server)
		f.Eventually(func() bool { return f.WaitingMails() == 0 })
		if got := peer.Access.Outbox.Counts(); got != (outbox.Counts{}) || len(server.Messages()) != 0 {
			t.Errorf("counted were %+v, %d came", got, len(server.Messages()))
		}
	})
}

// sealed returns a mail in the encrypted form in which the service stores it.
func sealed(f *nodetest.Fixture, tenant rolecall.TenantID, m rolecall.Mail) rolecall.OutboxMail {
	f.Helper()
	id, now := rolecall.NewID[rolecall.Mail](f.Clock.Now()), f.Clock.Now()
	plain, err := json.Marshal(m)
	f.OK(err)
	return rolecall.OutboxMail{
		ID: id, Sealed: []byte(f.Keys.Seal("mail", plain, slices.Concat(tenant[:], id[:]))), DueAt: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
}

// mailsAtOnce is how many mails a node sends at once, as in package outbox.
const mailsAtOnce = 4

// inTurn is a mailer that records the tenants of mails. The first mails, as many as a node sends at once, wait for each
// other. So the order of the record does not depend on which of them is sent quickly.
type inTurn struct {
	mu      sync.Mutex
	tenants []string
	begun   chan struct{} // closed when the first mails are there
}

// Send records the tenant.
func (m *inTurn) Send(ctx context.Context, tenant rolecall.Tenant, _ rolecall.Mail) error {
	m.mu.Lock()
	if m.tenants = append(m.tenants, tenant.Name); len(m.tenants) == mailsAtOnce {
		close(m.begun)
	}
	m.mu.Unlock()
	select {
	case <-m.begun:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestTheMailOfATenantDoesNotDelayThatOfOthers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		db := store.New(f.Open(), nil)
		mail := func(tenant rolecall.TenantID, user rolecall.UserID) {
			f.OK(db.Update(f.Context(), tenant, func(tx *store.Tx) error {
				return f.Access.Outbox.Enqueue(tx, tenant, rolecall.Mail{Kind: rolecall.MailCredentialsChanged, To: nodetest.Address("ada"), UserID: user})
			}))
		}
		for range 40 {
			mail(f.Tenant.ID, f.Owner.User.ID)
		}
		f.Clock.Advance(time.Second)
		other := f.NewTenant("other")
		f.OK(f.Store.View(f.Context(), other.ID, func(tx *store.Tx) error {
			owner, _, err := tx.UserByEmail(nodetest.Address("owner"))
			mail(other.ID, owner.ID)
			return err
		}))
		m := &inTurn{begun: make(chan struct{})}
		peer := node.New(f.Open(), access.Options{Clock: f.Clock.Now, Passwords: f.Hashes, Keys: f.Keys, Logger: slog.New(slog.DiscardHandler), Mailer: m})
		ctx, cancel := context.WithCancel(f.Context())
		var runs sync.WaitGroup
		runs.Go(func() { peer.Access.Outbox.Run(ctx, peer.SignIn.CheckLink) })
		f.Eventually(func() bool { return f.WaitingMails() == 0 })
		cancel()
		runs.Wait()
		if i := slices.Index(m.tenants, "other"); len(m.tenants) != 41 || i < 0 || i >= mailsAtOnce {
			t.Errorf("the mail of the other tenant is number %d of %d", i+1, len(m.tenants))
		}
	})
}
