package webhooks

import (
	"bytes"
	"context"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// mediaType is the content type of items.
const mediaType = "application/cloudevents+json"

// codeOrphan is the reason why a webhook whose service account was deleted sends nothing.
const codeOrphan = rolecall.WebhookUnattended

// Preview is the request that a webhook would send now. Event is zero if the webhook sends none of the
// newest events.
type Preview struct {
	Event    rolecall.EventID
	Type     rolecall.EventType
	Selected bool        // the webhook sends events of this type and actor
	Failure  string      // the code of the reason why nothing would be sent; empty: none
	Header   http.Header // without the signature, which only the secret can make
	Body     []byte
	Redacted bool // the endpoint would receive values that the caller may not read
}

// Preview returns the request with which the webhook would send the event now. If event is zero, it is the
// newest event that the webhook sends, of the last MaxScan. The body has the values that both the service
// account and the caller may read. Preview can fail with ErrPermissionDenied or ErrNotFound.
func (s *Service) Preview(ctx context.Context, c access.Caller, id rolecall.WebhookID, event rolecall.EventID) (p Preview, err error) {
	for _, policy := range []*authz.Policy{authz.ReadWebhooks, authz.ReadChanges} {
		if err := policy.Authorize(c.Principal); err != nil {
			return p, err
		}
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		w, err := tx.Webhook(id)
		if err == nil && event.IsZero() {
			event, err = newest(tx, &w)
		}
		if err != nil || event.IsZero() {
			return err
		}
		found, err := tx.EventByID(event)
		if err != nil {
			return err
		}
		p = Preview{Event: found.ID, Type: found.Type}
		p.Selected = w.Sends(&rolecall.ChangeHead{Type: found.Type, Actor: rolecall.AnyID(found.Actor.ID)})
		reader, failure, err := s.reader(tx, c.Tenant, &w)
		if ok, err := access.Found(err); !ok {
			p.Failure = codeOrphan
			return err
		}
		if p.Failure = failure; failure != "" {
			return nil
		}
		return s.preview(&p, c, reader, found)
	})
	return p, err
}

// preview sets the headers and the body of p.
func (s *Service) preview(p *Preview, c access.Caller, reader *authz.Principal, event rolecall.Event) error {
	changes := []rolecall.Change{{Event: event}}
	var bodies [2][]byte
	for i, principal := range []*authz.Principal{reader, c.Principal} {
		item, err := s.item(principal, c.Tenant, changes)
		if err != nil {
			return err
		}
		bodies[i] = itemEncoder.Append(nil, &item)
	}
	var err error
	p.Body, p.Redacted = bodies[1], !bytes.Equal(bodies[0], bodies[1])
	p.Header, err = secret.WebhookHeader(nil, event.ID.String(), s.now().Std().Unix(), mediaType, p.Body)
	p.Header.Del("Webhook-Signature")
	return err
}

// newest returns the newest event that the webhook sends, or zero if it is older than the last MaxScan.
func newest(tx *store.Tx, w *rolecall.Webhook) (rolecall.EventID, error) {
	state, err := tx.Feed(0)
	to := state.Last
	for _, scan := range []int64{page, rolecall.MaxScan - page} {
		after := max(to-scan, state.First-1)
		if err != nil || after >= to {
			break
		}
		var heads []rolecall.ChangeHead
		heads, err = tx.ChangeHeads(after, to)
		for i := range slices.Backward(heads) {
			if w.Sends(&heads[i]) {
				return heads[i].ID, nil
			}
		}
		to = after
	}
	return rolecall.EventID{}, err
}

// reader returns the principal whose permissions decide which values the items of the webhook have now, or
// the code of the reason why nothing may be sent. It returns ErrNotFound if the service account does not exist.
func (s *Service) reader(tx *store.Tx, tenant rolecall.Tenant, w *rolecall.Webhook) (p *authz.Principal, failure string, err error) {
	account, err := tx.ServiceAccountByID(w.ServiceAccountID)
	if err != nil {
		return nil, "", err
	}
	assignments, err := tx.Assignments(rolecall.HolderOf(account.ID))
	if err != nil {
		return nil, "", err
	}
	p = authz.NewAccountPrincipal(tenant, &account, assignments, s.now())
	switch {
	case account.Status != rolecall.ServiceAccountActive:
		failure = codeSuspended
	case authz.ReadChanges.Authorize(p) != nil:
		failure = codeDenied
	}
	return p, failure, nil
}

// item returns the item of the only change. It removes from the change the values that the principal may not
// read.
func (s *Service) item(p *authz.Principal, tenant rolecall.Tenant, change []rolecall.Change) (feed.Item, error) {
	err := authz.RedactChanges(p, change)
	return feed.NewItem(&change[0].Event, feed.SourceOf(s.access.PublicURL, tenant.Name), tenant.Name), err
}

// lagScan is how many changes Lag reads.
const lagScan = 1000

// Lag describes the changes that a webhook has not delivered yet.
type Lag struct {
	Waiting int           // the number of items that wait, of the next changes
	More    bool          // further changes follow, of which some can wait too
	Oldest  rolecall.Time // when the oldest of these items occurred; zero: none waits
	Failing []rolecall.WebhookCursor
	Failure string // the code of the reason why items of events are not sent now; empty: none
	State   State
}

// Lag returns the number and the age of the items that wait, and those that fail. It can fail with
// ErrPermissionDenied or ErrNotFound.
func (s *Service) Lag(ctx context.Context, c access.Caller, id rolecall.WebhookID) (lag Lag, err error) {
	if err := authz.ReadWebhooks.Authorize(c.Principal); err != nil {
		return lag, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		w, err := tx.Webhook(id)
		if err != nil {
			return err
		}
		lag = Lag{}
		if lag.Failure, err = s.obstacle(tx, c.Tenant, &w); err != nil {
			return err
		}
		parts, err := tx.WebhookCursors(id)
		lag.State = stateOf(&w, lag.Failure, parts)
		if err != nil || len(parts) < rolecall.WebhookPartitions {
			return err
		}
		state, err := tx.Feed(0)
		if err != nil {
			return err
		}
		first := state.Last
		for i := range parts {
			if first = min(first, parts[i].Number); isFailing(&parts[i]) {
				lag.Failing = append(lag.Failing, parts[i])
			}
		}
		first = max(first, state.First-1) // deleted events are skipped
		end := min(state.Last, first+lagScan)
		lag.More = end < state.Last
		heads, err := tx.ChangeHeads(first, end)
		for i := range heads {
			if head := &heads[i]; w.Sends(head) && head.Number > parts[head.Partition()].Number {
				if lag.Waiting++; lag.Oldest == 0 {
					lag.Oldest = head.OccurredAt
				}
			}
		}
		return err
	})
	return lag, err
}

// FeedLag returns when the oldest change of the tenant occurred that is not in the change feed yet, or zero
// if all are. It can fail with ErrPermissionDenied.
func (s *Service) FeedLag(ctx context.Context, c access.Caller) (oldest rolecall.Time, err error) {
	if err := authz.ReadWebhooks.Authorize(c.Principal); err != nil {
		return 0, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) (err error) {
		oldest, err = tx.Unnumbered()
		_, err = access.Found(err)
		return err
	})
	return oldest, err
}
