package console

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/web"
)

// frame is what a page is set in.
type frame struct {
	*pageContext
	title     string
	here      string // the section of the navigation that the page is in
	now       rolecall.Time
	told      []part            // what has been done
	challenge *signin.Challenge // the second factor to confirm with; nil if the password is enough
}

// fragments are the parts of pages that scripts ask for alone, by the id of the
// element that they replace.
var fragments = map[string][]any{
	"results": {"results", "count"},
	"count":   {"total"},
	"dialog":  {"dialog"},
	"confirm": {"dialog"},
}

// show answers with the page, or with the one part of it that is asked for.
func (c *console) show(v *pageContext, title, here string, content func(frame) templ.Component) error {
	f := frame{pageContext: v, title: title, here: here, now: c.access.Now()}
	f.told = c.doneMessage(f)
	if v.needsReauthentication() {
		var err error
		if f.challenge, err = c.signin.AskAgain(v.ctx, v.call); err != nil {
			return err
		}
	}
	return v.write(func(w io.Writer) error {
		if ids, ok := fragments[v.fragment()]; ok {
			return templ.RenderFragments(v.ctx, w, content(f), ids...)
		}
		return layout(f, content(f)).Render(v.ctx, w)
	})
}

// fullTitle is what the browser calls the page, the most particular first.
func (f frame) fullTitle() string {
	words := []string{f.title}
	if f.here != "" && f.here != f.title {
		words = append(words, f.here)
	}
	if p := f.call.Principal; p != nil {
		words = append(words, p.Tenant.DisplayName)
	} else if f.tenant != "" {
		words = append(words, f.tenant)
	}
	return strings.Join(append(words, "Rolecall"), " · ")
}

// showEntry answers with a page for people who are not signed in.
func (c *console) showEntry(v *pageContext, title string, content func(frame) templ.Component) error {
	f := frame{pageContext: v, title: title, now: c.access.Now()}
	return v.write(func(w io.Writer) error {
		return entryLayout(f, content(f)).Render(v.ctx, w)
	})
}

// refuse answers with why there is no page. Who is not signed in is led to sign in,
// and back from there.
func (c *console) refuse(v *pageContext) error {
	problem := v.problem
	if problem.Kind == rolecall.Unauthenticated && v.tenant != "" {
		return v.redirect(signInAddress(v, problem.Code))
	}
	if v.call.Principal == nil {
		return c.showEntry(v, problem.Title, refusal)
	}
	return c.show(v, problem.Title, "", refusal)
}

