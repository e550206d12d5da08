// Package webhooks sends the items of the change feed to endpoints that tenants and operators choose, and
// manages these endpoints. Its methods are for the webhooks of the caller's tenant, or with ForOperators for
// those of the operators of the instance, which receive the changes of all tenants. The package may import access and the packages that access may import.
package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/queue"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Service manages webhooks, and sends their items. It is safe for concurrent use.
type Service struct {
	access  *access.Service
	now     func() rolecall.Time
	log     *slog.Logger
	workers [rolecall.QueueCount]*queue.Worker[group]

	delivered, failed atomic.Int64
}

// New returns a Service. Call Run to send items.
func New(a *access.Service) *Service {
	s := &Service{access: a, now: a.Now, log: a.Log}
	for which := range rolecall.QueueCount {
		s.workers[which] = s.newWorker(which)
	}
	a.Deliver = s.wake
	return s
}

// Webhook is a webhook with its secret, which only the responses to its creation and to a rotation
// contain.
type Webhook struct {
	rolecall.Webhook
	Secret string
}

// policies has what differs between the operations on the webhooks of a tenant and on those of operators.
type policies struct {
	read, create, update, operate, delete *authz.Policy
	creation                              string // the operation in idempotency keys
}

var (
	ofTenants   = &policies{authz.ReadWebhooks, authz.CreateWebhook, authz.UpdateWebhook, authz.OperateWebhook, authz.DeleteWebhook, "createWebhook"}
	ofOperators = &policies{
		authz.ReadOperatorWebhooks, authz.CreateOperatorWebhook, authz.UpdateOperatorWebhook, authz.OperateOperatorWebhook, authz.DeleteOperatorWebhook,
		"createOperatorWebhook",
	}
)

// policiesFor returns the policies for the webhooks of the caller's tenant. Only ForOperators returns a caller
// whose tenant is rolecall.OperatorsTenant.
func policiesFor(c access.Caller) *policies {
	if c.Tenant.ID == rolecall.OperatorsTenant {
		return ofOperators
	}
	return ofTenants
}

const secretPurpose = "webhook"

// belongs returns the data that binds an encrypted secret to its webhook.
func belongs(tenant rolecall.TenantID, id rolecall.WebhookID) []byte {
	return append(tenant[:], id[:]...)
}

// seal encrypts the secret of a webhook.
func (s *Service) seal(tenant rolecall.TenantID, id rolecall.WebhookID, text string) []byte {
	return []byte(s.access.Keys.Seal(secretPurpose, []byte(text), belongs(tenant, id)))
}

// Webhooks returns a page of the webhooks, the oldest first. It can fail with ErrPermissionDenied.
func (s *Service) Webhooks(ctx context.Context, c access.Caller, after *rolecall.Position, limit int) (page rolecall.Page[rolecall.Webhook], err error) {
	if err := policiesFor(c).read.Authorize(c.Principal); err != nil {
		return page, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Page[rolecall.Webhook], error) { return tx.Webhooks(after, limit) })
}

// Webhook returns the webhook with the id. It can fail with ErrNotFound or ErrPermissionDenied.
func (s *Service) Webhook(ctx context.Context, c access.Caller, id rolecall.WebhookID) (w rolecall.Webhook, err error) {
	if err := policiesFor(c).read.Authorize(c.Principal); err != nil {
		return w, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Webhook, error) { return tx.Webhook(id) })
}

// Deliveries returns a page of the attempts that q selects, the newest first. It can fail with
// ErrNotFound or ErrPermissionDenied.
func (s *Service) Deliveries(ctx context.Context, c access.Caller, q rolecall.WebhookDeliveryQuery) (page rolecall.Page[rolecall.WebhookDelivery], err error) {
	if err := policiesFor(c).read.Authorize(c.Principal); err != nil {
		return page, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) (err error) {
		if _, err = tx.Webhook(q.Webhook); err == nil {
			page, err = tx.WebhookDeliveries(q)
		}
		return err
	})
	return page, err
}

