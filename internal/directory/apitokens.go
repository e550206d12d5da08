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

// APIToken is an API token with its secret, which is shown once.
type APIToken struct {
	rolecall.APIToken
	Secret secret.Token
}

// UserTokens returns a page of the user's API tokens, by id, or ErrNotFound,
// ErrPermissionDenied.
func (s *Service) UserTokens(ctx context.Context, c access.Caller, id rolecall.UserID, after *rolecall.Position, limit int) (page rolecall.Page[rolecall.APIToken], err error) {
	if err := authz.ReadUserTokens.AuthorizeFor(c.Principal, id); err != nil {
		return page, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if err := s.authorizeTokens(tx, c, authz.ReadUserTokens, id); err != nil {
			return err
		}
		page, err = tx.APITokens(rolecall.APITokenQuery{UserID: id, After: after, Limit: limit})
		return err
	})
	return page, err
}

// authorizeTokens returns nil if the caller may perform the operation of the policy on the
// tokens of the user.
func (s *Service) authorizeTokens(tx *store.Tx, c access.Caller, policy *authz.Policy, id rolecall.UserID) error {
	if c.IsSelf(id) {
		return nil
	}
	_, _, err := s.access.AuthorizedUser(tx, c, policy, id)
	return err
}

// CreateUserToken makes an API token that speaks for the caller, once for each
// idempotency key; a replay is without the secret. It returns ErrPermissionDenied
// for somebody else's, ErrValidation, also for a permission that the caller does not
// have, ErrTooManyTokens, and the errors of keys.
func (s *Service) CreateUserToken(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.UserID, draft rolecall.APITokenDraft) (created idempotency.Created[APIToken], err error) {
	if err := authz.CreateUserToken.AuthorizeFor(c.Principal, id); err != nil {
		return created, err
	}
	now := s.now()
	if err := draft.Check(now).Err(); err != nil {
		return created, err
	}
	if err := draft.CheckHolder(c.Assignments, now).Err(); err != nil {
		return created, err
	}
	token := draft.APIToken(now)
	token.UserID = id
	return s.createToken(ctx, c, key, "createUserToken", token, audit.AboutUser(id))
}

// createToken writes a new token of the subject.
func (s *Service) createToken(ctx context.Context, c access.Caller, key idempotency.Key, operation string, token rolecall.APIToken, about rolecall.Subject) (created idempotency.Created[APIToken], err error) {
	token.CreatedBy = c.Grantor()
	bearer := secret.NewAPIToken()
	event := s.access.Event(c, rolecall.EventTokenCreated, about)
	event.Members = []string{"tokens"}
	first, err := s.access.Create(ctx, c, key, idempotency.Creation{
		Operation: operation, ID: about.ID, Value: audit.TokenValue{Token: token}, Event: event,
		Insert: func(tx *store.Tx) error {
			tx.LockOwners()
			stored, err := tx.APITokens(rolecall.APITokenQuery{UserID: token.UserID, ServiceAccountID: token.ServiceAccountID, Limit: rolecall.APITokensMax})
			if err != nil {
				return err
			}
			if len(stored.Items) >= rolecall.APITokensMax {
				return rolecall.ErrTooManyTokens
			}
			tx.InsertAPIToken(token, bearer.Hash())
			if token.UserID.IsZero() {
				return nil
			}
			return s.access.Notify(tx, c.Tenant.ID, &c.User, "an API token was created")
		},
	})
	switch {
	case err != nil:
		return created, err
	case first == nil:
		return idempotency.Created[APIToken]{Value: APIToken{token, bearer}}, nil
	case first.Resource == nil: // erased with its holder, who has come back without it
		return created, rolecall.ErrNotFound
	}
	var stored audit.TokenValue
	err = json.Unmarshal(first.Resource, &stored)
	return idempotency.Created[APIToken]{Value: APIToken{APIToken: stored.Token}, Replayed: true}, err
}

