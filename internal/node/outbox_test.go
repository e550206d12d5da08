package node_test

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
	"github.com/rolecall/rolecall/internal/mail"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/outbox"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/store"
)

// sender returns a node of another process on the same database that sends mail to the
// server, and a function that stops it.
func (f *fixture) sender(server *mailtest.Server) (peer *node.Node, stop func()) {
	f.Helper()
	templates, err := mail.LoadTemplates("")
	f.ok(err)
	smtp, err := mail.NewSMTP(server.URL(), "rolecall@example.org", "id.example.com")
	f.ok(err)
	peer = node.New(f.open(), access.Options{
		Clock: f.clock.Now, Passwords: f.hashes, Keys: f.keys, Logger: slog.New(slog.DiscardHandler),
		Mailer: mail.NewMailer(templates, rolecall.ConsoleLinks("https://id.example.com"), smtp),
	})
	f.clock.wake(peer.Access.Outbox.Wake)
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(ctx) }()
	stop = func() {
		if ctx.Err() == nil {
			cancel()
			f.ok(<-ended)
		}
	}
	f.Cleanup(stop)
	return peer, stop
}

func (f *fixture) waiting() int {
	f.Helper()
	n, err := f.Access.Outbox.Waiting(f.Context())
	f.ok(err)
	return n
}

// recipients returns the recipients of the mails that the server received, sorted.
func recipients(server *mailtest.Server) (all []string) {
	for _, m := range server.Messages() {
		all = append(all, m.To)
	}
	slices.Sort(all)
	return all
}

func TestMailOfEveryNodeIsSentOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		one, _ := f.sender(server)
		other, _ := f.sender(server)
		var want []string
		for i := range 20 {
			peer := []*node.Node{f.Node, one, other}[i%3]
			name := "guest-" + string(rune('a'+i))
			_, err := peer.Directory.CreateUser(f.Context(), f.owner, newKey(), rolecall.UserDraft{Email: address(name), Name: "Guest", Invite: true})
			f.ok(err)
			want = append(want, address(name))
		}
		f.eventually(func() bool { return f.waiting() == 0 })
		if got := recipients(server); !slices.Equal(got, want) {
			t.Errorf("mail came to %q, want %q", got, want)
		}
		if a, b := one.Access.Outbox.Counts(), other.Access.Outbox.Counts(); a.Sent+b.Sent != 20 || a.Failed+b.Failed != 0 {
			t.Errorf("counted were %+v and %+v", a, b)
		}
	})
}

func TestMailWaitsForItsServerAndBacksOff(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		server.Refuse("RCPT", "451 4.3.0 later")
		token := f.invite(f.user("ada").ID)
		for _, pause := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
			peer, stop := f.sender(server)
			f.eventually(func() bool { return peer.Access.Outbox.Counts().Failed == 1 })
			stop() // now the outcome of the attempt is stored
			if due := f.dueIn(); due != pause {
				t.Errorf("the mail is due in %v, want %v", due, pause)
			}
			f.clock.advance(pause)
		}
		server.Heal()
		f.sender(server)
		f.eventually(func() bool { return f.waiting() == 0 })
		if got := server.Messages(); len(got) != 1 || got[0].Token() != string(token) {
			t.Errorf("came: %+v", got)
		}
	})
}

// dueIn returns the time until the only waiting mail is due.
func (f *fixture) dueIn() (pause time.Duration) {
	f.Helper()
	f.ok(f.store.View(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
		waiting, err := tx.ExpiredMail(rolecall.Never-1, 2)
		if err == nil && len(waiting) == 1 {
			pause = waiting[0].DueAt.Sub(f.clock.Now())
		}
		return err
	}))
	return pause
}

