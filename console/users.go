package console

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) usersPages() []page {
	return []page{
		{path: "/{tenant}/users", operation: "UsersController_listUsers", query: usersQuery, show: c.showUsers},
	}
}

// userParameters are the query parameters that links to the list of users keep, in their
// order in the address. A cursor is valid only for the values with which it was created.
var userParameters = append([]string{"q", "status", "department", "role", "group", "sort", "email"}, rolecall.FilterableTexts.Names()...)

// userListParameters are userParameters and the additional columns. Only the list of all
// users has additional columns.
var userListParameters = append(slices.Clone(userParameters), fieldColumns)

// usersView is the data of the list of users.
type usersView struct {
	frame
	pageLinks
	page        directory.UserPage
	withheld    rolecall.UserMembers // members that the caller may not read of at least one user on the page
	roles       []rolecall.Role      // the choices of the role filter; nil if the caller may not read roles
	groups      []rolecall.Group     // the choices of the group filter; nil if the caller may not read groups
	departments []string             // the choices of the department filter
	filtered    []string             // the departments that begin with the typed text, if none has it as its name

	removal func(*rolecall.User) string // in a list of members: the address of the form that removes a member; otherwise nil
}

func (c *console) showUsers(v *pageContext) error {
	if v.request.URL.Query().Get("status") == string(rolecall.UserDeleted) {
		return v.redirect(v.path("/users/deleted"))
	}
	list := usersView{}
	listing, typed := v.userListing(), v.department
	if err := c.resolveDepartment(v, &listing); err != nil {
		return err
	}
	if v.faults == nil {
		list.filtered = listing.Departments
		if v.department != typed {
			list.filtered = []string{v.department}
		}
		if v.fragment() == "count" { // htmx requests the count separately, because counting takes longer than loading the page
			listing.Count, listing.Limit, listing.Include = true, 1, directory.Include{}
		}
		page, err := c.directory.Users(v.ctx, v.call, listing)
		if err != nil {
			return err
		}
		list.page = page
		if err := c.checkRole(v, &page); err != nil {
			return err
		}
		if err := c.checkGroup(v, &page); err != nil {
			return err
		}
	}
	for i := range list.page.Items {
		list.withheld |= rolecall.AllUserMembers &^ v.call.ReadableListMembers(&list.page.Items[i])
	}
	if v.fragment() == "" {
		if err := c.filters(v, &list); err != nil {
			return err
		}
	}
	c.undoDeletion(v)
	return c.show(v, msg(usersSection), usersSection, func(f frame) templ.Component {
		list.frame = f
		list.pageLinks = f.pagesOf(userListParameters, list.page.Next)
		return usersPage(list)
	})
}

// checkRole adds a field error if the page is empty and the role in the filter does not
// exist.
func (c *console) checkRole(v *pageContext, page *directory.UserPage) error {
	if len(page.Items) > 0 || v.holds.IsZero() {
		return nil
	}
	_, err := c.directory.Role(v.ctx, v.call, v.holds)
	if errors.Is(err, rolecall.ErrNotFound) {
		v.faults = append(v.faults, rolecall.FieldError{Parameter: "role", Code: codeUnknownValue, Detail: msg("problem.no-role")})
		return nil
	}
	return err
}

// checkGroup does for the group in the filter what checkRole does for the role.
func (c *console) checkGroup(v *pageContext, page *directory.UserPage) error {
	if len(page.Items) > 0 || v.memberOf.IsZero() {
		return nil
	}
	_, err := c.directory.Group(v.ctx, v.call, v.memberOf)
	if errors.Is(err, rolecall.ErrNotFound) {
		v.faults = append(v.faults, rolecall.FieldError{Parameter: "group", Code: codeUnknownValue, Detail: msg("problem.no-group")})
		return nil
	}
	return err
}

