package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Provider is a directory that uses the service over SCIM. Its Caller is the actor of the events.
type Provider struct {
	access.Caller
	Directory rolecall.Directory
	Token     rolecall.DirectoryTokenID
}

// AuthenticateDirectory returns the directory of the tenant whose token this is. Of the Caller, it sets only the
// Principal. It returns ErrUnauthenticated if the token is unknown or has expired.
func (s *Service) AuthenticateDirectory(ctx context.Context, tenant rolecall.Tenant, token secret.Token) (p Provider, err error) {
	var d rolecall.Directory
	var used rolecall.DirectoryToken
	err = s.store.View(ctx, tenant.ID, func(tx *store.Tx) (err error) {
		d, used, err = tx.DirectoryByToken(token.Hash())
		return err
	})
	now := s.now()
	if errors.Is(err, rolecall.ErrNotFound) || err == nil && !used.Live(now) {
		err = rolecall.ErrUnauthenticated
	}
	if err != nil {
		return p, err
	}
	if used.LastUsedAt <= now.Add(-rolecall.TouchInterval) {
		err = s.store.Update(ctx, tenant.ID, func(tx *store.Tx) error {
			tx.TouchDirectoryToken(used.ID, now)
			return nil
		})
	}
	user := rolecall.User{ID: rolecall.UserID(d.ID), Name: d.Name}
	p.Principal = &authz.Principal{Kind: authz.PrincipalDirectory, Tenant: tenant, User: user, ValidUntil: used.ExpiresAt}
	p.Directory, p.Token = d, used.ID
	return p, err
}

// Provisioned has the values of a user that a directory sends. They are valid.
type Provisioned struct {
	UserName   string
	Email      string
	Name       string
	Department *string
	ExternalID *string
	WorkEmail  string
	Active     rolecall.Optional[bool]
	Attributes string // JSON, as the directory has sent them
}

// ProvisionedUser returns the user with the id for the directory. It returns ErrNotFound if the directory does not
// manage the user and cannot take the user over.
func (s *Service) ProvisionedUser(ctx context.Context, p Provider, id rolecall.UserID) (entry rolecall.DirectoryEntry, groups []rolecall.GroupName, err error) {
	err = s.access.View(ctx, p.Caller, func(tx *store.Tx) (err error) {
		if entry, err = p.entry(tx, id); err != nil {
			return err
		}
		groups, err = p.groupsOf(tx, id)
		return err
	})
	return entry, groups, err
}

