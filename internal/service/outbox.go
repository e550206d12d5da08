package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/audit"
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
)

// Mailer hands mails to whoever brings them to people.
type Mailer interface {
	// Send returns nil as soon as somebody else is answerable for the mail. After any
	// error but rolecall.ErrNoMailbox it is sent again, with the same id.
	Send(ctx context.Context, tenant rolecall.Tenant, m rolecall.Mail) error
}

// outbox is what a node knows of its sending.
type outbox struct {
	wake    chan struct{} // holds a token while something new waits
	sent    atomic.Int64
	failed  atomic.Int64
	dropped atomic.Int64
	givenUp atomic.Int64
	failing atomic.Bool // the last attempt failed
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// filled says that a mail was committed.
func (o *outbox) filled() {
	select {
	case o.wake <- struct{}{}:
	default: // it is said already
	}
}

// MailCounts are how many mails a process has sent, how many of its attempts failed,
// how many mails it has dropped because they were void, and how many it has given up.
type MailCounts struct{ Sent, Failed, Dropped, GivenUp int64 }

// MailCounts returns the counts of this process.
func (s *Service) MailCounts() MailCounts {
	return MailCounts{s.outbox.sent.Load(), s.outbox.failed.Load(), s.outbox.dropped.Load(), s.outbox.givenUp.Load()}
}

// WaitingMail returns how many mails of the instance wait to be sent, counting no
// further than 10,000.
func (s *Service) WaitingMail(ctx context.Context) (n int, err error) {
	err = s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		n, err = tx.CountMail(mailCount)
		return err
	})
	return n, err
}

// sendMails sends what waits in the outbox, a few at once, until ctx ends; then it
// finishes what is under way, within a few seconds.
func (s *Service) sendMails(ctx context.Context) {
	var sending sync.WaitGroup
	defer sending.Wait()
	tick := time.NewTicker(mailInterval)
	defer tick.Stop()
	slots := make(chan struct{}, mailsAtOnce)
	for {
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		m, err := s.claimMail(ctx)
		if err == nil {
			sending.Go(func() {
				defer func() { <-slots }()
				s.sendClaimed(ctx, m)
			})
			continue
		}
		<-slots
		if !errors.Is(err, rolecall.ErrNotFound) && ctx.Err() == nil {
			s.log.WarnContext(ctx, "the outbox could not be read; it will be tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.outbox.wake:
		case <-tick.C:
		}
	}
}

// claimMail returns a mail that is due, which is this node's for half a minute, or
// ErrNotFound.
func (s *Service) claimMail(ctx context.Context) (m rolecall.OutboxMail, err error) {
	err = s.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		m, err = tx.ClaimMail(s.now(), s.now().Add(claimTime))
		return err
	})
	return m, err
}

// Why a mail is not handed to the mail server.
var (
	errVoidMail = errors.New("the link of the mail does not work any more")
	errHeldMail = errors.New("the link of the mail does not work as long as its user or tenant is suspended or its tenant is deleted")
)

// sendClaimed sends a mail and takes it out of the outbox, puts it off, or gives it up.
func (s *Service) sendClaimed(ctx context.Context, claimed rolecall.OutboxMail) {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), mailLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastLimit, cancel) })
	defer stop()
	sent, err := s.sendMail(sending, claimed)
	s.noteMail(ctx, claimed, sent, err)

	ctx, cancelLast := outliving(ctx)
	defer cancelLast()
	if errors.Is(err, rolecall.ErrNoMailbox) {
		_, err = s.giveUp(ctx, claimed)
	} else {
		err = s.settleMail(ctx, claimed, err == nil || errors.Is(err, errVoidMail))
	}
	if err != nil {
		s.log.WarnContext(ctx, "what became of a mail could not be written; it may be sent twice", "mail", claimed.ID, "error", err)
	}
}

// settleMail removes a mail that was sent or is void from the outbox, and puts any
// other off.
func (s *Service) settleMail(ctx context.Context, claimed rolecall.OutboxMail, done bool) error {
	return s.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		if done {
			_, err := tx.DeleteMail(claimed.ID)
			return err
		}
		tx.PostponeMail(claimed.ID, claimed.Attempts, min(s.now().Add(mailPause(claimed.Attempts)), claimed.ExpiresAt))
		return nil
	})
}

// sendMail sends the mail, and reports whether there was anything to be sent: mail
// to an address that nobody has goes nowhere. It returns errVoidMail or errHeldMail
// for a mail that must not be sent now.
func (s *Service) sendMail(ctx context.Context, claimed rolecall.OutboxMail) (sent bool, err error) {
	m, err := OpenMail(s.keys, claimed)
	if err != nil || m.Kind == rolecall.MailNothing {
		return false, err
	}
	var tenant rolecall.Tenant
	err = s.store.View(ctx, claimed.TenantID, func(tx *store.Tx) (err error) {
		tenant, err = s.checkMail(tx, claimed.TenantID, &m)
		return err
	})
	if err != nil {
		return false, err
	}
	return true, s.mailer.Send(ctx, tenant, m)
}