// filters loads the choices of the filters.
func (c *console) filters(v *pageContext, list *usersView) (err error) {
	if list.departments, err = c.directory.Departments(v.ctx, v.call); err != nil {
		return err
	}
	if authz.ReadRoles.Authorize(v.call.Principal) == nil {
		roles, err := c.directory.Roles(v.ctx, v.call, directory.RoleListing{ByName: true, Limit: rolecall.MaxLimit})
		if err != nil {
			return err
		}
		list.roles = roles.Items
	}
	list.groups, err = c.groupChoices(v)
	return err
}

// groupChoices returns the first groups by name, and the group in the filter. It returns nil if the caller may not read
// groups.
func (c *console) groupChoices(v *pageContext) ([]rolecall.Group, error) {
	if !v.readsGroups() {
		return nil, nil
	}
	groups, err := c.directory.Groups(v.ctx, v.call, rolecall.GroupQuery{ByName: true, Limit: rolecall.MaxLimit})
	isChosen := func(g rolecall.Group) bool { return g.ID == v.memberOf }
	if err != nil || v.memberOf.IsZero() || slices.ContainsFunc(groups.Items, isChosen) {
		return groups.Items, err
	}
	chosen, err := c.directory.Group(v.ctx, v.call, v.memberOf)
	if errors.Is(err, rolecall.ErrNotFound) {
		return groups.Items, nil
	}
	return append(groups.Items, chosen), err
}

func (l usersView) isFiltered() bool {
	return slices.ContainsFunc(userParameters, func(name string) bool { return name != "sort" && l.asked(name) != "" })
}

// countWords returns the number of users as text. It returns an empty text if the number
// needs a separate request.
func (l usersView) countWords() string {
	switch total := l.page.Total; {
	case total != nil && total.Exact:
		return msg("user.count", "Count", total.Count)
	case total != nil && total.Count > 0:
		return msg("user.at-least", "Count", total.Count)
	case l.page.Next == nil && l.asked("cursor") == "" && l.faults == nil:
		return msg("user.count", "Count", len(l.page.Items))
	}
	return ""
}

// countSwap returns the attribute hx-swap-oob of the number of users. If the number is not
// known yet, countSwap appends an empty text, so that the old number stays until the new
// one is loaded.
func (l usersView) countSwap() string {
	if l.countWords() == "" && l.faults == nil {
		return "beforeend:#count"
	}
	return "innerHTML:#count"
}

// notes returns notes to show above the list. Each says which departments the filter
// selects, or which data is missing and why.
func (l usersView) notes() (notes []string) {
	if len(l.filtered) > 0 {
		notes = append(notes, msg("users.departments", "Departments", listed(suggested(l.filtered))))
	}
	if l.hasSeveralDepartments() {
		notes = append(notes, msg("users.one-department"))
	}
	if l.page.RestrictedBy != 0 {
		notes = append(notes, msg("users.restricted", "Fields", listed(memberWords(l.page.RestrictedBy))))
	}
	if permissions := reads(l.withheld & listMembers); permissions != nil {
		notes = append(notes, msg("users.hidden", "Permissions", listed(permissions)))
	}
	return notes
}

// hasSeveralDepartments reports whether the department filter selects several departments. A job
// or an export cannot: its filter is the whole name of one department.
func (l usersView) hasSeveralDepartments() bool { return len(l.filtered) > 1 }

// listMembers are the members of users that have a column in the list.
var listMembers = rolecall.SetOf(rolecall.MemberEmail, rolecall.MemberName, rolecall.MemberDepartment, rolecall.MemberStatus, rolecall.MemberCreatedAt)

// columns returns the members that the list shows. The caller may read each of them of at
// least one user on the page.
func (l usersView) columns() (shown rolecall.UserMembers) {
	for i := range l.page.Items {
		shown |= l.call.ReadableListMembers(&l.page.Items[i])
	}
	if l.removal != nil { // the column with the buttons takes the place
		shown &^= rolecall.SetOf(rolecall.MemberCreatedAt)
	}
	return shown
}

