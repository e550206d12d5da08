package console

import (
	"strconv"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
)

// typed returns the text of a form field, and whether it differs from the value that the form
// had shown. Callers send only changed fields, so that they do not overwrite the changes of
// other users.
func typed(v *pageContext, name string) (text string, changed bool) {
	if v.form[name] == nil {
		return "", false
	}
	return v.form.Get(name), v.form.Get(name) != v.form.Get("was-"+name)
}

// change is a field of a form: the value that it shows, and the value that is saved now. They
// conflict if another user saved a different value after the form was loaded.
type change struct {
	shown, saved string
	conflicting  bool
}

// changeOf returns the field. saved is the value that is saved now. A field that the user has
// changed keeps the typed text, and an unchanged field shows the saved value.
func (f frame) changeOf(name, saved string) change {
	shown, was := f.form.Get(name), f.form.Get("was-"+name)
	if f.form["was-"+name] == nil || shown == was {
		return change{shown: saved}
	}
	return change{shown: shown, saved: saved, conflicting: saved != was && saved != shown}
}

// typedSet is typed for a set.
func typedSet(v *pageContext, name string) (list []string, changed bool) {
	if v.form["was-"+name] == nil {
		return nil, false
	}
	list, was := lines(v.form[name]), strings.Fields(v.form.Get("was-"+name))
	return list, len(without(list, was)) > 0 || len(without(was, list)) > 0
}

// setChange is a set in a form: the texts that it shows, and those that another user has added
// and removed since the form was loaded.
type setChange struct {
	shown        []string
	added, taken []string
}

// setOf returns the set. now is what is saved. The boxes that the user has changed keep their
// state, and all others show what is saved.
func (f frame) setOf(name string, now []string) setChange {
	if f.form[name] == nil && f.form["was-"+name] == nil {
		return setChange{shown: now}
	}
	typed, was := lines(f.form[name]), strings.Fields(f.form.Get("was-"+name))
	change := setChange{added: without(now, was), taken: without(was, now)}
	change.shown = append(without(now, without(was, typed)), without(without(typed, was), now)...)
	return change
}

// isStale reports whether another user has changed the values that the form showed.
func (f frame) isStale() bool {
	return f.problem != nil && f.problem.Code == rolecall.ErrPreconditionFailed.Code
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// without returns the texts that are not in others.
func without(texts, others []string) (rest []string) {
	among := map[string]bool{} // a map, because a form can contain thousands of texts
	for _, text := range others {
		among[text] = true
	}
	for _, text := range texts {
		if !among[text] {
			rest = append(rest, text)
		}
	}
	return rest
}

// lines returns the lines of all texts, trimmed and without empty ones.
func lines(texts []string) (list []string) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, line)
			}
		}
	}
	return list
}

// The forms carry a tag in fieldIfMatch: a hash of the members that the caller may read.
// The form is refused if another user has changed one of them since the form was loaded.

// match returns the condition that the value still has the tag of the form. It returns nil if
// the form has no tag.
func match[T any](v *pageContext, tagOf func(*T) string) directory.Match[T] {
	tag := v.form.Get(fieldIfMatch)
	if tag == "" {
		return nil
	}
	return func(value *T) bool { return tagOf(value) == tag }
}

// tagOf returns the tag of the members. It hashes each member with its length, so that
// different lists of members have different inputs.
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
	members, readable := []string{u.ID.String()}, v.call.ReadableMembers(u)
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
	members = append(members, string(t.Settings.SecondFactor.Scope()), textOf(t.Settings.MailSender), textOf(t.Settings.BrandColor))
	for _, role := range t.Settings.SecondFactor.Roles {
		members = append(members, role.String())
	}
	return tagOf(members...)
}

// textOf returns the text with a prefix, so that the empty text differs from nil.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return "=" + *text
}
