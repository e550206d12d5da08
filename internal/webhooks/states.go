package webhooks

import (
	"context"
	"errors"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// State describes whether the items of a webhook arrive.
type State string

// The states of a webhook.
const (
	StateEnabled  State = "enabled"  // no item fails
	StateFailing  State = "failing"  // the endpoint did not accept an item, which is sent again
	StateBlocked  State = "blocked"  // it is enabled, but only tests are sent, for example because the service account is suspended
	StateDisabled State = "disabled" // only tests are sent, until the webhook is enabled
)

// States returns the state of each of the webhooks of the caller's tenant. It can fail with
// ErrPermissionDenied.
func (s *Service) States(ctx context.Context, c access.Caller, list []rolecall.Webhook) (states map[rolecall.WebhookID]State, err error) {
	if err := authz.ReadWebhooks.Authorize(c.Principal); err != nil {
		return nil, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		states = map[rolecall.WebhookID]State{}
		for i := range list {
			w := &list[i]
			obstacle, err := s.obstacle(tx, c.Tenant, w)
			if err != nil {
				return err
			}
			parts, err := tx.WebhookCursors(w.ID)
			if err != nil {
				return err
			}
			states[w.ID] = stateOf(w, obstacle, parts)
		}
		return nil
	})
	return states, err
}

func stateOf(w *rolecall.Webhook, obstacle string, parts []rolecall.WebhookCursor) State {
	switch {
	case !w.Enabled:
		return StateDisabled
	case obstacle != "":
		return StateBlocked
	case slices.ContainsFunc(parts, func(c rolecall.WebhookCursor) bool { return isFailing(&c) }):
		return StateFailing
	}
	return StateEnabled
}

// isFailing reports whether the endpoint did not accept the next item of the part.
func isFailing(c *rolecall.WebhookCursor) bool { return c.Blocked > c.Number }

// obstacle returns the code of the reason why no item of an event is sent now, or an empty text.
func (s *Service) obstacle(tx *store.Tx, tenant rolecall.Tenant, w *rolecall.Webhook) (string, error) {
	_, failure, err := s.reader(tx, tenant, w)
	switch {
	case errors.Is(err, rolecall.ErrNotFound):
		return codeOrphan, nil
	case err != nil || failure != "":
		return failure, err
	}
	if _, err := s.access.Keys.Open(secretPurpose, string(w.Secret.Sealed), belongs(tenant.ID, w.ID)); err != nil {
		return codeSecret, nil
	}
	return "", nil
}
