package console

import (
	"cmp"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) assignmentPages() (pages []page) {
	for i := range holderKinds {
		k := &holderKinds[i]
		path := "/{tenant}" + k.path + "/{id}/roles"
		pages = append(pages,
			page{path: path, operation: k.listRoles, show: k.page(c.showAssignments)},
			page{path: path + "/give", operation: k.read, show: k.page(c.showGiveable)},
			page{path: path + "/{roleId}", operation: k.assignRole, show: k.page(c.showAssign), act: k.page(c.assign)},
			page{path: path + "/{roleId}/take", operation: k.unassignRole, show: k.page(c.askTake), act: k.page(c.take)},
		)
	}
	return pages
}

// assignmentsView is the data of the pages about the roles of a user, service account or group.
type assignmentsView struct {
	frame
	holder
	held  []rolecall.Assignment
	ended []rolecall.Assignment        // expired assignments, the most recently expired one first
	blind bool                         // the caller may not read the assignments
	names names                        // names of the users who granted the assignments
	roles rolecall.Page[rolecall.Role] // the roles that the caller can choose from
	own   bool                         // the caller may not read roles, so roles has only the roles of the caller
	role  rolecall.Role                // the role that the dialog assigns or removes

	departments []string // the departments that the form suggests
}

// assignmentsView returns the user, service account or group that the path names, with its
// assignments. If the caller may not read the assignments, assignmentsView sets view.blind
// instead of returning an error, because the caller may still assign roles.
func (c *console) assignmentsView(v *pageContext, k *holderKind) (view assignmentsView, err error) {
	if view.holder, err = k.find(c, v); err != nil {
		return view, err
	}
	view.held, view.ended, err = c.directory.Assignments(v.ctx, v.call, k.id(v))
	if rolecall.KindOf(err) == rolecall.Forbidden {
		view.blind, err = true, nil
	}
	return view, err
}

func (c *console) showAssignments(v *pageContext, k *holderKind) error {
	view, err := c.assignmentsView(v, k)
	if err != nil {
		return err
	}
	var givers []rolecall.AnyID
	for _, a := range slices.Concat(view.held, view.ended) {
		givers = append(givers, rolecall.AnyID(a.GrantedBy))
	}
	if view.names, err = c.namesOf(v, givers); err != nil {
		return err
	}
	return c.show(v, msg("assignment.page", "Name", view.name), view.section, func(f frame) templ.Component {
		view.frame = f
		return assignmentsPage(view)
	})
}

func (c *console) showGiveable(v *pageContext, k *holderKind) error {
	view, err := c.assignmentsView(v, k)
	if err != nil {
		return err
	}
	if view.own = authz.ReadRoles.Authorize(v.call.Principal) != nil; view.own {
		view.roles.Items = ownRoles(v)
	} else {
		words := rolecall.Words(v.request.URL.Query().Get("q"))
		listing := directory.RoleListing{Words: words[:min(len(words), 8)], ByName: true, Limit: rolecall.DefaultLimit}
		if view.roles, err = c.directory.Roles(v.ctx, v.call, listing); err != nil {
			return err
		}
	}
	return c.show(v, msg("assignment.choose", "Name", view.name), view.section, func(f frame) templ.Component {
		view.frame = f
		if f.fragment() == "results" {
			f.replaceURL(f.listAddress([]string{"q"}))
		}
		return giveablePage(view)
	})
}

func (c *console) showAssign(v *pageContext, k *holderKind) error {
	return c.showRoleOf(v, k, msg("assignment.assign"), assignDialog)
}

func (c *console) askTake(v *pageContext, k *holderKind) error {
	return c.showRoleOf(v, k, msg("assignment.remove"), takeDialog)
}

// showRoleOf shows a form about an assignment. The path names the role and its holder.
func (c *console) showRoleOf(v *pageContext, k *holderKind, title string, form func(assignmentsView) templ.Component) error {
	view, err := c.assignmentsView(v, k)
	if err == nil {
		view.role, err = c.roleToGive(v)
	}
	if err == nil {
		view.departments, err = c.directory.Departments(v.ctx, v.call)
	}
	if err != nil {
		return err
	}
	return c.show(v, title, view.section, func(f frame) templ.Component {
		view.frame = f
		return form(view)
	})
}

// ownRoles returns the roles that the caller holds, sorted by name. A caller without the permission to
// read roles can choose from these.
func ownRoles(v *pageContext) (roles []rolecall.Role) {
	for i := range v.call.Assignments {
		roles = append(roles, v.call.Assignments[i].Role)
	}
	slices.SortFunc(roles, func(a, b rolecall.Role) int { return strings.Compare(a.NameKey(), b.NameKey()) })
	return slices.CompactFunc(roles, func(a, b rolecall.Role) bool { return a.ID == b.ID }) // the caller can have a role in several ways
}

