package directory

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// APIToken is an API token with its secret. The secret is shown only once.
type APIToken struct {
	rolecall.APIToken
	Secret secret.Token
}

// Tokens returns a page of the holder's API tokens, by id. It returns ErrNotFound
// and ErrPermissionDenied.
func (s *Service) Tokens(ctx context.Context, c access.Caller, h rolecall.Holder, after *rolecall.Position, limit int) (page rolecall.Page[rolecall.APIToken], err error) {
	policy := policyFor(h, authz.ReadUserTokens, authz.ReadServiceAccounts)
	if err := policy.AuthorizeFor(c.Principal, h.UserID()); err != nil {
		return page, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if err := s.authorizeTokens(tx, c, policy, h); err != nil {
			return err
		}
		page, err = tx.APITokens(rolecall.APITokenQuery{Holder: h, After: after, Limit: limit})
		return err
	})
	return page, err
}

// authorizeTokens authorizes the caller for the operation of the policy on the
// holder's tokens.
func (s *Service) authorizeTokens(tx *store.Tx, c access.Caller, policy *authz.Policy, h rolecall.Holder) error {
	if c.IsSelf(h.UserID()) {
		return nil
	}
	return s.authorizeHolder(tx, c, policy, h)
}

// CreateToken creates an API token of the caller, or of a service account, once for each
// idempotency key. A replay returns no secret. The bearer of the token acts as the service account,
// so the caller must be able to grant all roles of the account. CreateToken returns
// ErrPermissionDenied for the token of another user, ErrNotFound, ErrBeyondOwnPermissions,
// ErrTooManyTokens, and the errors of idempotency keys. It returns ErrValidation for an invalid
// draft, and for a permission that the holder does not have.
func (s *Service) CreateToken(ctx context.Context, c access.Caller, key idempotency.Key, h rolecall.Holder, draft rolecall.APITokenDraft) (created idempotency.Created[APIToken], err error) {
	policy := policyFor(h, authz.CreateUserToken, authz.CreateServiceAccountToken)
	if err := policy.AuthorizeFor(c.Principal, h.UserID()); err != nil {
		return created, err
	}
	now := s.now()
	if err := draft.Check(now).Err(); err != nil {
		return created, err
	}
	held := c.Assignments
	if h.IsAccount {
		err := s.access.View(ctx, c, func(tx *store.Tx) (err error) {
			_, held, err = s.authorizedAccount(tx, c, policy, h.ServiceAccountID())
			return err
		})
		if err != nil {
			return created, err
		}
	}
	if err := draft.CheckHolder(held, now).Err(); err != nil {
		return created, err
	}
	token := draft.APIToken(now)
	token.UserID, token.ServiceAccountID, token.CreatedBy = h.UserID(), h.ServiceAccountID(), c.Grantor()
	return s.insertToken(ctx, c, key, h, token)
}

// insertToken writes a new token of the holder.
func (s *Service) insertToken(ctx context.Context, c access.Caller, key idempotency.Key, h rolecall.Holder, token rolecall.APIToken) (created idempotency.Created[APIToken], err error) {
	operation := "createUserToken"
	if h.IsAccount {
		operation = "createServiceAccountToken"
	}
	bearer := secret.NewAPIToken()
	event := s.access.Event(c, rolecall.EventTokenCreated, audit.AboutHolder(h))
	event.Members = []string{"tokens"}
	first, err := s.access.Create(ctx, c, key, idempotency.Creation{
		Operation: operation, ID: h.ID, Value: audit.TokenValue{Token: token}, Event: event,
		Insert: func(tx *store.Tx) error {
			tx.LockOwners()
			stored, err := tx.APITokens(rolecall.APITokenQuery{Holder: h, Limit: rolecall.APITokensMax})
			if err != nil {
				return err
			}
			if len(stored.Items) >= rolecall.APITokensMax {
				return rolecall.ErrTooManyTokens
			}
			tx.InsertAPIToken(token, bearer.Hash())
			if h.IsAccount {
				return nil
			}
			return s.access.Notify(tx, c.Tenant.ID, &c.User, "an API token was created", c.Browser())
		},
	})
	switch {
	case err != nil:
		return created, err
	case first == nil:
		return idempotency.Created[APIToken]{Value: APIToken{token, bearer}}, nil
	case first.Resource == nil: // the token was erased with its holder, and the holder was restored without it
		return created, rolecall.ErrNotFound
	}
	var stored audit.TokenValue
	err = json.Unmarshal(first.Resource, &stored)
	return idempotency.Created[APIToken]{Value: APIToken{APIToken: stored.Token}, Replayed: true}, err
}

// RevokeToken revokes a token of the holder and voids the links that were requested
// with it. It returns ErrNotFound, ErrPermissionDenied and ErrBeyondOwnPermissions.
func (s *Service) RevokeToken(ctx context.Context, c access.Caller, h rolecall.Holder, id rolecall.APITokenID) error {
	policy := policyFor(h, authz.RevokeUserToken, authz.RevokeServiceAccountToken)
	if err := policy.AuthorizeFor(c.Principal, h.UserID()); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if h.IsAccount {
			tx.LockOwners()
		}
		if err := s.authorizeTokens(tx, c, policy, h); err != nil {
			return nil, err
		}
		token, err := tx.APIToken(id)
		if err != nil {
			return nil, err
		}
		if token.UserID != h.UserID() || token.ServiceAccountID != h.ServiceAccountID() {
			return nil, rolecall.ErrNotFound
		}
		if ok, err := tx.DeleteAPIToken(id); err != nil {
			return nil, err
		} else if !ok {
			return nil, rolecall.ErrNotFound
		}
		access.VoidLinks(tx, id)
		before, err := json.Marshal(audit.TokenValue{Token: token})
		event := s.access.Event(c, rolecall.EventTokenRevoked, audit.AboutHolder(h))
		event.Members, event.Values = []string{"tokens"}, &rolecall.EventValues{Before: before}
		return event, err
	})
}
