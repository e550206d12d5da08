package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

// listAddress returns the address of the list with the current values of the parameters.
// changes are names and values in turn, and override the current values. An empty value
// removes the parameter.
func (f frame) listAddress(parameters []string, changes ...string) string {
	asked, query := f.request.URL.Query(), url.Values{}
	for _, name := range parameters {
		if text := asked.Get(name); text != "" {
			query.Set(name, text)
		}
	}
	for i := 0; i < len(changes); i += 2 {
		if query.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			query.Del(changes[i])
		}
	}
	if query.Get("from") == "" && query.Get("to") == "" {
		query.Del(fieldTimeZone)
	}
	if len(query) == 0 {
		return f.request.URL.Path
	}
	return f.request.URL.Path + "?" + query.Encode()
}

// asked returns the value of the query parameter in the address.
func (f frame) asked(name string) string { return f.request.URL.Query().Get(name) }

// pageLinks are the addresses of the first, the previous and the next page of a list. An
// address is empty if the page does not exist. If the previous page is the first page, only
// previous is set.
type pageLinks struct{ first, previous, next string }

// The query parameters for pages of a list. A cursor only leads to the next page. So the
// address of a page also has the cursors of up to previousMax pages before it, in at most
// previousBytes bytes.
const (
	fieldCursor   = "cursor"
	fieldPrevious = "previous"
	firstPage     = "first" // used instead of a cursor for the first page, which has none
	previousMax   = 10
	previousBytes = 2000
)

// pagesOf returns the links to other pages of a list. parameters are the filters of the
// list. If htmx requests only the results, pagesOf also makes htmx replace the address of
// the page.
func (f frame) pagesOf(parameters []string, next *rolecall.Position) (links pageLinks) {
	parameters = append(slices.Clone(parameters), fieldView)
	cursor, visited := f.asked(fieldCursor), f.visited()
	if cursor != "" {
		links.first = f.listAddress(parameters)
	}
	if last := len(visited) - 1; last >= 0 {
		if visited[last] == firstPage {
			links.first, links.previous = "", links.first
		} else {
			links.previous = f.listAddress(parameters, fieldCursor, visited[last], fieldPrevious, strings.Join(visited[:last], "."))
		}
	}
	if f.fragment() == "results" {
		f.replaceURL(f.listAddress(append(parameters, fieldCursor, fieldPrevious)))
	}
	if next != nil {
		visited = append(visited, cmp.Or(cursor, firstPage))
		links.next = f.listAddress(parameters, fieldCursor, f.sealCursor(next), fieldPrevious, joinVisited(visited))
	}
	return links
}

// visited returns the cursors of the pages before this one, from the address. It returns
// nil if the address has no such cursors, too many, or an empty one.
func (f frame) visited() []string {
	text := f.asked(fieldPrevious)
	if text == "" || f.asked(fieldCursor) == "" || len(text) > previousBytes {
		return nil
	}
	visited := strings.Split(text, ".")
	if len(visited) > previousMax || slices.Contains(visited, "") {
		return nil
	}
	return visited
}

// joinVisited joins the cursors. If they are too many or too long, it leaves out those of
// the earliest pages.
func joinVisited(visited []string) string {
	visited = visited[max(0, len(visited)-previousMax):]
	for len(strings.Join(visited, ".")) > previousBytes {
		visited = visited[1:]
	}
	return strings.Join(visited, ".")
}

// sortOf returns the address that sorts the list by the member, and the current value of
// aria-sort. If the list is already sorted by the member in ascending order, the address
// reverses the order. If it is in descending order, the address removes the order.
func (f frame) sortOf(parameters []string, by string) (address, direction string) {
	to, direction := by, "none"
	switch f.asked("sort") {
	case by:
		to, direction = "-"+by, "ascending"
	case "-" + by:
		to, direction = "", "descending"
	}
	return f.listAddress(parameters, "sort", to), direction
}

// fieldView is the query parameter with the name of a saved view. It does not change the
// content of the list.
const (
	fieldView   = "view"
	viewNameMax = 60
)

// savedParameter is a query parameter of a saved view.
type savedParameter struct{ name, value string }

// savedParameters returns the current values of the parameters, for a saved view. The
// position in the list is not saved.
func (f frame) savedParameters(parameters []string) (saved []savedParameter) {
	for _, name := range parameters {
		if value := f.asked(name); value != "" {
			saved = append(saved, savedParameter{name, value})
		}
	}
	return saved
}

// fieldColumns is the query parameter with the additional columns of the list of users.
const fieldColumns = "columns"

// column is an additional column of the list of users. Its name is a value of the API
// parameter "include".
type column struct {
	name       string
	show, hide string // message keys of the links that show and hide the column
	permission rolecall.Permission
	include    func(*directory.Include) *bool
}

var columns = []column{
	{"lastLoginAt", "users.show-last-sign-in", "users.hide-last-sign-in", rolecall.MemberStatus.Read(), func(i *directory.Include) *bool { return &i.LastLogin }},
	{"roles", "users.show-roles", "users.hide-roles", rolecall.RolesRead, func(i *directory.Include) *bool { return &i.Roles }},
	{"factors", "users.show-factors", "users.hide-factors", rolecall.UsersFactors, func(i *directory.Include) *bool { return &i.Factors }},
}