// RevokeUserToken ends a token of the user at once. It returns ErrNotFound,
// ErrPermissionDenied and ErrBeyondOwnPermissions.
func (s *Service) RevokeUserToken(ctx context.Context, c access.Caller, id rolecall.UserID, tokenID rolecall.APITokenID) error {
	if err := authz.RevokeUserToken.AuthorizeFor(c.Principal, id); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if err := s.authorizeTokens(tx, c, authz.RevokeUserToken, id); err != nil {
			return nil, err
		}
		token, err := tx.APIToken(tokenID)
		if err == nil && token.UserID != id {
			err = rolecall.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		return s.revokeToken(tx, c, token, audit.AboutUser(id))
	})
}

// revokeToken removes a token of the subject, and makes the links void that were
// requested with it.
func (s *Service) revokeToken(tx *store.Tx, c access.Caller, token rolecall.APIToken, about rolecall.Subject) (*rolecall.Event, error) {
	if ok, err := tx.DeleteAPIToken(token.ID); err != nil {
		return nil, err
	} else if !ok {
		return nil, rolecall.ErrNotFound
	}
	access.VoidLinks(tx, token.ID)
	before, err := json.Marshal(audit.TokenValue{Token: token})
	event := s.access.Event(c, rolecall.EventTokenRevoked, about)
	event.Members, event.Values = []string{"tokens"}, &rolecall.EventValues{Before: before}
	return event, err
}

// ServiceAccountTokens returns a page of the service account's API tokens, by id, or
// ErrNotFound.
func (s *Service) ServiceAccountTokens(ctx context.Context, c access.Caller, id rolecall.ServiceAccountID, after *rolecall.Position, limit int) (page rolecall.Page[rolecall.APIToken], err error) {
	if err := authz.ReadServiceAccounts.Authorize(c.Principal); err != nil {
		return page, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if _, err := tx.ServiceAccountByID(id); err != nil {
			return err
		}
		page, err = tx.APITokens(rolecall.APITokenQuery{ServiceAccountID: id, After: after, Limit: limit})
		return err
	})
	return page, err
}

// CreateServiceAccountToken makes an API token that speaks for the service account,
// once for each idempotency key; a replay is without the secret. As whoever bears it
// acts as the account, the caller must cover all that it holds. It returns
// ErrNotFound, ErrBeyondOwnPermissions, ErrValidation, also for a permission that the
// account does not have, ErrTooManyTokens, and the errors of keys.
func (s *Service) CreateServiceAccountToken(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.ServiceAccountID, draft rolecall.APITokenDraft) (created idempotency.Created[APIToken], err error) {
	if err := authz.CreateServiceAccountToken.Authorize(c.Principal); err != nil {
		return created, err
	}
	now := s.now()
	if err := draft.Check(now).Err(); err != nil {
		return created, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		_, assignments, err := s.authorizedAccount(tx, c, authz.CreateServiceAccountToken, id)
		if err != nil {
			return err
		}
		return draft.CheckHolder(assignments, now).Err()
	})
	if err != nil {
		return created, err
	}
	token := draft.APIToken(now)
	token.ServiceAccountID = id
	return s.createToken(ctx, c, key, "createServiceAccountToken", token, audit.AboutServiceAccount(id))
}

// RevokeServiceAccountToken ends a token of the service account at once. It returns
// ErrNotFound and ErrBeyondOwnPermissions.
func (s *Service) RevokeServiceAccountToken(ctx context.Context, c access.Caller, id rolecall.ServiceAccountID, tokenID rolecall.APITokenID) error {
	if err := authz.RevokeServiceAccountToken.Authorize(c.Principal); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if _, err := s.protectedAccount(tx, c, authz.RevokeServiceAccountToken, id, nil); err != nil {
			return nil, err
		}
		token, err := tx.APIToken(tokenID)
		if err == nil && token.ServiceAccountID != id {
			err = rolecall.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		return s.revokeToken(tx, c, token, audit.AboutServiceAccount(id))
	})
}
