package webhooks

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/wire"
)

// typeTest is the type of the item of a test.
const typeTest rolecall.EventType = "webhook.test"

// The codes of attempts that fail before anything is sent.
const (
	codeSuspended = "service-account-suspended"
	codeDenied    = "permission-denied" // the service account lacks changes:read
	codeSecret    = "secret-unreadable" // no key of the instance can decrypt the secret
)

var itemEncoder = wire.NewEncoder[feed.Item]()

// delivery is a rendered item.
type delivery struct {
	url     string
	secrets []string
	id      rolecall.EventID
	body    []byte
	failure string // a code, if the item must not be sent now
	skip    bool   // the webhook does not send the item any more, or the event was deleted
	stop    bool   // the webhook was disabled, or its tenant was suspended
	orphan  bool   // the service account was deleted
}

// complete sets the URL, the secrets and the body of the delivery.
func (s *Service) complete(d *delivery, tenant rolecall.TenantID, w *rolecall.Webhook, item *feed.Item) {
	d.url, d.id, d.body = w.URL, item.ID, itemEncoder.Append(nil, item)
	sealed := [][]byte{w.Secret.Sealed}
	if w.Secret.OldUntil > s.now() {
		sealed = append(sealed, w.Secret.Old)
	}
	for _, text := range sealed {
		plain, err := s.access.Keys.Open(secretPurpose, string(text), belongs(tenant, w.ID))
		if err != nil {
			d.failure = codeSecret
			return
		}
		d.secrets = append(d.secrets, string(plain))
	}
}

// post sends the delivery once.
func (s *Service) post(ctx context.Context, tenant rolecall.TenantID, d *delivery) outbound.Result {
	if d.failure != "" {
		return outbound.Result{Error: d.failure}
	}
	header, err := secret.WebhookHeader(d.secrets, d.id.String(), s.now().Std().Unix(), mediaType, d.body)
	if err != nil {
		return outbound.Result{Error: codeSecret}
	}
	return s.sourceOf(tenant).sender().Post(ctx, d.url, header, d.body)
}

// deliverPart sends items of a part, one after the other, until one fails or the turn is over.
func (s *Service) deliverPart(ctx, sending context.Context, g *group, part rolecall.WebhookCursor, items []change, next *selection) error {
	p := progress{part: part, was: part}
	for i := range items {
		if p.sent >= turnItems || i > 0 && time.Since(g.begun) >= turn || time.Since(g.begun) >= turnLast || ctx.Err() != nil {
			return s.settle(sending, g, &p, nil)
		}
		d, err := s.sourceOf(g.TenantID).render(sending, g, &items[i])
		switch {
		case err != nil:
			return errors.Join(err, s.settle(sending, g, &p, nil))
		case d.stop:
			if !d.orphan { // of a webhook without a service account, the next turn disables it
				p.due = s.now().Add(idlePause)
			}
			return s.settle(sending, g, &p, nil)
		case d.skip:
			p.part.Number = items[i].Number
			p.forget()
			continue
		}
		r := s.post(sending, g.TenantID, &d)
		if r.Error != "" && sending.Err() != nil { // the process stops
			return s.settle(sending, g, &p, nil)
		}
		if s.note(&p, &items[i].ChangeHead, r); r.Error != "" {
			return s.fail(sending, g, &p, r)
		}
	}
	return s.settle(sending, g, &p, next)
}

// progress is what a turn of a part has done.
type progress struct {
	was, part rolecall.WebhookCursor
	attempts  []rolecall.WebhookDelivery
	sent      int
	due       rolecall.Time // zero: now
}

// forget clears the failures of the item that was blocked.
func (p *progress) forget() {
	p.part.Attempts, p.part.FailingSince, p.part.Blocked, p.part.Item = 0, 0, 0, rolecall.EventID{}
}

// note adds an attempt to the progress.
func (s *Service) note(p *progress, head *rolecall.ChangeHead, r outbound.Result) {
	p.attempts = append(p.attempts, s.attempt(&p.part, head.ID, head.Type, r))
	p.sent++
	p.part.Queue = rolecall.QueueSlow
	if r.Error == "" {
		s.delivered.Add(1)
		if r.Duration < slow {
			p.part.Queue = rolecall.QueueFast
		}
		p.part.Number = head.Number
		p.forget()
		return
	}
	s.failed.Add(1)
	p.part.Attempts++
	p.part.Blocked, p.part.Item = head.Number, head.ID
	if p.part.FailingSince == 0 {
		p.part.FailingSince = s.now()
	}
}