// readColumns parses the names of the additional columns.
func readColumns(p *parameters, text string) (code, detail string) {
	for name := range strings.SplitSeq(text, ",") {
		at := slices.IndexFunc(columns, func(c column) bool { return c.name == name })
		if at < 0 {
			return codeUnknownValue, msg("problem.columns")
		}
		*columns[at].include(&p.include) = true
	}
	return "", ""
}

// columnChoice is a link that shows or hides an additional column.
type columnChoice struct{ address, label string }

// columnChoices returns the links for the additional columns. It leaves out columns whose
// data the caller may not read of any user.
func (l usersView) columnChoices() (choices []columnChoice) {
	for _, c := range columns {
		if l.call.Reach(c.permission).IsNowhere() {
			continue
		}
		changed := l.include
		isShown := c.include(&changed)
		label := msg(c.show)
		if *isShown {
			label = msg(c.hide)
		}
		*isShown = !*isShown
		address := l.listAddress(append(slices.Clone(userListParameters), fieldView, fieldCursor, fieldPrevious), fieldColumns, columnNames(changed))
		choices = append(choices, columnChoice{address, label})
	}
	return choices
}

// columnNames returns the value of the query parameter that selects the columns.
func columnNames(selected directory.Include) string {
	var names []string
	for _, c := range columns {
		if *c.include(&selected) {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, ",")
}

// sortParameters returns the query parameters to keep in links that change the order.
func (l usersView) sortParameters() []string {
	if l.page.Included == nil {
		return userParameters
	}
	return userListParameters
}

// includedOf returns the data for the additional columns of the user with the index at on
// the page.
func (l usersView) includedOf(at int) (included directory.Included) {
	if l.page.Included != nil {
		included = l.page.Included[at]
	}
	return included
}

// furtherRoles says how many roles a user has in addition to those in the list. It returns
// an empty text if the list has all.
func furtherRoles(roles *directory.IncludedRoles) string {
	n := len(roles.Items) - rolesInList
	switch {
	case roles.More:
		return msg("users.many-further-roles", "Count", n)
	case n > 0:
		return msg("users.further-roles", "Count", n)
	}
	return ""
}

// shownFactors names the second factors of a user.
func shownFactors(factors *directory.IncludedFactors) string {
	var words []string
	if factors.TOTP {
		words = append(words, msg("users.app"))
	}
	if factors.Passkeys > 0 {
		words = append(words, msg("users.passkeys", "Count", factors.Passkeys))
	}
	if words == nil {
		return msg("users.no-factors")
	}
	return listed(words)
}

// rolesInList is the number of roles that a row of the list of users names.
const rolesInList = 3

// departmentsMax is the maximum number of departments that the typed beginning of a name
// can select.
const departmentsMax = 50

// departmentsKnown is the maximum number of departments that the service returns. If it
// returns this number, the tenant can have more.
const departmentsKnown = 200

// resolveDepartment lets users filter the list by the beginning of a department's name. If a
// department has exactly the typed name, the filter does not change. Otherwise the filter
// selects all departments whose names begin with the typed text. If this is one, the address of
// the page gets its name, so that an action on the list selects the users that the list shows.
// resolveDepartment adds a field error if the departments are more than departmentsMax, or if no
// name begins with the text.
func (c *console) resolveDepartment(v *pageContext, listing *directory.UserListing) error {
	name := listing.Department
	if name == "" || v.faults != nil || v.call.Reads(rolecall.MemberDepartment).IsNowhere() {
		return nil
	}
	known, err := c.directory.Departments(v.ctx, v.call)
	if err != nil {
		return err
	}
	key, typed := rolecall.TextKey(name), rolecall.Fold(name)
	isExact := slices.ContainsFunc(known, func(department string) bool { return rolecall.TextKey(department) == key })
	if !isExact && len(known) >= departmentsKnown {
		isExact, err = c.hasDepartment(v, name)
	}
	if isExact || err != nil {
		return err
	}
	var matches []string
	for _, department := range known {
		if strings.HasPrefix(rolecall.Fold(department), typed) {
			matches = append(matches, department)
		}
	}
	switch {
	case len(matches) > departmentsMax:
		v.faults = append(v.faults, rolecall.FieldError{Parameter: "department", Code: "too-many", Detail: msg("problem.many-departments", "Count", departmentsMax)})
	case len(matches) == 1:
		v.setQuery("department", matches[0])
		v.department, listing.Department = matches[0], matches[0]
	case len(matches) > 1:
		listing.Department, listing.Departments = "", matches
	case len(known) < departmentsKnown:
		v.faults = append(v.faults, rolecall.FieldError{Parameter: "department", Code: codeUnknownValue, Detail: msg("problem.no-department")})
	}
	return nil
}

// hasDepartment reports whether users that the caller can view are in exactly this department. A
// page without users that has a next page can be before them.
func (c *console) hasDepartment(v *pageContext, name string) (bool, error) {
	page, err := c.directory.Users(v.ctx, v.call, directory.UserListing{Department: name, Limit: 1})
	return len(page.Items) > 0 || page.Next != nil, err
}
