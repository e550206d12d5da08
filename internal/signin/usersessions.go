package signin

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// revoked is the reason in the events of sessions that a user or an administrator ended
// through the session operations of the user.
const revoked = "revoked"

// UserSessions returns a page of the user's live sessions, newest first. UserSessions can
// fail with ErrNotFound or ErrPermissionDenied. Callers with a session need no permission
// to list their own sessions.
func (s *Service) UserSessions(ctx context.Context, c access.Caller, id rolecall.UserID, after *rolecall.Position, limit int) (page rolecall.Page[rolecall.Session], err error) {
	if err := authz.ReadSessions.AuthorizeFor(c.Principal, id); err != nil {
		return page, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if _, _, err := s.access.AuthorizedUser(tx, c, authz.ReadSessions, id); err != nil {
			return err
		}
		settings, err := s.settingsOf(tx, &c.Tenant, id)
		if err != nil {
			return err
		}
		page, err = tx.Sessions(rolecall.SessionQuery{User: id, Settings: settings, Now: s.now(), After: after, Limit: limit})
		for i := range page.Items {
			page.Items[i].ExpiresAt = page.Items[i].EndsAt(settings)
		}
		return err
	})
	return page, err
}

// UsersWithoutFactor counts the users who have a live session that was started without a
// second factor. These users are signed out if the tenant begins to require a second factor
// of all users. UsersWithoutFactor can fail with ErrPermissionDenied.
func (s *Service) UsersWithoutFactor(ctx context.Context, c access.Caller) (total rolecall.Total, err error) {
	if err := authz.UpdateTenant.Authorize(c.Principal); err != nil {
		return total, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Total, error) { return tx.UsersWithoutFactor(c.Tenant.Settings, s.now()) })
}

// EndUserSession ends one live session of the user and makes the mailed links invalid that
// were requested in it. Callers with a session need no permission to end their own
// sessions. EndUserSession can fail with ErrNotFound, ErrPermissionDenied or
// ErrBeyondOwnPermissions.
func (s *Service) EndUserSession(ctx context.Context, c access.Caller, id rolecall.UserID, session rolecall.SessionID) error {
	return s.revoke(ctx, c, id, func(tx *store.Tx, event *rolecall.Event) error {
		settings, err := s.settingsOf(tx, &c.Tenant, id)
		if err != nil {
			return err
		}
		if ok, err := tx.DeleteUserSession(id, session, settings, s.now()); err != nil {
			return err
		} else if !ok {
			return rolecall.ErrNotFound
		}
		access.VoidLinks(tx, session)
		access.RecordEnded(tx, id, []rolecall.SessionID{session}, event, revoked)
		return nil
	})
}

// EndUserSessions ends all sessions of the user. If callers end their own sessions, this
// includes the session of the request. EndUserSessions returns the errors of
// EndUserSession.
func (s *Service) EndUserSessions(ctx context.Context, c access.Caller, id rolecall.UserID) error {
	return s.revoke(ctx, c, id, func(tx *store.Tx, event *rolecall.Event) error {
		return access.EndSessions(tx, id, rolecall.SessionID{}, event, revoked)
	})
}

// revoke checks that the caller may end sessions of the user, and calls end. The function
// end must end the sessions and write an event for each of them, as a copy of like.
func (s *Service) revoke(ctx context.Context, c access.Caller, id rolecall.UserID, end func(tx *store.Tx, like *rolecall.Event) error) error {
	if err := authz.EndSessions.AuthorizeFor(c.Principal, id); err != nil {
		return err
	}
	return s.store.Update(ctx, c.Tenant.ID, func(tx *store.Tx) error {
		if !c.IsSelf(id) {
			tx.LockOwners() // keeps the roles of the user unchanged during the transaction
			if _, _, err := s.access.AuthorizedUser(tx, c, authz.EndSessions, id); err != nil {
				return err
			}
		}
		return end(tx, s.access.Event(c, rolecall.EventSessionEnded, rolecall.About(id)))
	})
}
