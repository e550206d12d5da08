package httpapi

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

// userFilterRequest are the filters of lists of users.
type userFilterRequest struct {
	pageRequest
	Sort       orderValue  `query:"sort" order:"name,email,createdAt" doc:"The order; - reverses it. Without it, the list is sorted by creation time."`
	Search     searchValue `query:"q" doc:"Up to 8 words. Each must be the beginning of a word of the name or of the email address."`
	Email      string      `query:"email" maxLength:"254" doc:"Only the user with this email address."`
	ExternalID string      `query:"externalId" maxLength:"255" doc:"Only the user with this external ID."`
	Department string      `query:"department" maxLength:"255" doc:"Only users of this department. Case and diacritics do not matter."`
	countQuery
}

// listing returns the list that the filters describe.
func (r *userFilterRequest) listing(status string, role rolecall.RoleID) directory.UserListing {
	l := directory.UserListing{
		Email: r.Email, ExternalID: r.ExternalID, Department: r.Department, Status: status, Role: role,
		Words: r.Search, Desc: r.Sort.desc, After: r.After.after, Limit: r.Limit.orDefault(), Count: r.Count,
	}
	switch r.Sort.by {
	case "name":
		l.Sort = rolecall.SortByName
	case "email":
		l.Sort = rolecall.SortByEmail
	case "createdAt":
		l.ByCreation = true
	}
	return l
}

type listUsersRequest struct {
	userFilterRequest
	Status string          `query:"status" enum:"pending,active,suspended,deleted" doc:"Only users with this status. The value deleted lists users who can still be restored, those who were deleted last first. It needs users:restore, and only limit and cursor can be combined with it."`
	Role   rolecall.RoleID `query:"role" doc:"Only users who hold this role. Needs roles:read."`
}

func (s *Server) listUsers(ctx context.Context, c access.Caller, in *listUsersRequest) (Response[userPage], error) {
	if in.Status == string(rolecall.UserDeleted) {
		return s.listDeletedUsers(ctx, c, in)
	}
	page, err := s.directory.Users(ctx, c, in.listing(in.Status, in.Role))
	if err != nil {
		return Response[userPage]{}, err
	}
	return Response[userPage]{Body: newUserPage(c, &page), Next: page.Next}, nil
}

type createUserRequest struct {
	idempotencyHeader
	Body rolecall.UserDraft
}

// mayDecode checks that the caller may invite. Not to invite needs no permission.
func (*createUserRequest) mayDecode(c access.Caller, member string, value jsontext.Value) error {
	if member != "invite" || value.Kind() == jsontext.KindFalse {
		return nil
	}
	return authz.InviteUser.Authorize(c.Principal)
}

func (s *Server) createUser(ctx context.Context, c access.Caller, in *createUserRequest) (Response[userBody], error) {
	created, err := s.directory.CreateUser(ctx, c, in.Key, in.Body)
	if err != nil {
		return Response[userBody]{}, err
	}
	body := newUserBody(c, &created.Value)
	if created.Erased {
		body.readable = 0
	}
	return Response[userBody]{Body: body, Location: "/users/" + created.Value.ID.String(), Replayed: created.Replayed}, nil
}

type updateUserBody struct {
	rolecall.UserPatch
	Email wire.Immutable `json:"email"`
}

type updateUserRequest struct {
	userPath
	ifMatchHeader
	Body updateUserBody
}

// mayDecode checks whether the caller may change the member of the user, as far as that
// is known before the user is read.
func (in *updateUserRequest) mayDecode(c access.Caller, member string, _ jsontext.Value) error {
	m, ok := rolecall.UserMemberNamed(member)
	if !ok || !m.Updatable() {
		return nil
	}
	return authz.AuthorizeMembers(c.Principal, in.ID, rolecall.SetOf(m))
}

func (s *Server) updateUser(ctx context.Context, c access.Caller, in *updateUserRequest) (Response[userBody], error) {
	user, err := s.directory.UpdateUser(ctx, c, in.ID, in.Body.UserPatch, match(in.IfMatch, userTag(c)))
	return Response[userBody]{Body: newUserBody(c, &user)}, err
}

type deleteRequest[T holder] struct {
	idPath[T]
	ifMatchHeader
}

func (s *Server) deleteUser(ctx context.Context, c access.Caller, in *deleteRequest[rolecall.User]) (Response[NoContent], error) {
	return Response[NoContent]{}, s.directory.DeleteUser(ctx, c, in.ID, match(in.IfMatch, userTag(c)))
}

var userEncoder = wire.NewEncoder[rolecall.User]()

