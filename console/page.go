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

// frame is the data of the layout that surrounds every page.
type frame struct {
	*pageContext
	title     string
	here      string // the message key of the navigation section that the page is in
	now       rolecall.Time
	told      templ.Component   // the message about the last action, or nil
	challenge *signin.Challenge // second-factor challenge for the re-authentication form; nil if the password is enough

	confirmable  bool // the caller can confirm their identity with a connection
	passwordless bool // the caller can confirm their identity only with a connection
}

// confirmAddress is the address of the page that confirms the caller's identity with a connection, and then
// leads back to this page.
func (f frame) confirmAddress() string {
	return f.path("/account/confirm?" + url.Values{fieldReturn: {f.tail()}}.Encode())
}

// fragments maps the id of an element to the template fragments with which the server
// answers when a script replaces this element.
var fragments = map[string][]any{
	"results": {"results", "count"},
	"count":   {"total"},
	"dialog":  {"dialog"},
	"confirm": {"dialog"},
	"found":   {"found"},
	"job":     {"job"},
}

// show writes the page. If the request asks for one fragment, show writes only this
// fragment.
func (c *console) show(v *pageContext, title, here string, content func(frame) templ.Component) error {
	f := frame{pageContext: v, title: title, here: here, now: c.access.Now()}
	f.told = c.doneMessage(f)
	if v.needsReauthentication() {
		var err error
		if f.challenge, err = c.signin.FactorChallenge(v.ctx, v.call); err != nil {
			return err
		}
		own, err := c.signin.Identities(v.ctx, v.call, v.call.User.ID)
		if f.confirmable = len(own) > 0; err != nil {
			return err
		}
		if f.confirmable {
			has, err := c.signin.HasPassword(v.ctx, v.call)
			if f.passwordless = !has; err != nil {
				return err
			}
		}
	}
	return v.write(func(w io.Writer) error {
		if ids, ok := fragments[v.fragment()]; ok {
			if err := templ.RenderFragments(v.ctx, w, content(f), ids...); err != nil {
				return err
			}
			return apiRequestOf(f).Render(v.ctx, w)
		}
		return layout(f, content(f)).Render(v.ctx, w)
	})
}

// apiRequestOf returns the API request that follows a fragment: in a dialog, and in place of the
// command of a list.
func apiRequestOf(f frame) templ.Component {
	switch f.fragment() {
	case "dialog":
		return apiRequest(f)
	case "results":
		if command := f.apiRequest(); command != "" {
			return apiCommand(f, command, true)
		}
	}
	return templ.NopComponent
}

// fullTitle returns the title for the browser, with the most specific word first.
func (f frame) fullTitle() string {
	words := []string{f.title}
	if f.view != "" {
		words = []string{f.view, f.title}
	}
	if f.here != "" && msg(f.here) != f.title {
		words = append(words, msg(f.here))
	}
	if p := f.call.Principal; p != nil {
		words = append(words, p.Tenant.DisplayName)
	} else if f.tenant != "" {
		words = append(words, f.tenantName())
	}
	return strings.Join(append(words, "Rolecall"), " · ")
}

// showEntry writes a page for users who are not signed in.
func (c *console) showEntry(v *pageContext, title string, content func(frame) templ.Component) error {
	f := frame{pageContext: v, title: title, now: c.access.Now()}
	return v.write(func(w io.Writer) error {
		return entryLayout(f, content(f)).Render(v.ctx, w)
	})
}

// refuse writes an error page for the problem. If the caller has no valid session, refuse
// redirects to the sign-in page, which leads back to the requested page.
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

