package directory

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// UserListing selects and sorts users. A member with its zero value does not filter.
type UserListing struct {
	rolecall.TextFilter
	Email, Department, Status string
	Departments               []string // only users of one of these departments
	Role                      rolecall.RoleID
	Direct                    bool             // Role does not select users who have the role only through a group
	Group                     rolecall.GroupID // only members of this group
	HeldAt                    rolecall.Time    // if set, Role selects the users who had the role at this time
	Words                     []string         // rolecall.Words of the search text
	Sort                      rolecall.UserSort
	ByCreation                bool // sort=createdAt was requested; this is the order of ids, which every caller may use
	Desc                      bool
	After                     *rolecall.Position
	Limit                     int
	Count                     bool
	Include                   Include
}

// UserPage is a page of users. RestrictedBy has the members that the filters, the sort
// order or the search use, and that the caller may read for only some of the visible users.
// Filters, sort orders and searches ignore the values of these members that the caller may
// not read.
type UserPage struct {
	rolecall.Page[rolecall.User]
	RestrictedBy rolecall.UserMembers
	Included     []Included // one for each user; nil if UserListing.Include selects nothing
}

// Users returns a page of the users that are visible to the caller. A filter or sort order
// omits the users whose value the caller may not read. A search uses only
// the names and addresses that the caller may read. Users can fail with
// ErrPermissionDenied. It returns ErrFieldNotReadable if a filter, sort order or search
// uses a member that the caller may not read for any user.
func (s *Service) Users(ctx context.Context, c access.Caller, l UserListing) (UserPage, error) {
	if err := authz.ListUsers.Authorize(c.Principal); err != nil {
		return UserPage{}, err
	}
	q, restrictedBy, err := s.userQuery(c.Principal, l)
	if err != nil {
		return UserPage{}, err
	}
	page := UserPage{RestrictedBy: restrictedBy}
	err = s.access.View(ctx, c, func(tx *store.Tx) (err error) {
		if page.Page, err = tx.Users(q); err != nil {
			return err
		}
		page.Included, err = s.included(tx, c, page.Items, l.Include)
		return err
	})
	return page, err
}

// userQuery returns the query for the store that the listing needs. The query selects only
// users that Users may return to the principal. The result restrictedBy is the value of
// UserPage.RestrictedBy.
func (s *Service) userQuery(p *authz.Principal, l UserListing) (q rolecall.UserQuery, restrictedBy rolecall.UserMembers, err error) {
	q = rolecall.UserQuery{
		TextFilter: l.TextFilter, Within: p.Visible(), Status: rolecall.UserStatus(l.Status), Role: l.Role, Direct: l.Direct, Group: l.Group, HeldAt: l.HeldAt, Now: s.now(),
		Words: l.Words, Sort: l.Sort, Desc: l.Desc, After: l.After, Limit: l.Limit, Count: l.Count,
	}
	narrow := func(reach rolecall.Reach, m rolecall.UserMember) {
		if reach.IsNowhere() {
			err = rolecall.ErrFieldNotReadable
		}
		if !reach.Covers(p.Visible()) {
			restrictedBy |= rolecall.SetOf(m)
		}
		q.Within = q.Within.Intersect(reach)
	}
	if l.Email != "" {
		q.EmailKey = rolecall.EmailKey(l.Email)
		narrow(p.Reads(rolecall.MemberEmail), rolecall.MemberEmail)
	}
	for m := range l.TextFilter.All() {
		narrow(p.Reads(m), m)
	}
	if l.Department != "" {
		key := rolecall.TextKey(l.Department)
		q.Department = &key
		narrow(p.Reads(rolecall.MemberDepartment), rolecall.MemberDepartment)
	}
	if l.Departments != nil {
		q.Within = q.Within.Intersect(rolecall.Within(l.Departments...))
		narrow(p.Reads(rolecall.MemberDepartment), rolecall.MemberDepartment)
	}
	if l.Status != "" {
		narrow(p.Reads(rolecall.MemberStatus), rolecall.MemberStatus)
	}
	switch l.Sort {
	case rolecall.SortByName:
		narrow(p.Reads(rolecall.MemberName), rolecall.MemberName)
	case rolecall.SortByEmail:
		narrow(p.Reads(rolecall.MemberEmail), rolecall.MemberEmail)
	}
	if !l.Role.IsZero() {
		if err := authz.ReadRoles.Authorize(p); err != nil {
			return q, 0, err
		}
		q.Within = q.Within.Intersect(p.Reach(rolecall.RolesRead))
	}
	if !l.Group.IsZero() {
		if err := authz.ReadGroups.Authorize(p); err != nil {
			return q, 0, err
		}
	}
	if len(l.Words) > 0 {
		q.NameWords, q.EmailWords = p.Reads(rolecall.MemberName), p.Reads(rolecall.MemberEmail)
		for _, m := range []rolecall.UserMember{rolecall.MemberName, rolecall.MemberEmail} {
			if !p.Reads(m).Covers(p.Visible()) {
				restrictedBy |= rolecall.SetOf(m)
			}
		}
		either := q.NameWords.Union(q.EmailWords)
		if either.IsNowhere() {
			err = rolecall.ErrFieldNotReadable
		}
		q.Within = q.Within.Intersect(either)
	}
	return q, restrictedBy, err
}

