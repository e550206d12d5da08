package directory

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// EraseUser permanently removes a user and all personal data of the user. The user can have
// been deleted before. Events about the user keep their type and time, and the ids of assigned roles.
// The event of the erasure has the reason. The first
// transaction removes the user. Further transactions erase the data in other rows, in
// batches. If a batch fails, EraseUser still returns nil, and a background task completes
// the erasure. EraseUser can fail with ErrNotFound, ErrPermissionDenied,
// ErrBeyondOwnPermissions or ErrLastOwner.
func (s *Service) EraseUser(ctx context.Context, c access.Caller, id rolecall.UserID, reason string) error {
	if err := authz.EraseUser.AuthorizeFor(c.Principal, id); err != nil {
		return err
	}
	err := s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if err := s.removeUserOrTombstone(tx, c, id); err != nil {
			return nil, err
		}
		tx.InsertErasure(id, s.now().Add(access.SettleTime))
		event := s.access.Event(c, rolecall.EventUserErased, rolecall.About(id))
		event.Reason = reason
		return event, nil
	})
	if err != nil {
		return err
	}
	if err := s.eraseTraces(ctx, c.Tenant.ID, id); err != nil {
		s.log.WarnContext(ctx, "cannot erase all data of a user yet; will retry in the background", "user", id, "error", err)
	}
	return nil
}

// removeUserOrTombstone removes the user with the id. If the user was deleted before, it
// removes the tombstone, which has the data that is kept for a restore.
func (s *Service) removeUserOrTombstone(tx *store.Tx, c access.Caller, id rolecall.UserID) error {
	user, err := s.protectedUser(tx, c, authz.EraseUser, id, nil)
	if errors.Is(err, rolecall.ErrNotFound) {
		return s.removeTombstone(tx, c, id)
	}
	if err != nil {
		return err
	}
	if err := store.CheckVersion(tx.DeleteUser(user, s.now())); err != nil {
		return err
	}
	_, err = tx.DeleteTombstone(id, 0)
	return err
}

// removeTombstone removes the tombstone of a deleted user. It authorizes the caller by the
// department, the assignments and the groups that the user had when deleted. The transaction must have
// called LockOwners.
func (s *Service) removeTombstone(tx *store.Tx, c access.Caller, id rolecall.UserID) error {
	tombstone, err := tx.DeleteTombstone(id, 0)
	if err != nil {
		return err
	}
	if !c.Reach(rolecall.UsersErase).Includes(tombstone.User.Department) {
		return rolecall.ErrNotFound
	}
	roles, err := rolesOf(tx, tombstone.Assignments)
	if err != nil {
		return err
	}
	for i := range tombstone.Assignments {
		tombstone.Assignments[i].Role = roles[tombstone.Assignments[i].Role.ID]
	}
	for _, group := range tombstone.Groups {
		held, err := tx.Assignments(rolecall.HolderOf(group))
		if err != nil {
			return err
		}
		tombstone.Assignments = append(tombstone.Assignments, held...)
	}
	return authz.EraseUser.AuthorizeUser(c.Principal, &tombstone.User, tombstone.Assignments, s.now())
}

// eraseTraces erases the data that other rows still have about a removed user. It uses many
// small transactions, so that other writes do not wait long.
func (s *Service) eraseTraces(ctx context.Context, tenant rolecall.TenantID, id rolecall.UserID) error {
	var after rolecall.EventID
	for taken := access.BatchSize; taken >= access.BatchSize; {
		var last rolecall.EventID
		err := s.store.Update(ctx, tenant, func(tx *store.Tx) (err error) {
			last, taken, err = tx.EraseTraces(id, after, access.BatchSize)
			return err
		})
		if err != nil {
			return err
		}
		after = last
	}
	return nil
}
