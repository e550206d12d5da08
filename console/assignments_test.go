package console

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
)

func TestARoleIsGivenChangedAndTaken(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	role, user := f.makeRole("Helper", "users:read"), f.hire("eve@example.com", "Eve Adams", nil)
	home := "/console/acme/users/" + user.ID.String()
	path := home + "/roles/" + role.ID.String()
	if a := f.get(home+"/roles/give?q=help", cookie); !strings.Contains(a.body, path) || strings.Contains(a.body, "Administrator") {
		t.Errorf("%s", a.body)
	}
	for name, form := range map[string]url.Values{
		"choose at least one department, or choose all users": {"where": {"departments"}, "reach/departments": {" \r\n"}},
		"Must be a date":        {"where": {"everywhere"}, "expiresAt": {"tomorrow"}},
		"Must be in the future": {"where": {"everywhere"}, "expiresAt": {"2020-01-01T10:00"}},
	} {
		a := f.send(http.MethodPost, path, cookie, form)
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(strings.ToLower(a.body), strings.ToLower(name)) || !strings.Contains(a.body, "aria-invalid") {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	end := time.Now().UTC().Add(48 * time.Hour).Format(inputLayout)
	form := url.Values{"where": {"departments"}, "reach/departments": {"Sales\r\nLegal, Risk"}, "expiresAt": {end}}
	if a := f.send(http.MethodPost, path, cookie, form); a.Header.Get("Location") != home+"?done=role-given&role="+role.ID.String() {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	held, _, err := f.node.Directory.Assignments(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID))
	if err != nil || len(held) != 1 || !slices.Equal(held[0].Reach.Departments(), []string{"Legal, Risk", "Sales"}) || held[0].ExpiresAt.Std().Format(inputLayout) != end {
		t.Errorf("%+v %v", held, err)
	}
	if a := f.get(path, cookie); !strings.Contains(a.body, "Legal, Risk\nSales</textarea>") || !strings.Contains(a.body, `value="`+end+`"`) || !strings.Contains(a.body, "Change <bdi>") {
		t.Errorf("%s", a.body)
	}
	if a := f.get(home+"/roles", cookie); !strings.Contains(a.body, "In Legal, Risk and Sales") || !strings.Contains(a.body, path+"/take") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path, cookie, url.Values{"where": {"everywhere"}, "reach/departments": {"Sales"}}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home, cookie); !strings.Contains(a.body, `class="below">Never expires<`) || !strings.Contains(a.body, `data-label="From"><bdi>Helper`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path+"/take", cookie, nil); !strings.HasPrefix(a.Header.Get("Location"), home+"?done=role-taken&role="+role.ID.String()) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home, cookie); !strings.Contains(a.body, "No roles. Assign") {
		t.Errorf("%s", a.body)
	}
}

func TestOnlyWhatTheCeilingAllowsIsGiven(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", nil)
	sales := "Sales"
	if _, err := f.node.Directory.UpdateUser(t.Context(), f.asOwner(), user.ID, rolecall.UserPatch{Department: rolecall.Some(&sales)}, nil); err != nil {
		t.Fatal(err)
	}
	reader, deleter := f.makeRole("Reader", "users:read"), f.makeRole("Deleter", "users:delete")
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "roles:read", "roles:assign"}, "Sales")
	cookie := f.signIn("acme", "clerk@example.com")
	home := "/console/acme/users/" + user.ID.String()
	a := f.get(home+"/roles/give", cookie)
	if !strings.Contains(a.body, home+"/roles/"+reader.ID.String()) || strings.Contains(a.body, home+"/roles/"+deleter.ID.String()) || !strings.Contains(a.body, "You need the permission users:delete in the whole tenant.") {
		t.Errorf("%s", a.body)
	}
	a = f.get(home+"/roles/"+reader.ID.String(), cookie)
	if !strings.Contains(a.body, `value="everywhere" disabled`) || !strings.Contains(a.body, "only in these departments: Sales.") || !strings.Contains(a.body, `value="Sales" checked`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, home+"/roles/"+reader.ID.String(), cookie, url.Values{"where": {"everywhere"}}); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "You need the permission users:read in the whole tenant.") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home+"/roles/"+deleter.ID.String(), cookie); strings.Contains(a.body, "<textarea") || !strings.Contains(a.body, "You need the permission users:delete") {
		t.Errorf("%s", a.body)
	}
	if _, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID), deleter.ID, rolecall.AssignmentDraft{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID), reader.ID, rolecall.AssignmentDraft{}); err != nil {
		t.Fatal(err)
	}
	for _, role := range []rolecall.Role{deleter, reader} { // the clerk may not assign deleter at all, and reader only in a department
		if a := f.get(home, cookie); !strings.Contains(a.body, "Can&#39;t change") || strings.Contains(a.body, role.ID.String()+"/take") {
			t.Errorf("%s: %s", role.Name, a.body)
		}
	}
}