// Include selects which data of the overview a list of users has for each user.
type Include struct{ LastLogin, Roles, Factors bool }

// Included is the selected data of one user in a list. A member is nil if it was not
// selected, or if the caller may not read it.
type Included struct {
	LastLoginAt *rolecall.Time // zero if the user never signed in
	Roles       *IncludedRoles
	Factors     *IncludedFactors
}

// IncludedRoles are the roles of a user, sorted by id.
type IncludedRoles struct {
	Items []rolecall.Role // at most 10, with only the id, the key and the name
	More  bool            // the user has more roles than Items has
}

// IncludedFactors are the second factors of a user.
type IncludedFactors struct {
	TOTP     bool
	Passkeys int // at most 100 are counted
}

// included returns the selected data of the users, in the order of users. It uses one
// statement for each kind of data. In lists, callers need the same permissions for
// themselves as for other users.
func (s *Service) included(tx *store.Tx, c access.Caller, users []rolecall.User, selected Include) ([]Included, error) {
	if selected == (Include{}) {
		return nil, nil
	}
	logins, roles, factors := rolecall.Nowhere(), rolecall.Nowhere(), rolecall.Nowhere()
	if selected.LastLogin {
		logins = c.Reads(rolecall.MemberStatus)
	}
	if selected.Roles {
		roles = c.Reach(rolecall.RolesRead)
	}
	if selected.Factors {
		factors = c.Reach(rolecall.UsersFactors)
	}
	details, err := tx.SignInDetails(within(users, logins.Union(factors)))
	if err != nil {
		return nil, err
	}
	names, err := tx.RoleNames(within(users, roles), s.now())
	if err != nil {
		return nil, err
	}
	byUser := map[rolecall.UserID]rolecall.SignInDetails{}
	for _, d := range details {
		byUser[d.User] = d
	}
	list := make([]Included, len(users))
	for i := range users {
		u := &users[i]
		d, isFound := byUser[u.ID]
		if isFound && logins.Includes(u.Department) {
			list[i].LastLoginAt = &d.LastLoginAt
		}
		if isFound && factors.Includes(u.Department) {
			list[i].Factors = &IncludedFactors{d.TOTP > 0, d.Passkeys}
		}
		if held := names[u.ID]; roles.Includes(u.Department) {
			shown := min(len(held), rolecall.RoleNamesMax)
			list[i].Roles = &IncludedRoles{held[:shown], len(held) > shown}
		}
	}
	return list, nil
}

// within returns the ids of those users who are in the reach.
func within(users []rolecall.User, reach rolecall.Reach) (ids []rolecall.UserID) {
	for i := range users {
		if reach.Includes(users[i].Department) {
			ids = append(ids, users[i].ID)
		}
	}
	return ids
}

