package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/signin"
)

func (c *console) connectionPages() []page {
	one := "/{tenant}/connections/{id}"
	return []page{
		{path: "/{tenant}/connections", operation: "ConnectionsController_listConnections", show: c.showConnections},
		{path: "/{tenant}/connections/create", operation: "ConnectionsController_createConnection", needsKey: true, show: c.showNewConnection, act: c.createConnection},
		{path: one, operation: "ConnectionsController_getConnection", show: c.showConnection},
		{path: one + "/edit", operation: "ConnectionsController_updateConnection", show: c.showConnectionEdit, act: c.editConnection},
		{path: one + "/test", operation: "ConnectionsController_testConnection", show: c.showConnection, act: c.testConnection},
		{path: one + "/delete", operation: "ConnectionsController_deleteConnection", show: c.askConnectionDeletion, act: c.deleteConnection},
	}
}

// settingsLists are the tabs of the section of settings.
var settingsLists = []section{
	{name: settingsSection, path: "/settings", policies: []*authz.Policy{authz.ReadTenant}},
	{name: "nav.connections", path: "/connections", policies: []*authz.Policy{authz.ReadConnections}},
	{name: "nav.directories", path: "/directories", policies: []*authz.Policy{authz.ReadConnections}},
}

// The names of form fields of a connection. Each is the JSON pointer to a member of the operation's request
// body, without the leading slash. fieldProvisions and fieldFillsGroups are checkboxes, and not members.
const (
	fieldProvisions            = "provisions"
	fieldProvisionedRoles      = "provisioning/roleIds"
	fieldProvisionedDepartment = "provisioning/department"

	fieldFillsGroups = "fillsGroups" // a checkbox
	fieldGroupsClaim = "groups/claim"
	fieldGroupsMatch = "groups/matchBy"
	fieldGroupsNew   = "groups/create"
	fieldGroupScopes = "groups/scopes"
)

// connectionFields are the fields at which the forms of connections show errors.
var connectionFields = []string{"name", "issuer", "clientId", "clientSecret", "domains", "linking", "provisioning", "secondFactor", "acrValues", "amrValues", "groups"}

// connectionsView is the data of the list of connections.
type connectionsView struct {
	frame
	list []rolecall.Connection
}

func (c *console) showConnections(v *pageContext) error {
	list, err := c.signin.Connections(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, msg("nav.connections"), settingsSection, func(f frame) templ.Component {
		return connectionsPage(connectionsView{f, list})
	})
}

// connectionView is the data of the pages of one connection.
type connectionView struct {
	frame
	roleChoices
	connection rolecall.Connection
	test       *connectionTest
	identities rolecall.Total
	history    *history // nil if the caller may not read events
}

// connectionTest is the result of a test of a connection.
type connectionTest struct {
	problems   []string
	algorithms []string
	keys       int
	signsOut   bool // the provider has an address for signing out
}

// showConnectionPage writes a page of a connection.
func (c *console) showConnectionPage(v *pageContext, view connectionView, title string, content func(connectionView) templ.Component) error {
	return c.show(v, title, settingsSection, func(f frame) templ.Component {
		view.frame = f
		return content(view)
	})
}

// connectionView returns the connection that the path names.
func (c *console) connectionView(v *pageContext) (view connectionView, err error) {
	if view.connection, err = c.signin.Connection(v.ctx, v.call, v.connectionID); err == nil {
		view.roleChoices, err = c.readRoleChoices(v)
	}
	return view, err
}

func (c *console) showConnection(v *pageContext) error { return c.showConnectionWith(v, nil) }

// showConnectionWith shows the connection with the result of a test, which can be nil.
func (c *console) showConnectionWith(v *pageContext, test *connectionTest) error {
	view, err := c.connectionView(v)
	if err == nil {
		view.history, err = c.historyOf(v, rolecall.AnyID(v.connectionID), "")
	}
	if err != nil {
		return err
	}
	view.test = test
	return c.showConnectionPage(v, view, view.connection.Name, connectionPage)
}

