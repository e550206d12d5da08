package signin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// Identities returns the identities of the user, the oldest first. It can fail with ErrNotFound or
// ErrPermissionDenied.
func (s *Service) Identities(ctx context.Context, c access.Caller, id rolecall.UserID) (all []rolecall.Identity, err error) {
	if err := authz.ReadIdentities.AuthorizeFor(c.Principal, id); err != nil {
		return nil, err
	}
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		if _, _, err := s.access.AuthorizedUser(tx, c, authz.ReadIdentities, id); err != nil {
			return err
		}
		all, err = tx.Identities(id)
		return err
	})
	return all, err
}

// DeleteIdentity removes the identity from the user, and ends the sessions that began with it. It can
// fail with ErrNotFound, ErrPermissionDenied, ErrSessionRequired or ErrBeyondOwnPermissions.
func (s *Service) DeleteIdentity(ctx context.Context, c access.Caller, user rolecall.UserID, id rolecall.IdentityID) error {
	if err := authz.DeleteIdentity.AuthorizeFor(c.Principal, user); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		tx.LockOwners() // keeps the roles of the user unchanged during the transaction
		if _, _, err := s.access.AuthorizedUser(tx, c, authz.DeleteIdentity, user); err != nil {
			return nil, err
		}
		all, err := tx.Identities(user)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(i rolecall.Identity) bool { return i.ID == id })
		if at < 0 {
			return nil, rolecall.ErrNotFound
		}
		ended, ok, err := tx.DeleteIdentity(user, id)
		if err == nil && !ok {
			err = rolecall.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		event := s.access.Event(c, rolecall.EventIdentityUnlinked, rolecall.About(user))
		if event.Values, err = before(identityValue{Identity: all[at]}); err != nil {
			return nil, err
		}
		access.VoidLinks(tx, ended...)
		access.RecordEnded(tx, user, ended, event, "identity removed")
		connection := all[at].ConnectionID
		return event, s.leaveClaimed(tx, user, connection, slices.Delete(all, at, at+1), event)
	})
}

// leaveClaimed removes the user from the groups that the connection of the removed identity has filled, unless another
// identity of the connection remains. Without it, no sign-in would ever end these memberships.
func (s *Service) leaveClaimed(tx *store.Tx, user rolecall.UserID, connection rolecall.ConnectionID, others []rolecall.Identity, like *rolecall.Event) error {
	if slices.ContainsFunc(others, func(i rolecall.Identity) bool { return i.ConnectionID == connection }) {
		return nil
	}
	joined, _, err := tx.GroupsOfSource(rolecall.SourceOf(connection), user, rolecall.MatchName, nil)
	if err != nil || len(joined) == 0 {
		return err
	}
	ids := make([]rolecall.GroupID, len(joined))
	for i, g := range joined {
		ids[i] = g.ID
		event := *like
		event.ID, event.Type, event.Reason = rolecall.NewID[rolecall.Event](s.now()), rolecall.EventMemberRemoved, "identity removed"
		if err := access.SetMembership(&event, &rolecall.GroupName{ID: g.ID, Name: g.Name}, nil); err != nil {
			return err
		}
		tx.InsertEvent(event)
	}
	tx.LeaveGroups(user, ids, s.now())
	return nil
}

// identify returns the user of the identity with which the person has signed in, and the identity. If the
// identity is not known yet, identify links it to a user or creates a user, if the connection allows that.
// Otherwise, it returns a Refusal. The returned user is active or suspended.
func (s *Service) identify(ctx context.Context, a *access.Anonymous, p *authenticated) (user rolecall.User, identity rolecall.Identity, err error) {
	for range 2 { // a parallel sign-in can have linked the identity, or created the user or the groups first
		err = s.store.Update(ctx, a.Tenant.ID, func(tx *store.Tx) error {
			user, identity, err = s.identified(tx, a, p)
			return err
		})
		if !slices.ContainsFunc(takenFirst, func(taken *rolecall.Error) bool { return errors.Is(err, taken) }) {
			break
		}
	}
	switch {
	case errors.Is(err, rolecall.ErrEmailTaken):
		err = unknownIdentity("another user has the address")
	case errors.Is(err, rolecall.ErrTooManyIdentities):
		err = unknownIdentity("the user has the maximum number of identities")
	case errors.Is(err, rolecall.ErrIdentityTaken), errors.Is(err, rolecall.ErrGroupNameTaken), errors.Is(err, rolecall.ErrGroupExternalIDTaken):
		err = rolecall.ErrUnavailable
	}
	return user, identity, err
}

// takenFirst are the errors of a sign-in that another one has overtaken.
var takenFirst = []*rolecall.Error{rolecall.ErrIdentityTaken, rolecall.ErrEmailTaken, rolecall.ErrGroupNameTaken, rolecall.ErrGroupExternalIDTaken}