// Departments returns the names of departments, sorted by name. If the caller may read the
// departments of all users, these are up to 200 departments that users have. If the caller
// may read this member only for some departments, these are the names of these departments,
// even if they have no users. Otherwise, the list is empty.
func (s *Service) Departments(ctx context.Context, c access.Caller) (list []string, err error) {
	if reach := c.Reads(rolecall.MemberDepartment); !reach.IsEverywhere() {
		list = reach.Departments()
	} else if list, err = access.Read(ctx, s.access, c, (*store.Tx).Departments); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b string) int { return strings.Compare(rolecall.Fold(a), rolecall.Fold(b)) })
	return list, nil
}

// User returns the user with the id. It returns ErrNotFound if the user does not exist or
// is not visible to the caller, and ErrPermissionDenied.
func (s *Service) User(ctx context.Context, c access.Caller, id rolecall.UserID) (user rolecall.User, err error) {
	if err := authz.ReadUser.AuthorizeFor(c.Principal, id); err != nil {
		return user, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.User, error) { return access.VisibleUser(tx, c, id) })
}

// CreateUser creates a pending user, once for each idempotency key. If the draft requests
// it, CreateUser also mails an invitation to the user. CreateUser can fail with
// ErrPermissionDenied, ErrValidation, ErrOutsideReach, ErrEmailTaken, ErrExternalIDTaken,
// ErrKeyReused, ErrKeyInProgress or ErrTooManyKeys. With an invitation, it also returns
// ErrTooManyMails, and ErrUnauthenticated if the caller's session or token was revoked
// during the request.
func (s *Service) CreateUser(ctx context.Context, c access.Caller, key idempotency.Key, draft rolecall.UserDraft) (created idempotency.Created[rolecall.User], err error) {
	if err := authz.CreateUser.Authorize(c.Principal); err != nil {
		return created, err
	}
	if draft.Invite {
		if err := authz.InviteUser.Authorize(c.Principal); err != nil {
			return created, err
		}
	}
	if err := draft.Check(c.Tenant.Settings.NameMinimum()).Err(); err != nil {
		return created, err
	}
	if !c.Reach(rolecall.UsersCreate).Includes(draft.Department) {
		return created, rolecall.ErrOutsideReach
	}
	if draft.Invite {
		if err := c.RequirePermission(rolecall.UsersInvite, draft.Department); err != nil {
			return created, err
		}
	}
	user := draft.User(s.now())
	return access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.User]{
		Operation: "createUser", ID: rolecall.AnyID(user.ID), Value: user,
		Event: s.access.Event(c, rolecall.EventUserCreated, rolecall.About(user.ID)),
		Insert: func(tx *store.Tx) error {
			if draft.Invite {
				if err := s.access.RequestLink(tx, c); err != nil {
					return err
				}
			}
			tx.InsertUser(user)
			if !draft.Invite {
				return nil
			}
			tx.InsertEvent(*s.access.Event(c, rolecall.EventUserInvited, rolecall.About(user.ID)))
			invitation, token := s.newInvitation(c, user.ID), secret.NewToken()
			tx.UpsertInvitation(invitation, token.Hash())
			return s.mailInvitation(tx, c.Tenant.ID, &user, token, invitation.ExpiresAt)
		},
		OnlyID: func(id rolecall.AnyID) rolecall.User { return rolecall.User{ID: rolecall.UserID(id)} },
	})
}