func TestExpiredMailIsGivenUpWithAnEvent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.user("ada")
		f.invite(ada.ID)
		f.clock.advance(f.tenant.Settings.InvitationLifetime() - time.Microsecond)
		f.ok(f.Node.Purge(f.Context()))
		if n := f.waiting(); n != 1 {
			t.Errorf("%d mails wait, want one", n)
		}
		f.clock.advance(time.Microsecond)
		f.ok(f.Node.Purge(f.Context()))
		if n := f.waiting(); n != 0 {
			t.Errorf("%d mails wait, want none", n)
		}
		if got := f.eventTypes(ada.ID); !slices.Equal(got, []rolecall.EventType{rolecall.EventMailUndeliverable, rolecall.EventUserInvited, rolecall.EventUserCreated}) {
			t.Errorf("the events are %v", got)
		}
	})
}

// Mail that the server rejects because of its recipient does not delay other mail. In the end, the
// log, a counter and an event report the failure.
func TestMailToARefusedRecipientDoesNotBlockOthers(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		server.Refuse("RCPT "+address("ada"), "550 5.7.1 not for you")
		peer, _ := f.sender(server)
		ada := f.user("ada")
		f.invite(ada.ID)
		f.eventually(func() bool { return peer.Access.Outbox.Counts().Failed == 1 })
		f.invite(f.user("eve").ID)
		f.eventually(func() bool { return f.waiting() == 1 })
		if got := recipients(server); !slices.Equal(got, []string{address("eve")}) {
			t.Errorf("mail came to %q", got)
		}
		f.clock.advance(f.tenant.Settings.InvitationLifetime())
		var log strings.Builder
		purging := node.New(f.open(), access.Options{Clock: f.clock.Now, Keys: f.keys, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		f.ok(purging.Purge(f.Context()))
		f.ok(purging.Purge(f.Context()))
		if got := purging.Access.Outbox.Counts(); got != (outbox.Counts{GivenUp: 1}) || f.waiting() != 0 {
			t.Errorf("counted were %+v, and %d wait", got, f.waiting())
		}
		if lines := log.String(); strings.Count(lines, "given up") != 1 || !strings.Contains(lines, "mails=1") || strings.Contains(lines, "ada") {
			t.Errorf("the log says %s", lines)
		}
		if got := f.eventTypes(ada.ID); !slices.Contains(got, rolecall.EventMailUndeliverable) {
			t.Errorf("the events are %v", got)
		}
	})
}

// If a failed mail cannot be recorded in one tenant, expired mail of other tenants is
// still given up.
func TestFailingMailOfOneTenantDoesNotBlockOthers(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		other := f.newTenant("other")
		for _, tenant := range []rolecall.TenantID{other.ID, f.tenant.ID} {
			f.ok(store.New(f.db.Database, nil).Update(f.Context(), tenant, func(tx *store.Tx) error {
				tx.InsertMail(f.sealed(tenant, rolecall.Mail{Kind: rolecall.MailCredentialsChanged, To: address("ada"), UserID: f.owner.User.ID}))
				return nil
			}))
		}
		f.clock.advance(time.Hour)
		peer := node.New(broken{f.db, other.ID}, access.Options{Clock: f.clock.Now, Keys: f.keys, Logger: slog.New(slog.DiscardHandler)})
		f.is(peer.Purge(f.Context()), errBroken)
		if n := f.waiting(); n != 1 {
			t.Errorf("%d mails wait, want that of the tenant that cannot be written", n)
		}
	})
}

func TestMailToAnUnknownMailboxIsGivenUpAtOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		server.Refuse("RCPT "+address("ada"), "550 5.1.1 no such user")
		peer, _ := f.sender(server)
		ada := f.user("ada")
		f.invite(ada.ID)
		f.eventually(func() bool { return peer.Access.Outbox.Counts() == outbox.Counts{Failed: 1, GivenUp: 1} })
		if n := f.waiting(); n != 0 {
			t.Errorf("%d mails wait", n)
		}
		if got := f.eventTypes(ada.ID); !slices.Equal(got, []rolecall.EventType{rolecall.EventMailUndeliverable, rolecall.EventUserInvited, rolecall.EventUserCreated}) {
			t.Errorf("the events are %v", got)
		}
	})
}