// roleToGive returns the role that the path names. It returns ErrNotFound if the role does
// not exist, or if the caller can neither read roles nor has the role.
func (c *console) roleToGive(v *pageContext) (rolecall.Role, error) {
	if authz.ReadRoles.Authorize(v.call.Principal) == nil {
		return c.directory.Role(v.ctx, v.call, v.roleID)
	}
	own := ownRoles(v)
	if i := slices.IndexFunc(own, func(r rolecall.Role) bool { return r.ID == v.roleID }); i >= 0 {
		return own[i], nil
	}
	return rolecall.Role{}, rolecall.ErrNotFound
}

func (c *console) assign(v *pageContext, k *holderKind) error {
	draft, err := assignmentDraft(v)
	if err != nil {
		return err
	}
	if _, _, err := c.directory.AssignRole(v.ctx, v.call, k.id(v), v.roleID, draft); err != nil {
		return err
	}
	return v.redirect(k.home(v) + "?done=role-given&role=" + v.roleID.String())
}

func (c *console) take(v *pageContext, k *holderKind) error {
	held, _, unreadable := c.directory.Assignments(v.ctx, v.call, k.id(v))
	if err := c.directory.UnassignRole(v.ctx, v.call, k.id(v), v.roleID); err != nil {
		return err
	}
	address := k.home(v) + "?done=role-taken&role=" + v.roleID.String()
	if removed := assignedDirectly(held, v.roleID); removed != nil && unreadable == nil {
		address += undoRemoval(removed)
	}
	return v.redirect(address)
}

// The values of the form field for the reach.
const (
	whereEverywhere  = "everywhere"
	whereDepartments = "departments"
)

// assignmentDraft returns the draft that the form describes.
func assignmentDraft(v *pageContext) (draft rolecall.AssignmentDraft, err error) {
	var faults rolecall.FieldErrors
	if v.form.Get("where") != whereEverywhere {
		draft.Departments = append([]string{}, lines(v.form["reach/departments"])...)
	}
	if v.form.Get("expiresAt") != "" {
		end := v.readDate("expiresAt", &faults)
		draft.ExpiresAt = &end
	}
	return draft, faults.Err()
}

// holds returns the assignment of the role. It returns nil if the role is not assigned to the holder, even if the
// holder has the role through a group.
func (a assignmentsView) holds(role rolecall.RoleID) *rolecall.Assignment {
	return assignedDirectly(a.held, role)
}

// assignedDirectly returns the assignment of the role that does not come through a group, or nil.
func assignedDirectly(held []rolecall.Assignment, role rolecall.RoleID) *rolecall.Assignment {
	if i := slices.IndexFunc(held, func(a rolecall.Assignment) bool { return a.Role.ID == role && !isThrough(&a) }); i >= 0 {
		return &held[i]
	}
	return nil
}

// isThrough reports whether a user has the role of the assignment through a group.
func isThrough(a *rolecall.Assignment) bool { return !a.Through.ID.IsZero() }

// roleCount returns the number of roles in the assignments, which are sorted by role. A user can have a role in several
// ways.
func roleCount(held []rolecall.Assignment) (n int) {
	for i := range held {
		if i == 0 || held[i].Role.ID != held[i-1].Role.ID {
			n++
		}
	}
	return n
}

// within returns the widest reach in which the caller may assign the role until the given
// time.
func (a assignmentsView) within(role *rolecall.Role, until rolecall.Time) rolecall.Reach {
	return authz.AssignableReach(a.call.Principal, a.gains(a.frame), role, until)
}

// hindrance returns the reason why the caller may not assign the role or, if the holder has
// the role already, why the caller may not change or remove the assignment. It returns an
// empty text if the caller may.
func (a assignmentsView) hindrance(role *rolecall.Role) string {
	return a.holder.hindrance(a.frame, role, a.holds(role.ID))
}

// hindrance does the same as assignmentsView.hindrance. held is the holder's assignment of
// the role, or nil if the holder does not have the role.
func (h holder) hindrance(f frame, role *rolecall.Role, held *rolecall.Assignment) string {
	c := f.call
	switch {
	case !h.assigns:
		return msg("assignment.needs", "Permission", h.needed.String())
	case held != nil:
		return detailOf(authz.RequireGrantable(c.Principal, role, held.Reach, f.now))
	case h.id.Kind == rolecall.HolderGroup && role.Key != nil && *role.Key == rolecall.OwnerKey:
		return rolecall.ErrOwnerNeedsUser.Detail
	case authz.AssignableReach(c.Principal, h.gains(f), role, f.now).IsNowhere():
		return detailOf(authz.RequireAssignable(c.Principal, &rolecall.Assignment{Holder: h.gains(f), Role: *role, Reach: rolecall.Everywhere(), ExpiresAt: f.now}))
	}
	return ""
}