func (c *console) testConnection(v *pageContext) error {
	report, err := c.signin.TestConnection(v.ctx, v.call, v.connectionID)
	if err != nil {
		return err
	}
	return c.showConnectionWith(v, &connectionTest{report.Problems, report.Algorithms, report.Keys, report.EndSessionEndpoint != ""})
}

func (c *console) showNewConnection(v *pageContext) (err error) {
	var view connectionView
	if view.roleChoices, err = c.readRoleChoices(v); err != nil {
		return err
	}
	return c.showConnectionPage(v, view, msg("connections.new"), newConnectionPage)
}

func (c *console) createConnection(v *pageContext) error {
	provisioning, faults := v.provisioning()
	if err := faults.Err(); err != nil {
		return err
	}
	made, err := c.signin.CreateConnection(v.ctx, v.call, v.key(), rolecall.ConnectionDraft{
		Name: v.form.Get("name"), Issuer: strings.TrimSpace(v.form.Get("issuer")), ClientID: strings.TrimSpace(v.form.Get("clientId")),
		ClientSecret: strings.TrimSpace(v.form.Get("clientSecret")), Domains: lines(v.form["domains"]),
		Linking: rolecall.Some(rolecall.Linking(v.form.Get("linking"))), Provisioning: provisioning,
		SecondFactor: rolecall.Some(rolecall.ConnectionFactor(v.form.Get("secondFactor"))), ACRValues: lines(v.form["acrValues"]), AMRValues: lines(v.form["amrValues"]),
		Groups: v.groupRules(),
	})
	if err != nil {
		return err
	}
	return v.redirect(connectionAddress(v, made.Value.ID) + "?done=connection-created")
}

// provisioning returns the provisioning in the form. It is nil if the connection creates no users.
func (v *pageContext) provisioning() (*rolecall.Provisioning, rolecall.FieldErrors) {
	if v.form.Get(fieldProvisions) == "" {
		return nil, nil
	}
	var faults rolecall.FieldErrors
	p := &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{}, Department: orNil(strings.TrimSpace(v.form.Get(fieldProvisionedDepartment)))}
	for i, text := range lines(v.form[fieldProvisionedRoles]) {
		id, err := rolecall.ParseID[rolecall.Role](text)
		if err != nil {
			faults.Add("/"+fieldProvisionedRoles+"/"+strconv.Itoa(i), "format", msg("problem.no-role"))
		}
		p.RoleIDs = append(p.RoleIDs, id)
	}
	return p, faults
}

// groupRules returns the rules for groups in the form. They are nil if the connection reads no claim.
func (v *pageContext) groupRules() *rolecall.ConnectionGroups {
	if v.form.Get(fieldFillsGroups) == "" {
		return nil
	}
	return &rolecall.ConnectionGroups{
		Claim: strings.TrimSpace(v.form.Get(fieldGroupsClaim)), MatchBy: rolecall.GroupMatch(v.form.Get(fieldGroupsMatch)),
		Create: v.form.Get(fieldGroupsNew) != "", Scopes: strings.Fields(v.form.Get(fieldGroupScopes)),
	}
}

// groupRulesChanged reports whether the user has changed the rules for groups in the form.
func (v *pageContext) groupRulesChanged() bool {
	return slices.ContainsFunc([]string{fieldFillsGroups, fieldGroupsClaim, fieldGroupsMatch, fieldGroupsNew, fieldGroupScopes}, func(name string) bool {
		return v.form.Get(name) != v.form.Get("was-"+name)
	})
}

func (c *console) showConnectionEdit(v *pageContext) error {
	view, err := c.connectionView(v)
	if err != nil {
		return err
	}
	return c.showConnectionPage(v, view, msg("form.edit"), connectionEditPage)
}

