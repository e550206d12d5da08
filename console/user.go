package console

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/a-h/templ"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
)

func (c *console) userPages() []page {
	return []page{
		{path: "/{tenant}/users/{id}", operation: "UsersController_getUserOverview", show: c.showUser},
	}
}

// userView is the data of the page of one user.
type userView struct {
	frame
	directory.Overview
	sight rolecall.UserMembers
	names names // names of the users in the newest events, and of the user who sent the invitation
	identities
	identitiesReadable bool
	groups             *memberships // nil if the caller may not read the groups of the user
}

func (c *console) showUser(v *pageContext) error {
	overview, err := c.directory.Overview(v.ctx, v.call, v.userID)
	if errors.Is(err, rolecall.ErrNotFound) {
		if _, err := c.directory.DeletedUser(v.ctx, v.call, v.userID); err == nil {
			return v.redirect(userAddress(v, v.userID, "/deleted"))
		}
	}
	if err != nil {
		return err
	}
	view := userView{Overview: overview, sight: v.call.ReadableMembers(&overview.User)}
	if view.names, err = c.namesIn(v, overview.RecentEvents, rolecall.AnyID(overview.Invitation.CreatedBy)); err != nil {
		return err
	}
	if view.identitiesReadable = authz.ReadIdentities.AuthorizeFor(v.call.Principal, v.userID) == nil; view.identitiesReadable {
		view.identities, err = c.identities(v, v.userID)
		if rolecall.KindOf(err) == rolecall.Forbidden || errors.Is(err, rolecall.ErrNotFound) { // outside of the caller's departments
			view.identitiesReadable, err = false, nil
		}
		if err != nil {
			return err
		}
	}
	if view.groups, err = c.membershipsOf(v, &overview.User); err != nil {
		return err
	}
	undoSuspended(v, "suspended", overview.AllowedActions, homeOf(v, "/users"))
	c.undoTaken(v, userHolder(v, &overview.User))
	return c.show(v, nameOf(v, &overview.User), usersSection, func(f frame) templ.Component {
		view.frame = f
		return userPage(view)
	})
}

func (u userView) name() string { return nameOf(u.pageContext, &u.Overview.User) }

// holder returns the user as a holder of roles.
func (u userView) holder() holder { return userHolder(u.pageContext, &u.Overview.User) }

// isSelf reports whether the caller is the user.
func (u userView) isSelf() bool { return u.call.IsSelf(u.Overview.User.ID) }

// lacksRoles reports whether the user has no role and the caller may assign one. Then this is the main
// action of the page.
func (u userView) lacksRoles() bool {
	return u.AssignmentsReadable && u.AssignmentCount == 0 && u.holder().assigns
}

// actions returns the actions that the caller may perform on the user, in the order of the
// menu.
func (u userView) actions() (list []*action) {
	for i := range actions {
		if a := &actions[i]; slices.Contains(u.AllowedActions, a.allowed) && (a.offer == nil || a.offer(&u)) {
			list = append(list, a)
		}
	}
	return list
}

// offered returns the primary action of the page and all other actions. The primary action
// resolves a reason why the user cannot sign in. It is nil if the user can sign in, or if
// the caller may not resolve any reason.
func (u userView) offered() (primary *action, others []*action) {
	for i := range u.SignIn.Reasons {
		if primary = u.mending(u.SignIn.Reasons[i].Operation); primary != nil {
			break
		}
	}
	return primary, slices.DeleteFunc(u.actions(), func(a *action) bool { return a == primary })
}

// mending returns the action for the API operation that resolves a reason why the user
// cannot sign in. It returns nil if the caller may not perform the action.
func (u userView) mending(operation string) *action {
	for _, a := range u.actions() {
		if a.operation == operation {
			return a
		}
	}
	return nil
}

// mayEdit reports whether the caller may change a member of the user in the form for them.
func (u userView) mayEdit() bool {
	form := editView{frame: u.frame, user: u.Overview.User}
	return slices.Contains(u.AllowedActions, "update") && slices.ContainsFunc(slices.Collect(rolecall.UpdatableMembers.All()), form.mayChange)
}