// reads returns the permissions that are needed to read the members.
func reads(members rolecall.UserMembers) (permissions []string) {
	for m := range members.All() {
		permissions = append(permissions, m.Read().String())
	}
	return permissions
}

// firstAdvice explains how to add the first user.
func (l usersView) firstAdvice() string {
	if l.may(rolecall.UsersCreate) {
		return msg("users.empty-create")
	}
	return msg("users.empty-advice")
}

func memberWords(members rolecall.UserMembers) (names []string) {
	for m := range members.All() {
		names = append(names, memberName(m))
	}
	return names
}

// statuses returns the statuses that the list can be filtered by.
func (l usersView) statuses() []rolecall.UserStatus {
	list := []rolecall.UserStatus{rolecall.UserActive, rolecall.UserPending, rolecall.UserSuspended}
	if l.may(rolecall.UsersRestore) {
		list = append(list, rolecall.UserDeleted) // deleted users have a separate page
	}
	return list
}

// selectedMax is the maximum number of users that one action can change.
const selectedMax = 100

// bulkAction is an action on the selected users. It calls the same service method for each
// user.
type bulkAction struct {
	path         string // the path after the address of the selected users
	operation    string
	key          string          // the prefix of its message keys
	policies     []*authz.Policy // the policies that must allow the caller
	job          rolecall.JobAction
	jobOperation string // the operation that starts the job for all matching users
	destructive  bool
	gives        bool               // the form has fields for an assignment; otherwise it has a field for a reason
	opposite     rolecall.JobAction // the job of the action that reverses this one, or an empty text
	do           func(*console, *pageContext, rolecall.UserID) (changed bool, err error)
}

var bulkActions = []bulkAction{
	{
		path: "/give-role", operation: "UsersController_assignRole", key: "bulk.assign", gives: true,
		job: rolecall.JobAssignRole, jobOperation: "JobsController_assignRole",
		policies: []*authz.Policy{authz.AssignRole, authz.ReadRoles},
		do: func(s *console, v *pageContext, id rolecall.UserID) (bool, error) {
			role, draft, err := givenRole(v)
			if err == nil {
				_, _, err = s.directory.AssignRole(v.ctx, v.call, rolecall.HolderOf(id), role, draft)
			}
			return true, err
		},
	},
	{
		path: "/suspend", operation: "UsersController_suspendUser", key: "bulk.suspend", policies: []*authz.Policy{authz.SuspendUser}, destructive: true,
		job: rolecall.JobSuspend, jobOperation: "JobsController_suspendUsers", opposite: rolecall.JobResume,
		do: func(s *console, v *pageContext, id rolecall.UserID) (bool, error) {
			return hasChanged(s, s.directory.SuspendUser, v, id)
		},
	},
	{
		path: "/resume", operation: "UsersController_resumeUser", key: "bulk.resume", policies: []*authz.Policy{authz.ResumeUser},
		job: rolecall.JobResume, jobOperation: "JobsController_resumeUsers", opposite: rolecall.JobSuspend,
		do: func(s *console, v *pageContext, id rolecall.UserID) (bool, error) {
			return hasChanged(s, s.directory.ResumeUser, v, id)
		},
	},
}

// hasChanged calls the service method verb with the reason from the form. It reports whether the method
// changed the user: a user in the wanted state already keeps the time of the last change.
func hasChanged(s *console, verb func(context.Context, access.Caller, rolecall.UserID, string) (rolecall.User, error), v *pageContext, id rolecall.UserID) (bool, error) {
	reason, err := v.reason()
	if err != nil {
		return false, err
	}
	begun := s.access.Now()
	user, err := verb(v.ctx, v.call, id, reason)
	return user.UpdatedAt >= begun, err
}

func (c *console) selectedPages() (pages []page) {
	for i := range bulkActions {
		a := &bulkActions[i]
		pages = append(pages, page{
			path: "/{tenant}/users/selected" + a.path, operation: a.operation,
			show: func(v *pageContext) error { return c.askSelected(v, a) },
			act:  func(v *pageContext) error { return c.actOnSelected(v, a) },
		})
	}
	return pages
}