// signInAddress returns the address of the sign-in page. The sign-in page leads back to the
// requested page. If the request was a form, the user must submit the form again there.
func signInAddress(v *pageContext, why string) string {
	query := url.Values{}
	if why != rolecall.ErrUnauthenticated.Code {
		query.Set("why", why)
	}
	if tail := v.tail(); tail != "" {
		query.Set("return", tail)
	}
	address := v.path("/sign-in")
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// tail returns the part of the page's address within the tenant. It is empty for the first page.
func (v *pageContext) tail() string {
	page := v.request.URL
	if current, err := url.Parse(v.currentURL()); v.fragment() != "" && err == nil {
		page = current // the address of a fragment is not the address of a page
	}
	tail, ok := strings.CutPrefix(page.EscapedPath(), v.path(""))
	if !ok || tail == "/" {
		return ""
	}
	if tail != "" && page.RawQuery != "" {
		tail += "?" + page.RawQuery
	}
	return tail
}

// returnAddress returns the address of the page that the text names, within the tenant. If
// the text is not such an address, it returns the address of the tenant's first page.
func returnAddress(v *pageContext, text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Fragment != "" || !strings.HasPrefix(u.Path, "/") ||
		strings.ContainsAny(u.Path, "\\") || slices.Contains(strings.Split(u.Path, "/"), "..") || strings.HasPrefix(u.Path, "/sign-") {
		return v.path("/")
	}
	if query := u.Query(); query.Has("done") { // the page must not report an action that did not happen
		query.Del("done")
		u.RawQuery = query.Encode()
	}
	return v.path(u.RequestURI())
}

// userAddress returns the address of the user's page. below is appended to its path.
func userAddress(v *pageContext, id rolecall.UserID, below string) string {
	return v.path("/users/" + id.String() + below)
}

// toRoot redirects to the page where users enter the name of their tenant.
func toRoot(v *pageContext) error { return v.redirect(v.root()) }

// toHome redirects to the first section that the caller may read, or else to the caller's
// account page. It keeps the message about the last action.
func toHome(v *pageContext) error {
	if open := openTo(v.call.Principal, sections); len(open) > 0 {
		address := v.path(open[0].path)
		if word := v.request.URL.Query().Get("done"); hasMessage(donePrefix + word) {
			address += "?done=" + word
		}
		return v.redirect(address)
	}
	return toAccount(v)
}

// notFound returns the problem for an address that belongs to no page.
func notFound(*pageContext) error {
	return rolecall.ErrNotFound.With(msg("problem.no-page"))
}

// faultAt returns the error of the field as text. It returns an empty text if the field has
// no error. field is the name of a query parameter, or the JSON pointer of a member of the
// operation's request body, without the leading slash.
func (f frame) faultAt(field string) string {
	faults := f.faults
	if p := f.problem; p != nil {
		faults = append(slices.Clone(faults), faultsOf(p)...)
	}
	for _, fault := range faults {
		if fault.Parameter == field || fault.Pointer == "/"+field {
			return faultWords(fault)
		}
	}
	return ""
}

// placeOf maps codes of problems without field errors to the member that each is about.
var placeOf = map[string]string{
	rolecall.ErrEmailTaken.Code: "email", rolecall.ErrExternalIDTaken.Code: "externalId", rolecall.ErrOutsideReach.Code: "department",
	rolecall.ErrRoleNameTaken.Code: "name", rolecall.ErrRoleKeyTaken.Code: "key",
	rolecall.ErrGroupNameTaken.Code: "name", rolecall.ErrGroupExternalIDTaken.Code: "externalId",
	rolecall.ErrConnectionNameTaken.Code: "name", rolecall.ErrIssuerTaken.Code: "issuer", rolecall.ErrDomainTaken.Code: "domains",
	rolecall.ErrDirectoryNameTaken.Code: "name",
}

// faultsOf returns the field errors of the problem. If the problem has no field errors, its
// code can determine the field.
func faultsOf(p *web.Problem) rolecall.FieldErrors {
	if place, ok := placeOf[p.Code]; ok && p.FieldErrors == nil {
		return rolecall.FieldErrors{{Pointer: "/" + place, Code: p.Code, Detail: p.Detail}}
	}
	return p.FieldErrors
}

// isWrongWithin reports whether one of the fields, or a member within them, has a field error.
func (f frame) isWrongWithin(fields ...string) bool {
	return f.problem != nil && slices.ContainsFunc(faultsOf(f.problem), func(fault rolecall.FieldError) bool {
		return slices.ContainsFunc(fields, func(field string) bool { return isWithin(fault.Pointer, field) })
	})
}

// faultsWithin returns the errors of a list and of its items. In the form, the list is one
// field, with one item per line.
func (f frame) faultsWithin(field string) (faults []string) {
	p, list := f.problem, lines(f.form[field])
	if p == nil {
		return nil
	}
	for _, fault := range p.FieldErrors {
		at, err := strconv.Atoi(strings.TrimPrefix(fault.Pointer, "/"+field+"/"))
		switch {
		case fault.Pointer == "/"+field:
			faults = append(faults, faultWords(fault))
		case err == nil && isWithin(fault.Pointer, field) && at < len(list):
			faults = append(faults, list[at]+" "+fault.Detail+".")
		}
	}
	return faults
}

// departmentFaults returns the errors to show at the field for departments that are not in offered. An
// error of the whole list is shown at the offered departments, if there are any.
func (f frame) departmentFaults(offered []string) []string {
	faults := f.faultsWithin("reach/departments")
	if whole := f.faultAt("reach/departments"); whole != "" && len(offered) > 0 {
		return slices.DeleteFunc(faults, func(fault string) bool { return fault == whole })
	}
	return faults
}

// isWithin reports whether the pointer names the field or a member within it.
func isWithin(pointer, field string) bool {
	rest, ok := strings.CutPrefix(pointer, "/"+field)
	return ok && (rest == "" || rest[0] == '/')
}

// problemBeside returns the problem to show above the form. It returns nil if all field
// errors of the problem appear at the given fields or in the form for re-authentication.
func (f frame) problemBeside(fields ...string) *web.Problem {
	p := f.problem
	if p == nil || p.Status < http.StatusBadRequest {
		return nil
	}
	said := func(fault rolecall.FieldError) bool {
		return strings.HasPrefix(fault.Pointer, "/"+fieldsOwn) || slices.ContainsFunc(fields, func(field string) bool { return fault.Parameter == field || isWithin(fault.Pointer, field) })
	}
	if faults := faultsOf(p); len(faults) > 0 && !slices.ContainsFunc(faults, func(fault rolecall.FieldError) bool { return !said(fault) }) {
		return nil
	}
	return p
}

// may reports whether the principal holds the permission for at least some users.
func (f frame) may(permission rolecall.Permission) bool {
	return !f.call.Reach(permission).IsNowhere()
}

// returnTail returns the page that the sign-in leads back to, from the request. The value
// is not validated.
func (v *pageContext) returnTail() string {
	if tail := v.form.Get("return"); tail != "" {
		return tail
	}
	return v.request.URL.Query().Get("return")
}

// start returns the tenant's first page, or the page where users enter the name of their tenant.
func (f frame) start() string {
	if f.tenant == "" {
		return f.root()
	}
	return f.path("/")
}

// refusedPart returns the fragment of the page that the error page replaces.
func refusedPart(f frame) any {
	if ids, ok := fragments[f.fragment()]; ok {
		return ids[0]
	}
	return ""
}

// question has the texts of a confirmation dialog.
type question struct {
	title       templ.Component // such as "Suspend Ada Lovelace?"
	detail      string          // the effect of the action
	label       string          // the label of the button
	keep        string          // the label of the link that cancels; empty: "Cancel"
	back        string          // the address of the page below the dialog
	destructive bool            // the action removes something
	answers     string          // the code of a problem that the user resolves by confirming
	address     string          // where the form is sent; empty: the address of the page
}

// newKey returns the idempotency key of a form. The key stays the same when the form is sent
// again, unless the API refused it because the form now contains a different request.
func (f frame) newKey() string {
	reused := f.problem != nil && f.problem.Code == rolecall.ErrKeyReused.Code
	if key := f.form.Get(fieldKey); key != "" && !reused {
		return key
	}
	return rolecall.NewID[any](f.now).String()
}

// section is an entry of the navigation, or a tab within a section. Callers see it only if
// all of its policies allow them to act.
type section struct {
	name     string // the message key of its name
	path     string
	icon     string
	keys     string // keyboard shortcut
	policies []*authz.Policy
}

// The message keys of the names of sections.
const (
	homeSection            = "nav.home"
	usersSection           = "nav.users"
	rolesSection           = "nav.roles"
	groupsSection          = "nav.groups"
	accessSection          = "nav.access"
	eventsSection          = "nav.events"
	serviceAccountsSection = "nav.service-accounts"
	settingsSection        = "nav.settings"
	accountSection         = "nav.account" // the navigation shows the caller's name instead
)

var sections = []section{
	{homeSection, "/home", "home", "g h", []*authz.Policy{authz.ReadSummary}},
	{usersSection, "/users", "users", "g u", []*authz.Policy{authz.ListUsers}},
	{rolesSection, "/roles", "roles", "g r", []*authz.Policy{authz.ReadRoles}},
	{groupsSection, "/groups", "groups", "g g", []*authz.Policy{authz.ReadGroups}},
	{accessSection, "/access", "key", "g p", []*authz.Policy{authz.ListAccess}},
	{eventsSection, "/events", "events", "g e", []*authz.Policy{authz.ReadEvents}},
	{serviceAccountsSection, "/service-accounts", "machines", "g m", []*authz.Policy{authz.ReadServiceAccounts}},
	{settingsSection, "/settings", "settings", "g s", []*authz.Policy{authz.ReadTenant}},
}

// donePrefix and the value of the query parameter "done" form the key of a message about
// the last action. In the message, {Name} is the user, service account or group of the page, and
// {Role} is the role in the query parameter "role".
const donePrefix = "done."

// doneMessage returns the message about the last action. It returns nil if the address
// names no message, or if another site made the request.
func (c *console) doneMessage(f frame) templ.Component {
	key := donePrefix + f.asked("done")
	if !hasMessage(key) || !f.isFromOwnPage() {
		return nil
	}
	role := plain(msg("roles.the-role"))
	if f.asked("role") != "" {
		if r, ok := c.roleAsked(f.pageContext); ok {
			role = bdi(r.Name)
		}
	}
	return say(key, "Name", bdi(f.title), "Role", role)
}

// roleAsked returns the role that the query parameter "role" names. It returns false if the
// role does not exist or the caller may not read roles.
func (c *console) roleAsked(v *pageContext) (rolecall.Role, bool) {
	id, err := rolecall.ParseID[rolecall.Role](v.request.URL.Query().Get("role"))
	if err != nil || authz.ReadRoles.Authorize(v.call.Principal) != nil {
		return rolecall.Role{}, false
	}
	role, err := c.directory.Role(v.ctx, v.call, id)
	return role, err == nil
}

// deletedPolicies must all allow an action of the caller before the list of deleted users is shown.
var deletedPolicies = []*authz.Policy{authz.ListUsers, authz.ListDeletedUsers}

// userLists are the tabs of the section of users.
var userLists = []section{
	{name: "nav.all-users", path: "/users", policies: []*authz.Policy{authz.ListUsers}},
	{name: "nav.invitations", path: "/invitations", policies: []*authz.Policy{authz.ListInvitations}},
	{name: "nav.deleted", path: "/users/deleted", policies: deletedPolicies},
}

// openTo returns the sections that the principal may open.
func openTo(p *authz.Principal, list []section) (shown []section) {
	for _, s := range list {
		if s.open(p) {
			shown = append(shown, s)
		}
	}
	return shown
}

// open reports whether the principal may open the section.
func (s section) open(p *authz.Principal) bool { return areAllowed(p, s.policies) }

// areAllowed reports whether all of the policies allow the principal to act.
func areAllowed(p *authz.Principal, policies []*authz.Policy) bool {
	return !slices.ContainsFunc(policies, func(policy *authz.Policy) bool { return policy.Authorize(p) != nil })
}