// label returns the label of the action. The label of the invitation differs if the user
// has an open invitation.
func (u userView) label(a *action) string {
	if a.path == "/invite" && u.isInvited() {
		return msg("user.invite-again")
	}
	return msg(a.key + ".label")
}

// isInvited reports whether the user has an invitation that has not expired.
func (u userView) isInvited() bool { return u.Invitation.Live(u.now) }

// obstacle describes a reason why the user cannot sign in.
func (u userView) obstacle(r *directory.SignInReason) string {
	switch {
	case r.Code == "user-pending" && u.isInvited():
		return msg("user.invited-no-password")
	case r.Covers == "source" && r.Source == "":
		return msg("user.limited-hidden-source")
	case r.Covers == "source":
		return msg("user.limited-source", "Source", r.Source)
	case r.Covers == "unknown-browsers":
		return msg("user.limited-browsers")
	case r.Covers == "second-factor":
		return msg("user.limited-codes")
	}
	return msg(obstaclePrefix + r.Code)
}

// onlyByConnection describes the connections with which the user signs in, if the user cannot sign in with a
// password. It is empty for other users.
func (u userView) onlyByConnection() string {
	names := u.connectionNames()
	if !u.ownersOnly() || !u.AssignmentsReadable || len(names) == 0 || authz.IsOwner(u.Assignments, u.now) {
		return ""
	}
	return msg("user.only-by-connection", "Connections", listed(names))
}

// isLimited reports whether the user cannot sign in from some sources or browsers, or with
// some methods, but can sign in otherwise.
func (u userView) isLimited() bool {
	return !u.SignIn.CanSignIn && !slices.ContainsFunc(u.SignIn.Reasons, func(r directory.SignInReason) bool { return r.Covers == "" })
}

// obstaclePrefix and the code of a reason form the message key for a reason why a user
// cannot sign in.
const obstaclePrefix = "obstacle."

// eventsShown is the maximum number of events on a page that also shows other data.
const eventsShown = 5

// inHeader are the members of a user that the header of the user's page shows.
var inHeader = []rolecall.UserMember{rolecall.MemberName, rolecall.MemberEmail, rolecall.MemberDepartment, rolecall.MemberStatus}

// shownInDetails returns the members in the details card of a user: those that the header
// does not show, and those that the caller may not read.
func shownInDetails(sight rolecall.UserMembers) (members []rolecall.UserMember) {
	for m := range rolecall.AllUserMembers.All() {
		if !sight.Has(m) || !slices.Contains(inHeader, m) {
			members = append(members, m)
		}
	}
	return members
}

// heldBack returns the permissions that the caller needs to read the parts of the page that
// are not shown.
func (u userView) heldBack() (permissions []string) {
	for _, part := range []struct {
		readable   bool
		permission rolecall.Permission
	}{
		{u.AssignmentsReadable, rolecall.RolesRead}, {u.SessionsReadable, rolecall.SessionsRead},
		{u.FactorsReadable, rolecall.UsersFactors}, {u.EventsReadable, rolecall.EventsRead},
	} {
		if !part.readable {
			permissions = append(permissions, part.permission.String())
		}
	}
	return permissions
}

// factorWords describes the second factors of a user in words.
func factorWords(f *directory.FactorSummary) string {
	var has []string
	if f.TOTP {
		has = append(has, msg("user.has-app"))
	}
	if f.Passkeys > 0 {
		has = append(has, msg("user.passkeys", "Count", f.Passkeys))
	}
	if has == nil {
		return msg("user.nothing")
	}
	if f.RecoveryCodes > 0 {
		has = append(has, msg("user.recovery-codes", "Count", f.RecoveryCodes))
	}
	return listed(has)
}

// address returns the address of the user's page. below is appended to its path.
func (u userView) address(below string) string {
	return userAddress(u.pageContext, u.Overview.User.ID, below)
}

