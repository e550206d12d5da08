package console

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// makeGroup creates a group of acme with the roles, as the owner.
func (f *fixture) makeGroup(name string, roles ...rolecall.Role) rolecall.Group {
	f.t.Helper()
	c := f.asOwner()
	created, err := f.node.Directory.CreateGroup(f.t.Context(), c, idempotency.Key{Text: name, Fingerprint: []byte(name)}, rolecall.GroupDraft{Name: name})
	for _, role := range roles {
		if err == nil {
			_, _, err = f.node.Directory.AssignRole(f.t.Context(), c, rolecall.HolderOf(created.Value.ID), role.ID, rolecall.AssignmentDraft{})
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Value
}

// join adds the users to the group.
func (f *fixture) join(group rolecall.Group, users ...rolecall.User) {
	f.t.Helper()
	for _, u := range users {
		if err := f.node.Directory.AddMember(f.t.Context(), f.asOwner(), group.ID, u.ID); err != nil {
			f.t.Fatal(err)
		}
	}
}

func TestAGroupIsMadeOnceEditedAndDeleted(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	const list = "/console/acme/groups"
	if a := f.get(list, cookie); !strings.Contains(a.body, "No groups yet") || !strings.Contains(a.body, list+"/create") || !strings.Contains(a.body, `aria-current="page" data-keys="g g"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, list+"/create", cookie, url.Values{"idempotency-key": {"j"}, "name": {""}}); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="fault-name"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form := url.Values{"idempotency-key": {"k"}, "name": {"Night shift"}, "description": {"Work <late>."}, "externalId": {"G-7"}}
	first := f.send(http.MethodPost, list+"/create", cookie, form)
	home, done, _ := strings.Cut(first.Header.Get("Location"), "?")
	if again := f.send(http.MethodPost, list+"/create", cookie, form); first.StatusCode != http.StatusSeeOther || done != "done=group-created" || again.Header.Get("Location") != first.Header.Get("Location") {
		t.Fatalf("%d %s, then %d %s", first.StatusCode, first.Header.Get("Location"), again.StatusCode, again.Header.Get("Location"))
	}
	if a := f.get(home, cookie); !strings.Contains(a.body, "Work &lt;late&gt;.") || !strings.Contains(a.body, "G-7") || !strings.Contains(a.body, "Add users. They get the roles of the group.") || !strings.Contains(a.body, "created the group") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form.Set("idempotency-key", "l")
	form.Set("externalId", "G-8")
	if a := f.send(http.MethodPost, list+"/create", cookie, form); a.StatusCode != http.StatusConflict || !strings.Contains(a.body, `id="fault-name"`) {
		t.Errorf("a name is taken: %d %s", a.StatusCode, a.body)
	}
	tag := html.UnescapeString(regexp.MustCompile(`name="if-match" value="([^"]+)"`).FindStringSubmatch(f.get(home+"/edit", cookie).body)[1])
	change := url.Values{"if-match": {tag}, "name": {"Late shift"}, "was-name": {"Night shift"}, "description": {""}, "was-description": {"Work <late>."}, "externalId": {""}, "was-externalId": {"G-7"}}
	if a := f.send(http.MethodPost, home+"/edit", cookie, change); a.Header.Get("Location") != home+"?done=saved" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home, cookie); strings.Contains(a.body, "<bdi>G-7</bdi></dd>") || !strings.Contains(a.body, "<h1><bdi>Late shift</bdi></h1>") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, home+"/edit", cookie, change); a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.body, "This was changed") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home+"/delete", cookie); !strings.Contains(a.body, "The group has no roles") || strings.Contains(a.body, `name="force"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, home+"/delete", cookie, nil); a.Header.Get("Location") != list+"?done=group-deleted" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home, cookie); a.StatusCode != http.StatusNotFound {
		t.Errorf("%d", a.StatusCode)
	}
	events := f.get("/console/acme/events", cookie).body
	for _, part := range []string{"deleted the group <bdi>Late shift</bdi>", "updated the group", "created the group"} {
		if !strings.Contains(regexp.MustCompile(`\s+`).ReplaceAllString(events, " "), part) {
			t.Errorf("the events lack %q: %s", part, events)
		}
	}
}

func TestGroupsAreSearchedSortedAndPaged(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for _, name := range []string{"Alpha team", "Beta team", "Gamma squad"} {
		f.makeGroup(name)
	}
	if a := f.get("/console/acme/groups?q=team", cookie); !strings.Contains(a.body, "2 groups") || strings.Contains(a.body, "Gamma") {
		t.Errorf("%s", a.body)
	}
	a := f.get("/console/acme/groups?sort=-name&limit=2", cookie)
	if strings.Index(a.body, ">Gamma squad<") > strings.Index(a.body, ">Beta team<") || !strings.Contains(a.body, `rel="next"`) || !strings.Contains(a.body, `aria-sort="descending"`) {
		t.Errorf("%s", a.body)
	}
	next := html.UnescapeString(regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(a.body)[1])
	if a := f.get(next, cookie); !strings.Contains(a.body, ">Alpha team<") || strings.Contains(a.body, ">Beta team<") || !strings.Contains(a.body, `rel="prev"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.get("/console/acme/groups?q=omega", cookie); !strings.Contains(a.body, "No groups match") {
		t.Errorf("%s", a.body)
	}
	if a := f.get("/console/acme/find?q=gamma", cookie); !strings.Contains(a.body, "/console/acme/groups/") {
		t.Errorf("the palette does not find a group: %s", a.body)
	}
}