// CreateWebhook creates a webhook, once for each idempotency key. Its first item is the event about its
// creation. The endpoint receives the values that the service account may read, so the caller must be able
// to assign all roles of this account. If the key was used before, the result has no secret.
//
// CreateWebhook can fail with ErrPermissionDenied, ErrSessionRequired, ErrBeyondOwnPermissions,
// ErrValidation, ErrTooManyWebhooks, and the errors of idempotency keys.
func (s *Service) CreateWebhook(ctx context.Context, c access.Caller, key idempotency.Key, draft rolecall.WebhookDraft) (created idempotency.Created[Webhook], err error) {
	if err := policiesFor(c).create.Authorize(c.Principal); err != nil {
		return created, err
	}
	if c.Tenant.ID == rolecall.OperatorsTenant {
		draft.ServiceAccountID = rolecall.OperatorsAccount
	}
	faults := draft.Check()
	s.checkURL(c, &faults, draft.URL)
	if err := faults.Err(); err != nil {
		return created, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		return s.chooseAccount(tx, c, policiesFor(c).create, draft.ServiceAccountID)
	})
	if err != nil {
		return created, err
	}
	follows := s.sourceOf(c.Tenant.ID)
	if err := follows.catchUp(ctx); err != nil {
		return created, err
	}
	w, text := draft.Webhook(s.now()), secret.NewWebhookSecret()
	w.Secret.Sealed = s.seal(c.Tenant.ID, w.ID, text)
	stored, err := access.Create(ctx, s.access, c, key, idempotency.Creation[storedWebhook]{
		Operation: policiesFor(c).creation, ID: rolecall.AnyID(w.ID), Value: storedWebhook{w, c.Tenant.ID == rolecall.OperatorsTenant},
		Event: s.access.Event(c, rolecall.EventWebhookCreated, rolecall.About(w.ID)),
		Insert: func(tx *store.Tx) error {
			last, webhooks, err := follows.begin(tx)
			if err == nil && webhooks >= rolecall.WebhooksMax {
				err = rolecall.ErrTooManyWebhooks
			}
			if err == nil {
				tx.InsertWebhook(w, last)
			}
			return err
		},
		OnlyID: func(id rolecall.AnyID) storedWebhook {
			return storedWebhook{Webhook: rolecall.Webhook{ID: rolecall.WebhookID(id)}}
		},
	})
	if err != nil {
		return created, err
	}
	created = idempotency.Created[Webhook]{Value: Webhook{Webhook: stored.Value.Webhook}, Replayed: stored.Replayed, Erased: stored.Erased}
	if !stored.Replayed {
		created.Value.Secret = text
	}
	return created, nil
}

// checkURL adds a field error if the URL cannot be the address of an endpoint.
func (s *Service) checkURL(c access.Caller, faults *rolecall.FieldErrors, url string) {
	if err := s.sourceOf(c.Tenant.ID).checkURL(url); err != nil {
		faults.Add("/url", "url", err.Error())
	}
}

// authorizeAccount checks whether the policy allows the caller to configure a webhook with the service
// account. It returns ErrNotFound if the account does not exist. Webhooks of operators have no account.
func (s *Service) authorizeAccount(tx *store.Tx, c access.Caller, policy *authz.Policy, id rolecall.ServiceAccountID) error {
	if c.Tenant.ID == rolecall.OperatorsTenant {
		return policy.Authorize(c.Principal)
	}
	if _, err := tx.ServiceAccountByID(id); err != nil {
		return err
	}
	assignments, err := tx.Assignments(rolecall.HolderOf(id))
	if err != nil {
		return err
	}
	return policy.AuthorizeAccount(c.Principal, assignments, s.now())
}

// chooseAccount is authorizeAccount for an account that the caller has just chosen. It returns a field error
// if the account does not exist or is suspended, because nothing would be sent.
func (s *Service) chooseAccount(tx *store.Tx, c access.Caller, policy *authz.Policy, id rolecall.ServiceAccountID) error {
	if err := s.authorizeAccount(tx, c, policy, id); err != nil || c.Tenant.ID == rolecall.OperatorsTenant {
		return unknownAccount(err)
	}
	account, err := tx.ServiceAccountByID(id)
	if err != nil {
		return unknownAccount(err)
	}
	var faults rolecall.FieldErrors
	if account.Status != rolecall.ServiceAccountActive {
		faults.Add("/serviceAccountId", "suspended", "must be the ID of an active service account")
	}
	return faults.Err()
}

// unknownAccount returns a field error in place of ErrNotFound.
func unknownAccount(err error) error {
	if !errors.Is(err, rolecall.ErrNotFound) {
		return err
	}
	var faults rolecall.FieldErrors
	faults.Add("/serviceAccountId", "unknown", "must be the ID of a service account of this tenant")
	return faults.Err()
}

// UpdateWebhook applies the patch to the stored webhook. After a concurrent change, it applies the patch
// to the new version. UpdateWebhook can fail with ErrPermissionDenied, ErrSessionRequired,
// ErrBeyondOwnPermissions, ErrValidation, ErrNotFound or ErrPreconditionFailed.
func (s *Service) UpdateWebhook(ctx context.Context, c access.Caller, id rolecall.WebhookID, patch rolecall.WebhookPatch, match access.Match[rolecall.Webhook]) (rolecall.Webhook, error) {
	if err := policiesFor(c).update.Authorize(c.Principal); err != nil {
		return rolecall.Webhook{}, err
	}
	faults := patch.Check()
	if patch.URL.Set {
		s.checkURL(c, &faults, patch.URL.Value)
	}
	if err := faults.Err(); err != nil {
		return rolecall.Webhook{}, err
	}
	return s.change(ctx, c, id, match, func(tx *store.Tx, old rolecall.Webhook) (rolecall.Webhook, *rolecall.Event, error) {
		changed, members := patch.Apply(old, s.now())
		authorize := s.authorizeAccount
		if changed.ServiceAccountID != old.ServiceAccountID {
			authorize = s.chooseAccount
		}
		if changed.Enabled || changed.ServiceAccountID != old.ServiceAccountID {
			if err := authorize(tx, c, policiesFor(c).update, changed.ServiceAccountID); err != nil {
				return old, nil, unknownAccount(err)
			}
		}
		if members == nil {
			return old, nil, nil
		}
		event, err := s.event(c, rolecall.EventWebhookUpdated, &old, &changed)
		if err == nil {
			event.Members = members
		}
		return changed, event, err
	})
}

