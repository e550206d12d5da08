package httpapi

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

func listUsers(x *exchange) error {
	if x.in.status == string(rolecall.UserDeleted) {
		return listDeletedUsers(x)
	}
	page, err := x.server.service.Users(x.ctx, x.call, x.userListing())
	if err != nil {
		return err
	}
	return x.userPage(&page)
}

func createUser(x *exchange) error {
	draft, err := x.userDraft()
	if err != nil {
		return err
	}
	created, err := x.server.service.CreateUser(x.ctx, x.call, x.key(), draft)
	if err != nil {
		return err
	}
	sight := x.call.Sight(&created.Value)
	if created.Erased {
		sight = 0
	}
	x.created("/users/", rolecall.AnyID(created.Value.ID), created.Replayed)
	return x.user(http.StatusCreated, &created.Value, sight)
}

func getUser(x *exchange) error {
	user, err := x.server.service.User(x.ctx, x.call, x.in.user)
	if err != nil {
		return err
	}
	return x.user(http.StatusOK, &user, x.call.Sight(&user))
}

func updateUser(x *exchange) error {
	patch, err := x.userPatch()
	if err != nil {
		return err
	}
	user, err := x.server.service.UpdateUser(x.ctx, x.call, x.in.user, patch, x.matchUser())
	if err != nil {
		return err
	}
	return x.user(http.StatusOK, &user, x.call.Sight(&user))
}

func deleteUser(x *exchange) error {
	if err := x.server.service.DeleteUser(x.ctx, x.call, x.in.user, x.matchUser()); err != nil {
		return err
	}
	return x.nothing()
}

func suspendUser(x *exchange) error {
	reason, err := x.reason()
	if err != nil {
		return err
	}
	user, err := x.server.service.SuspendUser(x.ctx, x.call, x.in.user, reason)
	if err != nil {
		return err
	}
	return x.user(http.StatusOK, &user, x.call.Sight(&user))
}

func resumeUser(x *exchange) error {
	reason, err := x.reason()
	if err != nil {
		return err
	}
	user, err := x.server.service.ResumeUser(x.ctx, x.call, x.in.user, reason)
	if err != nil {
		return err
	}
	return x.user(http.StatusOK, &user, x.call.Sight(&user))
}

func (x *exchange) userDraft() (draft rolecall.UserDraft, err error) {
	err = x.decode(
		member{"email", true, readString(&draft.Email)},
		member{"name", true, readString(&draft.Name)},
		member{"department", false, readNullable(&draft.Department)},
		member{"externalId", false, readNullable(&draft.ExternalID)},
		member{"metadata", false, readPairs(&draft.Metadata)},
		member{"invite", false, permitted(x.mayInvite, readTruth(&draft.Invite))},
	).err(draft.Check)
	return draft, err
}

func (x *exchange) userPatch() (patch rolecall.UserPatch, err error) {
	err = x.decode(
		member{"email", false, immutable},
		member{"name", false, permitted(x.mayChange(rolecall.MemberName), optional(&patch.Name, readString))},
		member{"department", false, permitted(x.mayChange(rolecall.MemberDepartment), optional(&patch.Department, readNullable))},
		member{"externalId", false, permitted(x.mayChange(rolecall.MemberExternalID), optional(&patch.ExternalID, readNullable))},
		member{"metadata", false, permitted(x.mayChange(rolecall.MemberMetadata), optional(&patch.Metadata, readPairsPatch))},
	).err(patch.Check)
	return patch, err
}

// mayChange returns a check whether the caller may change the member of the user of the
// path, as far as that is known before the user is.
func (x *exchange) mayChange(m rolecall.UserMember) func(jsontext.Value) error {
	return func(jsontext.Value) error {
		return service.NeedUpdateMembers(x.call.Principal, x.in.user, rolecall.SetOf(m))
	}
}

// mayInvite returns an error if the caller may not invite users. Not to invite needs no
// permission.
func (x *exchange) mayInvite(value jsontext.Value) error {
	if value.Kind() == jsontext.KindFalse {
		return nil
	}
	return service.NeedInviteUsers(x.call.Principal, x.in.user)
}

// reasonMax bounds the reason that is recorded with an act, in code points.
const reasonMax = 500

// reason reads the body of an act that can be given a reason.
func (x *exchange) reason() (reason string, err error) {
	d := x.decode(member{"reason", false, readStringOrNull(&reason)})
	if reason != "" {
		d.faults.Text("/reason", reason, 1, reasonMax)
	}
	return reason, d.err(noFaults)
}