func TestAMemberIsAddedAndRemovedAtTheGroup(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	role := f.makeRole("Helper", "users:read")
	group, eve := f.makeGroup("Night shift", role), f.hire("eve@example.com", "Eve Adams", nil)
	home := "/console/acme/groups/" + group.ID.String()
	path := home + "/users/" + eve.ID.String()
	if a := f.get(home+"/users/add?q=eve", cookie); !strings.Contains(a.body, `hx-get="`+path+`"`) || !strings.Contains(a.body, "eve@example.com") || strings.Contains(a.body, home+"/users/"+f.owner.ID.String()) {
		t.Errorf("%s", a.body)
	}
	if a := f.get(path, cookie); !strings.Contains(a.body, "The user immediately gets the roles of the group: Helper.") || !strings.Contains(a.body, "Add <bdi>Eve Adams</bdi> to <bdi>Night shift</bdi>?") {
		t.Errorf("%s", a.body)
	}
	if a := f.get(path+"/remove", cookie); !strings.Contains(a.body, "isn&#39;t a member") || strings.Contains(a.body, `<form method="post" action="`+path) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path, cookie, url.Values{"from": {""}}); a.Header.Get("Location") != home+"?done=member-added" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home+"/users/add?q=eve", cookie); !strings.Contains(a.body, "Already a member") {
		t.Errorf("%s", a.body)
	}
	if a := f.get(path, cookie); !strings.Contains(a.body, "already a member of this group") {
		t.Errorf("%s", a.body)
	}
	if a := f.get(home, cookie); !strings.Contains(a.body, "Eve Adams") || !strings.Contains(a.body, path+"/remove") || !strings.Contains(a.body, "1 user") {
		t.Errorf("%s", a.body)
	}
	for query, want := range map[string]bool{"": true, "?q=eve": true, "?q=bob": false, "?status=suspended": false, "?sort=name": true} {
		if a := f.get(home+"/users"+query, cookie); strings.Contains(a.body, path+"/remove") != want || a.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	if a := f.get(home+"/users", cookie, "Hx-Request", "true", "Hx-Target", "count"); !strings.Contains(a.body, "1 user") || strings.Contains(a.body, "<table") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path+"/remove", cookie, nil); a.Header.Get("Location") != home+"?done=member-removed" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home+"/users", cookie); strings.Contains(a.body, "Eve Adams") || !strings.Contains(a.body, "No members") {
		t.Errorf("%s", a.body)
	}
	events := regexp.MustCompile(`<[^>]*>|\s+`).ReplaceAllString(f.get("/console/acme/events?subject="+eve.ID.String(), cookie).body, " ")
	events = strings.Join(strings.Fields(events), " ")
	for _, part := range []string{"You added Eve Adams to the group Night shift", "You removed Eve Adams from the group Night shift"} {
		if !strings.Contains(events, part) {
			t.Errorf("the events lack %q: %s", part, events)
		}
	}
}