func TestAssigningRolesWithoutPermissionToReadThem(t *testing.T) {
	f := newFixture(t)
	user, hidden := f.hire("eve@example.com", "Eve Adams", nil), f.makeRole("Hidden", "users:read")
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "roles:assign"})
	cookie := f.signIn("acme", "clerk@example.com")
	home := "/console/acme/users/" + user.ID.String()
	if a := f.get(home, cookie); !strings.Contains(a.body, home+"/roles/give") || !strings.Contains(a.body, "Hidden. You need roles:read to see this.") {
		t.Errorf("%s", a.body)
	}
	a := f.get(home+"/roles/give", cookie)
	offered := regexp.MustCompile(`hx-get="([^"]+/roles/[^"]+)"`).FindAllStringSubmatch(a.body, -1)
	if len(offered) != 1 || strings.Contains(a.body, "Hidden") || !strings.Contains(a.body, "Role of clerk@example.com") || strings.Contains(a.body, `role="search"`) {
		t.Fatalf("%v %s", offered, a.body)
	}
	if a := f.get(home+"/roles/"+hidden.ID.String(), cookie); a.StatusCode != http.StatusNotFound || strings.Contains(a.body, "Hidden") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	path := offered[0][1]
	if a := f.get(path, cookie); !strings.Contains(a.body, "You can&#39;t view the roles of <bdi>Eve Adams</bdi>.") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path, cookie, url.Values{"where": {"departments"}, "reach/departments": {"Sales"}}); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if held, _, err := f.node.Directory.Assignments(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID)); err != nil || len(held) != 1 || !slices.Equal(held[0].Reach.Departments(), []string{"Sales"}) {
		t.Errorf("%+v %v", held, err)
	}
	if a := f.get(home+"/roles", cookie); a.StatusCode != http.StatusForbidden {
		t.Errorf("%d", a.StatusCode)
	}
	f.hire("mover@example.com", "Mo Mover", []string{"service-accounts:*", "users:read"})
	account := f.makeAccount("Import")
	a = f.get("/console/acme/service-accounts/"+account.ID.String()+"/roles/give", f.signIn("acme", "mover@example.com"))
	if strings.Contains(a.body, "Hidden") || !strings.Contains(a.body, "Assign <span class=\"unseen\">Role of mover@example.com") {
		t.Errorf("%s", a.body)
	}
}