// userListing is what the query says of a list of users.
func (x *exchange) userListing() service.UserListing {
	in := &x.in
	l := service.UserListing{
		Email: in.email, ExternalID: in.externalID, Department: in.department, Status: in.status, Role: in.holds,
		Words: in.words, Desc: in.sort.desc, After: in.after, Limit: in.limit, Count: in.count,
	}
	switch in.sort.by {
	case "name":
		l.Sort = rolecall.SortByName
	case "email":
		l.Sort = rolecall.SortByEmail
	case "createdAt":
		l.ByCreation = true
	}
	return l
}

// key is the idempotency key of the request with its fingerprint, in which JSON
// counts by value.
func (x *exchange) key() service.Key {
	return service.Key{
		Text:        x.in.key,
		Fingerprint: secret.Digest([]byte(x.route.method+" "+x.route.path), x.holder(), canonicalJSON(x.body)),
	}
}

// holder returns the id of the user or the service account of the path.
func (x *exchange) holder() []byte {
	if !x.in.account.IsZero() {
		return x.in.account[:]
	}
	return x.in.user[:]
}

// created sets what every answer to a creation says.
func (x *exchange) created(collection string, id rolecall.AnyID, replayed bool) {
	x.header["Location"] = []string{x.server.site.Base + collection + id.String()}
	if replayed {
		x.header["Idempotent-Replayed"] = []string{"true"}
	}
}

// user answers with what of the user is in sight.
func (x *exchange) user(status int, u *rolecall.User, sight rolecall.UserMembers) error {
	x.out = appendUser(x.out, u, sight)
	x.withhold(rolecall.AllUserMembers &^ sight)
	if sight == 0 {
		return x.json(status)
	}
	return x.tagged(status)
}

// userPage answers with a page of users, each as far as the caller may read it.
func (x *exchange) userPage(page *service.UserPage) error {
	p, all := x.call.Principal, x.call.ReadsEverything()
	var withheld rolecall.UserMembers
	x.out = appendPage(x, x.out, &page.Page, func(b []byte, u *rolecall.User) []byte {
		sight := rolecall.AllUserMembers
		if !all {
			sight = p.ListSight(u)
		}
		withheld |= rolecall.AllUserMembers &^ sight
		return appendUser(b, u, sight)
	})
	if page.RestrictedBy != 0 {
		x.out = append(x.out, `,"restrictedBy":`...)
		x.out = appendList(x.out, page.RestrictedBy.Names(), appendTextItem)
	}
	x.out = append(x.out, '}')
	x.withhold(withheld)
	return x.json(http.StatusOK)
}

// withhold names the members that permission held back.
func (x *exchange) withhold(members rolecall.UserMembers) {
	if members != 0 {
		x.header["Withheld-Fields"] = []string{strings.Join(members.Names(), ", ")}
	}
}

// appendUser appends the user with the members in sight.
func appendUser(b []byte, u *rolecall.User, sight rolecall.UserMembers) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, u.ID)
	if sight.Has(rolecall.MemberEmail) {
		b = append(b, `,"email":`...)
		b = appendText(b, u.Email)
	}
	if sight.Has(rolecall.MemberName) {
		b = append(b, `,"name":`...)
		b = appendText(b, u.Name)
	}
	if sight.Has(rolecall.MemberDepartment) {
		b = append(b, `,"department":`...)
		b = appendTextOrNull(b, u.Department)
	}
	if sight.Has(rolecall.MemberExternalID) {
		b = append(b, `,"externalId":`...)
		b = appendTextOrNull(b, u.ExternalID)
	}
	if sight.Has(rolecall.MemberMetadata) {
		b = append(b, `,"metadata":`...)
		b = append(b, u.Metadata.String()...)
	}
	if sight.Has(rolecall.MemberStatus) {
		b = append(b, `,"status":`...)
		b = appendText(b, u.Status)
	}
	if sight.Has(rolecall.MemberCreatedAt) {
		b = append(b, `,"createdAt":`...)
		b = appendTime(b, u.CreatedAt)
	}
	if sight.Has(rolecall.MemberUpdatedAt) {
		b = append(b, `,"updatedAt":`...)
		b = appendTime(b, u.UpdatedAt)
	}
	return append(b, '}')
}
