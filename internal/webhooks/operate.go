package webhooks

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/store"
)

// TestWebhook lets the webhook send a test, and returns the id of its item. A disabled webhook sends a
// test too. TestWebhook can fail with ErrPermissionDenied or ErrNotFound.
func (s *Service) TestWebhook(ctx context.Context, c access.Caller, id rolecall.WebhookID) (rolecall.EventID, error) {
	if err := policiesFor(c).operate.Authorize(c.Principal); err != nil {
		return rolecall.EventID{}, err
	}
	item := rolecall.NewID[rolecall.Event](s.now())
	err := s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if _, err := tx.Webhook(id); err != nil {
			return nil, err
		}
		tx.TestWebhook(id, item, s.now())
		return nil, nil
	})
	return item, err
}

// Replay describes the items that a webhook sends again: those of events from the time From, and before
// To.
type Replay struct{ From, To rolecall.Time }

// ReplayWebhook lets the webhook send earlier items again. It ends an earlier replay. ReplayWebhook can
// fail with ErrPermissionDenied, ErrValidation or ErrNotFound.
func (s *Service) ReplayWebhook(ctx context.Context, c access.Caller, id rolecall.WebhookID, r Replay) error {
	if err := policiesFor(c).operate.Authorize(c.Principal); err != nil {
		return err
	}
	if r.To <= r.From {
		var faults rolecall.FieldErrors
		faults.Add("/to", "range", "must be later than from")
		return faults.Err()
	}
	after := struct {
		From rolecall.Time `json:"from"`
		To   rolecall.Time `json:"to"`
	}{r.From, r.To}
	values, err := json.Marshal(after)
	if err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		w, err := tx.Webhook(id)
		if err != nil {
			return nil, err
		}
		follows := s.sourceOf(c.Tenant.ID)
		last, err := follows.end(tx)
		if err != nil {
			return nil, err
		}
		before, err := follows.before(tx, r.From.Add(-replayMargin))
		if err != nil {
			return nil, err
		}
		if before < last {
			tx.ReplayWebhook(&w, before, last, r.From, r.To, s.now())
		}
		event := s.access.Event(c, rolecall.EventWebhookReplayed, rolecall.About(id))
		event.Values = &rolecall.EventValues{After: values}
		return event, nil
	})
}

// replayMargin is how far the times of events can be out of the order of their numbers, for example
// because a clock was set back.
const replayMargin = 24 * time.Hour

// SkipItems lets the webhook continue after the items that it could not deliver. If all is true, it
// skips all items until now. SkipItems can fail with ErrPermissionDenied or ErrNotFound.
func (s *Service) SkipItems(ctx context.Context, c access.Caller, id rolecall.WebhookID, all bool) error {
	if err := policiesFor(c).operate.Authorize(c.Principal); err != nil {
		return err
	}
	follows := s.sourceOf(c.Tenant.ID)
	if all {
		if err := follows.catchUp(ctx); err != nil {
			return err
		}
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if _, err := tx.Webhook(id); err != nil {
			return nil, err
		}
		event := s.access.Event(c, rolecall.EventWebhookSkipped, rolecall.About(id))
		if all {
			last, err := follows.end(tx)
			if err == nil {
				tx.SkipAll(id, last, s.now())
			}
			return event, err
		}
		skipped, err := tx.SkipBlocked(id, s.now())
		if err != nil || len(skipped) == 0 {
			return nil, err
		}
		values, err := json.Marshal(struct {
			Items []rolecall.EventID `json:"items"`
		}{skipped})
		event.Values = &rolecall.EventValues{After: values}
		return event, err
	})
}
