package console

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/httpapi"
)

func TestEachTypeOfEventHasWords(t *testing.T) {
	source, err := os.ReadFile("../event.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`EventType += "([a-z_.]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 30 {
		t.Fatalf("%d types", len(found))
	}
	offered := map[rolecall.EventType]int{}
	for _, kind := range eventKinds {
		for _, kind := range kind.types {
			offered[kind]++
		}
	}
	for _, match := range found {
		if strings.HasPrefix(match[1], "operator_key.") {
			continue // only in the operators' log, which the console does not show
		}
		if kind := rolecall.EventType(match[1]); !hasMessage(eventPrefix+string(kind)) || !hasMessage(sentencePrefix+string(kind)) || offered[kind] != 1 {
			t.Errorf("%s needs words in [event] and [sentence] of messages/en.toml, and one row in ../event.go whose topic is in eventTopics of events.go: it is named %q, and is offered %d times", kind, eventName(kind), offered[kind])
		}
	}
}

func TestRefusalsAreShownInWords(t *testing.T) {
	f := newFixture(t)
	eve := f.hire("eve@example.com", "Eve Adams", []string{"users:read"})
	cookie := f.signIn("acme", "eve@example.com")
	for range 2 {
		if a := f.send(http.MethodPost, "/console/acme/users/"+f.owner.ID.String()+"/suspend", cookie, url.Values{}); a.StatusCode != http.StatusForbidden {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	if err := f.node.Access.Refusals.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := f.get("/console/acme/events?actor="+eve.ID.String(), f.signIn("acme", ownerEmail))
	if strings.Count(a.body, "Suspend a user: Permission denied, 2 times") != 2 || strings.Contains(a.body, "UsersController") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for reason, want := range map[string]string{
		"wrong-code": "Wrong code", "several operations, 12 times": "several operations, 12 times", "console: tenant-suspended": "Tenant suspended",
		"": "", "UsersController_getUser: not-found, 1 times": "Get a user: Not found, 1 time",
	} {
		c := &console{policies: httpapi.Policies()}
		if got := (frame{pageContext: &pageContext{console: c}}).refusalWords(reason); got != want {
			t.Errorf("%q: got %q, want %q", reason, got, want)
		}
	}
}

// changed creates a user, and then changes their name and department and suspends them as the owner.
func (f *fixture) changed(name string) rolecall.User {
	f.t.Helper()
	user := f.hire("secret@example.com", "Before "+name, nil)
	c := f.asOwner()
	patch := rolecall.UserPatch{Name: rolecall.Some(name), Department: rolecall.Some(orNil("Hidden department"))}
	if _, err := f.node.Directory.UpdateUser(f.t.Context(), c, user.ID, patch, nil); err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.node.Directory.SuspendUser(f.t.Context(), c, user.ID, "Left "+name); err != nil {
		f.t.Fatal(err)
	}
	return user
}

func TestEventsNameNobodyWhomTheReaderMayNotKnow(t *testing.T) {
	f := newFixture(t)
	user := f.changed("Eve Secret")
	f.hire("auditor@example.com", "Andy Auditor", []string{"events:read"})
	f.hire("dated@example.com", "Dan Dated", []string{"events:read", "users.createdAt:read"})
	f.hire("names@example.com", "Nora Names", []string{"events:read", "users.name:read"})
	history := "/console/acme/users/" + user.ID.String() + "/events"
	pages := []string{"/console/acme/events", "/console/acme/events?subject=" + user.ID.String(), "/console/acme/events?person=eve", "/console/acme/events?actor=" + f.owner.ID.String()}

	auditor := f.signIn("acme", "auditor@example.com")
	for _, path := range pages {
		a := f.get(path, auditor)
		// Every caller who may read the event sees its reason, which is free text. So the
		// check ignores the reason.
		page := strings.ReplaceAll(a.body, "Left Eve Secret", "")
		for _, secret := range []string{"Eve Secret", "Ada Lovelace", "Hidden department", "secret@example.com"} {
			if a.StatusCode != http.StatusOK || strings.Contains(page, secret) {
				t.Errorf("%s: %d, shows %s", path, a.StatusCode, secret)
			}
		}
		for _, part := range []string{"a user you can&#39;t view", "Hidden. You need users.name:read to see this."} {
			if !strings.Contains(page, part) {
				t.Errorf("%s lacks %q", path, part)
			}
		}
		if strings.Contains(page, `name="person"`) {
			t.Errorf("%s offers to find people", path)
		}
	}
	if a := f.get(history, auditor); a.StatusCode != http.StatusNotFound {
		t.Errorf("a history of somebody unknown: %d", a.StatusCode)
	}
	dated := f.signIn("acme", "dated@example.com")
	for _, path := range append(pages, history, "/console/acme/users/"+user.ID.String()) {
		a := f.get(path, dated)
		if page := strings.ReplaceAll(a.body, "Left Eve Secret", ""); a.StatusCode != http.StatusOK || strings.Contains(page, "Eve Secret") || strings.Contains(page, "Ada Lovelace") {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	names := f.signIn("acme", "names@example.com")
	a := f.get("/console/acme/events?subject="+user.ID.String(), names)
	for _, part := range []string{"Before Eve Secret</bdi></del>", "Eve Secret</bdi></ins>", "Ada Lovelace", "Hidden. You need users.department:read to see this."} {
		if !strings.Contains(a.body, part) {
			t.Errorf("lacks %q", part)
		}
	}
	if strings.Contains(a.body, "Hidden department") {
		t.Error("a department is shown")
	}
}

func TestEventsAreForThoseWhoMayReadThem(t *testing.T) {
	f := newFixture(t)
	user := f.hire("clerk@example.com", "Clara Clerk", []string{"users:read"})
	clerk := f.signIn("acme", "clerk@example.com")
	if a := f.get("/console/acme/events", clerk); a.StatusCode != http.StatusForbidden || strings.Contains(a.body, `href="/console/acme/events"`) {
		t.Errorf("%d", a.StatusCode)
	}
	if a := f.get("/console/acme/users/"+f.owner.ID.String()+"/events", clerk); a.StatusCode != http.StatusForbidden {
		t.Errorf("of another: %d", a.StatusCode)
	}
	if a := f.get("/console/acme/users/"+user.ID.String()+"/events", clerk); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Signed in") {
		t.Errorf("one's own: %d", a.StatusCode)
	}
}

func TestEventsAreText(t *testing.T) {
	f := newFixture(t)
	user := f.changed(`<img src=x onerror=alert(1)>"'&lt;`)
	cookie := f.signIn("acme", ownerEmail)
	for _, path := range []string{"/console/acme/events", "/console/acme/users/" + user.ID.String() + "/events", "/console/acme/events?subject=" + user.ID.String(), "/console/acme/events?person=img", "/console/acme/events?type=" + url.QueryEscape(`"><img src=x>`)} {
		if a := f.get(path, cookie); a.StatusCode != http.StatusOK || strings.Contains(a.body, "<img src=x") || !strings.Contains(a.body, "&lt;img src=x") {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
}

// titles returns the display names of the event types on the page.
func titles(page string) (list []string) {
	for _, match := range regexp.MustCompile(`<summary data-row><span class="unseen">Details ([^<]+)</span>`).FindAllStringSubmatch(page, -1) {
		list = append(list, match[1])
	}
	return list
}

func TestFiltersOfEventsAreThoseOfTheOperation(t *testing.T) {
	f := newFixture(t)
	user := f.changed("Eve Adams")
	cookie := f.signIn("acme", ownerEmail)
	// Ids of one process only increase. Tests whose clock is ahead make them hours ahead, so
	// late in the day an event of now can have an id of tomorrow.
	today, later := time.Now().UTC().Format(time.DateOnly), time.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly)
	about := "/console/acme/events?subject=" + user.ID.String()
	all := []string{"User suspended", "User updated", "Password changed", "User created"}
	for query, want := range map[string][]string{
		"":                                    all,
		"&type=user.updated":                  {"User updated"},
		"&actor=" + f.owner.ID.String():       {"User suspended", "User updated", "User created"},
		"&actor=" + user.ID.String():          nil,
		"&from=" + today:                      all,
		"&from=" + later:                      nil,
		"&to=" + later:                        all,
		"&to=" + today:                        nil,
		"&from=" + today + "T00%3A00%3A00Z":   all,
		"&type=user.created&from=&to=&actor=": {"User created"},
	} {
		if a := f.get(about+query, cookie); a.StatusCode != http.StatusOK || !slices.Equal(titles(a.body), want) {
			t.Errorf("%s: %d %q in %s", query, a.StatusCode, titles(a.body), a.body)
		}
	}
	for _, query := range []string{"&from=yesterday", "&from=2026-13-40", "&to=0000-00-00", "&actor=x", "&cursor=x", "&type=%07", "&type=user.unheard_of"} {
		if a := f.get(about+query, cookie); a.StatusCode != http.StatusOK || !strings.Contains(a.body, `role="alert"`) || titles(a.body) != nil {
			t.Errorf("%s: %d %q", query, a.StatusCode, titles(a.body))
		}
	}
	for query, want := range map[string]string{
		"/events?type=user.unheard_of":                  "<strong>The type</strong> “<bdi>user.unheard_of</bdi>” is unknown: it must be a known type of event",
		"/users/" + user.ID.String() + "/events?type=x": "<strong>The type</strong> “<bdi>x</bdi>” is unknown: it must be a known type of event",
		"/users?status=activ":                           "<strong>The status</strong> “<bdi>activ</bdi>” is unknown: it must be pending, active, suspended or deleted.",
	} {
		if a := f.get("/console/acme"+query, cookie); a.StatusCode != http.StatusOK || !strings.Contains(a.body, want) || strings.Contains(a.body, "No users match") || strings.Contains(a.body, "No events match") {
			t.Errorf("%s: %d does not say %q", query, a.StatusCode, want)
		}
	}
	if a := f.get("/console/acme/events?person=eve", cookie); !strings.Contains(a.body, "/console/acme/events?actor="+user.ID.String()) || !strings.Contains(a.body, about) {
		t.Errorf("%s", a.body)
	}
	page := f.get("/console/acme/users/"+user.ID.String(), cookie).body
	if !strings.Contains(page, "/users/"+user.ID.String()+"/events") || !strings.Contains(page, "You suspended <a") {
		t.Error("the user's page does not lead to the history, or does not say who did it")
	}
}

func TestEventsOfAssignmentsSayWhereAndUntilWhen(t *testing.T) {
	f := newFixture(t)
	user, role := f.hire("eve@example.com", "Eve Adams", nil), f.makeRole("Helper", "shop/stock:count")
	end := rolecall.TimeOf(time.Date(2199, 1, 2, 15, 4, 0, 0, time.UTC))
	for _, draft := range []rolecall.AssignmentDraft{{Departments: []string{"Sales", "Ops"}, ExpiresAt: &end}, {}} {
		if _, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID), role.ID, draft); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.node.Directory.UnassignRole(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID), role.ID); err != nil {
		t.Fatal(err)
	}
	link := `<a href="/console/acme/`
	helper, eve := link+"roles/"+role.ID.String()+`"><bdi>Helper</bdi></a>`, link+"users/"+user.ID.String()+`"><bdi>Eve Adams</bdi></a>`
	want := []string{"You removed " + helper + " from " + eve, "You assigned " + helper + " to " + eve, "You assigned " + helper + " to " + eve + ` <bdi>in Ops and Sales</bdi> until <time datetime="2199-01-02T15:04:00.000Z" title="Wednesday, 2 January 2199, 15:04:00 UTC">2 Jan 2199</time>`}
	said := regexp.MustCompile(`You (?:assigned|removed) .*?</p>`)
	cookie := f.signIn("acme", ownerEmail)
	for _, path := range []string{"/console/acme/events?subject=" + user.ID.String(), "/console/acme/users/" + user.ID.String() + "/events", "/console/acme/users/" + user.ID.String()} {
		var got []string
		for _, sentence := range said.FindAllString(f.get(path, cookie).body, -1) {
			words := strings.Join(strings.Fields(strings.TrimSuffix(sentence, "</p>")), " ")
			got = append(got, strings.TrimSpace(strings.ReplaceAll(words, "<bdi></bdi>", "")))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s says %q, want %q", path, got, want)
		}
	}
	page := f.get("/console/acme/users/"+user.ID.String()+"/events", cookie).body
	for _, part := range []string{"Ops, Sales</bdi></del>", "Everywhere</bdi></ins>", "Never</bdi></ins>", "Everywhere</bdi></del>"} {
		if !strings.Contains(page, part) {
			t.Errorf("the details lack %q", part)
		}
	}
	f.hire("auditor@example.com", "Andy Auditor", []string{"events:read", "users:read"})
	if a := f.get("/console/acme/events?subject="+user.ID.String(), f.signIn("acme", "auditor@example.com")); strings.Contains(a.body, "2 Jan 2199") || strings.Contains(a.body, "in Ops") || strings.Contains(a.body, "Ops, Sales") || !strings.Contains(a.body, "You need roles:read to see this.") {
		t.Errorf("without roles:read: %s", a.body)
	}
}

func TestUnreadableObjectsAreNotShownAsDeleted(t *testing.T) {
	f := newFixture(t)
	eve, role := f.hire("eve@example.com", "Eve Adams", nil), f.makeRole("Secret role", "shop/stock:count")
	account := f.makeAccount("Secret import", role)
	c := f.asOwner()
	if _, _, err := f.node.Directory.AssignRole(t.Context(), c, rolecall.HolderOf(eve.ID), role.ID, rolecall.AssignmentDraft{}); err != nil {
		t.Fatal(err)
	}
	f.hire("auditor@example.com", "Andy Auditor", []string{"events:read"})
	f.hire("reader@example.com", "Rita Reader", []string{"events:read", "roles:read", "users:read", "service-accounts:read"})
	auditor, self, reader := f.signIn("acme", "auditor@example.com"), f.signIn("acme", "eve@example.com"), f.signIn("acme", "reader@example.com")
	shows := func(path, cookie, part string, lacking ...string) {
		t.Helper()
		a := f.get(path, cookie)
		if !strings.Contains(a.body, strings.ReplaceAll(part, "'", "&#39;")) {
			t.Errorf("%s lacks %q", path, part)
		}
		for _, other := range append(lacking, "gone", "Secret") {
			if strings.Contains(a.body, other) {
				t.Errorf("%s shows %q", path, other)
			}
		}
	}
	events := "/console/acme/events?subject="
	shows("/console/acme/users/"+eve.ID.String()+"/events", self, "a role you can't view", "a deleted")
	shows("/console/acme/users/"+eve.ID.String()+"/events", self, "a role you can't view ("+role.ID.String()+")")
	if a := f.get("/console/acme/users/"+eve.ID.String()+"/roles", self); !strings.Contains(a.body, "a user or service account you can&#39;t view") {
		t.Errorf("one's own roles: %s", a.body)
	}
	shows(events+role.ID.String(), auditor, "a role you can't view", "a deleted")
	shows(events+account.ID.String(), auditor, "a service account you can't view", "a deleted")
	shows(events+eve.ID.String(), auditor, "a user you can't view", "a deleted")

	if err := f.node.Directory.DeleteRole(t.Context(), c, role.ID, true, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.node.Directory.DeleteServiceAccount(t.Context(), c, account.ID, nil); err != nil {
		t.Fatal(err)
	}
	f.remove(eve)
	shows(events+role.ID.String(), auditor, "a role you can't view", "a deleted")
	spaces := regexp.MustCompile(`\s+`)
	for path, part := range map[string]string{events + role.ID.String(): "deleted the role <bdi>Secret role</bdi> <span class=\"badge\">Deleted", events + account.ID.String(): "deleted the service account <bdi>Secret import</bdi> <span class=\"badge\">Deleted", events + eve.ID.String(): "a deleted user"} {
		if a := f.get(path, reader); !strings.Contains(spaces.ReplaceAllString(a.body, " "), part) || strings.Contains(a.body, "/roles/"+role.ID.String()+"\"") || strings.Contains(a.body, "you can&#39;t view") {
			t.Errorf("%s lacks %q, or calls it unreadable", path, part)
		}
	}
}

func TestAnEventShowsWhatAListGainedAndLost(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	role := f.makeRole("Support", "users:read", "users:suspend")
	patch := rolecall.RolePatch{Permissions: rolecall.Some([]string{"users:read", "users:invite"})}
	if _, err := f.node.Directory.UpdateRole(t.Context(), f.asOwner(), role.ID, patch, nil); err != nil {
		t.Fatal(err)
	}
	body := f.get("/console/acme/events?type=role.updated", cookie).body
	for part, want := range map[string]bool{
		"Removed: </span><bdi>users:suspend": true, "Added: </span><bdi>users:invite": true, "<bdi>users:read": false,
	} {
		if strings.Contains(body, part) != want {
			t.Errorf("%q is shown: %v, in %s", part, !want, body)
		}
	}
}

func TestPagesOfObjectsHaveTheirHistory(t *testing.T) {
	f := newFixture(t)
	role := f.makeRole("Support", "users:read")
	f.hire("eve@example.com", "Eve Adams", []string{"roles:read", "tenant:read"})
	for email, want := range map[string]bool{ownerEmail: true, "eve@example.com": false} {
		cookie := f.signIn("acme", email)
		for path, all := range map[string]string{
			"/roles/" + role.ID.String(): "/console/acme/events?subject=" + role.ID.String(),
			"/settings":                  "/console/acme/events?subject=" + f.asOwner().Tenant.ID.String() + "&amp;type=tenant.updated",
		} {
			if body := f.get("/console/acme"+path, cookie).body; strings.Contains(body, all) != want {
				t.Errorf("%s sees the history at %s: %v", email, path, !want)
			}
		}
	}
}
