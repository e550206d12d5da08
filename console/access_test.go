package console

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

// rowsOf returns the texts of the table rows in the page, without markup.
func rowsOf(page string) (rows []string) {
	for _, row := range regexp.MustCompile(`(?s)<tr>.*?</tr>`).FindAllString(page, -1) {
		rows = append(rows, strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(row, " ")), " "))
	}
	return rows
}

func (f *fixture) assignRole(user rolecall.UserID, role rolecall.RoleID, draft rolecall.AssignmentDraft) {
	f.t.Helper()
	if _, _, err := f.node.Directory.AssignRole(f.t.Context(), f.asOwner(), rolecall.HolderOf(user), role, draft); err != nil {
		f.t.Fatal(err)
	}
}

func TestAccessShowsWhoHasAPermission(t *testing.T) {
	f := newFixture(t)
	f.hire("eve@example.com", "Eve <b>Adams", []string{"users:*"}, "Sales")
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "roles:read"})
	f.hire("blind@example.com", "Ben Blind", []string{"users:read"})
	owner, clerk := f.signIn("acme", ownerEmail), f.signIn("acme", "clerk@example.com")
	for _, c := range []struct {
		query, cookie string
		rows          []string // parts of the expected rows, without the table head
		has           string
	}{
		{"?permission=users:erase", owner, []string{"Owner Everywhere Never expires *:*", "Eve &lt;b&gt;Adams Role of eve@example.com In Sales Never expires users:*"}, "Erase users permanently"},
		{"?permission=users:erase&department=SALES", owner, []string{"*:*", "Eve"}, "Erase users permanently, in SALES"},
		{"?permission=users:erase&department=Legal", owner, []string{"*:*"}, ""},
		{"?permission=tenant:update", owner, []string{"*:*"}, ""},
		{"?permission=shop/a:b", clerk, []string{"*/*:*"}, "You need service-accounts:read to see them"},
		{"", owner, nil, "Choose a permission"},
		{"?permission=users:era", owner, nil, `permission=users%3Aerase">`},
		{"?permission=users:%2A", owner, nil, `permission=users%3Aerase">`},
		{"?permission=permanently+ERASE", owner, nil, `permission=users%3Aerase">`},
		{"?permission=users:fly", owner, nil, "No permission matches"},
		{"?permission=users:erase&cursor=x", owner, nil, "Clear all filters"},
	} {
		a := f.get("/console/acme/access"+c.query, c.cookie)
		rows := rowsOf(a.body)
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, c.has) || len(rows) != len(c.rows)+min(len(c.rows), 1) {
			t.Errorf("%s: %d, %q in %s", c.query, a.StatusCode, rows, a.body)
			continue
		}
		for i, part := range c.rows {
			if !strings.Contains(rows[i+1], part) {
				t.Errorf("%s: row %d is %q, not %q", c.query, i, rows[i+1], part)
			}
		}
	}
	if a := f.get("/console/acme/access?permission=users:read", f.signIn("acme", "blind@example.com")); a.StatusCode != http.StatusForbidden || strings.Contains(a.body, `data-keys="g p"`) {
		t.Errorf("without roles:read: %d", a.StatusCode)
	}
}

func TestAccessIsShownInPages(t *testing.T) {
	f := newFixture(t)
	role := f.makeRole("Shop", "shop/a:b")
	for i := range 3 {
		f.assignRole(f.hire(fmt.Sprintf("shop-%d@example.com", i), fmt.Sprintf("Shop %d", i), nil).ID, role.ID, rolecall.AssignmentDraft{})
	}
	cookie, address, seen := f.signIn("acme", ownerEmail), "/console/acme/access?permission=shop/a:b&limit=2", 0
	for pages := 1; ; pages++ {
		a := f.get(address, cookie)
		if a.StatusCode != http.StatusOK || pages > 4 {
			t.Fatalf("page %d: %d", pages, a.StatusCode)
		}
		seen += max(len(rowsOf(a.body))-1, 0)
		next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(a.body)
		if next == nil {
			break
		}
		address = strings.ReplaceAll(next[1], "&amp;", "&") + "&limit=2"
	}
	if seen != 4 {
		t.Errorf("%d rows, want the owner and three users", seen)
	}
}

