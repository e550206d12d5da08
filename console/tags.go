package console

import (
	"strconv"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
)

// The forms carry a tag in fieldIfMatch: a hash of the members that the caller may read.
// The form is refused if somebody else has changed one of them meanwhile.

// match returns the condition that the value still has the tag of the form, nil if the form
// has none.
func match[T any](v *pageContext, tagOf func(*T) string) directory.Match[T] {
	tag := v.form.Get(fieldIfMatch)
	if tag == "" {
		return nil
	}
	return func(value *T) bool { return tagOf(value) == tag }
}

// tagOf returns the tag of the members. Each is written with its length, so that no two
// lists of members have one tag.
func tagOf(members ...string) string {
	var b []byte
	for _, member := range members {
		b = append(strconv.AppendInt(b, int64(len(member)), 10), ':')
		b = append(b, member...)
	}
	return secret.ETag(b)
}

// userTag returns the tag of the user.
func (v *pageContext) userTag(u *rolecall.User) string {
	members, readable := []string{u.ID.String()}, v.call.Sight(u)
	add := func(m rolecall.UserMember, text string) {
		if readable.Has(m) {
			members = append(members, m.String(), text)
		}
	}
	add(rolecall.MemberEmail, u.Email)
	add(rolecall.MemberName, u.Name)
	add(rolecall.MemberDepartment, textOf(u.Department))
	add(rolecall.MemberExternalID, textOf(u.ExternalID))
	add(rolecall.MemberMetadata, u.Metadata.String())
	add(rolecall.MemberStatus, string(u.Status))
	add(rolecall.MemberCreatedAt, u.CreatedAt.String())
	add(rolecall.MemberUpdatedAt, u.UpdatedAt.String())
	return tagOf(members...)
}

// roleTag returns the tag of the role.
func (v *pageContext) roleTag(r *rolecall.Role) string {
	if v.call.Reach(rolecall.RolesRead).IsNowhere() {
		return tagOf(r.ID.String())
	}
	members := []string{
		r.ID.String(), textOf(r.Key), r.Name, r.Description, strconv.FormatBool(r.System), r.CreatedAt.String(), r.UpdatedAt.String(),
		strconv.Itoa(len(r.Permissions)),
	}
	return tagOf(append(append(members, texts(r.Permissions)...), texts(r.Grants)...)...)
}

// serviceAccountTag returns the tag of the service account.
func (v *pageContext) serviceAccountTag(a *rolecall.ServiceAccount) string {
	if !v.call.Reach(rolecall.ServiceAccountsRead).IsEverywhere() {
		return tagOf(a.ID.String())
	}
	return tagOf(a.ID.String(), a.Name, a.Description, string(a.Status), a.CreatedAt.String(), a.UpdatedAt.String())
}

// tenantTag returns the tag of the tenant.
func tenantTag(t *rolecall.Tenant) string {
	members := []string{t.ID.String(), t.Name, t.DisplayName, string(t.Status), t.CreatedAt.String(), t.UpdatedAt.String(), t.PurgeAt.String()}
	for _, n := range rolecall.NumberSettings {
		members = append(members, strconv.FormatInt(n.InForce(t.Settings), 10))
	}
	members = append(members, string(t.Settings.SecondFactor.Scope()), textOf(t.Settings.MailSender))
	for _, role := range t.Settings.SecondFactor.Roles {
		members = append(members, role.String())
	}
	return tagOf(members...)
}

// textOf returns the text so that nil differs from every text.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return "=" + *text
}