// TestManyDepartmentsAreNotAllOffered assigns a role as a user who may do so in 1,000 departments.
func TestManyDepartmentsAreNotAllOffered(t *testing.T) {
	f := newFixture(t)
	var departments []string
	for i := range rolecall.HolderReachMax {
		departments = append(departments, fmt.Sprintf("Team %04d", i))
	}
	clerk, given := f.hire("clerk@example.com", "Clara Clerk", nil), f.makeRole("Reader", "users:read")
	for i := 0; i < len(departments); i += 100 {
		role := f.makeRole(fmt.Sprintf("Clerk %d", i), "users:read", "roles:read", "roles:assign")
		f.assignRole(clerk.ID, role.ID, rolecall.AssignmentDraft{Departments: departments[i : i+100]})
	}
	eve := rolecall.UserDraft{Email: "eve@example.com", Name: "Eve Adams", Department: &departments[0]}
	user, err := f.node.Directory.CreateUser(t.Context(), f.asOwner(), idempotency.Key{Text: "eve", Fingerprint: []byte("eve")}, eve)
	if err != nil {
		t.Fatal(err)
	}
	cookie := f.signIn("acme", "clerk@example.com")
	path := "/console/acme/users/" + user.Value.ID.String() + "/roles/" + given.ID.String()
	a := f.get(path, cookie)
	boxes := strings.Count(a.body, `type="checkbox"`)
	if boxes == 0 || boxes > suggestedBytes/len(departments[0]) {
		t.Errorf("%d departments are offered, status %d", boxes, a.StatusCode)
	}
	if !strings.Contains(a.body, "Team 0999</textarea>") {
		t.Error("the other departments are not in the field")
	}
	form := url.Values{"where": {"departments"}, "reach/departments": {"Team 0000", "Team 0999\r\nTeam 0998"}}
	if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if held := f.assigned(user.Value); !slices.Equal(held.Reach.Departments(), []string{"Team 0000", "Team 0998", "Team 0999"}) {
		t.Errorf("%q", held.Reach.Departments())
	}
	form["reach/departments"] = []string{"Team 0000", "Sales"}
	if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode == http.StatusSeeOther {
		t.Error("a department that the caller does not have was accepted")
	}
}

func TestExpiredRolesStayInSight(t *testing.T) {
	f := newFixture(t)
	user, role, account := f.hire("eve@example.com", "Eve Adams", nil), f.makeRole("Summer help", "shop/stock:count"), f.makeAccount("Import")
	end := f.node.Access.Now().Add(time.Hour)
	draft := rolecall.AssignmentDraft{Departments: []string{"Sales"}, ExpiresAt: &end}
	_, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID), role.ID, draft)
	if err == nil {
		_, _, err = f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(account.ID), role.ID, draft)
	}
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?s)<(?:li|tr) class="expired">.*?</(?:li|tr)>`)
	for _, home := range []string{"/console/acme/users/" + user.ID.String(), "/console/acme/service-accounts/" + account.ID.String()} {
		for _, path := range []string{home, home + "/roles"} {
			if a := f.get(path, f.signIn("acme", ownerEmail)); row.MatchString(a.body) || !strings.Contains(a.body, "Summer help") {
				t.Errorf("%s before the end: %s", path, row.FindString(a.body))
			}
		}
	}
	f.ahead.Add(int64(2 * time.Hour))
	cookie := f.signIn("acme", ownerEmail)
	for _, home := range []string{"/console/acme/users/" + user.ID.String(), "/console/acme/service-accounts/" + account.ID.String()} {
		for _, path := range []string{home, home + "/roles"} {
			a := f.get(path, cookie)
			expired := row.FindAllString(a.body, -1)
			if len(expired) != 1 {
				t.Fatalf("%s: %d expired roles", path, len(expired))
			}
			for _, part := range []string{"Summer help", "In Sales", "expired", `datetime="` + end.Std().Format("2006-01-02T15:04:05.000Z") + `"`} {
				if !strings.Contains(expired[0], part) {
					t.Errorf("%s lacks %q: %s", path, part, expired[0])
				}
			}
			if strings.Contains(a.body, "shop/stock:count") || strings.Contains(a.body, "/take") {
				t.Errorf("%s says that an expired role allows something, or can be taken", path)
			}
		}
		if a := f.get(home+"/roles", cookie); !strings.Contains(a.body, home+"/roles/"+role.ID.String()+`"`) {
			t.Errorf("%s does not offer to give it again", home)
		}
	}
}