func TestAUserIsAddedToGroupsOnTheirPage(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	group, eve := f.makeGroup("Night shift"), f.hire("eve@example.com", "Eve Adams", nil)
	home := "/console/acme/users/" + eve.ID.String()
	path := "/console/acme/groups/" + group.ID.String() + "/users/" + eve.ID.String()
	if a := f.get(home, cookie); !strings.Contains(a.body, home+"/groups/add") || !strings.Contains(a.body, "No groups") {
		t.Errorf("%s", a.body)
	}
	if a := f.get(home+"/groups/add?q=night", cookie); !strings.Contains(a.body, `hx-get="`+path+`?from=user"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.get(path+"?from=user", cookie); f.hiddenField(a.body, "from") != "user" || !strings.Contains(a.body, `href="`+home+`" data-close`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path, cookie, url.Values{"from": {"user"}}); a.Header.Get("Location") != home+"?done=member-added" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	for _, page := range []string{home, home + "/groups"} {
		if a := f.get(page, cookie); !strings.Contains(a.body, `<a href="/console/acme/groups/`+group.ID.String()+`"><bdi>Night shift</bdi>`) || !strings.Contains(a.body, path+"/remove?from=user") {
			t.Errorf("%s: %s", page, a.body)
		}
	}
	if a := f.get(home+"/groups/add", cookie); !strings.Contains(a.body, "Already a member") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path+"/remove", cookie, url.Values{"from": {"user"}}); a.Header.Get("Location") != home+"?done=member-removed" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home+"/groups", cookie); strings.Contains(a.body, "Night shift") {
		t.Errorf("%s", a.body)
	}
}

func TestAGroupHoldsRolesThatItsMembersShow(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	role, other := f.makeRole("Helper", "users:read"), f.makeRole("Counter", "shop/stock:count")
	group, eve := f.makeGroup("Night shift"), f.hire("eve@example.com", "Eve Adams", nil)
	f.join(group, eve)
	home, user := "/console/acme/groups/"+group.ID.String(), "/console/acme/users/"+eve.ID.String()
	path := home + "/roles/" + role.ID.String()
	a := f.get(home+"/roles/give", cookie)
	if !strings.Contains(a.body, path) || strings.Contains(a.body, home+"/roles/"+f.builtIn(rolecall.OwnerKey).ID.String()) || !strings.Contains(a.body, rolecall.ErrOwnerNeedsUser.Detail) {
		t.Errorf("%s", a.body)
	}
	end := time.Now().UTC().Add(48 * time.Hour).Format(inputLayout)
	form := url.Values{"where": {"departments"}, "reach/departments": {"Sales"}, "expiresAt": {end}}
	if a := f.send(http.MethodPost, path, cookie, form); a.Header.Get("Location") != home+"?done=role-given&role="+role.ID.String() {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	for _, page := range []string{home, home + "/roles"} {
		if a := f.get(page, cookie); !strings.Contains(a.body, path+"/take") || !strings.Contains(a.body, "In Sales") {
			t.Errorf("%s: %s", page, a.body)
		}
	}
	f.assignRole(eve.ID, role.ID, rolecall.AssignmentDraft{}) // the user now has the role in two ways
	f.assignRole(eve.ID, other.ID, rolecall.AssignmentDraft{})
	row := regexp.MustCompile(`(?s)<tr[^>]*>.*?</tr>`)
	for _, page := range []string{user, user + "/roles"} {
		var direct, through []string
		for _, text := range row.FindAllString(f.get(page, cookie).body, -1) {
			switch {
			case !strings.Contains(text, "/console/acme/roles/"+role.ID.String()):
			case strings.Contains(text, "through"):
				through = append(through, text)
			default:
				direct = append(direct, text)
			}
		}
		if len(direct) != 1 || !strings.Contains(direct[0], user+"/roles/"+role.ID.String()+"/take") || !strings.Contains(direct[0], "Everywhere") {
			t.Errorf("%s: direct %q", page, direct)
		}
		if len(through) != 1 || strings.Contains(through[0], "/take") || !strings.Contains(through[0], `through <a href="`+home+`"><bdi>Night shift</bdi></a>`) || !strings.Contains(through[0], "In Sales") {
			t.Errorf("%s: through %q", page, through)
		}
	}
	if a := f.get(user+"/roles", cookie); !strings.Contains(a.body, "2 roles") {
		t.Errorf("%s", a.body)
	}
	if a := f.get("/console/acme/access?permission=users:read", cookie); !strings.Contains(a.body, `through <a href="`+home) {
		t.Errorf("%s", a.body)
	}
	if a := f.get("/console/acme/roles/"+role.ID.String()+"/users", cookie); strings.Count(a.body, ">Eve Adams<") != 1 {
		t.Errorf("%s", a.body)
	}
	if a := f.get(user+"/roles/"+role.ID.String()+"/take", cookie); !strings.Contains(a.body, "They keep this role through a group: Night shift.") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, user+"/roles/"+role.ID.String()+"/take", cookie, nil); !strings.HasPrefix(a.Header.Get("Location"), user+"?done=role-taken&role="+role.ID.String()+"&undo-end=") || strings.Contains(a.Header.Get("Location"), "Sales") {
		t.Errorf("%d %s %s", a.StatusCode, a.Header.Get("Location"), a.body)
	}
	if a := f.get(user+"/roles/give?q=help", cookie); !strings.Contains(a.body, user+"/roles/"+role.ID.String()) {
		t.Errorf("a role through a group cannot be assigned directly: %s", a.body)
	}
	zoe := f.hire("zoe@example.com", "Zoe Young", nil)
	copied := "/console/acme/users/" + zoe.ID.String() + "/roles/copy?with=" + eve.ID.String()
	if a := f.get(copied, cookie); !strings.Contains(a.body, "Comes through the group Night shift.") {
		t.Errorf("%s", a.body)
	}
	f.join(group, zoe)
	if a := f.get(copied, cookie); !strings.Contains(a.body, "already a member of this group") {
		t.Errorf("%s", a.body)
	}
	if a := f.get("/console/acme/account", f.signIn("acme", "eve@example.com")); !strings.Contains(a.body, "through <bdi>Night shift</bdi>") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path+"/take", cookie, nil); !strings.HasPrefix(a.Header.Get("Location"), home+"?done=role-taken&role="+role.ID.String()) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	events := strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(f.get(home, cookie).body, " ")), " ")
	for _, part := range []string{"You assigned Helper to the group Night shift in Sales until", "You removed Helper from the group Night shift"} {
		if !strings.Contains(events, part) {
			t.Errorf("the page lacks %q: %s", part, events)
		}
	}
}