func (c *console) editConnection(v *pageContext) error {
	var patch rolecall.ConnectionPatch
	setText(v, "name", &patch.Name)
	setText(v, "clientId", &patch.ClientID)
	if text := strings.TrimSpace(v.form.Get("clientSecret")); text != "" {
		patch.ClientSecret = rolecall.Some(text)
	}
	setText(v, "linking", &patch.Linking)
	setText(v, "secondFactor", &patch.SecondFactor)
	setLines(v, "domains", &patch.Domains)
	setLines(v, "acrValues", &patch.ACRValues)
	setLines(v, "amrValues", &patch.AMRValues)
	_, rolesChanged := typedSet(v, fieldProvisionedRoles)
	_, departmentChanged := typed(v, fieldProvisionedDepartment)
	if provisions := v.form.Get(fieldProvisions); rolesChanged || departmentChanged || provisions != v.form.Get("was-"+fieldProvisions) {
		provisioning, faults := v.provisioning()
		if err := faults.Err(); err != nil {
			return err
		}
		patch.Provisioning = rolecall.Some(provisioning)
	}
	if v.form.Has("was-"+fieldGroupsMatch) && v.groupRulesChanged() {
		patch.Groups = rolecall.Some(v.groupRules())
	}
	if _, err := c.signin.UpdateConnection(v.ctx, v.call, v.connectionID, patch, match(v, connectionTag)); err != nil {
		return err
	}
	return v.redirect(connectionAddress(v, v.connectionID) + "?done=saved")
}

// setText sets the member to the text in the form, if the user has changed it.
func setText[T ~string](v *pageContext, name string, member *rolecall.Optional[T]) {
	if text, changed := typed(v, name); changed {
		*member = rolecall.Some(T(strings.TrimSpace(text)))
	}
}

// setLines sets the member to the lines in the form, if the user has changed them.
func setLines(v *pageContext, name string, member *rolecall.Optional[[]string]) {
	if now := lines(v.form[name]); v.form[name] != nil && !slices.Equal(now, lines(v.form["was-"+name])) {
		*member = rolecall.Some(now)
	}
}

func (c *console) askConnectionDeletion(v *pageContext) error {
	view, err := c.connectionView(v)
	if err == nil {
		view.identities, err = c.signin.CountIdentities(v.ctx, v.call, v.connectionID)
	}
	if err != nil {
		return err
	}
	return c.showConnectionPage(v, view, msg("form.delete"), connectionDeletionPage)
}

// deleteConnection deletes the connection. The form has the field force if the page has shown that users
// have identities of the connection.
func (c *console) deleteConnection(v *pageContext) error {
	if err := c.signin.DeleteConnection(v.ctx, v.call, v.connectionID, v.form.Get("force") == "true", nil); err != nil {
		return err
	}
	return v.redirect(v.path("/connections") + "?done=connection-deleted")
}

// connectionName returns the name of the connection with the id, or "" if the list does not have it.
func connectionName(list []rolecall.Connection, id rolecall.ConnectionID) string {
	for i := range list {
		if list[i].ID == id {
			return list[i].Name
		}
	}
	return ""
}

// connectionAddress returns the address of the page of the connection.
func connectionAddress(v *pageContext, id rolecall.ConnectionID) string {
	return v.path("/connections/" + id.String())
}

func (w connectionView) address(below string) string {
	return connectionAddress(w.pageContext, w.connection.ID) + below
}

// connectionTag returns the tag of the connection.
func connectionTag(c *rolecall.Connection) string {
	return tagOf(c.ID.String(), strconv.FormatInt(c.Version, 10))
}

// field returns the value of a field of the form: the submitted one, or the one of the connection.
func (w connectionView) field(name, saved string) string {
	if w.form[name] != nil {
		return w.form.Get(name)
	}
	return saved
}

// chosen returns the selected value of a field with radio buttons. other is the default.
func (w connectionView) chosen(name, saved, other string) change {
	if saved == "" {
		saved = other
	}
	if w.connection.ID.IsZero() {
		return change{shown: w.field(name, saved)}
	}
	return w.changeOf(name, saved)
}

// provisioned returns the saved provisioning. It is empty if the connection creates no users.
func (w connectionView) provisioned() rolecall.Provisioning {
	if w.connection.Provisioning == nil {
		return rolecall.Provisioning{}
	}
	return *w.connection.Provisioning
}

