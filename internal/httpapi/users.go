package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) userOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/users", ID: "UsersController_listUsers", Summary: "List users",
			Description: "Lists the users that the caller may read.",
			Policy:      authz.ListUsers,
			Answers:     operation.Answers{{http.StatusOK, "A page of users, with the members that the caller may read.", []string{"Link", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrFieldNotReadable},
			Handler:     operation.JSON(s.listUsers),
		},
		{
			Method: http.MethodPost, Path: "/users", ID: "UsersController_createUser", Summary: "Create a user",
			Description: "Creates a user with the status pending. To let the user set a password and sign in, set invite, or invite the user later.",
			Policy:      authz.CreateUser,
			Answers:     operation.Answers{{http.StatusCreated, "The new user, with the members that the caller may read.", []string{"Location", "ETag", "Withheld-Fields", "Idempotent-Replayed"}}},
			Problems:    problems{rolecall.ErrOutsideReach, rolecall.ErrEmailTaken, rolecall.ErrExternalIDTaken, rolecall.ErrTooManyMails},
			Handler:     operation.JSON(s.createUser),
		},
		{
			Method: http.MethodGet, Path: "/users/{id}", ID: "UsersController_getUser", Summary: "Get a user",
			Description: "Returns the user, with the members that the caller may read.",
			Policy:      authz.ReadUser,
			Answers:     operation.Answers{{http.StatusOK, "The user, with the members that the caller may read.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound},
			Handler:     operation.JSON(s.getUser),
		},
		{
			Method: http.MethodPatch, Path: "/users/{id}", ID: "UsersController_updateUser", Summary: "Update a user",
			Description: "Changes the members that are in the body. To change the email address, use POST /users/{id}/email-changes. Only the identity provider can change the name and the department of a user of a directory.",
			Policy:      authz.UpdateUser,
			Answers:     operation.Answers{{http.StatusOK, "The changed user, with the members that the caller may read.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrOutsideReach, rolecall.ErrExternalIDTaken, rolecall.ErrManagedByDirectory},
			Handler:     operation.JSON(s.updateUser),
		},
		{
			Method: http.MethodDelete, Path: "/users/{id}", ID: "UsersController_deleteUser", Summary: "Delete a user",
			Description: "Deletes the user, and ends the user's sessions and API tokens. The user can be restored for 30 days.",
			Policy:      authz.DeleteUser,
			Answers:     operation.Answers{{http.StatusNoContent, "The user was deleted.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLastOwner},
			Handler:     operation.JSON(s.deleteUser),
		},
		{
			Method: http.MethodPost, Path: "/users/{id}/suspend", ID: "UsersController_suspendUser", Summary: "Suspend a user",
			Description: "Ends all sessions of the user. Until the user is resumed, sign-ins and the user's API tokens are refused.",
			Policy:      authz.SuspendUser,
			Answers:     operation.Answers{{http.StatusOK, "The suspended user, with the members that the caller may read.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLastOwner},
			Handler:     operation.JSON(s.suspendUser),
		},
		{
			Method: http.MethodPost, Path: "/users/{id}/resume", ID: "UsersController_resumeUser", Summary: "Resume a user",
			Description: "Lets a suspended user sign in again, and lets the user's API tokens work again. A user without a password becomes pending.",
			Policy:      authz.ResumeUser,
			Answers:     operation.Answers{{http.StatusOK, "The resumed user, with the members that the caller may read.", []string{"ETag", "Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrManagedByDirectory},
			Handler:     operation.JSON(s.resumeUser),
		},
		{
			Method: http.MethodPost, Path: "/users/{id}/restore", ID: "UsersController_restoreUser", Summary: "Restore a user",
			Description: "Restores a user who was deleted in the last 30 days. The restored user is pending, or suspended if the user was suspended before, and needs an invitation to sign in. The user gets back the roles that the caller may assign.",
			Policy:      authz.RestoreUser,
			Answers:     operation.Answers{{http.StatusOK, "The restored user, with the members that the caller may read.", []string{"Withheld-Fields"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrEmailTaken, rolecall.ErrExternalIDTaken},
			Handler:     operation.JSON(s.restoreUser),
		},
		{
			Method: http.MethodPost, Path: "/users/{id}/erase", ID: "UsersController_eraseUser", Summary: "Erase a user",
			Description: "Permanently removes the user and all personal data. It also works for a deleted user. Events about the user keep only their type and time, and the IDs of assigned roles. The event of the erasure keeps its reason, so the reason must have no personal data of the user.",
			Policy:      authz.EraseUser,
			Answers:     operation.Answers{{http.StatusNoContent, "The user was erased.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrLastOwner},
			Handler:     operation.JSON(s.eraseUser),
		},
		{
			Method: http.MethodDelete, Path: "/users/{id}/factors", ID: "UsersController_resetFactors", Summary: "Reset a user's second factors",
			Description: "Removes all second factors of a user who has lost them, ends the user's sessions, and notifies the user. After that, the user signs in with the password alone, or enrolls a new factor if the tenant requires one.",
			Policy:      authz.ResetFactors,
			Answers:     operation.Answers{{http.StatusNoContent, "The second factors were removed.", nil}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrBeyondOwnPermissions, rolecall.ErrSessionRequired, rolecall.ErrFactorDemanded},
			Handler:     operation.JSON(s.resetFactors),
		},
	}
}

// Types of package rolecall in the OpenAPI document.
var (
	_ = operation.PathID[rolecall.UserID]("ID of the user.", "019d83e6-1ef1-7000-9b87-15029121b69d")
	_ = operation.Component[rolecall.UserDraft]("CreateUser", "A new user.")
)

// userFilters are the filters and the sort order of lists of users.
type userFilters struct {
	Sort   operation.Order  `query:"sort" order:"name,email,createdAt" doc:"The sort order. A leading - reverses it. The default is the creation time."`
	Search operation.Search `query:"q" doc:"Up to 8 words. The list has only users with matches for all of them: each must be the beginning of a word in the name or the email address."`
	Email  string           `query:"email" maxLength:"254" doc:"Only the user with this email address."`
	rolecall.TextFilter
	Department string `query:"department" maxLength:"255" doc:"Only users of this department. Upper and lower case, invisible characters and the number of blanks do not matter."`
}

// listing converts the filters to the argument of the service methods.
func (r *userFilters) listing(status string, role rolecall.RoleID) directory.UserListing {
	l := directory.UserListing{
		TextFilter: r.TextFilter, Email: r.Email, Department: r.Department, Status: status, Role: role,
		Words: r.Search, Desc: r.Sort.Desc,
	}
	switch r.Sort.By {
	case "name":
		l.Sort = rolecall.SortByName
	case "email":
		l.Sort = rolecall.SortByEmail
	case "createdAt":
		l.ByCreation = true
	}
	return l
}

// userFilterRequest is a request for a page of a list of users.
type userFilterRequest struct {
	operation.PageRequest
	userFilters
	operation.CountQuery
}

// listing converts the filters and the page to the argument of the service methods.
func (r *userFilterRequest) listing(status string, role rolecall.RoleID) directory.UserListing {
	l := r.userFilters.listing(status, role)
	l.After, l.Limit, l.Count = r.After.At, r.Limit.OrDefault(), r.Count
	return l
}

type listUsersRequest struct {
	userFilterRequest
	Status string          `query:"status" enum:"pending,active,suspended,deleted" doc:"Only users with this status. The value deleted lists the users who can be restored, the most recently deleted first. It needs the permission users:restore, and can be combined only with limit and cursor."`
	Role   rolecall.RoleID `query:"role" doc:"Only users with this role. It needs the permission roles:read."`
	groupQuery

	Include includeValue `query:"include" example:"lastLoginAt,roles" doc:"Members to add to each user, separated by commas: lastLoginAt, roles or factors. A member that the caller may not read is absent."`
}

// groupQuery is the query parameter group.
type groupQuery struct {
	Group rolecall.GroupID `query:"group" doc:"Only members of this group. It needs the permission groups:read in the whole tenant."`
}

// includeValue is the query parameter include. It selects additional members of the users in a
// list.
type includeValue directory.Include

var _ = operation.SchemaOf[includeValue](func(*operation.Schemas, string) *huma.Schema {
	const member = "(lastLoginAt|roles|factors)"
	return &huma.Schema{Type: "string", Pattern: "^" + member + "(," + member + ")*$"}
})

// SetParameter parses names of members that are separated by commas.
func (i *includeValue) SetParameter(text string) (code, detail string) {
	for name := range strings.SplitSeq(text, ",") {
		switch name {
		case "lastLoginAt":
			i.LastLogin = true
		case "roles":
			i.Roles = true
		case "factors":
			i.Factors = true
		default:
			return "format", "must be lastLoginAt, roles or factors, or several of them separated by commas"
		}
	}
	return "", ""
}

func (s *Server) listUsers(ctx context.Context, c access.Caller, in *listUsersRequest) (operation.Response[userPage], error) {
	if in.Status == string(rolecall.UserDeleted) {
		return s.listDeletedUsers(ctx, c, in)
	}
	listing := in.listing(in.Status, in.Role)
	listing.Group = in.Group
	listing.Include = directory.Include(in.Include)
	page, err := s.directory.Users(ctx, c, listing)
	if err != nil {
		return operation.Response[userPage]{}, err
	}
	return operation.Response[userPage]{Body: newUserPage(c, &page), Next: page.Next}, nil
}

type createUserRequest struct {
	operation.IdempotencyHeader
	Body rolecall.UserDraft
}

// MayDecode checks whether the caller may invite the new user. It returns nil for all members
// other than invite, and for the value false.
func (*createUserRequest) MayDecode(c access.Caller, member string, value jsontext.Value) error {
	if member != "invite" || value.Kind() == jsontext.KindFalse {
		return nil
	}
	return authz.InviteUser.Authorize(c.Principal)
}

func (s *Server) createUser(ctx context.Context, c access.Caller, in *createUserRequest) (operation.Response[userBody], error) {
	created, err := s.directory.CreateUser(ctx, c, in.Key, in.Body)
	if err != nil {
		return operation.Response[userBody]{}, err
	}
	body := newUserBody(c, &created.Value)
	if created.Erased {
		body.readable = 0
	}
	return operation.Response[userBody]{Body: body, Location: "/users/" + created.Value.ID.String(), Replayed: created.Replayed}, nil
}

type updateUserBody struct {
	rolecall.UserPatch
	Email wire.Immutable `json:"email"`
}

var _ = operation.Component[updateUserBody]("UpdateUser", "A merge patch (RFC 7396). Absent members do not change. Null clears a member.")

type updateUserRequest struct {
	userPath
	operation.IfMatchHeader
	Body updateUserBody
}

// MayDecode checks whether the caller may change the member. It runs before the user is loaded,
// so it does not check the department of the user.
func (in *updateUserRequest) MayDecode(c access.Caller, member string, _ jsontext.Value) error {
	m, ok := rolecall.UserMemberNamed(member)
	if !ok || !m.Updatable() {
		return nil
	}
	return authz.AuthorizeMembers(c.Principal, in.ID, rolecall.SetOf(m))
}

func (s *Server) updateUser(ctx context.Context, c access.Caller, in *updateUserRequest) (operation.Response[userBody], error) {
	user, err := s.directory.UpdateUser(ctx, c, in.ID, in.Body.UserPatch, match(in.IfMatch, userTag(c)))
	return operation.Response[userBody]{Body: newUserBody(c, &user)}, err
}

func (s *Server) deleteUser(ctx context.Context, c access.Caller, in *deleteRequest[rolecall.User]) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.DeleteUser(ctx, c, in.ID, match(in.IfMatch, userTag(c)))
}

var userEncoder = wire.NewEncoder[rolecall.User]()

var userIDOnly = userEncoder.Fields("id")

// userFields has the encoder's field for each member of a user, by member.
var userFields = func() (fields [rolecall.UserMemberCount]wire.Fields) {
	for m := range rolecall.AllUserMembers.All() {
		fields[m] = userEncoder.Fields(m.String())
	}
	return fields
}()

// userBody is a user with the members that the caller may read.
type userBody struct {
	user      *rolecall.User
	readable  rolecall.UserMembers
	deletedAt rolecall.Time // zero unless the user is deleted
	included  includedMembers
}

var _ = operation.SameSchema[userBody, shownUser]()

// shownUser describes the JSON of userBody in the OpenAPI document.
type shownUser struct {
	rolecall.User
	DeletedAt rolecall.Time `json:"deletedAt,omitzero" doc:"When the user was deleted. Absent except in a list of deleted users."`
	includedMembers
}

var _ = operation.ComponentOrID[shownUser]("User", "A user. Members that the caller may not read are absent.")

// includedMembers are the members of a user in a list that are present only if the query
// parameter include selects them.
type includedMembers struct {
	LastLoginAt  *rolecall.Time   `json:"lastLoginAt,omitzero" nullable:"true" doc:"When the user signed in last. Null for never. Only with include=lastLoginAt, for callers who may read the status of the user."`
	Roles        *[]roleName      `json:"roles,omitzero" doc:"Roles of the user whose assignment has not expired, at most 10. Only with include=roles, for callers with roles:read for the user."`
	HasMoreRoles *bool            `json:"hasMoreRoles,omitzero" doc:"Whether the user has more roles than the member roles contains."`
	Factors      *includedFactors `json:"factors,omitzero" doc:"The second factors of the user. Only with include=factors, for callers with users:reset-factors for the user."`
}

type includedFactors struct {
	TOTP     bool `json:"totp" doc:"Whether the user has an authenticator app."`
	Passkeys int  `json:"passkeys" doc:"Number of passkeys. At most 100 are counted."`
}

var _ = operation.Component[includedFactors]("IncludedFactors", "The second factors of a user in a list.")

var includedEncoder = wire.NewEncoder[includedMembers]()

// newIncludedMembers returns the selected members. Members that the caller may not read are nil.
func newIncludedMembers(i *directory.Included) (m includedMembers) {
	m.LastLoginAt = i.LastLoginAt
	if i.Roles != nil {
		roles := operation.Bodies(i.Roles.Items, newRoleName)
		m.Roles, m.HasMoreRoles = &roles, &i.Roles.More
	}
	if i.Factors != nil {
		m.Factors = &includedFactors{i.Factors.TOTP, i.Factors.Passkeys}
	}
	return m
}

func newUserBody(c access.Caller, u *rolecall.User) userBody {
	return userBody{user: u, readable: c.ReadableMembers(u)}
}

// AppendJSON appends the id and the readable members.
func (b userBody) AppendJSON(out []byte) []byte {
	fields := userIDOnly
	for m := range b.readable.All() {
		fields |= userFields[m]
	}
	out = userEncoder.AppendFields(out, b.user, fields)
	if b.deletedAt != 0 {
		out = append(out[:len(out)-1], `,"deletedAt":"`...)
		out = append(b.deletedAt.Append(out), `"}`...)
	}
	if b.included != (includedMembers{}) {
		end := len(out) - 1 // the new object continues the one before it
		out = includedEncoder.Append(out[:end], &b.included)
		out[end] = ','
	}
	return out
}

func (b userBody) HiddenMembers() string { return names(rolecall.AllUserMembers &^ b.readable) }

func (b userBody) HasTag() bool { return b.readable != 0 }

func names(members rolecall.UserMembers) string { return strings.Join(members.Names(), ", ") }

// userTag returns a function that computes the ETag of a user from the members that the caller may
// read.
func userTag(c access.Caller) func(*rolecall.User) string {
	return func(u *rolecall.User) string { return secret.ETag(newUserBody(c, u).AppendJSON(nil)) }
}

// userPage is a page of users, each with the members that the caller may read.
type userPage struct {
	operation.CountedPage[userBody]
	RestrictedBy []string `json:"restrictedBy,omitzero" doc:"Members by which the list is filtered, sorted or searched, and which the caller may read of some users only. The other users are not in the list."`
}

var _ = operation.Component[userPage]("UserPage", "A page of users.")

func newUserPage(c access.Caller, page *directory.UserPage) userPage {
	all := c.ReadsEverything()
	counted := operation.NewCountedPage(&page.Page, func(u *rolecall.User) userBody {
		if all {
			return userBody{user: u, readable: rolecall.AllUserMembers}
		}
		return userBody{user: u, readable: c.ReadableListMembers(u)}
	})
	body := userPage{CountedPage: counted.Body}
	for i := range page.Included {
		body.Items[i].included = newIncludedMembers(&page.Included[i])
	}
	if page.RestrictedBy != 0 {
		body.RestrictedBy = page.RestrictedBy.Names()
	}
	return body
}

func (p *userPage) HiddenMembers() string {
	readable := rolecall.AllUserMembers
	for _, item := range p.Items {
		readable &= item.readable
	}
	return names(rolecall.AllUserMembers &^ readable)
}

func (s *Server) getUser(ctx context.Context, c access.Caller, in *getRequest[rolecall.User]) (operation.Response[userBody], error) {
	user, err := s.directory.User(ctx, c, in.ID)
	return operation.Response[userBody]{Body: newUserBody(c, &user)}, err
}

func (s *Server) suspendUser(ctx context.Context, c access.Caller, in *statusRequest[rolecall.User]) (operation.Response[userBody], error) {
	user, err := s.directory.SuspendUser(ctx, c, in.ID, string(in.Body.Reason))
	return operation.Response[userBody]{Body: newUserBody(c, &user)}, err
}

func (s *Server) resumeUser(ctx context.Context, c access.Caller, in *statusRequest[rolecall.User]) (operation.Response[userBody], error) {
	user, err := s.directory.ResumeUser(ctx, c, in.ID, string(in.Body.Reason))
	return operation.Response[userBody]{Body: newUserBody(c, &user)}, err
}

// reasonMax is the maximum length of a reason, in code points.
const reasonMax = 500

// reasonBody is the reason for an operation. It is recorded in the event.
type reasonBody struct {
	Reason reasonText `json:"reason" nullable:"true" doc:"The reason for the operation. It is recorded in the event."`
}

var _ = operation.Component[reasonBody]("EventReason", "The reason to record with the event.")

// reasonText is a reason of at most reasonMax code points.
type reasonText string

var _ = operation.SchemaOf[reasonText](func(*operation.Schemas, string) *huma.Schema {
	return operation.OrNull(operation.Bounded(0, reasonMax))
})

// UnmarshalWire reads the reason.
func (t *reasonText) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if text, ok := d.Text(pointer, value); ok && text != "" {
		d.FieldErrors.Text(pointer, text, 1, reasonMax)
		*t = reasonText(text)
	}
}

// listDeletedUsers returns a page of the users who can be restored.
func (s *Server) listDeletedUsers(ctx context.Context, c access.Caller, in *listUsersRequest) (operation.Response[userPage], error) {
	if faults := in.besidesDeleted(); faults != nil {
		return operation.Response[userPage]{}, rolecall.ErrMalformed.WithFieldErrors(faults...)
	}
	page, err := s.directory.DeletedUsers(ctx, c, directory.DeletedListing{After: in.After.At, Limit: in.Limit.OrDefault()})
	if err != nil {
		return operation.Response[userPage]{}, err
	}
	body := operation.NewPage(&page, func(t *rolecall.Tombstone) userBody {
		return userBody{user: &t.User, readable: c.ReadableListMembers(&t.User), deletedAt: t.DeletedAt}
	})
	return operation.Response[userPage]{Body: userPage{CountedPage: operation.CountedPage[userBody]{Page: body.Body}}, Next: page.Next}, nil
}

// besidesDeleted returns a field error for each filter that the list of deleted users does not
// support. This list is indexed only by the time of deletion.
func (r *listUsersRequest) besidesDeleted() (faults rolecall.FieldErrors) {
	check := func(parameter string, given bool) {
		if given {
			faults = append(faults, rolecall.FieldError{Parameter: parameter, Code: "combination", Detail: "cannot be combined with status=deleted"})
		}
	}
	check("sort", r.Sort != operation.Order{})
	check("q", r.Search != nil)
	check("email", r.Email != "")
	for m := range r.TextFilter.All() {
		check(m.String(), true)
	}
	check("department", r.Department != "")
	check("role", !r.Role.IsZero())
	check("group", !r.Group.IsZero())
	check("count", r.Count)
	check("include", r.Include != includeValue{})
	return faults
}

// restoredUser is the response to the restore of a deleted user.
type restoredUser struct {
	User              userBody            `json:"user" doc:"The user, with the members that the caller may read."`
	GroupsNotRestored *[]rolecall.GroupID `json:"groupsNotRestored,omitzero" doc:"The former groups of the user to which the user was not added again, because the caller may not add the user or because they were deleted. Absent if the caller may not read groups."`
	RolesNotRestored  *[]rolecall.RoleID  `json:"rolesNotRestored,omitzero" doc:"The former roles of the user that were not assigned again, because the caller may not assign them or because they were deleted. Absent if the caller may not read the roles of the user."` // nil: the caller may not read the user's roles
}

var _ = operation.Component[restoredUser]("RestoredUser", "A user who was deleted and is restored. The user needs an invitation to sign in.")

func (u *restoredUser) HiddenMembers() string { return u.User.HiddenMembers() }

func (s *Server) restoreUser(ctx context.Context, c access.Caller, in *userRequest) (operation.Response[restoredUser], error) {
	restored, err := s.directory.RestoreUser(ctx, c, in.ID)
	body := restoredUser{User: newUserBody(c, &restored.User)}
	if restored.RolesReadable {
		body.RolesNotRestored = &restored.RolesNotRestored
	}
	if restored.GroupsReadable {
		body.GroupsNotRestored = &restored.GroupsNotRestored
	}
	return operation.Response[restoredUser]{Body: body}, err
}

func (s *Server) eraseUser(ctx context.Context, c access.Caller, in *statusRequest[rolecall.User]) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.directory.EraseUser(ctx, c, in.ID, string(in.Body.Reason))
}

func (s *Server) resetFactors(ctx context.Context, c access.Caller, in *userRequest) (operation.Response[operation.NoContent], error) {
	return operation.Response[operation.NoContent]{}, s.signin.ResetFactors(ctx, c, in.ID)
}