// identified is identify in a transaction.
func (s *Service) identified(tx *store.Tx, a *access.Anonymous, p *authenticated) (user rolecall.User, identity rolecall.Identity, err error) {
	p.connection, err = tx.Connection(p.Connection)
	if ok, err := access.Found(err); err != nil {
		return user, identity, err
	} else if !ok {
		return user, identity, refuse("the connection was deleted")
	}
	identity, err = tx.Identity(p.connection.Issuer, p.claims.Subject)
	if ok, err := access.Found(err); err != nil {
		return user, identity, err
	} else if !ok {
		return s.linked(tx, a, p)
	}
	user, err = tx.UserByID(identity.UserID)
	if ok, err := access.Found(err); err != nil {
		return user, identity, err
	} else if !ok { // deleted at the same time
		return user, identity, rolecall.ErrUnavailable
	}
	plan, err := s.plannedGroups(tx, p, &user)
	if err != nil {
		return user, identity, err
	}
	// The address that the provider states does not change the user's address. The identity shows the last one.
	address := p.address()
	if address == "" {
		address = identity.Email
	}
	if ok, err := tx.TouchIdentity(identity.ID, address, s.now()); err != nil {
		return user, identity, err
	} else if !ok {
		return user, identity, rolecall.ErrUnavailable
	}
	if err := s.activate(tx, a, &user); err != nil {
		return user, identity, err
	}
	return user, identity, s.applyGroups(tx, a, p, &user, plan)
}

// plannedGroups returns how the groups of the user change. If they change, it calls LockOwners, which must come before
// the lock of the identity, as in the other transactions that need both. A user who is suspended keeps the groups,
// because the sign-in is refused.
func (s *Service) plannedGroups(tx *store.Tx, p *authenticated, user *rolecall.User) (plan groupPlan, err error) {
	if user.Status == rolecall.UserSuspended {
		return plan, nil
	}
	if plan, err = s.planGroups(tx, p, user.ID); err != nil || !plan.changes() {
		return plan, err
	}
	tx.LockOwners()
	if plan, err = s.planGroups(tx, p, user.ID); err != nil {
		return plan, err
	}
	return s.limitGroups(tx, p, user.ID, plan)
}

// address returns the address that the provider states, or "" if it is not an email address.
func (p *authenticated) address() string {
	if code, _ := rolecall.CheckEmail(p.claims.Email); code != "" {
		return ""
	}
	return p.claims.Email
}

// activate makes a pending user active. The provider has proved who the person is, so the user needs no
// password.
func (s *Service) activate(tx *store.Tx, a *access.Anonymous, user *rolecall.User) error {
	if user.Status != rolecall.UserPending {
		return nil
	}
	_, err := s.access.ChangeStatus(tx, a.Caller(&authz.Principal{Tenant: a.Tenant, User: *user}), user, rolecall.UserActive, "")
	return err
}

// linked links a new identity to a user. In this order, this is the user of the invitation that the person
// has opened, the user with the address, and a new user.
func (s *Service) linked(tx *store.Tx, a *access.Anonymous, p *authenticated) (user rolecall.User, identity rolecall.Identity, err error) {
	tx.LockOwners() // keeps the roles of the user unchanged during the transaction
	isNew := false
	if p.Invitation != "" {
		user, err = s.invitedByLink(tx, a, p)
	} else {
		user, err = s.addressed(tx, a, p)
		if ok, failure := access.Found(err); failure == nil && !ok {
			isNew = true
			user, err = s.provision(tx, a, p)
		}
	}
	if err != nil {
		return user, identity, err
	}
	isNew = isNew || user.Status == rolecall.UserPending
	if err := s.activate(tx, a, &user); err != nil {
		return user, identity, err
	}
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: user})
	if identity, err = s.insertIdentity(tx, c, p.newIdentity(s.now(), user.ID), isNew); err != nil {
		return user, identity, err
	}
	plan, err := s.plannedGroups(tx, p, &user)
	if err != nil {
		return user, identity, err
	}
	return user, identity, s.applyGroups(tx, a, p, &user, plan)
}

// newIdentity returns the identity of the person for the user.
func (p *authenticated) newIdentity(now rolecall.Time, user rolecall.UserID) rolecall.Identity {
	return rolecall.Identity{
		ID: rolecall.NewID[rolecall.Identity](now), UserID: user, ConnectionID: p.connection.ID,
		Issuer: p.connection.Issuer, Subject: p.claims.Subject, Email: p.address(), CreatedAt: now,
	}
}

