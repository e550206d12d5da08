package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

// selecting returns the form with the selected users. fields are names and values of
// further fields in turn.
func selecting(users []rolecall.UserID, fields ...string) url.Values {
	form := url.Values{}
	for _, id := range users {
		form.Add("user", id.String())
	}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return form
}

// eventsOf returns the number of events of this type about the user.
func (f *fixture) eventsOf(id rolecall.UserID, kind rolecall.EventType) (n int) {
	f.t.Helper()
	page, err := f.node.Directory.UserEvents(f.t.Context(), f.asOwner(), id, directory.EventListing{Limit: 50})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range page.Items {
		if e.Type == kind {
			n++
		}
	}
	return n
}

func TestSelectedUsersAreSuspendedAndResumedOneByOne(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	eve, mallory := f.hire("eve@example.com", "Eve <b>Adams", nil), f.hire("mallory@example.com", "=1+1", nil)
	users := []rolecall.UserID{eve.ID, f.owner.ID, mallory.ID, eve.ID}
	const path = "/console/acme/users/selected/suspend"
	asked := f.get(path+"?return=%2Fusers%3Fq%3Dev&"+selecting(users).Encode(), cookie)
	for _, part := range []string{"Suspend 3 users?", "Eve &lt;b&gt;Adams", "=1+1", "signed out everywhere", `href="/console/acme/users?q=ev"`, `name="user" value="` + eve.ID.String()} {
		if asked.StatusCode != http.StatusOK || !strings.Contains(asked.body, part) {
			t.Errorf("%d, lacks %s: %s", asked.StatusCode, part, asked.body)
		}
	}
	if n := f.eventsOf(eve.ID, rolecall.EventUserSuspended); n != 0 {
		t.Error("asking does it")
	}
	for range 2 {
		a := f.send(http.MethodPost, path, cookie, selecting(users, "reason", "left & gone", "return", "/users?q=ev"))
		for _, part := range []string{"2 users suspended", "1 user wasn&#39;t changed", "Ada Lovelace", "A tenant needs at least one active user whose owner role", `href="/console/acme/users?q=ev"`, path + "?return=%2Fusers%3Fq%3Dev&amp;user=" + f.owner.ID.String()} {
			if a.StatusCode != http.StatusOK || !strings.Contains(a.body, part) {
				t.Errorf("%d, lacks %s: %s", a.StatusCode, part, a.body)
			}
		}
	}
	for _, id := range []rolecall.UserID{eve.ID, mallory.ID} {
		if user, err := f.node.Directory.User(t.Context(), f.asOwner(), id); err != nil || user.Status != rolecall.UserSuspended || f.eventsOf(id, rolecall.EventUserSuspended) != 1 {
			t.Errorf("%s: %d events, %v", user.Status, f.eventsOf(id, rolecall.EventUserSuspended), err)
		}
		if page := f.get("/console/acme/users/"+id.String(), cookie); !strings.Contains(page.body, "left &amp; gone") {
			t.Errorf("the reason is not kept: %s", page.body)
		}
	}
	a := f.send(http.MethodPost, "/console/acme/users/selected/resume", cookie, selecting(users))
	if !strings.Contains(a.body, "3 users resumed") || f.eventsOf(eve.ID, rolecall.EventUserResumed) != 1 || f.eventsOf(f.owner.ID, rolecall.EventUserResumed) != 0 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.send(http.MethodPost, path, cookie, selecting(users, "reason", strings.Repeat("x", 501))); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="fault-reason"`) || !strings.Contains(a.body, eve.ID.String()) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestARoleIsGivenToSelectedUsers(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	role, eve, mallory := f.makeRole("Helper", "users:read"), f.hire("eve@example.com", "Eve Adams", nil), f.hire("mallory@example.com", "Mallory", nil)
	users := []rolecall.UserID{eve.ID, mallory.ID}
	const path = "/console/acme/users/selected/give-role"
	for name, fields := range map[string][]string{
		`id="fault-role">Must be selected`:                    {"where", "everywhere"},
		"Choose at least one department, or choose All users": {"role", role.ID.String(), "where", "departments"},
		"Must be in the future":                               {"role", role.ID.String(), "where", "everywhere", "expiresAt", "2020-01-01T10:00"},
	} {
		if a := f.send(http.MethodPost, path, cookie, selecting(users, fields...)); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, name) || !strings.Contains(a.body, eve.ID.String()) {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	form := selecting(users, "role", role.ID.String(), "where", "departments", "reach/departments", "Sales", "reach/departments", "Legal\r\nOps")
	for range 2 {
		if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Role assigned to 2 users") {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	for _, id := range users {
		held, _, err := f.node.Directory.Assignments(t.Context(), f.asOwner(), rolecall.HolderOf(id))
		if err != nil || len(held) != 1 || strings.Join(held[0].Reach.Departments(), ",") != "Legal,Ops,Sales" || f.eventsOf(id, rolecall.EventRoleAssigned) == 0 {
			t.Errorf("%+v %v", held, err)
		}
	}
}

func TestOnlyWhatIsAllowedIsDoneToSelectedUsers(t *testing.T) {
	f := newFixture(t)
	sales := "Sales"
	eve, mallory := f.hire("eve@example.com", "Eve Adams", nil), f.hire("mallory@example.com", "Mallory Hidden", nil)
	if _, err := f.node.Directory.UpdateUser(t.Context(), f.asOwner(), eve.ID, rolecall.UserPatch{Department: rolecall.Some(&sales)}, nil); err != nil {
		t.Fatal(err)
	}
	f.hire("reader@example.com", "Rita Reader", []string{"users:read"})
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "users:suspend"}, "Sales")
	reader, clerk := f.signIn("acme", "reader@example.com"), f.signIn("acme", "clerk@example.com")
	users := []rolecall.UserID{eve.ID, mallory.ID}
	for _, a := range bulkActions {
		path := "/console/acme/users/selected" + a.path
		for _, reply := range []reply{f.get(path+"?"+selecting(users).Encode(), reader), f.send(http.MethodPost, path, reader, selecting(users))} {
			if reply.StatusCode != http.StatusForbidden || !strings.Contains(reply.body, "You do not have it, or your reach does not include this") {
				t.Errorf("%s: %d %s", a.path, reply.StatusCode, reply.body)
			}
		}
	}
	if n := f.eventsOf(eve.ID, rolecall.EventUserSuspended); n != 0 {
		t.Error("it was done all the same")
	}
	if a := f.get("/console/acme/users", reader); strings.Contains(a.body, `type="checkbox"`) || strings.Contains(a.body, "users/selected") {
		t.Errorf("%s", a.body)
	}
	if a := f.get("/console/acme/users", clerk); !strings.Contains(a.body, `value="`+eve.ID.String()) || !strings.Contains(a.body, "selected/suspend") || strings.Contains(a.body, "selected/give-role") {
		t.Errorf("%s", a.body)
	}
	f.hire("giver@example.com", "Greta Giver", []string{"users:read", "roles:read", "roles:assign"}, "Sales")
	f.makeRole("Deleter", "users:delete")
	giver := f.signIn("acme", "giver@example.com")
	if a := f.get("/console/acme/users/selected/give-role?"+selecting(users).Encode(), giver); !strings.Contains(a.body, `value="everywhere" disabled`) || !strings.Contains(a.body, `value="Sales" checked`) || strings.Contains(a.body, ">Deleter</option>") || strings.Contains(a.body, "<textarea") {
		t.Errorf("%s", a.body)
	}
	a := f.send(http.MethodPost, "/console/acme/users/selected/suspend", clerk, selecting(users))
	if !strings.Contains(a.body, "1 user suspended") || !strings.Contains(a.body, mallory.ID.String()) || strings.Contains(a.body, "Mallory Hidden") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if user, err := f.node.Directory.User(t.Context(), f.asOwner(), mallory.ID); err != nil || user.Status == rolecall.UserSuspended {
		t.Errorf("%s %v", user.Status, err)
	}
}