// attempt returns the record of an attempt, and counts it.
func (s *Service) attempt(part *rolecall.WebhookCursor, item rolecall.EventID, kind rolecall.EventType, r outbound.Result) rolecall.WebhookDelivery {
	a := rolecall.WebhookDelivery{
		ID: rolecall.NewID[rolecall.WebhookDelivery](s.now()), Item: item, Type: kind, Attempt: part.Attempts + 1, Status: r.Status, Duration: r.Duration, Error: r.Error,
		Slot: part.Part*rolecall.WebhookDeliveriesMax + int(part.Slot%rolecall.WebhookDeliveriesMax),
	}
	part.Slot++
	return a
}

// fail stores the progress of a part whose last attempt has failed. It disables the webhook if the
// endpoint answered 410, or has failed for too long.
func (s *Service) fail(ctx context.Context, g *group, p *progress, r outbound.Result) error {
	pause := max(backoff.Pause(p.part.Attempts), r.RetryAfter)
	p.due = s.now().Add(pause)
	if err := s.settle(ctx, g, p, nil); err != nil {
		return err
	}
	switch {
	case r.Status == http.StatusGone:
		return s.disable(ctx, g, rolecall.WebhookGone)
	case s.now().Sub(p.part.FailingSince) >= rolecall.WebhookPatience:
		return s.disable(ctx, g, rolecall.WebhookFailing)
	}
	return nil
}

// settle stores the progress of a part. If next is not nil, the part has reached the end of this
// selection.
func (s *Service) settle(ctx context.Context, g *group, p *progress, next *selection) error {
	if p.due == 0 {
		p.due = s.now()
	}
	ctx, cancel := settling(ctx)
	defer cancel()
	return s.update(ctx, g, func(tx *store.Tx) (err error) {
		state, due := rolecall.WebhookDue, p.due
		if next != nil {
			if state, due, err = s.afterwards(tx, g, next); err != nil {
				return err
			}
			p.part.Number = next.end
		}
		if ok, err := tx.SettleWebhook(&p.part, state, s.now(), due); err != nil || !ok {
			return err
		}
		for _, a := range p.attempts {
			tx.UpsertDelivery(g.WebhookID, a)
		}
		if p.part.Queue == rolecall.QueueFast && p.was.Queue == rolecall.QueueNew {
			tx.PromoteWebhook(g.WebhookID)
		}
		if p.was.Attempts > 0 && p.part.Number >= p.was.Blocked {
			tx.RetryWebhook(g.WebhookID, s.now())
		}
		return nil
	})
}

// deliverTest sends the test of a webhook, once.
func (s *Service) deliverTest(ctx context.Context, g *group) error {
	var d delivery
	err := s.view(ctx, g, func(tx *store.Tx) error {
		w, tenant, source, err := s.sourceOf(g.TenantID).test(tx, g)
		if d.stop = w == nil; err != nil || d.stop {
			return err
		}
		s.complete(&d, g.TenantID, w, &feed.Item{
			SpecVersion: "1.0", ID: g.Item, Source: source, Type: typeTest, Time: s.now(),
			Subject: string(rolecall.SubjectWebhook) + "/" + w.ID.String(), ContentType: "application/json",
			Data: feed.ItemData{
				Tenant: tenant, Subject: feed.ItemSubject{Type: rolecall.SubjectWebhook, ID: rolecall.AnyID(w.ID)}, Members: []string{},
				Actor: feed.ItemActor{Type: rolecall.ActorAnonymous, Via: "webhook"},
			},
		})
		return nil
	})
	if err != nil {
		return err
	}
	part := g.parts[0]
	p := progress{part: part, was: part}
	if !d.stop {
		p.attempts = append(p.attempts, s.attempt(&p.part, g.Item, typeTest, s.post(ctx, g.TenantID, &d)))
	}
	ctx, cancel := settling(ctx)
	defer cancel()
	return s.update(ctx, g, func(tx *store.Tx) error {
		if ok, err := tx.SettleWebhook(&p.part, rolecall.WebhookParked, s.now(), rolecall.Never); err != nil || !ok {
			return err
		}
		for _, a := range p.attempts {
			tx.UpsertDelivery(g.WebhookID, a)
		}
		return nil
	})
}
