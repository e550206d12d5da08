package access

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// Notify sends the user a mail that a credential was changed. The argument what describes
// the change, such as "the password was changed".
func (s *Service) Notify(tx *store.Tx, tenant rolecall.TenantID, user *rolecall.User, what string, from Browser) error {
	return s.SendNotice(tx, tenant, rolecall.Mail{
		Kind: rolecall.MailCredentialsChanged, To: user.Email, Name: user.Name, UserID: user.ID, What: what, Client: from.Client, Source: from.Source,
	})
}

// VisibleUser returns the user with the id. It returns ErrNotFound if the user does not
// exist or is not visible to the caller.
func VisibleUser(tx *store.Tx, c Caller, id rolecall.UserID) (rolecall.User, error) {
	user, err := tx.UserByID(id)
	if err == nil && !c.Sees(&user) {
		return rolecall.User{}, rolecall.ErrNotFound
	}
	return user, err
}

// AuthorizedUser returns the user with the id if the policy allows the caller to perform
// the operation on this user. It also returns the user's assignments, or nil if the policy
// does not need them. AuthorizedUser returns ErrNotFound if the user does not exist or is
// not visible to the caller. Otherwise, it returns the errors of Policy.AuthorizeUser.
func (s *Service) AuthorizedUser(tx *store.Tx, c Caller, policy *authz.Policy, id rolecall.UserID) (rolecall.User, []rolecall.Assignment, error) {
	user, err := VisibleUser(tx, c, id)
	if err != nil {
		return user, nil, err
	}
	var assignments []rolecall.Assignment
	if policy.NeedsAssignments() {
		if assignments, err = tx.Assignments(rolecall.HolderOf(id)); err != nil {
			return user, nil, err
		}
	}
	return user, assignments, policy.AuthorizeUser(c.Principal, &user, assignments, s.Now())
}

// AuthorizeOnUser returns the user with the id if each policy allows the caller to perform the
// operation on this user. It returns the errors of Policy.AuthorizeFor and AuthorizedUser.
func (s *Service) AuthorizeOnUser(ctx context.Context, c Caller, id rolecall.UserID, policies ...*authz.Policy) (user rolecall.User, err error) {
	for _, policy := range policies {
		if err := policy.AuthorizeFor(c.Principal, id); err != nil {
			return user, err
		}
	}
	err = s.View(ctx, c, func(tx *store.Tx) (err error) {
		for _, policy := range policies {
			if user, _, err = s.AuthorizedUser(tx, c, policy, id); err != nil {
				return err
			}
		}
		return nil
	})
	return user, err
}

// UserEvent returns the event of a change of a user from old to changed. The event has the
// values of the changed members before and after the change.
func (s *Service) UserEvent(c Caller, kind rolecall.EventType, old, changed *rolecall.User) (*rolecall.Event, error) {
	members := old.Differences(*changed)
	before, err := memberValues(old, members)
	if err != nil {
		return nil, err
	}
	after, err := memberValues(changed, members)
	if err != nil {
		return nil, err
	}
	event := s.Event(c, kind, rolecall.About(old.ID))
	event.Members = members.Names()
	event.Values = &rolecall.EventValues{Before: before, After: after}
	return event, nil
}

func memberValues(u *rolecall.User, members rolecall.UserMembers) ([]byte, error) {
	values := map[string]any{}
	for m := range members.All() {
		values[m.String()] = m.Of(u)
	}
	return json.Marshal(values)
}

// ChangeStatus stores the new status of the user, also in the argument user, and returns
// the event of the change. It returns store.ErrStale if another request has changed the
// stored user since the user was loaded.
func (s *Service) ChangeStatus(tx *store.Tx, c Caller, user *rolecall.User, status rolecall.UserStatus, reason string) (*rolecall.Event, error) {
	kind := rolecall.EventUserResumed
	if status == rolecall.UserSuspended {
		kind = rolecall.EventUserSuspended
	}
	changed := *user
	changed.Status = status
	changed.Stamp(s.Now())
	if err := store.CheckVersion(tx.UpdateUser(*user, changed)); err != nil {
		return nil, err
	}
	event, err := s.UserEvent(c, kind, user, &changed)
	if err == nil {
		event.Reason = reason
	}
	*user = changed
	return event, err
}

// RequireUnmanaged returns ErrManagedByDirectory if a directory manages the user. A deleted directory manages no user.
func RequireUnmanaged(tx *store.Tx, user *rolecall.User) error {
	if user.ManagedBy == nil {
		return nil
	}
	_, err := tx.Directory(*user.ManagedBy)
	isManaged, err := Found(err)
	if isManaged {
		return rolecall.ErrManagedByDirectory
	}
	return err
}