func TestAGroupWithRolesIsDeletedWithForce(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	role, group := f.makeRole("Helper", "users:read"), f.makeGroup("Night shift")
	eve := f.hire("eve@example.com", "Eve Adams", nil)
	f.join(group, eve)
	home := "/console/acme/groups/" + group.ID.String()
	if _, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(group.ID), role.ID, rolecall.AssignmentDraft{}); err != nil {
		t.Fatal(err)
	}
	a := f.send(http.MethodPost, home+"/delete", cookie, nil) // from a page that was loaded before the assignment
	if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "its members immediately lose its roles") || !strings.Contains(a.body, "Helper") || strings.Contains(a.body, "?force") || f.hiddenField(a.body, "force") != "true" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.send(http.MethodPost, home+"/delete", cookie, url.Values{"force": {"true"}}); a.Header.Get("Location") != "/console/acme/groups?done=group-deleted" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get("/console/acme/users/"+eve.ID.String(), cookie); strings.Contains(a.body, "through") {
		t.Errorf("%s", a.body)
	}
}

func TestTheGroupFiltersUsersExportsAndJobs(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	group, eve := f.makeGroup("Night shift"), f.hire("eve@example.com", "Eve Adams", nil)
	f.join(group, eve)
	query := "?group=" + group.ID.String()
	a := f.get("/console/acme/users"+query, cookie)
	if !strings.Contains(a.body, "Eve Adams") || strings.Contains(a.body, f.owner.ID.String()+`" data-row`) || !strings.Contains(a.body, `<option value="`+group.ID.String()+`" selected>`) || !strings.Contains(a.body, "/console/acme/users/export"+query) {
		t.Errorf("%s", a.body)
	}
	if a := f.get("/console/acme/users?group="+eve.ID.String(), cookie); !strings.Contains(a.body, "is not the ID of a group") {
		t.Errorf("%s", a.body)
	}
	if records := f.exported("/console/acme/users/export"+query, cookie); len(records) != 2 {
		t.Errorf("%q", records)
	}
	address := "/console/acme/users/all/suspend?return=" + url.QueryEscape("/users"+query)
	if a := f.get(address, cookie); !strings.Contains(a.body, "in the group Night shift") || !strings.Contains(a.body, "Suspend 1 user?") {
		t.Errorf("%s", a.body)
	}
	form := url.Values{"idempotency-key": {"k"}, "return": {"/users" + query}, "reason": {""}}
	started := f.send(http.MethodPost, "/console/acme/users/all/suspend", cookie, form)
	if started.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", started.StatusCode, started.body)
	}
	if a := f.get(started.Header.Get("Location"), cookie); !strings.Contains(a.body, "in the group Night shift") {
		t.Errorf("%s", a.body)
	}
}

