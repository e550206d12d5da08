package directory

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// APIToken is an API token with its secret, which only the response to its creation
// contains.
type APIToken struct {
	rolecall.APIToken
	Secret secret.Token
}

// Tokens returns a page of the holder's API tokens, sorted by id. Tokens can fail with
// ErrNotFound or ErrPermissionDenied.
func (s *Service) Tokens(ctx context.Context, c access.Caller, h rolecall.Holder, after *rolecall.Position, limit int) (page rolecall.Page[rolecall.APIToken], err error) {
	policy := policyFor(h, authz.ReadUserTokens, authz.ReadServiceAccounts, nil)
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

// authorizeTokens checks whether the policy allows the caller to perform an operation on
// the holder's tokens. Users with a session are always allowed for their own tokens.
func (s *Service) authorizeTokens(tx *store.Tx, c access.Caller, policy *authz.Policy, h rolecall.Holder) error {
	if c.IsSelf(h.UserID()) {
		return nil
	}
	return s.authorizeHolder(tx, c, policy, h)
}

// CreateToken creates an API token, once for each idempotency key. The holder h is the
// caller or a service account. A program with the token acts as the service account, so the
// caller must be able to assign all roles of this account. If the key was used before, the
// result has no secret.
//
// CreateToken returns ErrPermissionDenied for the token of another user,
// ErrSessionRequired, ErrNotFound, ErrBeyondOwnPermissions, ErrTooManyTokens, ErrKeyReused,
// ErrKeyInProgress and ErrTooManyKeys. It returns ErrValidation for an invalid draft, and
// for a permission that the holder neither has nor may assign.
func (s *Service) CreateToken(ctx context.Context, c access.Caller, key idempotency.Key, h rolecall.Holder, draft rolecall.APITokenDraft) (created idempotency.Created[APIToken], err error) {
	policy := policyFor(h, authz.CreateUserToken, authz.CreateServiceAccountToken, nil)
	if err := policy.AuthorizeFor(c.Principal, h.UserID()); err != nil {
		return created, err
	}
	now := s.now()
	if err := draft.Check(now).Err(); err != nil {
		return created, err
	}
	held := c.Assignments
	if h.Kind == rolecall.HolderAccount {
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

// insertToken stores the token with a new secret, in the name of the caller. If the token
// belongs to a user, it also mails a notice to the user.
func (s *Service) insertToken(ctx context.Context, c access.Caller, key idempotency.Key, h rolecall.Holder, token rolecall.APIToken) (created idempotency.Created[APIToken], err error) {
	operation := "createUserToken"
	if h.Kind == rolecall.HolderAccount {
		operation = "createServiceAccountToken"
	}
	bearer := secret.NewAPIToken()
	event := s.access.Event(c, rolecall.EventTokenCreated, h.Subject())
	event.Members = []string{"tokens"}
	// Without OnlyID, a repeated request gets ErrNotFound after the token was erased with its holder.
	stored, err := access.Create(ctx, s.access, c, key, idempotency.Creation[access.TokenValue]{
		Operation: operation, ID: h.ID, Value: access.TokenValue{Token: token}, Event: event,
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
			if h.Kind == rolecall.HolderAccount {
				return nil
			}
			return s.access.Notify(tx, c.Tenant.ID, &c.User, "an API token was created", c.Browser())
		},
	})
	if err != nil {
		return created, err
	}
	created.Value.APIToken, created.Replayed = stored.Value.Token, stored.Replayed
	if !stored.Replayed {
		created.Value.Secret = bearer
	}
	return created, nil
}

// RevokeToken revokes a token of the holder. It also deletes the mailed links that were
// requested with this token. RevokeToken can fail with ErrNotFound, ErrPermissionDenied or
// ErrBeyondOwnPermissions.
func (s *Service) RevokeToken(ctx context.Context, c access.Caller, h rolecall.Holder, id rolecall.APITokenID) error {
	policy := policyFor(h, authz.RevokeUserToken, authz.RevokeServiceAccountToken, nil)
	if err := policy.AuthorizeFor(c.Principal, h.UserID()); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if h.Kind == rolecall.HolderAccount {
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
		before, err := json.Marshal(access.TokenValue{Token: token})
		event := s.access.Event(c, rolecall.EventTokenRevoked, h.Subject())
		event.Members, event.Values = []string{"tokens"}, &rolecall.EventValues{Before: before}
		return event, err
	})
}