// UpdateUser applies the patch to the stored user. After a concurrent change, it applies
// the patch to the new version. UpdateUser can fail with ErrNotFound, ErrPermissionDenied,
// ErrValidation, ErrPreconditionFailed, ErrOutsideReach, ErrExternalIDTaken or ErrManagedByDirectory.
func (s *Service) UpdateUser(ctx context.Context, c access.Caller, id rolecall.UserID, patch rolecall.UserPatch, match Match[rolecall.User]) (user rolecall.User, err error) {
	if err := authz.UpdateUser.AuthorizeFor(c.Principal, id); err != nil {
		return user, err
	}
	if err := authz.AuthorizeMembers(c.Principal, id, patch.Members()); err != nil {
		return user, err
	}
	if err := patch.Check(c.Tenant.Settings.NameMinimum()).Err(); err != nil {
		return user, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := access.VisibleUser(tx, c, id)
		if err != nil {
			return nil, err
		}
		if err := authz.AuthorizeMembersOf(c.Principal, &old, patch.Members()); err != nil {
			return nil, err
		}
		if err := match.Check(&old); err != nil {
			return nil, err
		}
		changed, members, err := patch.Apply(old, s.now())
		if err != nil {
			return nil, err
		}
		user = changed
		if members == 0 {
			return nil, nil
		}
		if members.Has(rolecall.MemberName) || members.Has(rolecall.MemberDepartment) {
			if err := access.RequireUnmanaged(tx, &old); err != nil {
				return nil, err
			}
		}
		if authz.AuthorizeMembersOf(c.Principal, &changed, patch.Members()) != nil {
			return nil, rolecall.ErrOutsideReach
		}
		if err := store.CheckVersion(tx.UpdateUser(old, changed)); err != nil {
			return nil, err
		}
		return s.access.UserEvent(c, rolecall.EventUserUpdated, &old, &changed)
	})
	if err != nil {
		return rolecall.User{}, err
	}
	return user, nil
}

// DeleteUser deletes the user and ends the user's sessions. Another user can then have the
// email address. The user can be restored for 30 days. DeleteUser can fail with
// ErrNotFound, ErrPermissionDenied, ErrBeyondOwnPermissions, ErrPreconditionFailed or
// ErrLastOwner.
func (s *Service) DeleteUser(ctx context.Context, c access.Caller, id rolecall.UserID, match Match[rolecall.User]) error {
	if err := authz.DeleteUser.AuthorizeFor(c.Principal, id); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := s.protectedUser(tx, c, authz.DeleteUser, id, match)
		if err != nil {
			return nil, err
		}
		if err := store.CheckVersion(tx.DeleteUser(old, s.now())); err != nil {
			return nil, err
		}
		event := s.access.Event(c, rolecall.EventUserDeleted, rolecall.About(id))
		event.Values = &rolecall.EventValues{}
		event.Values.Before, err = json.Marshal(old)
		return event, err
	})
}

// protectedUser returns the user for an operation that revokes the user's access. It
// returns the errors of AuthorizedUser, and ErrPreconditionFailed if match is false. It
// returns ErrLastOwner if the tenant would have no owner without the user. It also calls
// LockOwners.
func (s *Service) protectedUser(tx *store.Tx, c access.Caller, policy *authz.Policy, id rolecall.UserID, match Match[rolecall.User]) (rolecall.User, error) {
	tx.LockOwners()
	user, assignments, err := s.access.AuthorizedUser(tx, c, policy, id)
	if err != nil {
		return user, err
	}
	if err := match.Check(&user); err != nil {
		return user, err
	}
	return user, checkLastOwner(tx, &user, assignments)
}

// checkLastOwner returns ErrLastOwner if the tenant would have no owner without the
// assignments of the user. The transaction must have called LockOwners.
func checkLastOwner(tx *store.Tx, user *rolecall.User, assignments []rolecall.Assignment) error {
	if !authz.CountsAsOwner(user, assignments) {
		return nil
	}
	n, err := tx.Owners()
	if err == nil && n <= 1 {
		err = rolecall.ErrLastOwner
	}
	return err
}

// SuspendUser ends the user's sessions and prevents new sign-ins until the user is resumed.
// SuspendUser can fail with ErrNotFound, ErrPermissionDenied, ErrBeyondOwnPermissions or
// ErrLastOwner.
func (s *Service) SuspendUser(ctx context.Context, c access.Caller, id rolecall.UserID, reason string) (user rolecall.User, err error) {
	if err := authz.SuspendUser.AuthorizeFor(c.Principal, id); err != nil {
		return user, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (event *rolecall.Event, err error) {
		user, event, err = s.suspendUser(tx, c, id, reason)
		return event, err
	})
	if err != nil {
		return rolecall.User{}, err
	}
	return user, nil
}