// selectedView is the data of the pages about selected users.
type selectedView struct {
	frame
	*bulkAction
	users       []rolecall.UserID
	names       names
	roles       rolecall.Page[rolecall.Role] // the roles that the form suggests
	departments []string                     // the departments that the form suggests
	changed     []rolecall.UserID
	refused     []refusedUser
}

// refusedUser is a selected user that the action did not change, with the error.
type refusedUser struct {
	id  rolecall.UserID
	why *rolecall.Error
}

// selectedUsers returns the users in the form or in the address, without duplicates.
func selectedUsers(v *pageContext) (users []rolecall.UserID, err error) {
	texts := v.form["user"]
	if texts == nil {
		texts = v.request.URL.Query()["user"]
	}
	for _, text := range texts {
		id, err := rolecall.ParseID[rolecall.User](text)
		if err != nil {
			return nil, rolecall.ErrNotFound.With(msg("form.user-format"))
		}
		if !slices.Contains(users, id) {
			users = append(users, id)
		}
		if len(users) > selectedMax {
			return nil, rolecall.ErrMalformed.With(msg("users.too-many", "Count", selectedMax))
		}
	}
	return users, nil
}

// selectedView returns the selected users with their names.
func (c *console) selectedView(v *pageContext, a *bulkAction) (view selectedView, err error) {
	view.bulkAction = a
	if view.users, err = selectedUsers(v); err != nil {
		return view, err
	}
	var ids []rolecall.AnyID
	for _, id := range view.users {
		ids = append(ids, rolecall.AnyID(id))
	}
	view.names, err = c.namesOf(v, ids)
	return view, err
}

// askSelected shows the confirmation page of the action.
func (c *console) askSelected(v *pageContext, a *bulkAction) error {
	if v.request.URL.Query().Has(fieldAll) {
		return c.askMatching(v, a)
	}
	view, err := c.selectedView(v, a)
	if err == nil {
		err = c.roleChoices(v, &view)
	}
	if err != nil {
		return err
	}
	return c.show(v, msg(a.key+".label"), usersSection, func(f frame) templ.Component {
		view.frame = f
		if len(view.users) == 0 {
			return nobodySelected(view)
		}
		return selectedDialog(view)
	})
}

// roleChoices loads the roles and departments that the form of an assignment offers.
func (c *console) roleChoices(v *pageContext, view *selectedView) (err error) {
	if !view.gives {
		return nil
	}
	view.roles, err = c.directory.Roles(v.ctx, v.call, directory.RoleListing{ByName: true, Limit: rolecall.MaxLimit})
	if err == nil {
		view.departments, err = c.directory.Departments(v.ctx, v.call)
	}
	return err
}

// actOnSelected performs the action on the selected users, one after the other. If the form
// is invalid or the service is unavailable, actOnSelected stops and returns the error. The
// user can then submit the form again, because the actions are idempotent.
func (c *console) actOnSelected(v *pageContext, a *bulkAction) error {
	view, err := c.selectedView(v, a)
	if err != nil {
		return err
	}
	if len(view.users) == 0 {
		return c.askSelected(v, a)
	}
	for _, id := range view.users {
		changed, err := a.do(c, v, id)
		if changed && err == nil {
			view.changed = append(view.changed, id)
		}
		why, known := errors.AsType[*rolecall.Error](err)
		switch {
		case err == nil:
		case !known || why.FieldErrors != nil || why.Kind == rolecall.Unavailable:
			return err
		default:
			view.refused = append(view.refused, refusedUser{id, why})
		}
	}
	return c.show(v, msg(a.key+".label"), usersSection, func(f frame) templ.Component {
		view.frame = f
		return selectedOutcome(view)
	})
}

