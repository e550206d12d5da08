package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// Run sends the mails of the outbox, a few in parallel, until ctx ends. Then it gives the mails in
// progress a few seconds to finish. Run does not send mail for which check returns an error. If the
// outbox has no mailer, Run returns immediately.
func (o *Outbox) Run(ctx context.Context, check CheckLink) {
	if o.mailer == nil {
		return
	}
	o.check = check
	o.sender.Run(ctx)
}

// claimMail reserves a due mail for claimTime. Tenants with due mail take turns. It returns ErrNotFound if no mail
// is due.
func (o *Outbox) claimMail(ctx context.Context, _ int) ([]rolecall.OutboxMail, error) {
	var m rolecall.OutboxMail
	err := o.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		m, err = tx.ClaimMail(o.turn, o.now(), o.now().Add(claimTime))
		return err
	})
	if err != nil {
		return nil, err
	}
	o.turn = m.TenantID
	return []rolecall.OutboxMail{m}, nil
}

// The reasons why a mail is not handed to the mail server.
var (
	errVoidMail      = errors.New("its link was used, replaced or revoked, or its user was deleted")
	errPostponedMail = errors.New("its user or tenant is suspended, or its tenant is deleted")
)

// sendClaimed sends a claimed mail. Depending on the result, it then removes the mail, postpones it
// or gives it up.
func (o *Outbox) sendClaimed(ctx context.Context, claimed rolecall.OutboxMail) {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), mailLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastLimit, cancel) })
	defer stop()
	sent, err := o.send(sending, o.check, claimed)
	o.noteMail(ctx, claimed, sent, err)

	ctx, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), lastLimit)
	defer cancelLast()
	if errors.Is(err, rolecall.ErrNoMailbox) {
		_, err = o.giveUp(ctx, claimed)
	} else {
		err = o.settleMail(ctx, claimed, err == nil || errors.Is(err, errVoidMail))
	}
	if err != nil {
		o.log.WarnContext(ctx, "cannot record the result of a mail; it may be sent twice", "mail", claimed.ID, "error", err)
	}
}

// settleMail updates the outbox after an attempt. If done is true, it removes the mail. Otherwise
// it postpones the mail.
func (o *Outbox) settleMail(ctx context.Context, claimed rolecall.OutboxMail, done bool) error {
	return o.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		if done {
			_, err := tx.DeleteMail(claimed.ID)
			return err
		}
		tx.PostponeMail(claimed.ID, claimed.Attempts, min(o.now().Add(mailBackoff.Pause(claimed.Attempts)), claimed.ExpiresAt))
		return nil
	})
}

// send passes the mail to the mailer and returns the error of the mailer. sent is false if the mail
// was not passed to the mailer, for example because it is a dummy mail (rolecall.MailNothing). The
// error is errVoidMail or errPostponedMail if the mail must not be sent now.
func (o *Outbox) send(ctx context.Context, check CheckLink, claimed rolecall.OutboxMail) (sent bool, err error) {
	m, err := Open(o.keys, claimed)
	if err != nil || m.Kind == rolecall.MailNothing {
		return false, err
	}
	tenant, err := store.Read(ctx, o.store, claimed.TenantID, func(tx *store.Tx) (rolecall.Tenant, error) { return o.checkMail(tx, check, claimed.TenantID, &m) })
	if err != nil {
		return false, err
	}
	return true, o.mailer.Send(ctx, tenant, m)
}

// checkMail returns the tenant of a mail that can be sent now: a mail with a valid
// link, or a notice to an existing user. It returns errVoidMail if the mail can
// never be sent, and errPostponedMail if it can be sent later.
func (o *Outbox) checkMail(tx *store.Tx, check CheckLink, id rolecall.TenantID, m *rolecall.Mail) (rolecall.Tenant, error) {
	tenant, err := tx.TenantByID(id)
	if errors.Is(err, rolecall.ErrNotFound) || err == nil && tenant.Status == rolecall.TenantSuspended {
		return tenant, errPostponedMail
	} else if err != nil {
		return tenant, err
	}
	err = check(tx, tenant, m)
	switch kind := rolecall.KindOf(err); {
	case errors.Is(err, rolecall.ErrUserSuspended):
		err = errPostponedMail
	case kind == rolecall.NotFound || kind == rolecall.Unauthenticated:
		err = errVoidMail
	}
	return tenant, err
}