// signInAddress returns where to sign in for the page that was asked for. A form
// that was sent is not sent again: its page is.
func signInAddress(v *pageContext, why string) string {
	query := url.Values{}
	if why != rolecall.ErrUnauthenticated.Code {
		query.Set("why", why)
	}
	page := v.request.URL
	if current, err := url.Parse(v.currentURL()); v.fragment() != "" && err == nil {
		page = current // of a part, the page that it is in
	}
	if tail, ok := strings.CutPrefix(page.EscapedPath(), v.path("")); ok && tail != "" && tail != "/" {
		if page.RawQuery != "" {
			tail += "?" + page.RawQuery
		}
		query.Set("return", tail)
	}
	address := v.path("/sign-in")
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// returnAddress returns the page of the tenant that the text leads to, the first
// page if it leads to none.
func returnAddress(v *pageContext, text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Fragment != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.ContainsAny(u.Path, "\\") || slices.Contains(strings.Split(u.Path, "/"), "..") || strings.HasPrefix(u.Path, "/sign-") {
		return v.path("/")
	}
	if query := u.Query(); query.Has("done") { // nothing has been, whatever the text says
		query.Del("done")
		u.RawQuery = query.Encode()
	}
	return v.path(u.RequestURI())
}

// userAddress returns the page of the user, or one below it.
func userAddress(v *pageContext, id rolecall.UserID, below string) string {
	return v.path("/users/" + id.String() + below)
}

// toRoot leads to the page that is meant.
func toRoot(v *pageContext) error { return v.redirect(v.root()) }

// toHome leads to the first section that is open to who is signed in, or to their
// own page. What has been done is said there.
func toHome(v *pageContext) error {
	if open := openTo(v.call.Principal, sections); len(open) > 0 {
		address := v.path(open[0].path)
		if word := v.request.URL.Query().Get("done"); done[word] != "" {
			address += "?done=" + word
		}
		return v.redirect(address)
	}
	return toAccount(v)
}

// notFound refuses an address at which there is no page.
func notFound(*pageContext) error {
	return rolecall.ErrNotFound.With("There is no page at this address.")
}

// faultAt returns what is wrong with the field, empty if nothing is: by the name of
// the parameter, or by the pointer into the body that the operation has.
func (f frame) faultAt(field string) string {
	faults := f.faults
	if p := f.problem; p != nil {
		faults = append(slices.Clone(faults), faultsOf(p)...)
	}
	for _, fault := range faults {
		if fault.Parameter == field || fault.Pointer == "/"+field {
			return sentence(fault.Detail)
		}
	}
	return ""
}

// placeOf are the members that problems are about which the contract says of the whole.
var placeOf = map[string]string{
	rolecall.ErrEmailTaken.Code: "email", rolecall.ErrExternalIDTaken.Code: "externalId", rolecall.ErrOutsideReach.Code: "department",
	rolecall.ErrRoleNameTaken.Code: "name", rolecall.ErrRoleKeyTaken.Code: "key",
}

// faultsOf returns the faults of the problem, also if it has one by what it is.
func faultsOf(p *web.Problem) rolecall.Faults {
	if place, ok := placeOf[p.Code]; ok && p.Faults == nil {
		return rolecall.Faults{{Pointer: "/" + place, Code: p.Code, Detail: p.Detail}}
	}
	return p.Faults
}

// isWrongWithin reports whether something is wrong with one of the fields, or within.
func (f frame) isWrongWithin(fields ...string) bool {
	return f.problem != nil && slices.ContainsFunc(faultsOf(f.problem), func(fault rolecall.Fault) bool {
		return slices.ContainsFunc(fields, func(field string) bool { return isWithin(fault.Pointer, field) })
	})
}

// faultsWithin returns what is wrong with the lines of a field that stands for a list,
// or with the list.
func (f frame) faultsWithin(field string) (faults []string) {
	p, list := f.problem, lines(f.form[field])
	if p == nil {
		return nil
	}
	for _, fault := range p.Faults {
		at, err := strconv.Atoi(strings.TrimPrefix(fault.Pointer, "/"+field+"/"))
		switch {
		case fault.Pointer == "/"+field:
			faults = append(faults, sentence(fault.Detail))
		case err == nil && isWithin(fault.Pointer, field) && at < len(list):
			faults = append(faults, list[at]+" "+fault.Detail+".")
		}
	}
	return faults
}

// isWithin reports whether the pointer leads to the field, or into it.
func isWithin(pointer, field string) bool {
	rest, ok := strings.CutPrefix(pointer, "/"+field)
	return ok && (rest == "" || rest[0] == '/')
}

// problemBeside returns the problem that is not said at one of the fields, or at those
// of the confirmation; nil if there is none.
func (f frame) problemBeside(fields ...string) *web.Problem {
	p := f.problem
	if p == nil || p.Status < http.StatusBadRequest {
		return nil
	}
	said := func(fault rolecall.Fault) bool {
		return strings.HasPrefix(fault.Pointer, "/"+fieldsOwn) || slices.ContainsFunc(fields, func(field string) bool { return fault.Parameter == field || isWithin(fault.Pointer, field) })
	}
	if faults := faultsOf(p); len(faults) > 0 && !slices.ContainsFunc(faults, func(fault rolecall.Fault) bool { return !said(fault) }) {
		return nil
	}
	return p
}

// may reports whether the principal holds the permission for anybody at all.
func (f frame) may(permission rolecall.Permission) bool {
	return !f.call.Reach(permission).IsNowhere()
}

// returnTail returns the page of the tenant to which the sign-in leads back, as it
// was asked for.
func (f frame) returnTail() string {
	if tail := f.form.Get("return"); tail != "" {
		return tail
	}
	return f.request.URL.Query().Get("return")
}

// start returns where to begin: the tenant's first page, or where to name the tenant.
func (f frame) start() string {
	if f.tenant == "" {
		return f.root()
	}
	return f.path("/")
}

// refusedPart returns the part of the page that the refusal takes the place of.
func refusedPart(f frame) any {
	if ids, ok := fragments[f.fragment()]; ok {
		return ids[0]
	}
	return ""
}

// question is what a dialog says before it does something.
type question struct {
	title, name string // "Suspend", "Ada Lovelace"
	detail      string // what will happen
	label       string // of the button
	back        string // address without it
	destructive bool   // takes something away
	answers     string // code of the problem to which the question is the answer
}

// newKey returns the idempotency key of a form: the same for each time it is sent, until
// what it says now is another request.
func (f frame) newKey() string {
	reused := f.problem != nil && f.problem.Code == rolecall.ErrKeyReused.Code
	if key := f.form.Get(fieldKey); key != "" && !reused {
		return key
	}
	return rolecall.NewID[any](f.now).String()
}

// section is one entry of the navigation, or of the tabs within such a section. Only
// callers who satisfy all of its policies see it.
type section struct {
	name     string
	path     string
	icon     string
	keys     string // that lead there
	policies []*authz.Policy
}

var sections = []section{
	{"Users", "/users", "users", "g u", []*authz.Policy{authz.ListUsers}},
	{"Roles", "/roles", "roles", "g r", []*authz.Policy{authz.ReadRoles}},
	{"Events", "/events", "events", "g e", []*authz.Policy{authz.ReadEvents}},
	{"Service accounts", "/service-accounts", "machines", "g m", []*authz.Policy{authz.ReadServiceAccounts}},
	{settingsSection, "/settings", "settings", "g s", []*authz.Policy{authz.ReadTenant}},
}

// done is what the page that a form leads to says, by the word in its address. The
// {name} stands for the user or service account of the page, and {role} for the role that
// the address names.
var done = map[string]string{
	"saved":          "Saved.",
	"user-created":   "{name} is created.",
	"user-invited":   "{name} is created, and the invitation is on its way.",
	"suspended":      "{name} is suspended, and signed out everywhere.",
	"resumed":        "{name} is resumed.",
	"invited":        "The invitation of {name} is on its way.",
	"email-asked":    "The new address is asked. Until it says yes, the old one stays.",
	"withdrawn":      "The invitation of {name} is withdrawn.",
	"reset-sent":     "A link to choose a new password is on its way to {name}.",
	"session-ended":  "The session is over.",
	"sessions-ended": "{name} is signed out everywhere.",
	"factors-reset":  "All second factors of {name} are removed.",
	"role-created":   "The role is created.",
	"role-deleted":   "The role is deleted, and taken from all who held it.",
	"role-given":     "{role} is given to {name}.",
	"role-taken":     "{role} is taken from {name}.",
	"deleted":        "The user is deleted. A restore is possible for 30 days.",
	"restored":       "{name} is restored but cannot sign in yet. This page shows what to do.",
	"erased":         "The user is erased for good.",

	"password-changed": "Your password is changed, and you are signed out everywhere else.",
	"app-added":        "Your authenticator app counts from now on.",
	"app-removed":      "The authenticator app is removed.",
	"codes-made":       "The new recovery codes count, the old ones no longer.",
	"passkey-added":    "The passkey signs you in from now on.",
	"passkey-removed":  "The passkey is removed.",

	"service-account-created":   "The service account is created. It holds nothing yet: give it a role, then make a token.",
	"service-account-suspended": "{name} is suspended. Its tokens count for nothing.",
	"token-revoked":             "The token is revoked. Programs that use it are refused from now on.",
	"service-account-deleted":   "The service account is deleted, with its tokens.",
}

// doneBefore is done of the sign-in page.
var doneBefore = map[string]string{
	"signed-out":      "You are signed out.",
	"password-reset":  "Your new password is set. Sign in with it.",
	"email-changed":   "Your new address is confirmed. Sign in with it.",
	"reset-requested": "If somebody of this tenant signs in with this address, a link to choose a new password is on its way to it.",
}

// The placeholders in the messages of done. The address has only the id of the role.
const (
	subjectName = "{name}"
	roleName    = "{role}"
)

// part is a piece of a sentence: words, or a name.
type part struct {
	text   string
	isName bool
}

// doneMessage returns the message about what was just done, nil if nothing was.
func (c *console) doneMessage(f frame) []part {
	words := done[f.asked("done")]
	if words == "" || !f.isFromOwnPage() {
		return nil
	}
	role := part{text: "The role"}
	if strings.Contains(words, roleName) {
		if r, ok := c.roleAsked(f.pageContext); ok {
			role = part{r.Name, true}
		}
	}
	var parts []part
	for words != "" {
		i := strings.IndexByte(words, '{')
		if i < 0 {
			i = len(words)
		}
		parts = append(parts, part{text: words[:i]})
		switch words = words[i:]; {
		case strings.HasPrefix(words, subjectName):
			parts, words = append(parts, part{f.title, true}), words[len(subjectName):]
		case strings.HasPrefix(words, roleName):
			parts, words = append(parts, role), words[len(roleName):]
		}
	}
	return parts
}

// roleAsked returns the role that the address names, as far as the caller may read it.
func (c *console) roleAsked(v *pageContext) (rolecall.Role, bool) {
	id, err := rolecall.ParseID[rolecall.Role](v.request.URL.Query().Get("role"))
	if err != nil || authz.ReadRoles.Authorize(v.call.Principal) != nil {
		return rolecall.Role{}, false
	}
	role, err := c.directory.Role(v.ctx, v.call, id)
	return role, err == nil
}

// deletedPolicies are of the list of users with those who can be restored.
var deletedPolicies = []*authz.Policy{authz.ListUsers, authz.ListDeletedUsers}

// userLists are the lists that the section of users consists of.
var userLists = []section{
	{name: "All users", path: "/users", policies: []*authz.Policy{authz.ListUsers}},
	{name: "Invitations", path: "/invitations", policies: []*authz.Policy{authz.ListInvitations}},
	{name: "Deleted", path: "/users/deleted", policies: deletedPolicies},
}

// openTo returns those of the sections that are for the principal.
func openTo(p *authz.Principal, list []section) (shown []section) {
	for _, s := range list {
		if s.open(p) {
			shown = append(shown, s)
		}
	}
	return shown
}

// open reports whether the section is for the principal.
func (s section) open(p *authz.Principal) bool { return areAllowed(p, s.policies) }

// areAllowed reports whether all of the policies allow the principal to act.
func areAllowed(p *authz.Principal, policies []*authz.Policy) bool {
	return !slices.ContainsFunc(policies, func(policy *authz.Policy) bool { return policy.Authorize(p) != nil })
}