// givenRole returns the role and the assignment in the form.
func givenRole(v *pageContext) (role rolecall.RoleID, draft rolecall.AssignmentDraft, err error) {
	if role, err = rolecall.ParseID[rolecall.Role](v.form.Get("role")); err != nil {
		var faults rolecall.FieldErrors
		faults.Add("/role", "required", msg("form.required"))
		return role, draft, faults.Err()
	}
	draft, err = assignmentDraft(v)
	return role, draft, err
}

// bulkActions returns the actions that the caller may perform on selected users.
func (f frame) bulkActions() (list []*bulkAction) {
	for i := range bulkActions {
		if a := &bulkActions[i]; areAllowed(f.call.Principal, a.policies) {
			list = append(list, a)
		}
	}
	return list
}

// listTail returns the address of the current list within the tenant. Forms use it to
// return to the list.
func (f frame) listTail(parameters []string) string {
	return strings.TrimPrefix(f.listAddress(append(slices.Clone(parameters), fieldView, fieldCursor, fieldPrevious)), f.path(""))
}

// back returns the address of the list in which the users were selected.
func (s selectedView) back() string {
	if tail := s.returnTail(); strings.HasPrefix(tail, "/users?") || strings.HasPrefix(tail, "/jobs/") {
		return returnAddress(s.pageContext, tail)
	}
	return s.frame.path("/users")
}

// again returns the address of the confirmation page for the users that the action did not
// change.
func (s selectedView) again() string {
	var users []rolecall.UserID
	for _, r := range s.refused {
		users = append(users, r.id)
	}
	return s.bulkAddress(s.bulkAction, users, s.returnTail())
}

// bulkAddress returns the address of the confirmation page of the action for the users. tail is the
// list to return to.
func (f frame) bulkAddress(a *bulkAction, users []rolecall.UserID, tail string) string {
	query := url.Values{"return": {tail}}
	for _, id := range users {
		query.Add("user", id.String())
	}
	return f.path("/users/selected"+a.path) + "?" + query.Encode()
}

// reversing returns the action that reverses the job, or nil if the caller may not perform it.
func (f frame) reversing(job rolecall.JobAction) *bulkAction {
	for _, a := range f.bulkActions() {
		if a.opposite == job {
			return a
		}
	}
	return nil
}

// nameOf returns the name of the user. It returns the id if the caller may not read the
// name.
func (s selectedView) nameOf(id rolecall.UserID) string {
	return orWords(s.names[rolecall.AnyID(id)].Name, id.String())
}

// title returns the title of the dialog.
func (s selectedView) title() string {
	return msg(s.key+".title", "Count", len(s.users))
}

// outcome says for how many users the action succeeded.
func (s selectedView) outcome() string {
	return msg(s.key+".outcome", "Count", len(s.users)-len(s.refused))
}

// giveable returns the roles that the caller may assign, at least in some departments.
func (s selectedView) giveable() []rolecall.Role {
	return slices.DeleteFunc(slices.Clone(s.roles.Items), func(r rolecall.Role) bool {
		return authz.AssignableReach(s.call.Principal, rolecall.Holder{}, &r, s.now).IsNowhere()
	})
}

// widest returns the union of the reaches in which the caller may assign any of the roles.
func (s selectedView) widest() rolecall.Reach {
	var reaches []rolecall.Reach
	for _, r := range s.giveable() {
		reaches = append(reaches, authz.AssignableReach(s.call.Principal, rolecall.Holder{}, &r, s.now))
	}
	return rolecall.UnionOf(reaches)
}

// assigned returns the values that the form shows: the submitted values after an error,
// otherwise the widest assignment that the caller may create.
func (s selectedView) assigned() assigned {
	switch widest := s.widest(); {
	case s.problem != nil && s.form["where"] != nil:
		return s.filledIn()
	case !widest.IsEverywhere():
		return assigned{where: whereDepartments, departments: widest.Departments()}
	}
	return assigned{where: whereEverywhere}
}
