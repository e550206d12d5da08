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
// changes overrides them: name, value, name, value. An empty value removes the parameter.
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

// pageLinks are the addresses of the first, the previous and the next page of a list. An address is
// empty if there is no such page, or if another link has it.
type pageLinks struct{ first, previous, next string }

// The parameters of the addresses of pages. A cursor leads forward only, so the address of a page has
// the cursors of the pages before it, as far as they fit.
const (
	fieldCursor   = "cursor"
	fieldPrevious = "previous"
	firstPage     = "first" // stands for the first page, which has no cursor
	previousMax   = 10
	previousBytes = 2000
)

// pagesOf returns the links of a list with these parameters. If the request is for the results
// only, it also sets the address that the browser shows.
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

// visited returns the cursors of the pages before this one, as the address has them. It returns none
// if the address was changed by hand.
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

// joinVisited joins the cursors of the last pages.
func joinVisited(visited []string) string {
	visited = visited[max(0, len(visited)-previousMax):]
	for len(strings.Join(visited, ".")) > previousBytes {
		visited = visited[1:]
	}
	return strings.Join(visited, ".")
}

// sortOf returns the address that sorts the list by the member, and the value of aria-sort. If
// the list is sorted by the member already, the address reverses the order or removes it.
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

// fieldView is the parameter with the name of a list. It has no effect on the content of the list.
const (
	fieldView   = "view"
	viewNameMax = 60
)

// savedParameter is a parameter that the address of a saved view has.
type savedParameter struct{ name, value string }

// savedParameters returns the parameters of the current list, without the position in it.
func (f frame) savedParameters(parameters []string) (saved []savedParameter) {
	for _, name := range parameters {
		if value := f.asked(name); value != "" {
			saved = append(saved, savedParameter{name, value})
		}
	}
	return saved
}

// fieldColumns is the parameter with the additional columns of the list of users.
const fieldColumns = "columns"

// column is an additional column of the list of users. Its name is that of the member that the list
// of the API includes.
type column struct {
	name       string
	show, hide string // keys of the texts of the links
	permission rolecall.Permission
	include    func(*directory.Include) *bool
}

var columns = []column{
	{"lastLoginAt", "users.show-last-sign-in", "users.hide-last-sign-in", rolecall.MemberStatus.Read(), func(i *directory.Include) *bool { return &i.LastLogin }},
	{"roles", "users.show-roles", "users.hide-roles", rolecall.RolesRead, func(i *directory.Include) *bool { return &i.Roles }},
	{"factors", "users.show-factors", "users.hide-factors", rolecall.UsersFactors, func(i *directory.Include) *bool { return &i.Factors }},
}

// readColumns reads the names of the additional columns.
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

// columnChoice is an additional column that the reader can show or hide.
type columnChoice struct{ address, label string }

// columnChoices returns the additional columns whose data the caller may read of some user.
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

// columnNames returns the value of the parameter that selects the columns.
func columnNames(selected directory.Include) string {
	var names []string
	for _, c := range columns {
		if *c.include(&selected) {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, ",")
}

// sortParameters returns the parameters that the addresses of another order keep.
func (l usersView) sortParameters() []string {
	if l.page.Included == nil {
		return userParameters
	}
	return userListParameters
}

// includedOf returns the data of the additional columns of the user at the index.
func (l usersView) includedOf(at int) (included directory.Included) {
	if l.page.Included != nil {
		included = l.page.Included[at]
	}
	return included
}

// furtherRoles says how many roles the list does not name. It is empty if the list names all.
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

// departmentsMax is the maximum number of departments that a filter can select by their beginning.
const departmentsMax = 50

// departmentsKnown is the number of departments that the service returns. If it returns as many, there
// can be more.
const departmentsKnown = 200

// selectDepartments lets the filter of the listing match the departments that begin with the typed
// text, unless one has exactly this name. It adds a field error if no name begins so. known are the departments
// that the caller may read.
func selectDepartments(v *pageContext, listing *directory.UserListing, known []string) {
	typed := rolecall.Fold(listing.Department)
	if listing.Department == "" || v.call.Reads(rolecall.MemberDepartment).IsNowhere() {
		return
	}
	var matches []string
	for _, name := range known {
		switch key := rolecall.Fold(name); {
		case key == typed:
			return
		case strings.HasPrefix(key, typed):
			matches = append(matches, name)
		}
	}
	switch {
	case len(matches) > departmentsMax:
		v.faults = append(v.faults, rolecall.FieldError{Parameter: "department", Code: "too-many", Detail: msg("problem.many-departments", "Count", departmentsMax)})
	case len(matches) > 0:
		listing.Department, listing.Departments = "", matches
	case len(known) < departmentsKnown:
		v.faults = append(v.faults, rolecall.FieldError{Parameter: "department", Code: codeUnknownValue, Detail: msg("problem.no-department")})
	}
}

// departmentsFor returns the departments that the caller may read. It reads them only for a filter by
// department.
func (c *console) departmentsFor(v *pageContext) ([]string, error) {
	if v.department == "" {
		return nil, nil
	}
	return c.directory.Departments(v.ctx, v.call)
}