// insertIdentity stores the identity, with its event. Unless silent is true, it notifies the user by mail,
// because the identity is a new way to sign in. It returns ErrTooManyIdentities.
func (s *Service) insertIdentity(tx *store.Tx, c access.Caller, identity rolecall.Identity, silent bool) (rolecall.Identity, error) {
	all, err := tx.Identities(identity.UserID)
	if err != nil {
		return identity, err
	}
	if len(all) >= rolecall.IdentitiesMax {
		return identity, rolecall.ErrTooManyIdentities
	}
	tx.InsertIdentity(identity)
	event := s.access.Event(c, rolecall.EventIdentityLinked, rolecall.About(identity.UserID))
	if event.Values, err = after(identityValue{Identity: identity}); err != nil {
		return identity, err
	}
	tx.InsertEvent(*event)
	if silent {
		return identity, nil
	}
	return identity, s.access.Notify(tx, c.Tenant.ID, &c.User, "an account of an identity provider was added", c.Browser())
}

// invitedByLink returns the user of the invitation whose link the person has opened, and uses the
// invitation up. The provider must state the address of the invitation, but need not have verified it: the
// link proves that. So an attacker cannot link the account of another person by sending a link.
func (s *Service) invitedByLink(tx *store.Tx, a *access.Anonymous, p *authenticated) (rolecall.User, error) {
	user, err := s.invited(tx, a.Tenant, p.Invitation)
	switch {
	case errors.Is(err, rolecall.ErrInvitationInvalid):
		return user, unknownIdentity("the invitation is not valid")
	case errors.Is(err, rolecall.ErrUserSuspended):
		return user, refuseUser(user.ID, "the user is suspended")
	case err != nil:
		return user, err
	case rolecall.EmailKey(p.claims.Email) != user.EmailKey():
		return user, &Refusal{Code: CodeIdentityUnknown, reason: "the invitation is for another address", user: user.ID}
	}
	if ok, err := tx.DeleteInvitation(p.Invitation.Hash()); err != nil {
		return user, err
	} else if !ok {
		return user, unknownIdentity("the invitation is not valid")
	}
	s.recordInvitation(tx, a, &user)
	return user, nil
}

func (s *Service) recordInvitation(tx *store.Tx, a *access.Anonymous, user *rolecall.User) {
	tx.InsertEvent(*s.access.Event(a.Caller(&authz.Principal{Tenant: a.Tenant, User: *user}), rolecall.EventInvitationUsed, rolecall.About(user.ID)))
}

// vouches reports whether the provider vouches for the address: it has verified it, or it does not state
// whether it has, and the connection has domains.
func (p *authenticated) vouches() bool {
	return p.claims.EmailVerified || !p.claims.VerificationStated && len(p.connection.Domains) > 0
}

// addressed returns the user with the address for which the provider vouches, if the connection links the
// identity to this user. It returns ErrNotFound if no user has the address, and a Refusal if the connection
// does not link the identity. An owner is never linked by address.
func (s *Service) addressed(tx *store.Tx, a *access.Anonymous, p *authenticated) (user rolecall.User, err error) {
	if !p.vouches() || p.address() == "" {
		return user, rolecall.ErrNotFound
	}
	if ours, err := s.hasDomain(tx, p); err != nil || !ours {
		return user, errors.Join(err, rolecall.ErrNotFound)
	}
	user, _, err = tx.UserByEmail(p.claims.Email)
	if err != nil {
		return user, err
	}
	assignments, err := tx.Assignments(rolecall.HolderOf(user.ID))
	switch {
	case err != nil:
		return user, err
	case authz.IsOwner(assignments, s.now()):
		return user, &Refusal{Code: CodeIdentityUnknown, reason: "the user with the address is an owner", user: user.ID}
	case user.Status == rolecall.UserSuspended:
		return user, refuseUser(user.ID, "the user is suspended")
	}
	isInvited, err := s.useInvitationOf(tx, a, &user)
	if err == nil && !isInvited && p.connection.Linking != rolecall.LinkVerifiedEmail {
		err = &Refusal{Code: CodeIdentityUnknown, reason: "the user with the address has no invitation", user: user.ID}
	}
	return user, err
}

// useInvitationOf uses the invitation of the user up. It returns false if the user has no valid invitation.
func (s *Service) useInvitationOf(tx *store.Tx, a *access.Anonymous, user *rolecall.User) (bool, error) {
	invitation, err := tx.InvitationOf(user.ID)
	if ok, err := access.Found(err); err != nil || !ok || !invitation.Live(s.now()) {
		return false, err
	}
	may, err := s.access.IsStillAuthorized(tx, a.Tenant, authz.InviteUser, invitation.CreatedBy, user.ID)
	if err != nil || !may {
		return false, err
	}
	if ok, err := tx.DeleteInvitationOf(user.ID); err != nil || !ok {
		return false, err
	}
	s.recordInvitation(tx, a, user)
	return true, nil
}