// gains returns the caller if the holder is a group of the caller, because the caller then has the roles of the group.
// Otherwise it returns the holder.
func (h holder) gains(f frame) rolecall.Holder {
	if slices.ContainsFunc(f.call.Groups, func(g rolecall.GroupName) bool { return rolecall.HolderOf(g.ID) == h.id }) {
		return rolecall.HolderOf(f.call.User.ID)
	}
	return h.id
}

// removalEffect describes what the removal of the role from the holder does.
func (a assignmentsView) removalEffect() string {
	var groups []string // through which the user keeps the role
	for i := range a.held {
		if h := &a.held[i]; h.Role.ID == a.role.ID && isThrough(h) {
			groups = append(groups, h.Through.Name)
		}
	}
	switch {
	case len(groups) > 0:
		return msg("assignment.remove-effect-kept", "Groups", listedInLine(groups))
	case a.id.Kind == rolecall.HolderGroup:
		return msg("assignment.remove-effect-group")
	}
	return msg("assignment.remove-effect")
}

// assigned has the values that the form of an assignment shows.
type assigned struct {
	where       string
	departments []string
	end         dateValue
}

// filledIn returns the values that the user has submitted.
func (f frame) filledIn() assigned {
	return assigned{f.form.Get("where"), lines(f.form["reach/departments"]), f.typedDate("expiresAt")}
}

// assigned returns the values that the form shows. After an error, these are the submitted
// values. Otherwise they are the current assignment, or the widest assignment that the
// caller may create.
func (a assignmentsView) assigned() assigned {
	if a.problem != nil {
		return a.filledIn()
	}
	reach, end := a.within(&a.role, a.now), rolecall.Never
	if held := a.holds(a.role.ID); held != nil {
		reach, end = held.Reach, held.ExpiresAt
	}
	shown := assigned{where: whereEverywhere}
	if !reach.IsEverywhere() {
		shown.where, shown.departments = whereDepartments, reach.Departments()
	}
	if end != rolecall.Never {
		shown.end = a.savedDate(end)
	}
	return shown
}

// otherDepartments returns the label of the field for departments that are not in offered.
func otherDepartments(offered []string) string {
	if len(offered) == 0 {
		return msg("assignment.departments-lines")
	}
	return msg("assignment.other-departments")
}

// notAmong returns the chosen departments that are not in offered.
func notAmong(offered, chosen []string) []string {
	reach := rolecall.Within(offered...)
	return slices.DeleteFunc(slices.Clone(chosen), func(department string) bool { return reach.Includes(&department) })
}

// lastEnd returns the latest expiry that the caller may give an assignment of the role.
func (a assignmentsView) lastEnd() rolecall.Time {
	if !a.within(&a.role, rolecall.Never).IsNowhere() {
		return rolecall.Never
	}
	last := a.now
	for _, own := range a.call.Assignments {
		if own.ExpiresAt > last && !a.within(&a.role, own.ExpiresAt).IsNowhere() {
			last = own.ExpiresAt
		}
	}
	return last
}

// holder is a user, a service account or a group. The pages about roles are the same for all, and those about API
// tokens for users and service accounts.
type holder struct {
	id      rolecall.Holder
	name    string
	sure    string              // the text that the caller must type to confirm an action
	section string              // the message key of the navigation section
	list    string              // address of the list of users, service accounts or groups; empty if the caller may not list them
	home    string              // address of the holder's page
	needed  rolecall.Permission // the permission to assign and remove roles
	assigns bool                // the caller has the permission in needed
	makes   bool                // the caller may create API tokens for the holder
	revokes bool                // the caller probably may revoke API tokens; the service decides
}

// endLabel returns the label of the expiry of an assignment. live says that the assignment
// has not expired.
func endLabel(live bool) string {
	if live {
		return msg("list.expires")
	}
	return msg("tokens.expired")
}

// The number of assignments on a page that also shows other data.
const (
	rolesShown   = 8
	expiredShown = 3
)

// userHolder returns the user as a holder of roles.
func userHolder(v *pageContext, u *rolecall.User) holder {
	list := ""
	if authz.ListUsers.Authorize(v.call.Principal) == nil {
		list = v.path("/users")
	}
	return holder{
		id: rolecall.HolderOf(u.ID), name: nameOf(v, u), sure: sureWords(v, u), section: usersSection, list: list, home: userAddress(v, u.ID, ""),
		needed: rolecall.RolesAssign, assigns: v.call.Reach(rolecall.RolesAssign).Includes(u.Department),
		makes:   authz.CreateUserToken.AuthorizeFor(v.call.Principal, u.ID) == nil,
		revokes: v.call.IsSelf(u.ID) || v.call.Reach(rolecall.SessionsRevoke).Includes(u.Department),
	}
}