func TestACopyOfARoleHasWhatTheCallerMayGive(t *testing.T) {
	f := newFixture(t)
	long := f.makeRole("L"+strings.Repeat("ö", 127), "users:read", "users:delete", "shop/a:b", "shop/*:*")
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "roles:read", "roles:create", "shop/a:b"})
	for email, c := range map[string]struct {
		permissions []string
		note        string
	}{
		ownerEmail:          {[]string{"users:read", "users:delete", "shop/a:b", "shop/*:*"}, ""},
		"clerk@example.com": {[]string{"users:read", "shop/a:b"}, "2 permissions of the role are not in the copy"},
	} {
		cookie := f.signIn("acme", email)
		page := f.get("/console/acme/roles/create?from="+long.ID.String(), cookie)
		if page.StatusCode != http.StatusOK || !strings.Contains(page.body, `value="Copy of Lö`) || strings.Contains(page.body, c.note) != true || c.note == "" && strings.Contains(page.body, "not in the copy") {
			t.Errorf("%s: %d %s", email, page.StatusCode, page.body)
		}
		checked := regexp.MustCompile(`name="permissions" value="([^"]+)" checked`).FindAllStringSubmatch(page.body, -1)
		others := regexp.MustCompile(`(?s)<textarea[^>]*name="permissions"[^>]*>([^<]*)</textarea>`).FindStringSubmatch(page.body)
		got := len(checked) + len(strings.Fields(others[1]))
		if got != len(c.permissions) {
			t.Errorf("%s: %v and %q, want %v", email, checked, others, c.permissions)
		}
		if strings.Contains(page.body, "by another user") {
			t.Errorf("%s: the copy looks like a conflict", email)
		}
	}
	cookie := f.signIn("acme", ownerEmail)
	for _, from := range []string{"x", rolecall.NewID[rolecall.Role](1).String()} {
		if a := f.get("/console/acme/roles/create?from="+url.QueryEscape(from), cookie); a.StatusCode != http.StatusNotFound {
			t.Errorf("from %s: %d", from, a.StatusCode)
		}
	}
}

func TestAComparisonCountsWildcards(t *testing.T) {
	f := newFixture(t)
	left, right := f.makeRole("Left <b>", "users:*", "shop/a:b"), f.makeRole("Right", "users:read", "users:erase", "roles:read")
	eve := f.hire("eve@example.com", "Eve Adams", []string{"users:read", "shop/a:b"}, "Sales")
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read"})
	cookie := f.signIn("acme", ownerEmail)
	a := f.get("/console/acme/roles/"+left.ID.String()+"/compare?with="+right.ID.String(), cookie)
	for _, part := range []string{"3 differences", "2 permissions are the same", "Left &lt;b&gt;"} {
		if !strings.Contains(a.body, part) {
			t.Errorf("roles: no %q in %s", part, a.body)
		}
	}
	a = f.get("/console/acme/users/"+eve.ID.String()+"/compare?with="+f.owner.ID.String(), cookie)
	if rows := strings.Join(rowsOf(a.body), "\n"); !strings.Contains(a.body, "4 differences") || !strings.Contains(rows, "users:read In Sales Everywhere") || !strings.Contains(rows, "shop/a:b In Sales Everywhere") {
		t.Errorf("users: %s", rows)
	}
	for path, status := range map[string]int{
		"/roles/" + left.ID.String() + "/compare":                                      http.StatusOK,
		"/roles/" + left.ID.String() + "/compare?q=right":                              http.StatusOK,
		"/roles/" + left.ID.String() + "/compare?with=x":                               http.StatusNotFound,
		"/roles/" + left.ID.String() + "/compare?with=" + f.owner.ID.String():          http.StatusNotFound,
		"/users/" + eve.ID.String() + "/compare?with=" + left.ID.String():              http.StatusNotFound,
		"/users/" + eve.ID.String() + "/compare":                                       http.StatusOK,
		"/users/" + rolecall.NewID[rolecall.User](1).String() + "/compare?with=" + "x": http.StatusNotFound,
	} {
		if a := f.get("/console/acme"+path, cookie); a.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, a.StatusCode, status)
		}
	}
	clerk := f.signIn("acme", "clerk@example.com")
	a = f.get("/console/acme/users/"+eve.ID.String()+"/compare?with="+f.owner.ID.String(), clerk)
	if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "You can't view the roles of") && !strings.Contains(a.body, "You can&#39;t view the roles of") || len(rowsOf(a.body)) > 0 {
		t.Errorf("without roles:read: %d %s", a.StatusCode, a.body)
	}
}

func TestThePermissionsOfAUserAreFilteredByDepartment(t *testing.T) {
	f := newFixture(t)
	eve := f.hire("eve@example.com", "Eve Adams", []string{"users:read", "shop/a:b"}, "Sales")
	f.assignRole(eve.ID, f.makeRole("Everywhere", "users:erase").ID, rolecall.AssignmentDraft{})
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read"})
	path := "/console/acme/users/" + eve.ID.String() + "/access"
	for query, count := range map[string]string{"": "3 permissions", "?department=sALES": "3 permissions", "?department=s%C3%A1les": "1 permission<", "?department=Legal": "1 permission<"} {
		if a := f.get(path+query, f.signIn("acme", ownerEmail)); a.StatusCode != http.StatusOK || !strings.Contains(a.body, count) {
			t.Errorf("%q: %d, no %q in %s", query, a.StatusCode, count, a.body)
		}
	}
	if a := f.get(path, f.signIn("acme", "clerk@example.com")); a.StatusCode != http.StatusOK || strings.Contains(a.body, "users:erase") || !strings.Contains(a.body, "roles:read") {
		t.Errorf("without roles:read: %d %s", a.StatusCode, a.body)
	}
}