// noteMail counts and logs the result of an attempt. Of repeated failures, it logs only the first one for each
// cause. If the server refuses an address, it logs the first one for each address and cause. After an outage, it logs
// the first success.
func (o *Outbox) noteMail(ctx context.Context, m rolecall.OutboxMail, sent bool, err error) {
	switch {
	case errors.Is(err, errPostponedMail):
		o.log.DebugContext(ctx, "mail waits", "mail", m.ID, "user", m.UserID, "reason", err)
	case errors.Is(err, errVoidMail):
		o.dropped.Add(1)
		o.log.InfoContext(ctx, "mail dropped", "mail", m.ID, "user", m.UserID, "reason", err)
	case errors.Is(err, rolecall.ErrNoMailbox):
		o.failed.Add(1)
		o.log.WarnContext(ctx, "mail given up: the mailbox does not exist", "mail", m.ID, "user", m.UserID, "error", err)
	case err != nil:
		o.failed.Add(1)
		if o.failures.isFirst(failureOf(m.UserID, err)) {
			o.log.WarnContext(ctx, "cannot send mail; will retry until it expires", "mail", m.ID, "attempt", m.Attempts, "error", err)
		}
	case sent:
		o.sent.Add(1)
		if o.failures.end(m.UserID) {
			o.log.InfoContext(ctx, "sending mail works again")
		}
	}
}

// GiveUp removes expired mail from the outbox and records it in events.
func (o *Outbox) GiveUp(ctx context.Context) error {
	var failures []error
	givenUp := 0
	for full := true; full && failures == nil; {
		expired, err := store.Read(ctx, o.store, rolecall.TenantID{}, func(tx *store.Tx) ([]rolecall.OutboxMail, error) { return tx.ExpiredMail(o.now(), expiredBatch) })
		if err != nil {
			return err
		}
		full = len(expired) == expiredBatch
		for _, m := range expired {
			switch done, err := o.giveUp(ctx, m); {
			case err != nil:
				failures = append(failures, fmt.Errorf("mail %s: %w", m.ID, err))
			case done:
				givenUp++
			}
		}
	}
	if givenUp > 0 {
		o.log.WarnContext(ctx, "mail given up: it expired before it could be sent; see events of type mail.undeliverable", "mails", givenUp)
	}
	return errors.Join(failures...)
}

// giveUp removes a mail that expired or whose mailbox does not exist, and records it as
// undeliverable. It returns false for a dummy mail, and for a mail that another process has
// removed.
func (o *Outbox) giveUp(ctx context.Context, old rolecall.OutboxMail) (givenUp bool, err error) {
	m, err := Open(o.keys, old)
	readable := err == nil
	err = o.store.Update(ctx, old.TenantID, func(tx *store.Tx) error {
		ok, err := tx.DeleteMail(old.ID)
		if givenUp = ok && m.Kind != rolecall.MailNothing; !givenUp {
			return err
		}
		now := o.now()
		event := rolecall.Event{
			ID: rolecall.NewID[rolecall.Event](now), Type: rolecall.EventMailUndeliverable, OccurredAt: now,
			Actor:   rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "mail"},
			Subject: rolecall.About(old.TenantID),
		}
		if readable {
			event.Subject, event.Reason = rolecall.About(m.UserID), string(m.Kind)
		}
		tx.InsertEvent(event)
		return nil
	})
	if givenUp = givenUp && err == nil; givenUp {
		o.givenUp.Add(1)
	}
	return givenUp, err
}