func TestOnlyThoseWhoMayChangeAGroup(t *testing.T) {
	f := newFixture(t)
	role := f.makeRole("Helper", "users:delete")
	group, plain := f.makeGroup("Night shift", role), f.makeGroup("Choir")
	eve := f.hire("eve@example.com", "Eve Adams", nil)
	f.join(group, eve)
	f.hire("reader@example.com", "Rita Reader", []string{"groups:read"})
	f.hire("clerk@example.com", "Clara Clerk", []string{"groups:*", "users:read"})
	home := "/console/acme/groups/" + group.ID.String()
	a := f.get(home, f.signIn("acme", "reader@example.com"))
	for _, part := range []string{home + "/edit", home + "/delete", home + "/users/add", home + "/roles/give", "Eve Adams"} {
		if a.StatusCode != http.StatusOK || strings.Contains(a.body, part) {
			t.Errorf("a reader sees %s: %d", part, a.StatusCode)
		}
	}
	clerk := f.signIn("acme", "clerk@example.com")
	if a := f.get(home, clerk); strings.Contains(a.body, home+"/delete") || !strings.Contains(a.body, home+"/edit") || !strings.Contains(a.body, "You need the permission users:delete") {
		t.Errorf("%s", a.body)
	}
	path := "/users/" + f.owner.ID.String()
	if a := f.get(home+path, clerk); !strings.Contains(a.body, "This group has roles. You need roles:assign") || strings.Contains(a.body, `name="from"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, home+path, clerk, nil); a.StatusCode != http.StatusForbidden {
		t.Errorf("%d", a.StatusCode)
	}
	other := "/console/acme/groups/" + plain.ID.String()
	if a := f.send(http.MethodPost, other+path, clerk, nil); a.Header.Get("Location") != other+"?done=member-added" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	own := f.get("/console/acme/users/"+eve.ID.String(), f.signIn("acme", "eve@example.com"))
	if !strings.Contains(own.body, "<bdi>Night shift</bdi>") || strings.Contains(own.body, home) {
		t.Errorf("%d %s", own.StatusCode, own.body)
	}
}

func TestADeletedUserShowsTheFormerGroups(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	kept, gone := f.makeGroup("Night shift"), f.makeGroup("Choir")
	eve := f.hire("eve@example.com", "Eve Adams", nil)
	f.join(kept, eve)
	f.join(gone, eve)
	if err := f.node.Directory.DeleteUser(t.Context(), f.asOwner(), eve.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.node.Directory.DeleteGroup(t.Context(), f.asOwner(), gone.ID, false, nil); err != nil {
		t.Fatal(err)
	}
	home := "/console/acme/users/" + eve.ID.String()
	if a := f.get(home+"/deleted", cookie); !strings.Contains(a.body, "Previous groups") || !strings.Contains(a.body, "/console/acme/groups/"+kept.ID.String()) || !strings.Contains(a.body, "<bdi>Choir</bdi>") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, home+"/restore", cookie, nil); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "wasn&#39;t added to these groups again") || !strings.Contains(a.body, "<bdi>Choir</bdi>") || strings.Contains(a.body, "Night shift") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home, cookie); !strings.Contains(a.body, "<bdi>Night shift</bdi>") {
		t.Errorf("%s", a.body)
	}
}

func TestAGroupWithASourceIsChangedElsewhere(t *testing.T) {
	f := newFixture(t)
	cookie, ada := f.signIn("acme", ownerEmail), f.hire("ada@example.com", "Ada Lovelace", nil)
	c := f.makeConnection("https://login.acme.example", func(*rolecall.ConnectionDraft) {})
	created, err := f.node.Directory.CreateGroup(t.Context(), f.asOwner(), idempotency.Key{Text: "k", Fingerprint: []byte("k")}, rolecall.GroupDraft{Name: "Engineers", Source: rolecall.SourceOf(c.ID)})
	if err != nil {
		t.Fatal(err)
	}
	home := "/console/acme/groups/" + created.Value.ID.String()
	const filled = "An identity provider fills this group."
	page := f.get(home, cookie)
	shows(t, page, filled, "Filled by", `href="/console/acme/connections/`+c.ID.String()+`"`, home+"/edit")
	if strings.Contains(page.body, home+"/delete") || strings.Contains(page.body, home+"/users/add") {
		t.Errorf("the page offers what is refused: %s", page.body)
	}
	edit := f.get(home+"/edit", cookie)
	shows(t, edit, filled, `name="description"`)
	if strings.Contains(edit.body, `name="name"`) || strings.Contains(edit.body, `name="externalId"`) {
		t.Errorf("the form offers what is refused: %s", edit.body)
	}
	shows(t, f.get(home+"/delete", cookie), filled)
	shows(t, f.get(home+"/users/"+ada.ID.String(), cookie), filled)
	shows(t, f.get("/console/acme/users/"+ada.ID.String()+"/groups/add", cookie), "Filled by an identity provider")
	if a := f.send(http.MethodPost, home+"/delete", cookie, url.Values{}); a.StatusCode != http.StatusConflict {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
