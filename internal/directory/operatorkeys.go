package directory

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// CreateOperatorKey creates an operator key and returns it with its secret. The secret is shown
// only once. It returns ErrValidation, ErrNotFound for an unknown tenant, and an error of the kind
// Conflict if OperatorKeysMax keys exist.
func (s *Service) CreateOperatorKey(ctx context.Context, draft rolecall.OperatorKeyDraft) (key rolecall.OperatorKey, token secret.Token, err error) {
	if err := draft.Check().Err(); err != nil {
		return key, "", err
	}
	for _, name := range draft.Tenants {
		if _, err := s.access.TenantNamed(ctx, name); err != nil {
			return key, "", err
		}
	}
	key, token = draft.OperatorKey(s.now()), secret.NewOperatorKey()
	err = s.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		keys, err := tx.OperatorKeys(rolecall.OperatorKeyID{}, rolecall.OperatorKeysMax)
		if err != nil {
			return err
		}
		if len(keys) >= rolecall.OperatorKeysMax {
			return errTooManyOperatorKeys
		}
		tx.InsertOperatorKey(key, token.Hash())
		return nil
	})
	if err == nil {
		s.log.InfoContext(ctx, "operator key created", "key", key.ID, "name", key.Name, "tenants", key.Tenants, "expires", key.ExpiresAt)
	}
	return key, token, err
}

var errTooManyOperatorKeys = &rolecall.Error{
	Kind: rolecall.Conflict, Code: "too-many-operator-keys",
	Detail: "This instance has the maximum number of operator keys, including expired ones. Revoke one first.",
}

// OperatorKeys returns up to limit operator keys that come after the given id, the oldest first.
// The zero id selects the first page.
func (s *Service) OperatorKeys(ctx context.Context, after rolecall.OperatorKeyID, limit int) (keys []rolecall.OperatorKey, err error) {
	err = s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		keys, err = tx.OperatorKeys(after, limit)
		return err
	})
	return keys, err
}

// RevokeOperatorKey revokes a key. It returns ErrNotFound.
func (s *Service) RevokeOperatorKey(ctx context.Context, id rolecall.OperatorKeyID) error {
	err := s.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		ok, err := tx.DeleteOperatorKey(id)
		if err == nil && !ok {
			err = rolecall.ErrNotFound.With("No operator key has this ID. List the keys to find it.")
		}
		return err
	})
	if err == nil {
		s.log.InfoContext(ctx, "operator key revoked", "key", id)
	}
	return err
}