// suspendUser suspends the user in the transaction. It returns the event of the change, or
// nil if the user is suspended already. It writes nothing if it refuses the change.
func (s *Service) suspendUser(tx *store.Tx, c access.Caller, id rolecall.UserID, reason string) (rolecall.User, *rolecall.Event, error) {
	user, err := s.protectedUser(tx, c, authz.SuspendUser, id, nil)
	if err != nil {
		return user, nil, err
	}
	if user.Status == rolecall.UserSuspended {
		event, err := s.suspendHere(tx, c, &user, reason)
		return user, event, err
	}
	event, err := s.access.ChangeStatus(tx, c, &user, rolecall.UserSuspended, reason)
	if err != nil {
		return user, nil, err
	}
	return user, event, access.EndSessions(tx, id, rolecall.SessionID{}, event, "user suspended")
}

// suspendHere turns a suspension by the directory into one by an administrator, which only ResumeUser ends. It returns
// the event, or nil if the directory has not suspended the user.
func (s *Service) suspendHere(tx *store.Tx, c access.Caller, user *rolecall.User, reason string) (*rolecall.Event, error) {
	of, err := tx.DirectoryUser(user.ID)
	if isManaged, err := access.Found(err); err != nil || !isManaged || !of.Suspended {
		return nil, err
	}
	changed := *user
	changed.Stamp(s.now())
	if err := store.CheckVersion(tx.UpdateUser(*user, changed)); err != nil {
		return nil, err
	}
	of.Suspended = false
	tx.SetSuspension(of)
	event, err := s.access.UserEvent(c, rolecall.EventUserSuspended, user, &changed)
	if err == nil {
		event.Reason = reason
	}
	*user = changed
	return event, err
}

// errSuspendedByDirectory is the error for resuming a user that a directory has deactivated or deleted.
var errSuspendedByDirectory = rolecall.ErrManagedByDirectory.With("A directory has deactivated or deleted this user. Activate the user at the identity provider, or create the user there again. To resume the user in Rolecall, delete the directory first.")

// ResumeUser resumes a suspended user, who can then sign in again. A user without a
// password becomes pending. ResumeUser can fail with ErrNotFound, ErrPermissionDenied,
// ErrBeyondOwnPermissions or ErrManagedByDirectory. It changes nothing if the user is not suspended.
func (s *Service) ResumeUser(ctx context.Context, c access.Caller, id rolecall.UserID, reason string) (user rolecall.User, err error) {
	if err := authz.ResumeUser.AuthorizeFor(c.Principal, id); err != nil {
		return user, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (event *rolecall.Event, err error) {
		user, event, err = s.resumeUser(tx, c, id, reason)
		return event, err
	})
	if err != nil {
		return rolecall.User{}, err
	}
	return user, nil
}

// resumeUser resumes the user in the transaction. It returns the event, or nil if the user is not
// suspended. It writes nothing if it refuses the change.
func (s *Service) resumeUser(tx *store.Tx, c access.Caller, id rolecall.UserID, reason string) (rolecall.User, *rolecall.Event, error) {
	user, _, err := s.access.AuthorizedUser(tx, c, authz.ResumeUser, id)
	if err != nil || user.Status != rolecall.UserSuspended {
		return user, nil, err
	}
	if user.ManagedBy != nil {
		of, err := tx.DirectoryUser(id)
		if isManaged, err := access.Found(err); err != nil {
			return user, nil, err
		} else if isManaged && !of.Active {
			if isManaged, err = access.Found(ignoring(tx.Directory(of.Directory))); err != nil {
				return user, nil, err
			} else if isManaged {
				return user, nil, errSuspendedByDirectory
			}
		}
	}
	status, err := statusAfterSuspension(tx, id)
	if err != nil {
		return user, nil, err
	}
	event, err := s.access.ChangeStatus(tx, c, &user, status, reason)
	return user, event, err
}

// statusAfterSuspension returns the status that a suspended user gets: active with a password, otherwise pending.
func statusAfterSuspension(tx *store.Tx, id rolecall.UserID) (rolecall.UserStatus, error) {
	hash, err := tx.PasswordHash(id)
	if hash == "" {
		return rolecall.UserPending, err
	}
	return rolecall.UserActive, err
}