// RotateSecret gives the webhook a new secret. The old one signs too for a day. RotateSecret can fail
// with ErrPermissionDenied, ErrSessionRequired, ErrBeyondOwnPermissions, ErrNotFound or
// ErrPreconditionFailed.
func (s *Service) RotateSecret(ctx context.Context, c access.Caller, id rolecall.WebhookID, match access.Match[rolecall.Webhook]) (Webhook, error) {
	if err := policiesFor(c).update.Authorize(c.Principal); err != nil {
		return Webhook{}, err
	}
	text := secret.NewWebhookSecret()
	w, err := s.change(ctx, c, id, match, func(_ *store.Tx, old rolecall.Webhook) (rolecall.Webhook, *rolecall.Event, error) {
		event := s.access.Event(c, rolecall.EventSecretRotated, rolecall.About(id))
		event.Members = []string{"secret"}
		return old.Rotated(s.seal(c.Tenant.ID, id, text), s.now()), event, nil
	})
	return Webhook{w, text}, err
}

// change stores the webhook that fn returns for the stored one, with its event. Without an event,
// nothing is stored. The caller must be able to assign all roles of the service account of the stored
// webhook.
func (s *Service) change(ctx context.Context, c access.Caller, id rolecall.WebhookID, match access.Match[rolecall.Webhook],
	fn func(*store.Tx, rolecall.Webhook) (rolecall.Webhook, *rolecall.Event, error)) (w rolecall.Webhook, err error) {
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := tx.Webhook(id)
		if err != nil {
			return nil, err
		}
		if _, err := access.Found(s.authorizeAccount(tx, c, policiesFor(c).update, old.ServiceAccountID)); err != nil {
			return nil, err
		}
		if err := match.Check(&old); err != nil {
			return nil, err
		}
		changed, event, err := fn(tx, old)
		if w = changed; err != nil || event == nil {
			return nil, err
		}
		return event, store.CheckVersion(tx.UpdateWebhook(old, changed, s.now()))
	})
	if err != nil {
		return rolecall.Webhook{}, err
	}
	return w, nil
}

// DeleteWebhook deletes the webhook with its deliveries. It can fail with ErrPermissionDenied,
// ErrNotFound or ErrPreconditionFailed.
func (s *Service) DeleteWebhook(ctx context.Context, c access.Caller, id rolecall.WebhookID, match access.Match[rolecall.Webhook]) error {
	if err := policiesFor(c).delete.Authorize(c.Principal); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if _, _, err := tx.LockFeed(); err != nil {
			return nil, err
		}
		old, err := tx.Webhook(id)
		if err == nil {
			err = match.Check(&old)
		}
		if err != nil {
			return nil, err
		}
		if err := store.CheckVersion(tx.DeleteWebhook(old)); err != nil {
			return nil, err
		}
		return s.event(c, rolecall.EventWebhookDeleted, &old, nil)
	})
}

// event returns an event about the webhook. The argument changed is nil if it was deleted.
func (s *Service) event(c access.Caller, kind rolecall.EventType, old, changed *rolecall.Webhook) (*rolecall.Event, error) {
	event := s.access.Event(c, kind, rolecall.About(old.ID))
	values, err := valuesOf(c.Tenant.ID, old, changed)
	event.Values = values
	return event, err
}

// storedWebhook is a webhook as events and idempotency keys store it: those of operators without the service
// account.
type storedWebhook struct {
	rolecall.Webhook
	ofOperators bool
}

// MarshalJSON returns the webhook as an object (json.Marshaler).
func (w storedWebhook) MarshalJSON() ([]byte, error) {
	if !w.ofOperators {
		return json.Marshal(w.Webhook)
	}
	return json.Marshal(struct {
		rolecall.Webhook
		ServiceAccountID *rolecall.ServiceAccountID `json:"serviceAccountId,omitempty"`
	}{w.Webhook, nil})
}

func valuesOf(tenant rolecall.TenantID, old, changed *rolecall.Webhook) (*rolecall.EventValues, error) {
	ofOperators := tenant == rolecall.OperatorsTenant
	before, err := json.Marshal(storedWebhook{*old, ofOperators})
	if err != nil || changed == nil {
		return &rolecall.EventValues{Before: before}, err
	}
	after, err := json.Marshal(storedWebhook{*changed, ofOperators})
	return &rolecall.EventValues{Before: before, After: after}, err
}