// hasDomain reports whether the provider may state addresses of the domain. A connection with domains may
// state addresses of these domains only. Other connections may state addresses of all domains that no
// connection has. Otherwise, the provider of one company could name users of another one.
func (s *Service) hasDomain(tx *store.Tx, p *authenticated) (bool, error) {
	domain := rolecall.EmailDomain(p.claims.Email)
	if len(p.connection.Domains) > 0 {
		return p.connection.HasDomain(domain), nil
	}
	all, err := tx.Connections()
	return !slices.ContainsFunc(all, func(c rolecall.Connection) bool { return c.HasDomain(domain) }), err
}

// provision creates an active user for the person, with the roles of the connection. The person who set
// these roles must still be allowed to create the user and to assign the roles. provision returns a
// Refusal if the connection creates no users, or none with this address.
func (s *Service) provision(tx *store.Tx, a *access.Anonymous, p *authenticated) (user rolecall.User, err error) {
	rules := p.connection.Provisioning
	if rules == nil {
		return user, unknownIdentity("no user has the identity")
	}
	if err := s.checkProvisionedAddress(tx, p); err != nil {
		return user, err
	}
	now := s.now()
	draft := rolecall.UserDraft{Email: p.claims.Email, Name: p.claims.Name, Department: rules.Department}
	if draft.Check(a.Tenant.Settings.NameMinimum()) != nil {
		draft.Name = draft.Email // for example because the provider states no name
	}
	if draft.Check(rolecall.NameLeast) != nil { // the setting can have changed since the department was set
		return user, refuse("the provider states no valid address")
	}
	user = draft.User(now)
	user.Status = rolecall.UserActive
	by, err := s.provisioner(tx, a, &p.connection)
	if err != nil {
		return user, err
	}
	if by != nil && !by.Reach(rolecall.UsersCreate).Includes(user.Department) {
		return user, refuse("the person who set the provisioning can no longer create users")
	}
	tx.InsertUser(user)
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: user})
	event := s.access.Event(c, rolecall.EventUserCreated, rolecall.About(user.ID))
	if event.Values, err = after(user); err != nil {
		return user, err
	}
	tx.InsertEvent(*event)
	for _, id := range rules.RoleIDs {
		role, err := tx.RoleByID(id)
		if ok, err := access.Found(err); err != nil {
			return user, err
		} else if !ok {
			return user, refuse("a role of the provisioning was deleted")
		}
		assigned := rolecall.Assignment{
			Holder: rolecall.HolderOf(user.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never,
			GrantedBy: p.connection.ProvisionedBy, GrantedAt: now,
		}
		if by != nil && authz.RequireAssignable(by, &assigned) != nil {
			return user, refuse("the person who set the provisioning can no longer assign its roles")
		}
		tx.UpsertAssignment(assigned)
		event := s.access.Event(c, rolecall.EventRoleAssigned, rolecall.About(user.ID))
		if err := access.SetAssignments(event, nil, &assigned); err != nil {
			return user, err
		}
		tx.InsertEvent(*event)
	}
	return user, nil
}

// checkProvisionedAddress returns a Refusal unless the provider vouches for the address, and the address is in
// a domain of the connection, if it has domains.
func (s *Service) checkProvisionedAddress(tx *store.Tx, p *authenticated) error {
	ours, err := s.hasDomain(tx, p)
	switch {
	case err != nil:
		return err
	case p.address() == "":
		return refuse("the provider states no valid address")
	case !ours:
		return unknownIdentity("the address is in no domain of the connection")
	case !p.vouches():
		return unknownIdentity("the provider has not verified the address")
	}
	return nil
}

// provisioner returns the principal of the person who set the provisioning of the connection, with its
// permissions of now. It is nil for an operator. If the user or service account was deleted or suspended,
// provisioner returns a Refusal.
func (s *Service) provisioner(tx *store.Tx, a *access.Anonymous, c *rolecall.Connection) (*authz.Principal, error) {
	if c.ProvisionedBy.IsZero() {
		return nil, nil
	}
	by, err := s.access.Grantor(tx, a.Tenant, c.ProvisionedBy)
	if ok, err := access.Found(err); err != nil {
		return nil, err
	} else if !ok {
		return nil, refuse("the person who set the provisioning is suspended or deleted")
	}
	return by, nil
}

// before returns the values of an event with only the values before the change.
func before(value any) (*rolecall.EventValues, error) {
	text, err := json.Marshal(value)
	return &rolecall.EventValues{Before: text}, err
}

// after returns the values of an event with only the values after the change.
func after(value any) (*rolecall.EventValues, error) {
	is, err := json.Marshal(value)
	return &rolecall.EventValues{After: is}, err
}

// identityValue is the form of an identity in events.
type identityValue struct {
	Identity rolecall.Identity `json:"identity"`
}
