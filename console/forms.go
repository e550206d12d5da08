package console

import (
	"strconv"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
)

// typed returns the text of the form field with the name, and whether the text differs from
// the value that the form had shown. Callers save only changed fields, so that they do not
// overwrite the changes of other users.
func typed(v *pageContext, name string) (text string, changed bool) {
	if v.form[name] == nil {
		return "", false
	}
	return v.form.Get(name), v.form.Get(name) != v.form.Get("was-"+name)
}

// change is a form field of an object that exists. shown is the value that the form shows.
// If the user has changed the field, saved is the value in the database, and conflicting
// reports whether another user has saved a different value since the form was loaded.
type change struct {
	shown, saved string
	conflicting  bool
}

// changeOf returns the form field with the name. saved is the value in the database. The
// field shows the typed text if the user has changed it, otherwise saved.
func (f frame) changeOf(name, saved string) change {
	shown, was := f.form.Get(name), f.form.Get("was-"+name)
	if f.form["was-"+name] == nil || shown == was {
		return change{shown: saved}
	}
	return change{shown: shown, saved: saved, conflicting: saved != was && saved != shown}
}

// typedSet returns the values of a form field that has several, such as checkboxes with the
// same name. changed reports whether they differ from the values that the form had shown.
func typedSet(v *pageContext, name string) (list []string, changed bool) {
	if v.form["was-"+name] == nil {
		return nil, false
	}
	list, was := lines(v.form[name]), strings.Fields(v.form.Get("was-"+name))
	return list, len(without(list, was)) > 0 || len(without(was, list)) > 0
}

// setChange is a form field with several values, such as the permissions of a role: the
// values that the form shows, and the values that another user has added and removed since
// the form was loaded.
type setChange struct {
	shown        []string
	added, taken []string
}

// setOf returns the form field with the name. now has the values in the database. If the
// user has added or removed a value in the form, the form keeps showing this change. All
// other values are shown as they are in the database.
func (f frame) setOf(name string, now []string) setChange {
	if f.form[name] == nil && f.form["was-"+name] == nil {
		return setChange{shown: now}
	}
	typed, was := lines(f.form[name]), strings.Fields(f.form.Get("was-"+name))
	change := setChange{added: without(now, was), taken: without(was, now)}
	change.shown = append(without(now, without(was, typed)), without(without(typed, was), now)...)
	return change
}

// isStale reports whether the form was refused because another user has changed the object
// since the form was loaded.
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

// Forms that change an object carry a tag in fieldIfMatch: a hash of the members that the
// caller may read. A form is refused if another user has changed one of these members since
// the form was loaded.

// match returns a condition for the service: the tag of the stored value must still be the
// tag in the form. match returns nil if the form has no tag.
func match[T any](v *pageContext, tagOf func(*T) string) directory.Match[T] {
	tag := v.form.Get(fieldIfMatch)
	if tag == "" {
		return nil
	}
	return func(value *T) bool { return tagOf(value) == tag }
}

// tagOf returns the tag of the members. The length of each member is part of the hash, so
// that the members "ab", "c" and "a", "bc" have different tags.
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
	for m := range readable.All() {
		members = append(members, m.String(), textOf(m.Text(u)))
	}
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

// groupTag returns the tag of the group.
func (v *pageContext) groupTag(g *rolecall.Group) string {
	if !v.readsGroups() {
		return tagOf(g.ID.String())
	}
	return tagOf(g.ID.String(), g.Name, g.Description, textOf(g.ExternalID), g.CreatedAt.String(), g.UpdatedAt.String())
}

// tenantTag returns the tag of the tenant.
func tenantTag(t *rolecall.Tenant) string {
	members := []string{t.ID.String(), t.Name, t.DisplayName, string(t.Status), t.CreatedAt.String(), t.UpdatedAt.String(), t.PurgeAt.String()}
	for _, n := range rolecall.NumberSettings {
		members = append(members, strconv.FormatInt(n.InForce(t.Settings), 10))
	}
	members = append(members, string(t.Settings.PasswordScope()), string(t.Settings.SecondFactor.Scope()))
	for _, setting := range rolecall.TextSettings {
		members = append(members, textOf(setting.Stored(&t.Settings)))
	}
	for _, role := range t.Settings.SecondFactor.Roles {
		members = append(members, role.String())
	}
	return tagOf(members...)
}

// textOf returns the text with a prefix, or the empty text for nil. So tagOf returns
// different hashes for nil and for the empty text.
func textOf(text *string) string {
	if text == nil {
		return ""
	}
	return "=" + *text
}