// accountHolder returns the service account.
func accountHolder(v *pageContext, a *rolecall.ServiceAccount) holder {
	updates := authz.UpdateServiceAccount.Authorize(v.call.Principal) == nil
	return holder{
		id: rolecall.HolderOf(a.ID), name: a.Name, section: serviceAccountsSection, list: v.path("/service-accounts"), home: v.path("/service-accounts/" + a.ID.String()),
		needed: rolecall.ServiceAccountsUpdate, assigns: updates, makes: updates, revokes: updates,
	}
}

// groupHolder returns the group.
func groupHolder(v *pageContext, g *rolecall.Group) holder {
	return holder{
		id: rolecall.HolderOf(g.ID), name: g.Name, section: groupsSection, list: v.path("/groups"), home: groupAddress(v, g.ID, ""),
		needed: rolecall.RolesAssign, assigns: authz.AssignGroupRole.Authorize(v.call.Principal) == nil,
	}
}

// called returns the name to use for the holder in a sentence to the caller.
func (h holder) called(f frame) string {
	if h.id == rolecall.HolderOf(f.call.User.ID) {
		return msg("user.self-in-sentence")
	}
	return h.name
}

// userOf returns the user that the path names.
func userOf(s *console, v *pageContext) (holder, error) {
	user, err := s.directory.User(v.ctx, v.call, v.userID)
	return userHolder(v, &user), err
}

// accountOf returns the service account that the path names.
func accountOf(s *console, v *pageContext) (holder, error) {
	account, err := s.directory.ServiceAccount(v.ctx, v.call, v.accountID)
	return accountHolder(v, &account), err
}

// groupOf returns the group that the path names.
func groupOf(s *console, v *pageContext) (holder, error) {
	group, err := s.directory.Group(v.ctx, v.call, v.groupID)
	return groupHolder(v, &group), err
}

// holderKind describes users, service accounts or groups as holders: the path of their list, and
// the ids of the API operations for their roles and API tokens.
type holderKind struct {
	path string                             // path of the list
	id   func(*pageContext) rolecall.Holder // returns the holder that the path names
	read string                             // the API operation that find corresponds to
	find func(*console, *pageContext) (holder, error)

	listRoles, assignRole, unassignRole  string
	listTokens, createToken, revokeToken string // empty for groups, which have no API tokens
}

var holderKinds = []holderKind{
	{
		path: "/users", id: func(v *pageContext) rolecall.Holder { return rolecall.HolderOf(v.userID) },
		read: "UsersController_getUser", find: userOf,
		listRoles: "UsersController_listUserRoles", assignRole: "UsersController_assignRole", unassignRole: "UsersController_unassignRole",
		listTokens: "UsersController_listUserTokens", createToken: "UsersController_createUserToken", revokeToken: "UsersController_revokeUserToken",
	},
	{
		path: "/service-accounts", id: func(v *pageContext) rolecall.Holder { return rolecall.HolderOf(v.accountID) },
		read: "ServiceAccountsController_getServiceAccount", find: accountOf,
		listRoles: "ServiceAccountsController_listServiceAccountRoles", assignRole: "ServiceAccountsController_assignServiceAccountRole", unassignRole: "ServiceAccountsController_unassignServiceAccountRole",
		listTokens: "ServiceAccountsController_listServiceAccountTokens", createToken: "ServiceAccountsController_createServiceAccountToken", revokeToken: "ServiceAccountsController_revokeServiceAccountToken",
	},
	{
		path: "/groups", id: func(v *pageContext) rolecall.Holder { return rolecall.HolderOf(v.groupID) },
		read: "GroupsController_getGroup", find: groupOf,
		listRoles: "GroupsController_listGroupRoles", assignRole: "GroupsController_assignGroupRole", unassignRole: "GroupsController_unassignGroupRole",
	},
}

// page returns a page function that calls does with the kind k.
func (k *holderKind) page(does func(*pageContext, *holderKind) error) func(*pageContext) error {
	return func(v *pageContext) error { return does(v, k) }
}

// home returns the address of the page of the holder that the path names.
func (k *holderKind) home(v *pageContext) string { return homeOf(v, k.path) }

// homeOf returns the address of the page of the user, service account or group that the path names.
func homeOf(v *pageContext, list string) string {
	return v.path(list + "/" + cmp.Or(rolecall.AnyID(v.userID), rolecall.AnyID(v.accountID), rolecall.AnyID(v.groupID)).String())
}