var userID0 = userEncoder.Fields("id")

// userFields are the fields of userEncoder for each member.
var userFields = func() (fields [8]wire.Fields) {
	for m := range rolecall.AllUserMembers.All() {
		fields[m] = userEncoder.Fields(m.String())
	}
	return fields
}()

// userBody is a user as far as the caller may read them.
type userBody struct {
	user      *rolecall.User
	readable  rolecall.UserMembers
	deletedAt rolecall.Time // zero unless the user is deleted
}

// shownUser has the members of a user that are shown.
type shownUser struct {
	rolecall.User
	DeletedAt rolecall.Time `json:"deletedAt,omitzero" doc:"When the user was deleted. Only in a list of users who can be restored."`
}

func newUserBody(c access.Caller, u *rolecall.User) userBody {
	return userBody{user: u, readable: c.Sight(u)}
}

// AppendJSON appends the id and the readable members.
func (b userBody) AppendJSON(out []byte) []byte {
	fields := userID0
	for m := range b.readable.All() {
		fields |= userFields[m]
	}
	out = userEncoder.AppendFields(out, b.user, fields)
	if b.deletedAt != 0 {
		out = append(out[:len(out)-1], `,"deletedAt":"`...)
		out = append(b.deletedAt.Append(out), `"}`...)
	}
	return out
}

func (b userBody) hiddenMembers() string { return names(rolecall.AllUserMembers &^ b.readable) }

func (b userBody) hasTag() bool { return b.readable != 0 }

func names(members rolecall.UserMembers) string { return strings.Join(members.Names(), ", ") }

// userTag returns what computes the ETag of a user as the caller sees them.
func userTag(c access.Caller) func(*rolecall.User) string {
	return func(u *rolecall.User) string { return secret.ETag(newUserBody(c, u).AppendJSON(nil)) }
}

// userPage is a page of users, each as far as the caller may read them.
type userPage struct {
	countedPageBody[userBody]
	RestrictedBy []string `json:"restrictedBy,omitzero" doc:"The members whose permissions made the list narrower than what the caller may know."`
}

func newUserPage(c access.Caller, page *directory.UserPage) userPage {
	all := c.ReadsEverything()
	counted := newCountedPage(&page.Page, func(u *rolecall.User) userBody {
		if all {
			return userBody{user: u, readable: rolecall.AllUserMembers}
		}
		return userBody{user: u, readable: c.ListSight(u)}
	})
	body := userPage{countedPageBody: counted.Body}
	if page.RestrictedBy != 0 {
		body.RestrictedBy = page.RestrictedBy.Names()
	}
	return body
}

func (p *userPage) hiddenMembers() string {
	readable := rolecall.AllUserMembers
	for _, item := range p.Items {
		readable &= item.readable
	}
	return names(rolecall.AllUserMembers &^ readable)
}

type getRequest[T any] struct {
	idPath[T]
	ifNoneMatchHeader
}

func (s *Server) getUser(ctx context.Context, c access.Caller, in *getRequest[rolecall.User]) (Response[userBody], error) {
	user, err := s.directory.User(ctx, c, in.ID)
	return Response[userBody]{Body: newUserBody(c, &user)}, err
}

type statusRequest[T holder] struct {
	idPath[T]
	Body reasonBody `optional:"true"`
}

func (s *Server) suspendUser(ctx context.Context, c access.Caller, in *statusRequest[rolecall.User]) (Response[userBody], error) {
	user, err := s.directory.SuspendUser(ctx, c, in.ID, string(in.Body.Reason))
	return Response[userBody]{Body: newUserBody(c, &user)}, err
}

func (s *Server) resumeUser(ctx context.Context, c access.Caller, in *statusRequest[rolecall.User]) (Response[userBody], error) {
	user, err := s.directory.ResumeUser(ctx, c, in.ID, string(in.Body.Reason))
	return Response[userBody]{Body: newUserBody(c, &user)}, err
}

// reasonMax bounds the reason that is recorded with an act, in code points.
const reasonMax = 500

// reasonBody is why the act is done, for the record.
type reasonBody struct {
	Reason reasonText `json:"reason" doc:"Why it is done."`
}

// reasonText is a reason of at most reasonMax code points; null is none.
type reasonText string

// UnmarshalWire reads the reason.
func (t *reasonText) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	if value.Kind() == jsontext.KindNull {
		return
	}
	if text, ok := d.Text(pointer, value); ok && text != "" {
		d.Faults.Text(pointer, text, 1, reasonMax)
		*t = reasonText(text)
	}
}