func (c *console) editPages() []page {
	return []page{
		{path: "/{tenant}/users/{id}/edit", operation: "UsersController_updateUser", show: c.showEdit, act: c.edit},
	}
}

// editView is the data of the form that changes a user.
type editView struct {
	frame
	user        rolecall.User
	sight       rolecall.UserMembers
	departments []string // the departments that the form suggests
}

func (c *console) showEdit(v *pageContext) error {
	user, err := c.directory.User(v.ctx, v.call, v.userID)
	if err != nil {
		return err
	}
	departments, err := c.directory.Departments(v.ctx, v.call)
	if err != nil {
		return err
	}
	return c.show(v, msg("user.edit", "Name", nameOf(v, &user)), usersSection, func(f frame) templ.Component {
		return editPage(editView{f, user, v.call.ReadableMembers(&user), departments})
	})
}

func (c *console) edit(v *pageContext) error {
	var patch rolecall.UserPatch
	if name, changed := typed(v, "name"); changed {
		patch.Name = rolecall.Some(name)
	}
	for m := range rolecall.OptionalTexts.All() {
		if text, changed := typed(v, m.String()); changed {
			*m.OfPatch(&patch) = rolecall.Some(orNil(text))
		}
	}
	pairs, faults := metadataPatch(v)
	if pairs != nil {
		patch.Metadata = rolecall.Some(pairs)
	}
	if err := authz.AuthorizeMembers(v.call.Principal, v.userID, patch.Members()); err != nil {
		return err
	}
	if faults != nil {
		return append(faults, patch.Check(v.call.Tenant.Settings.NameMinimum())...).Err()
	}
	if _, err := c.directory.UpdateUser(v.ctx, v.call, v.userID, patch, match(v, v.userTag)); err != nil {
		return err
	}
	return v.redirect(userAddress(v, v.userID, "") + "?done=saved")
}

// mayChange reports whether the caller may change the member of this user. Only the directory of a user changes the name
// and the department.
func (e editView) mayChange(m rolecall.UserMember) bool {
	if e.user.ManagedBy != nil && (m == rolecall.MemberName || m == rolecall.MemberDepartment) {
		return false
	}
	return m == rolecall.MemberName && e.call.IsSelf(e.user.ID) || e.call.Updates(m).Includes(e.user.Department)
}

// value returns the saved value of the member. It is empty if the caller may not read it.
func (e editView) value(m rolecall.UserMember) string {
	if !e.sight.Has(m) {
		return ""
	}
	return orEmpty(m.Text(&e.user))
}

// textAttributes returns the attributes of the form field of one of rolecall.OptionalTexts.
func textAttributes(m rolecall.UserMember) templ.Attributes {
	attributes := templ.Attributes{"maxlength": strconv.Itoa(m.LengthMax()), "autocomplete": "off"}
	switch m {
	case rolecall.MemberDepartment:
		attributes["list"] = "departments"
	case rolecall.MemberExternalID:
		attributes["spellcheck"] = "false"
	}
	return attributes
}

// metadata returns the saved metadata. It is empty if the caller may not read it.
func (e editView) metadata() rolecall.Metadata {
	if !e.sight.Has(rolecall.MemberMetadata) {
		return rolecall.Metadata{}
	}
	return e.user.Metadata
}

func (e editView) address() string { return userAddress(e.pageContext, e.user.ID, "/edit") }

// The names of the fields in a row of metadata. The "was" fields have the pair that the
// form had shown.
const (
	fieldPairKey      = "metadata-key"
	fieldPairValue    = "metadata-value"
	fieldWasPairKey   = "was-metadata-key"
	fieldWasPairValue = "was-metadata-value"
)

// spareRows is the number of empty metadata rows in a form, for browsers without scripts.
const spareRows = 3

// pairRow is a row of a form with one pair of metadata.
type pairRow struct {
	key, value string
	saved      string // the value that another user saved after the form was loaded
	changed    bool   // another user has changed the pair
	gone       bool   // another user has removed the pair
}