// checkMail returns the tenant of a mail that can be sent now: its link would be
// accepted, or it is a notice to a user who exists. It returns errVoidMail if that is
// over for good, and errHeldMail if it can become true again.
func (s *Service) checkMail(tx *store.Tx, id rolecall.TenantID, m *rolecall.Mail) (rolecall.Tenant, error) {
	tenant, err := tx.TenantByID(id)
	if ok, err := found(err); err != nil {
		return tenant, err
	} else if !ok || tenant.Status == rolecall.TenantSuspended {
		return tenant, errHeldMail
	}
	switch token := secret.Token(m.Token); m.Kind {
	case rolecall.MailInvitation:
		_, err = s.invited(tx, tenant, token)
	case rolecall.MailPasswordReset:
		_, err = s.resetting(tx, token)
	case rolecall.MailEmailChange:
		_, _, err = s.changing(tx, tenant, token)
	default:
		_, err = tx.UserByID(m.UserID)
	}
	switch kind := rolecall.KindOf(err); {
	case errors.Is(err, rolecall.ErrUserSuspended):
		err = errHeldMail
	case kind == rolecall.NotFound || kind == rolecall.Unauthenticated:
		err = errVoidMail
	}
	return tenant, err
}

// noteMail counts what became of a mail. The log tells when sending begins to fail
// and when it works again, not each mail of an outage.
func (s *Service) noteMail(ctx context.Context, m rolecall.OutboxMail, sent bool, err error) {
	switch {
	case errors.Is(err, errHeldMail):
		s.log.DebugContext(ctx, "a mail waits", "mail", m.ID, "user", m.UserID, "reason", err)
	case errors.Is(err, errVoidMail):
		s.outbox.dropped.Add(1)
		s.log.InfoContext(ctx, "a mail is dropped", "mail", m.ID, "user", m.UserID, "reason", err)
	case errors.Is(err, rolecall.ErrNoMailbox):
		s.outbox.failed.Add(1)
		s.log.WarnContext(ctx, "a mail is given up", "mail", m.ID, "user", m.UserID, "error", err)
	case err != nil:
		s.outbox.failed.Add(1)
		if !s.outbox.failing.Swap(true) {
			s.log.WarnContext(ctx, "mail cannot be sent; it waits and will be tried again", "mail", m.ID, "attempt", m.Attempts, "error", err)
		}
	case sent:
		s.outbox.sent.Add(1)
		if s.outbox.failing.Swap(false) {
			s.log.InfoContext(ctx, "mail is sent again")
		}
	}
}

// mailPause returns how long a mail waits after so many attempts.
func mailPause(attempts int) time.Duration {
	return min(mailRetryFirst<<min(attempts-1, 10), mailRetryLast)
}

// giveUpMail removes the mail that could not be sent in its time, and records that.
func (s *Service) giveUpMail(ctx context.Context) error {
	var failures []error
	givenUp := 0
	for full := true; full && failures == nil; {
		var expired []rolecall.OutboxMail
		err := s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
			expired, err = tx.ExpiredMail(s.now(), purgeBatch)
			return err
		})
		if err != nil {
			return err
		}
		full = len(expired) == purgeBatch
		for _, m := range expired {
			switch told, err := s.giveUp(ctx, m); {
			case err != nil:
				failures = append(failures, fmt.Errorf("mail %s: %w", m.ID, err))
			case told:
				givenUp++
			}
		}
	}
	if givenUp > 0 {
		s.log.WarnContext(ctx, "mail was given up, as it could not be sent while it was of use; events mail.undeliverable tell whose", "mails", givenUp)
	}
	return errors.Join(failures...)
}

// giveUp removes a mail that is of no use any more, and records that. It reports
// whether there was anything to be recorded.
func (s *Service) giveUp(ctx context.Context, old rolecall.OutboxMail) (givenUp bool, err error) {
	m, err := OpenMail(s.keys, old)
	readable := err == nil
	err = s.operate(ctx, old.TenantID, func(tx *store.Tx) (*rolecall.Event, error) {
		ok, err := tx.DeleteMail(old.ID)
		if givenUp = ok && m.Kind != rolecall.MailNothing; !givenUp {
			return nil, err
		}
		event := s.operatorEvent(rolecall.EventMailUndeliverable, audit.AboutTenant(old.TenantID))
		event.Actor = rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "mail"}
		if readable {
			event.Subject, event.Reason = audit.AboutUser(m.UserID), string(m.Kind)
		}
		return event, nil
	})
	if givenUp = givenUp && err == nil; givenUp {
		s.outbox.givenUp.Add(1)
	}
	return givenUp, err
}
