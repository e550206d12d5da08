// Package outbox owns the mail that waits to be sent: it seals mail into the transaction
// of what the mail is about, sends it, and gives up mail that could not be sent in time. It
// may import the store and the keys of the instance.
package outbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	mailsAtOnce  = 4
	mailInterval = time.Second // how often a node looks for what others left

	// claimTime is for how long a mail is a sender's own: as long as sending it may
	// take, and its end be written down.
	claimTime = 30 * time.Second
	mailLimit = 25 * time.Second

	// A mail that could not be sent is tried again after the first of these, and then
	// after twice as long each time, up to the last.
	mailRetryFirst = 30 * time.Second
	mailRetryLast  = time.Hour

	// mailCount is how many waiting mails are counted at most.
	mailCount = 10_000

	// expiredBatch is how many expired mails are read at once.
	expiredBatch = 500

	// lastLimit is how long sending and recording may go on after the end of Run.
	lastLimit = 5 * time.Second
)

// Mailer hands mails to whoever brings them to people.
type Mailer interface {
	// Send returns nil as soon as somebody else is answerable for the mail. After any
	// error but rolecall.ErrNoMailbox it is sent again, with the same id.
	Send(ctx context.Context, tenant rolecall.Tenant, m rolecall.Mail) error
}

// Options are what an outbox needs.
type Options struct {
	Store  *store.Store
	Keys   *secret.Keys // that mail is sealed under
	Clock  func() rolecall.Time
	Logger *slog.Logger
	Mailer Mailer              // nil: mail waits
	Divert func(rolecall.Mail) // receives each mail instead of the store; nil: mail is stored
}

// CheckLink returns nil if the link of the mail would be accepted. It returns
// ErrUserSuspended if that may become true again, and an error of the kind NotFound or
// Unauthenticated if it is over for good.
type CheckLink func(tx *store.Tx, tenant rolecall.Tenant, m *rolecall.Mail) error

// Outbox stores mail, and sends it. It is safe for concurrent use.
type Outbox struct {
	store  *store.Store
	keys   *secret.Keys
	now    func() rolecall.Time
	log    *slog.Logger
	mailer Mailer
	divert func(rolecall.Mail)

	wake    chan struct{} // holds a token while something new waits
	sent    atomic.Int64
	failed  atomic.Int64
	dropped atomic.Int64
	givenUp atomic.Int64
	failing atomic.Bool // the last attempt failed
}

// New returns an outbox.
func New(o Options) *Outbox {
	return &Outbox{
		store: o.Store, keys: o.Keys, now: o.Clock, log: o.Logger, mailer: o.Mailer, divert: o.Divert,
		wake: make(chan struct{}, 1),
	}
}

// Wake makes Run look for mail at once, because some was committed.
func (o *Outbox) Wake() {
	select {
	case o.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Put has the mail sent once the Update is committed, and only then. The recipient and the
// content are stored under the keys of the instance. A mail without an end is tried for a
// day.
func (o *Outbox) Put(tx *store.Tx, tenant rolecall.TenantID, m rolecall.Mail) error {
	now := o.now()
	if m.ExpiresAt == 0 {
		m.ExpiresAt = now.Add(rolecall.NoticeLifetime)
	}
	if o.divert != nil {
		o.divert(m)
		return nil
	}
	plain, err := json.Marshal(m)
	if err != nil {
		return err
	}
	id := rolecall.NewID[rolecall.Mail](now)
	tx.InsertMail(rolecall.OutboxMail{
		ID: id, TenantID: tenant, UserID: m.UserID, Sealed: []byte(o.keys.Seal(mailPurpose, plain, mailBelongs(tenant, id))),
		DueAt: now, CreatedAt: now, ExpiresAt: m.ExpiresAt,
	})
	return nil
}

// Counts are how many mails a process has sent, how many of its attempts failed, how many
// mails it has dropped because they were void, and how many it has given up.
type Counts struct{ Sent, Failed, Dropped, GivenUp int64 }

// Counts returns the counts of this process.
func (o *Outbox) Counts() Counts {
	return Counts{o.sent.Load(), o.failed.Load(), o.dropped.Load(), o.givenUp.Load()}
}

// Waiting returns how many mails of the instance wait to be sent, counting no further than
// 10,000.
func (o *Outbox) Waiting(ctx context.Context) (n int, err error) {
	err = o.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		n, err = tx.CountMail(mailCount)
		return err
	})
	return n, err
}

// Open returns the mail that was sealed under the keys, or secret.ErrSealed if its
// key is gone.
func Open(keys *secret.Keys, stored rolecall.OutboxMail) (rolecall.Mail, error) {
	m := rolecall.Mail{ID: stored.ID, CreatedAt: stored.CreatedAt}
	plain, err := keys.Open(mailPurpose, string(stored.Sealed), mailBelongs(stored.TenantID, stored.ID))
	if err == nil {
		err = json.Unmarshal(plain, &m)
	}
	return m, err
}

const mailPurpose = "mail"

// mailBelongs is what ties a sealed mail to its row.
func mailBelongs(tenant rolecall.TenantID, id rolecall.MailID) []byte {
	return append(tenant[:], id[:]...)
}