func TestAnInvalidSelectionIsRefused(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	const path = "/console/acme/users/selected/suspend"
	if a := f.get(path, cookie); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "No users selected") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.send(http.MethodPost, path, cookie, nil); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "No users selected") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	var many []rolecall.UserID
	for range selectedMax + 1 {
		many = append(many, rolecall.NewID[rolecall.User](rolecall.Time(1)))
	}
	for name, form := range map[string]url.Values{"at most 100 users": selecting(many), "has an invalid ID": {"user": {"x"}}} {
		for _, a := range []reply{f.get(path+"?"+form.Encode(), cookie), f.send(http.MethodPost, path, cookie, form)} {
			if a.StatusCode < 400 || a.StatusCode >= 500 || !strings.Contains(a.body, name) {
				t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
			}
		}
	}
	if a := f.send(http.MethodPost, path, cookie, selecting(many[:100])); !strings.Contains(a.body, "0 users suspended") || !strings.Contains(a.body, "100 users weren&#39;t changed") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, tail := range []string{"//evil.example", "https://evil.example/users?", "/users?x#y", "/sign-out", "/../users?", "javascript:alert(1)"} {
		a := f.get(path+"?"+selecting(many[:1], "return", tail).Encode(), cookie)
		if !strings.Contains(a.body, `<a class="button" href="/console/acme/users" data-close>`) && !strings.Contains(a.body, `<a class="button" href="/console/acme/" data-close>`) {
			t.Errorf("%s: %s", tail, a.body)
		}
	}
}

func TestASelectionAsksForARecentSignInWhereTheActDoes(t *testing.T) {
	f := newFixture(t)
	role, eve := f.makeRole("Helper", "users:read"), f.hire("eve@example.com", "Eve Adams", nil)
	cookie := f.signIn("acme", ownerEmail)
	f.await()
	form := selecting([]rolecall.UserID{eve.ID}, "role", role.ID.String(), "where", "everywhere")
	const path = "/console/acme/users/selected/give-role"
	if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, `name="current-password"`) || !strings.Contains(a.body, fmt.Sprintf(`value="%s" selected`, role.ID)) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form.Set("current-password", password)
	if a := f.send(http.MethodPost, path, cookie, form); !strings.Contains(a.body, "Role assigned to 1 user") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