// provisionedRoles returns the ids of the saved roles of new users.
func (w connectionView) provisionedRoles() (ids []string) {
	for _, id := range w.provisioned().RoleIDs {
		ids = append(ids, id.String())
	}
	return ids
}

// groups returns the saved rules for groups. They are empty if the connection reads no claim.
func (w connectionView) groups() rolecall.ConnectionGroups {
	if w.connection.Groups == nil {
		return rolecall.ConnectionGroups{MatchBy: rolecall.MatchName}
	}
	return *w.connection.Groups
}

// checked reports whether the form selects the checkbox. Before the form is sent, saved decides.
func (w connectionView) checked(name string, saved bool) bool {
	if w.form != nil && w.form.Has("name") {
		return w.form.Get(name) != ""
	}
	return saved
}

// provisionable returns the roles that new users can get: all but Owner.
func (w connectionView) provisionable() []rolecall.Role {
	return slices.DeleteFunc(slices.Clone(w.roles), func(r rolecall.Role) bool { return r.Key != nil && *r.Key == rolecall.OwnerKey })
}

// deletionEffect describes the effect of the deletion.
func (w connectionView) deletionEffect() string {
	switch {
	case w.identities.Count == 0:
		return msg("connections.delete-unused")
	case !w.identities.Exact:
		return msg("connections.delete-at-least", "Count", w.identities.Count)
	}
	return msg("connections.delete-used", "Count", w.identities.Count)
}

// ownersOnly reports whether only owners can sign in with a password.
func (f frame) ownersOnly() bool {
	return f.call.Tenant.Settings.PasswordScope() == rolecall.PasswordsOfOwners
}

// redirectURI returns the address that is registered for the connection at its identity provider, or an empty
// text for a connection that does not exist yet.
func (f frame) redirectURI(id rolecall.ConnectionID) string {
	if id.IsZero() {
		return ""
	}
	return f.console.site.Address(f.request) + signin.CallbacksPath + id.String()
}

// requestedScopes are the scopes that Rolecall requests from every provider.
const requestedScopes = "openid email profile"

// scopesOf returns the scopes that Rolecall requests for the connection.
func scopesOf(c *rolecall.Connection) string {
	if c.Groups == nil {
		return requestedScopes
	}
	return strings.Join(append([]string{requestedScopes}, c.Groups.Scopes...), " ")
}

// providers are the identity providers for which the console shows how to register Rolecall. Each is the
// prefix of the message keys: name, where, redirect, issuer, and signed-out and note if the provider has them.
var providers = []string{"provider.entra", "provider.okta", "provider.google", "provider.keycloak"}

// roleChoices are the roles that a form offers.
type roleChoices struct {
	roles []rolecall.Role // the first page of roles, sorted by name; empty if the caller may not read roles
	more  bool            // the tenant has more roles than these
}

func (c *console) readRoleChoices(v *pageContext) (choices roleChoices, err error) {
	if authz.ReadRoles.Authorize(v.call.Principal) != nil {
		return choices, nil
	}
	page, err := c.directory.Roles(v.ctx, v.call, directory.RoleListing{ByName: true, Limit: rolecall.MaxLimit})
	return roleChoices{page.Items, page.Next != nil}, err
}

// roleName returns the name of the role. It returns the id if the role is not in r.roles.
func (r roleChoices) roleName(id rolecall.RoleID) string {
	for i := range r.roles {
		if r.roles[i].ID == id {
			return r.roles[i].Name
		}
	}
	return id.String()
}

// named returns the form field with the names of the roles instead of their ids, in the
// lists of added and removed values.
func (r roleChoices) named(change setChange) setChange {
	named := func(ids []string) (names []string) {
		for _, text := range ids {
			id, err := rolecall.ParseID[rolecall.Role](text)
			if err == nil {
				names = append(names, r.roleName(id))
			}
		}
		return names
	}
	return setChange{shown: change.shown, added: named(change.added), taken: named(change.taken)}
}

// unlisted returns the ids of those roles for which the form has no checkbox.
func (r roleChoices) unlisted(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return slices.ContainsFunc(r.roles, func(r rolecall.Role) bool { return r.ID.String() == id })
	})
}
