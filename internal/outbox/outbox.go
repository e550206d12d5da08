// Package outbox stores mail in the database and sends it later. It encrypts a mail and stores it
// in the transaction of the change that causes the mail. It gives up mail that could not be sent
// before it expired. This package may import the store and the keys of the instance.
package outbox

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/outage"
	"github.com/rolecall/rolecall/internal/queue"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	mailsAtOnce  = 4
	mailInterval = time.Second // how often a node polls for mail of other nodes

	// claimTime is how long a claimed mail is reserved for one sender. It is long enough to send
	// the mail and to record the result.
	claimTime = 30 * time.Second
	mailLimit = 25 * time.Second

	// mailCount is the number at which Waiting stops counting.
	mailCount = 10_000

	// expiredBatch is how many expired mails are read at once.
	expiredBatch = 500

	// lastLimit is the time limit for mails in progress after the context of Run ends.
	lastLimit = 5 * time.Second
)

// mailBackoff is the delay before a failed mail is sent again.
var mailBackoff = queue.Backoff{First: 30 * time.Second, Last: time.Hour}

// Mailer hands mails to a mail server.
type Mailer interface {
	// Send returns nil as soon as another system is responsible for the mail. After
	// any error except rolecall.ErrNoMailbox, the mail is sent again with the same
	// id.
	Send(ctx context.Context, tenant rolecall.Tenant, m rolecall.Mail) error
}

// Options are the dependencies and settings of an outbox.
type Options struct {
	Store   *store.Store
	Keys    *secret.Keys // the keys that encrypt mail
	Clock   func() rolecall.Time
	Logger  *slog.Logger
	Outages *outage.Log
	Mailer  Mailer              // nil if no mail is sent: mail then stays in the outbox
	Divert  func(rolecall.Mail) // if not nil, receives each mail instead of the store
}

// CheckLink returns nil if the link of the mail is valid. It returns ErrUserSuspended if the link
// is invalid now but can become valid again. It returns an error of the kind NotFound or
// Unauthenticated if the link can never become valid again.
type CheckLink func(tx *store.Tx, tenant rolecall.Tenant, m *rolecall.Mail) error

// Outbox stores mail, and sends it. It is safe for concurrent use.
type Outbox struct {
	store  *store.Store
	keys   *secret.Keys
	now    func() rolecall.Time
	log    *slog.Logger
	mailer Mailer
	divert func(rolecall.Mail)

	check   CheckLink
	sender  *queue.Worker[rolecall.OutboxMail]
	turn    rolecall.TenantID // the tenant whose mail was claimed last; only the sender uses it
	sent    atomic.Int64
	failed  atomic.Int64
	dropped atomic.Int64
	givenUp atomic.Int64

	failures failures
}

// New returns an outbox.
func New(o Options) *Outbox {
	box := &Outbox{store: o.Store, keys: o.Keys, now: o.Clock, log: o.Logger, mailer: o.Mailer, divert: o.Divert}
	box.sender = queue.New(queue.Worker[rolecall.OutboxMail]{
		AtOnce: mailsAtOnce, Batch: 1, Interval: mailInterval, Claim: box.claimMail, Do: box.sendClaimed, Report: func(ctx context.Context, err error) {
			o.Outages.Report(ctx, "cannot read waiting mail; will retry", err)
		},
	})
	return box
}

// Wake makes Run look for new mail immediately. Call it after the transaction with the mail has
// committed.
func (o *Outbox) Wake() { o.sender.Wake() }

// Enqueue stores the mail in the outbox, in the transaction tx. It encrypts the recipient and the
// content with the keys of the instance. If Divert is set, it passes the mail to Divert instead. A
// mail without an expiry time expires after one day.
func (o *Outbox) Enqueue(tx *store.Tx, tenant rolecall.TenantID, m rolecall.Mail) error {
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

// Counts are the numbers of one process: sent mails, failed attempts, mails dropped because their
// link or user was no longer valid, and mails given up because they expired or their mailbox does
// not exist.
type Counts struct{ Sent, Failed, Dropped, GivenUp int64 }

// Counts returns the counts of this process.
func (o *Outbox) Counts() Counts {
	return Counts{o.sent.Load(), o.failed.Load(), o.dropped.Load(), o.givenUp.Load()}
}

// Waiting returns the number of mails of the instance that wait to be sent, at most
// 10,000.
func (o *Outbox) Waiting(ctx context.Context) (n int, err error) {
	return store.Read(ctx, o.store, rolecall.TenantID{}, func(tx *store.Tx) (int, error) { return tx.CountMail(mailCount) })
}

// Open decrypts a stored mail. It returns secret.ErrSealed if none of the keys can decrypt the
// mail.
func Open(keys *secret.Keys, stored rolecall.OutboxMail) (rolecall.Mail, error) {
	m := rolecall.Mail{ID: stored.ID, CreatedAt: stored.CreatedAt}
	plain, err := keys.Open(mailPurpose, string(stored.Sealed), mailBelongs(stored.TenantID, stored.ID))
	if err == nil {
		err = json.Unmarshal(plain, &m)
	}
	return m, err
}

const mailPurpose = "mail"

// mailBelongs returns the additional authenticated data that binds an encrypted mail to its row.
func mailBelongs(tenant rolecall.TenantID, id rolecall.MailID) []byte {
	return append(tenant[:], id[:]...)
}