// typedPairs returns the pairs in the form fields named keys and values, in the order of
// the form. It skips empty rows.
func typedPairs(v *pageContext, keys, values string) (rows [][2]string) {
	texts := v.form[values]
	for i, key := range v.form[keys] {
		value := ""
		if i < len(texts) {
			value = texts[i]
		}
		if key != "" || value != "" {
			rows = append(rows, [2]string{key, value})
		}
	}
	return rows
}

// pairsOf returns the rows as a map, and field errors for repeated and empty keys.
func pairsOf(rows [][2]string) (map[string]string, rolecall.FieldErrors) {
	var faults rolecall.FieldErrors
	pairs := map[string]string{}
	for _, row := range rows {
		if _, twice := pairs[row[0]]; twice {
			faults.Add("/metadata/"+rolecall.EscapePointer(row[0]), "repeated", msg("metadata.repeated"))
		}
		if row[0] == "" {
			faults.Add("/metadata", "required", msg("metadata.no-key"))
		}
		pairs[row[0]] = row[1]
	}
	return pairs, faults
}

// metadataPatch returns the pairs that the user has changed in the form. A nil value
// removes a pair. metadataPatch returns nil if the user has changed nothing.
func metadataPatch(v *pageContext) (map[string]*string, rolecall.FieldErrors) {
	typed, faults := pairsOf(typedPairs(v, fieldPairKey, fieldPairValue))
	was, _ := pairsOf(typedPairs(v, fieldWasPairKey, fieldWasPairValue))
	if v.form[fieldPairKey] == nil {
		return nil, nil
	}
	patch := map[string]*string{}
	for key, value := range typed {
		if before, ok := was[key]; !ok || before != value {
			patch[key] = &value
		}
	}
	for key := range was {
		if _, ok := typed[key]; !ok {
			patch[key] = nil
		}
	}
	if len(patch) == 0 {
		return nil, faults
	}
	return patch, faults
}

// metadataRows returns the metadata rows of a form. saved is the metadata in the database.
// A row that the user has changed keeps the typed pair, and all other rows show the saved
// pair. removed has the pairs that the user has removed in the form, but another user has
// changed since the form was loaded.
func (f frame) metadataRows(saved rolecall.Metadata) (rows, removed []pairRow) {
	now := sortedPairs(saved)
	if f.problem == nil {
		for _, pair := range now {
			rows = append(rows, pairRow{key: pair[0], value: pair[1]})
		}
		return rows, nil
	}
	typed := typedPairs(f.pageContext, fieldPairKey, fieldPairValue)
	shown, _ := pairsOf(typed)
	was, _ := pairsOf(typedPairs(f.pageContext, fieldWasPairKey, fieldWasPairValue))
	stands, _ := pairsOf(now)
	for _, pair := range typed {
		before, had := was[pair[0]]
		value, has := stands[pair[0]]
		switch touched := !had || before != pair[1]; {
		case touched:
			changed := (has != had || value != before) && !(has && value == pair[1])
			rows = append(rows, pairRow{key: pair[0], value: pair[1], saved: value, changed: changed, gone: changed && !has})
		case has:
			rows = append(rows, pairRow{key: pair[0], value: value})
		}
	}
	for _, pair := range now {
		before, had := was[pair[0]]
		_, kept := shown[pair[0]]
		switch {
		case !kept && !had:
			rows = append(rows, pairRow{key: pair[0], value: pair[1]})
		case !kept && before != pair[1]:
			removed = append(removed, pairRow{key: pair[0], saved: pair[1]})
		}
	}
	return rows, removed
}

// sortedPairs returns the pairs of the metadata, sorted by key.
func sortedPairs(m rolecall.Metadata) (list [][2]string) {
	pairs, err := m.Pairs()
	if err != nil {
		return nil // cannot happen: metadata was validated before it was stored
	}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		list = append(list, [2]string{key, pairs[key]})
	}
	return list
}