// If a node dies while it sends a mail, another node sends the mail after the claim has
// expired.
func TestMailOfANodeThatDiedIsSentByAnother(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.invite(f.user("ada").ID)
		f.ok(f.store.Update(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
			_, err := tx.ClaimMail(rolecall.TenantID{}, f.clock.Now(), f.clock.Now().Add(time.Minute))
			return err
		}))
		server := mailtest.Start(f, mailtest.Options{})
		f.sender(server)
		f.invite(f.user("eve").ID)
		f.eventually(func() bool { return f.waiting() == 1 })
		if got := recipients(server); !slices.Equal(got, []string{address("eve")}) {
			t.Errorf("mail came to %q", got)
		}
		f.clock.advance(time.Minute)
		f.eventually(func() bool { return f.waiting() == 0 })
		if got := recipients(server); !slices.Equal(got, []string{address("ada"), address("eve")}) {
			t.Errorf("mail came to %q", got)
		}
	})
}

func TestStoppingFinishesMailInProgress(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		server := mailtest.Start(f, mailtest.Options{})
		server.Hang(mailtest.Taken)
		f.invite(f.user("ada").ID)
		peer, stop := f.sender(server)
		f.eventually(func() bool { return len(server.Messages()) == 1 })
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
		if failed := peer.Access.Outbox.Counts().Failed; failed != 1 || f.dueIn() != 30*time.Second {
			t.Errorf("%d attempts failed, and the mail is due in %v", failed, f.dueIn())
		}
	})
}

func TestDummyMailIsNotSent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.ok(store.New(f.db.Database, nil).Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.InsertMail(f.sealed(f.tenant.ID, rolecall.Mail{Kind: rolecall.MailNothing, To: address("nobody")}))
			return nil
		}))
		server := mailtest.Start(f, mailtest.Options{})
		peer, _ := f.sender(server)
		f.eventually(func() bool { return f.waiting() == 0 })
		if got := peer.Access.Outbox.Counts(); got != (outbox.Counts{}) || len(server.Messages()) != 0 {
			t.Errorf("counted were %+v, %d came", got, len(server.Messages()))
		}
	})
}

// sealed returns a mail in the encrypted form in which the service stores it.
func (f *fixture) sealed(tenant rolecall.TenantID, m rolecall.Mail) rolecall.OutboxMail {
	f.Helper()
	id, now := rolecall.NewID[rolecall.Mail](f.clock.Now()), f.clock.Now()
	plain, err := json.Marshal(m)
	f.ok(err)
	return rolecall.OutboxMail{
		ID: id, Sealed: []byte(f.keys.Seal("mail", plain, slices.Concat(tenant[:], id[:]))), DueAt: now, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
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
	onEachStore(t, func(f *fixture) {
		db := store.New(f.open(), nil)
		mail := func(tenant rolecall.TenantID, user rolecall.UserID) {
			f.ok(db.Update(f.Context(), tenant, func(tx *store.Tx) error {
				return f.Access.Outbox.Enqueue(tx, tenant, rolecall.Mail{Kind: rolecall.MailCredentialsChanged, To: address("ada"), UserID: user})
			}))
		}
		for range 40 {
			mail(f.tenant.ID, f.owner.User.ID)
		}
		f.clock.advance(time.Second)
		other := f.newTenant("other")
		f.ok(f.store.View(f.Context(), other.ID, func(tx *store.Tx) error {
			owner, _, err := tx.UserByEmail(address("owner"))
			mail(other.ID, owner.ID)
			return err
		}))
		m := &inTurn{begun: make(chan struct{})}
		peer := node.New(f.open(), access.Options{Clock: f.clock.Now, Passwords: f.hashes, Keys: f.keys, Logger: slog.New(slog.DiscardHandler), Mailer: m})
		ctx, cancel := context.WithCancel(f.Context())
		var runs sync.WaitGroup
		runs.Go(func() { peer.Access.Outbox.Run(ctx, peer.SignIn.CheckLink) })
		f.eventually(func() bool { return f.waiting() == 0 })
		cancel()
		runs.Wait()
		if i := slices.Index(m.tenants, "other"); len(m.tenants) != 41 || i < 0 || i >= mailsAtOnce {
			t.Errorf("the mail of the other tenant is number %d of %d", i+1, len(m.tenants))
		}
	})
}