// groupsOf returns the groups of the directory that have the user.
func (p *Provider) groupsOf(tx *store.Tx, id rolecall.UserID) (groups []rolecall.GroupName, err error) {
	memberships, err := tx.Memberships(id)
	if err != nil || len(memberships) == 0 {
		return nil, err
	}
	ids := make([]rolecall.GroupID, len(memberships))
	for i, m := range memberships {
		ids[i] = m.Group.ID
	}
	stored, err := tx.GroupsByID(ids)
	for _, g := range stored {
		if g.Source == rolecall.SourceOf(p.Directory.ID) {
			groups = append(groups, rolecall.GroupName{ID: g.ID, Name: g.Name})
		}
	}
	slices.SortFunc(groups, func(a, b rolecall.GroupName) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return groups, err
}

// entry returns the user with the data of the directory. For a user that the directory can take over, Of is zero.
func (p *Provider) entry(tx *store.Tx, id rolecall.UserID) (entry rolecall.DirectoryEntry, err error) {
	if entry.User, err = tx.UserByID(id); err != nil {
		return entry, err
	}
	return entry, p.complete(tx, &entry)
}

// complete loads the data of the directory of the user. It returns ErrNotFound if the directory neither manages the
// user nor can take the user over.
func (p *Provider) complete(tx *store.Tx, entry *rolecall.DirectoryEntry) error {
	of, err := tx.DirectoryUser(entry.User.ID)
	isManaged, err := access.Found(err)
	switch {
	case err != nil:
		return err
	case isManaged && of.Directory == p.Directory.ID && !of.Removed:
		entry.Of = of
		return nil
	case isManaged:
		if of.Directory == p.Directory.ID { // deleted by this directory
			return rolecall.ErrNotFound
		}
		if isManaged, err = access.Found(ignoring(tx.Directory(of.Directory))); of.Removed { // a deleted directory keeps its users until they are released
			isManaged = false
		}
	}
	if err == nil && (isManaged || p.Directory.Matching != rolecall.MatchEmail) {
		err = rolecall.ErrNotFound
	}
	return err
}

// ignoring drops the value and returns the error.
func ignoring[T any](_ T, err error) error { return err }

// ProvisionedUsers returns the users of the directory that q selects. It also returns their number, unless q.After is
// set. If no user of the directory has the userName of q, it finds a user that the directory can take over.
func (s *Service) ProvisionedUsers(ctx context.Context, p Provider, q rolecall.DirectoryUserQuery) (entries []rolecall.DirectoryEntry, total int, err error) {
	q.Directory = p.Directory.ID
	err = s.access.View(ctx, p.Caller, func(tx *store.Tx) (err error) {
		entries = nil
		if q.After.IsZero() {
			if total, err = tx.CountDirectoryUsers(q); err != nil {
				return err
			}
		}
		if q.Limit > 0 {
			if entries, err = tx.DirectoryUsers(q); err != nil {
				return err
			}
		}
		if total > 0 || !q.After.IsZero() || q.UserName == "" || p.Directory.Matching != rolecall.MatchEmail || q.ExternalID != "" || q.WorkEmail != "" {
			return nil
		}
		entry, there, err := p.unmanaged(tx, q)
		if err == nil && there {
			total = 1
		}
		if there && q.Limit > 0 && q.Offset == 0 {
			entries = append(entries, entry)
		}
		return err
	})
	return entries, total, err
}

// unmanaged returns the user with the address, if no directory manages the user and the query selects the user.
func (p *Provider) unmanaged(tx *store.Tx, q rolecall.DirectoryUserQuery) (entry rolecall.DirectoryEntry, there bool, err error) {
	entry.User, _, err = tx.UserByEmail(q.UserName)
	if err == nil {
		err = p.complete(tx, &entry)
	}
	if there, err = access.Found(err); err != nil || !there {
		return entry, false, err
	}
	isSelected := entry.Of.User.IsZero() && (q.ID.IsZero() || q.ID == entry.User.ID) &&
		(!q.Active.Set || q.Active.Value == (entry.User.Status != rolecall.UserSuspended))
	return entry, isSelected, nil
}

// ProvisionUser creates a user, or takes over or revives the user with the address. It returns ErrEmailTaken if another
// user has the address and cannot be taken over, ErrUserNameTaken and ErrOwnerProtected.
func (s *Service) ProvisionUser(ctx context.Context, p Provider, sent Provisioned) (entry rolecall.DirectoryEntry, err error) {
	err = s.provision(ctx, p, func(tx *store.Tx, p Provider) error {
		sent := sent
		old, _, err := tx.UserByEmail(sent.Email)
		there, err := access.Found(err)
		if err != nil {
			return err
		}
		if !there {
			entry, err = s.insertProvisioned(tx, p, sent)
			return err
		}
		entry = rolecall.DirectoryEntry{User: old}
		of, err := tx.DirectoryUser(old.ID)
		if isManaged, err := access.Found(err); err != nil {
			return err
		} else if isManaged && of.Directory == p.Directory.ID && of.Removed {
			entry.Of = of
			if !sent.Active.Set {
				sent.Active = rolecall.Some(true)
			}
			return s.applyProvisioned(tx, p, &entry, sent)
		}
		switch err := p.complete(tx, &entry); {
		case errors.Is(err, rolecall.ErrNotFound) && p.Directory.Matching == rolecall.MatchRefuse:
			return errAddressOfOther
		case errors.Is(err, rolecall.ErrNotFound):
			return errAddressElsewhere
		case err != nil:
			return err
		case !entry.Of.User.IsZero():
			return errAddressHere
		}
		return s.applyProvisioned(tx, p, &entry, sent)
	})
	return entry, err
}

// The errors for a new user whose address another user has.
var (
	errAddressOfOther   = rolecall.ErrEmailTaken.With("Another user of the tenant has this address. To take over users by their address, set the matching of the directory to email.")
	errAddressElsewhere = rolecall.ErrEmailTaken.With("A user of another directory has this address. Only that directory can manage the user.")
	errAddressHere      = rolecall.ErrEmailTaken.With("Another user of this directory has this address. Update that user instead.")
)

// insertProvisioned inserts a new user.
func (s *Service) insertProvisioned(tx *store.Tx, p Provider, sent Provisioned) (entry rolecall.DirectoryEntry, err error) {
	draft := rolecall.UserDraft{Email: sent.Email, Name: sent.Name, Department: sent.Department}
	user := draft.User(s.now())
	user.ManagedBy = &p.Directory.ID
	active := !sent.Active.Set || sent.Active.Value
	if !active {
		user.Status = rolecall.UserSuspended
	}
	entry = rolecall.DirectoryEntry{User: user, Of: rolecall.DirectoryUser{User: user.ID, Directory: p.Directory.ID, Active: active, Suspended: !active}}
	sent.set(&entry.Of)
	tx.InsertUser(user)
	tx.SetDirectoryUser(entry.Of)
	event := s.access.Event(p.Caller, rolecall.EventUserCreated, rolecall.About(user.ID))
	event.Values = &rolecall.EventValues{}
	if event.Values.After, err = json.Marshal(user); err == nil {
		tx.InsertEvent(*event)
	}
	return entry, err
}

// set copies the values that are stored only for the directory.
func (sent *Provisioned) set(of *rolecall.DirectoryUser) {
	of.UserName, of.ExternalID, of.WorkEmail, of.Attributes = sent.UserName, sent.ExternalID, sent.WorkEmail, sent.Attributes
	if sent.Active.Set {
		of.Active = sent.Active.Value
	}
}

// ChangeProvisioned changes a user of the directory to the result of change, which gets the stored user. It can take
// the user over. It returns ErrNotFound, ErrPreconditionFailed, ErrEmailTaken, ErrUserNameTaken, ErrOwnerProtected and
// the errors of change, which can be called several times.
func (s *Service) ChangeProvisioned(ctx context.Context, p Provider, id rolecall.UserID, match Match[rolecall.User], change func(rolecall.DirectoryEntry) (Provisioned, error)) (entry rolecall.DirectoryEntry, groups []rolecall.GroupName, err error) {
	err = s.provision(ctx, p, func(tx *store.Tx, p Provider) (err error) {
		if entry, err = p.entry(tx, id); err != nil {
			return err
		}
		if err := match.Check(&entry.User); err != nil {
			return err
		}
		sent, err := change(entry)
		if err != nil {
			return err
		}
		if err := s.applyProvisioned(tx, p, &entry, sent); err != nil {
			return err
		}
		groups, err = p.groupsOf(tx, id)
		return err
	})
	return entry, groups, err
}

// provision runs fn in a transaction, with the directory as it is now. It returns ErrUnauthenticated if the token was
// revoked during the request, and ErrDirectoryPaused. If fn returns ErrOwnerProtected with the user, provision records
// that the directory was refused, and mails the owners at most once a day about each owner.
func (s *Service) provision(ctx context.Context, p Provider, fn func(*store.Tx, Provider) error) error {
	err := s.store.Update(ctx, p.Tenant.ID, func(tx *store.Tx) error {
		if err := p.reload(tx, s.now()); err != nil {
			return err
		}
		return fn(tx, p)
	})
	protected, ok := errors.AsType[*protectedOwner](err)
	if !ok {
		return err
	}
	s.access.Refused(p.Caller, protected.user.ID, "scim", rolecall.ErrOwnerProtected.Code)
	failure := s.store.Update(ctx, p.Tenant.ID, func(tx *store.Tx) error {
		bucket := s.limiter.Bucket("owner of a directory", 1, 24*time.Hour, p.Directory.ID.String(), protected.user.ID.String())
		counted, err := tx.CountAttempt([]rolecall.Bucket{bucket}, s.now())
		if err != nil || counted[0].Count > bucket.Limit {
			return err
		}
		what := fmt.Sprintf("The directory %q tried to take over, suspend or delete the owner %s, or to change the owner's address. Rolecall refused the request. If the owner has left the company, remove the role Owner from this user.", p.Directory.Name, protected.user.Email)
		return s.access.NotifyOwners(tx, p.Tenant.ID, rolecall.Mail{Kind: rolecall.MailDirectory, What: what})
	})
	return errors.Join(err, failure)
}

// reload reads the directory and its token again.
func (p *Provider) reload(tx *store.Tx, now rolecall.Time) error {
	token, err := tx.DirectoryToken(p.Directory.ID, p.Token)
	if err == nil {
		p.Directory, err = tx.Directory(p.Directory.ID)
	}
	switch there, err := access.Found(err); {
	case err != nil:
		return err
	case !there || !token.Live(now):
		return rolecall.ErrUnauthenticated
	case p.Directory.Paused:
		return rolecall.ErrDirectoryPaused
	}
	return nil
}

// protectedOwner is ErrOwnerProtected for a user.
type protectedOwner struct{ user rolecall.User }

// Error returns the text of ErrOwnerProtected.
func (*protectedOwner) Error() string { return rolecall.ErrOwnerProtected.Error() }

// Unwrap returns ErrOwnerProtected.
func (*protectedOwner) Unwrap() error { return rolecall.ErrOwnerProtected }

// requireNoOwner returns ErrOwnerProtected if the user is an owner, also one with an expiry or with departments.
func (s *Service) requireNoOwner(tx *store.Tx, user *rolecall.User) error {
	tx.LockOwners()
	assignments, err := tx.DirectAssignments(user.ID)
	if err == nil && authz.IsOwner(assignments, s.now()) {
		err = &protectedOwner{*user}
	}
	return err
}

// applyProvisioned gives the user the values that the directory has sent. It writes one event for changed values, and
// one for a changed status. If nothing changes, it writes nothing.
func (s *Service) applyProvisioned(tx *store.Tx, p Provider, entry *rolecall.DirectoryEntry, sent Provisioned) error {
	old, of := entry.User, entry.Of
	if of.User.IsZero() {
		of = rolecall.DirectoryUser{User: old.ID, Directory: p.Directory.ID, Active: true}
	}
	of.Removed = false
	sent.set(&of)
	user := old
	user.Email, user.Name, user.Department, user.ManagedBy = sent.Email, sent.Name, sent.Department, &p.Directory.ID
	status, err := s.wantedStatus(tx, &old, &of)
	if err != nil {
		return err
	}
	takesOver := entry.Of.User.IsZero()
	if takesOver || status == rolecall.UserSuspended && old.Status != status || user.EmailKey() != old.EmailKey() {
		if err := s.requireNoOwner(tx, &old); err != nil {
			return err
		}
	}
	if !takesOver && old.Differences(user) == 0 && status == old.Status && entry.Of.Equal(&of) {
		return nil
	}
	user.Stamp(s.now())
	changed := user
	changed.Status = status
	if err := store.CheckVersion(tx.UpdateUser(old, changed)); err != nil {
		return err
	}
	tx.SetDirectoryUser(of)
	if old.Differences(user) != 0 || status == old.Status {
		event, err := s.access.UserEvent(p.Caller, rolecall.EventUserUpdated, &old, &user)
		if err != nil {
			return err
		}
		event.Reason = reasonOf(&entry.Of, &of)
		if user.EmailKey() != old.EmailKey() {
			if err := access.RevokeAccess(tx, old.ID, rolecall.SessionID{}, event, "e-mail changed"); err != nil {
				return err
			}
		}
		tx.InsertEvent(*event)
	}
	entry.User, entry.Of = changed, of
	if status == old.Status {
		return nil
	}
	return s.recordStatus(tx, p, &user, &changed)
}

// reasonOf returns the reason of the event of a changed user: how the data of the directory has changed.
func reasonOf(old, changed *rolecall.DirectoryUser) string {
	switch {
	case old.Removed:
		return "created again by the directory"
	case old.User.IsZero():
		return "taken over by the directory"
	case old.Active != changed.Active && changed.Active:
		return "activated by the directory"
	case old.Active != changed.Active:
		return "deactivated by the directory"
	}
	return ""
}

// wantedStatus returns the new status of the user, and sets of.Suspended. It does not lift a suspension by an
// administrator.
func (s *Service) wantedStatus(tx *store.Tx, user *rolecall.User, of *rolecall.DirectoryUser) (rolecall.UserStatus, error) {
	switch {
	case !of.Active && user.Status != rolecall.UserSuspended:
		of.Suspended = true
		return rolecall.UserSuspended, nil
	case of.Active && of.Suspended:
		of.Suspended = false
		if user.Status != rolecall.UserSuspended {
			return user.Status, nil
		}
		return statusAfterSuspension(tx, user.ID)
	}
	return user.Status, nil
}

// recordStatus writes the event of a change of the status, and ends the sessions of a suspended user.
func (s *Service) recordStatus(tx *store.Tx, p Provider, old, changed *rolecall.User) error {
	kind := rolecall.EventUserResumed
	if changed.Status == rolecall.UserSuspended {
		kind = rolecall.EventUserSuspended
	}
	event, err := s.access.UserEvent(p.Caller, kind, old, changed)
	if err != nil {
		return err
	}
	if kind == rolecall.EventUserSuspended {
		if err := access.EndSessions(tx, old.ID, rolecall.SessionID{}, event, "user suspended"); err != nil {
			return err
		}
	}
	tx.InsertEvent(*event)
	return nil
}

// Deprovision deletes or suspends a user of the directory, as the directory says. The directory then no longer sees the
// user, until it creates the user again. It returns ErrNotFound, ErrPreconditionFailed and ErrOwnerProtected.
func (s *Service) Deprovision(ctx context.Context, p Provider, id rolecall.UserID, match Match[rolecall.User]) error {
	return s.provision(ctx, p, func(tx *store.Tx, p Provider) error {
		entry, err := p.entry(tx, id)
		if err != nil {
			return err
		}
		old, of := entry.User, entry.Of
		if err := match.Check(&old); err != nil {
			return err
		}
		if err := s.requireNoOwner(tx, &old); err != nil {
			return err
		}
		if p.Directory.Deprovisioning == rolecall.DeprovisionDelete {
			if err := store.CheckVersion(tx.DeleteUser(old, s.now())); err != nil {
				return err
			}
			event, err := changeEvent(s, p.Caller, rolecall.EventUserDeleted, rolecall.About(id), &old, nil, nil)
			if err == nil {
				tx.InsertEvent(*event)
			}
			return err
		}
		of.User, of.Directory = id, p.Directory.ID
		of.Active, of.Removed = false, true
		of.Suspended = of.Suspended || old.Status != rolecall.UserSuspended
		user := old
		user.ManagedBy = &p.Directory.ID
		user.Stamp(s.now())
		changed := user
		changed.Status = rolecall.UserSuspended
		if err := store.CheckVersion(tx.UpdateUser(old, changed)); err != nil {
			return err
		}
		tx.SetDirectoryUser(of)
		if old.Status == rolecall.UserSuspended || old.Differences(user) != 0 {
			event, err := s.access.UserEvent(p.Caller, rolecall.EventUserUpdated, &old, &user)
			if err != nil {
				return err
			}
			event.Reason = "deleted by the directory"
			tx.InsertEvent(*event)
		}
		if old.Status == rolecall.UserSuspended {
			return nil
		}
		return s.recordStatus(tx, p, &user, &changed)
	})
}

// unchanged returns the current values of a user for which the directory has sent no data.
func unchanged(user *rolecall.User) Provisioned {
	return Provisioned{UserName: user.Email, Email: user.Email, Name: user.Name, Department: user.Department, WorkEmail: user.Email}
}
