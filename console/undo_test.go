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
)

var (
	undoForm    = regexp.MustCompile(`(?s)<form method="post" action="([^"]*)">((?:\s*<input type="hidden"[^>]*>)*)\s*<button class="toast-undo">Undo</button>`)
	hiddenField = regexp.MustCompile(`name="([^"]*)" value="([^"]*)"`)
)

// undoIn returns the address and the fields of the form in the message, or an empty address.
func undoIn(body string) (action string, fields url.Values) {
	form, fields := undoForm.FindStringSubmatch(body), url.Values{}
	if form == nil {
		return "", nil
	}
	for _, field := range hiddenField.FindAllStringSubmatch(form[2], -1) {
		fields.Add(html.UnescapeString(field[1]), html.UnescapeString(field[2]))
	}
	return form[1], fields
}

func TestARemovedRoleIsAssignedAgainAsItWas(t *testing.T) {
	f := newFixture(t)
	role := f.makeRole("Helper", "users:read")
	eve := f.hire("eve@example.com", "Eve", nil)
	account := f.makeAccount("Import", f.makeRole("Auditor", "events:read"))
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "roles:read"})
	owner, clerk := f.signIn("acme", ownerEmail), f.signIn("acme", "clerk@example.com")
	end := rolecall.TimeOf(time.Now().Add(100 * time.Hour))
	for _, c := range []struct {
		holder rolecall.Holder
		home   string
		draft  rolecall.AssignmentDraft
	}{
		{rolecall.HolderOf(eve.ID), "/console/acme/users/" + eve.ID.String(), rolecall.AssignmentDraft{Departments: []string{"Legal, Risk", "R&D"}, ExpiresAt: &end}},
		{rolecall.HolderOf(eve.ID), "/console/acme/users/" + eve.ID.String(), rolecall.AssignmentDraft{}},
		{rolecall.HolderOf(account.ID), "/console/acme/service-accounts/" + account.ID.String(), rolecall.AssignmentDraft{Departments: []string{"Sales"}}},
	} {
		before, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), c.holder, role.ID, c.draft)
		if err != nil {
			t.Fatal(err)
		}
		path := c.home + "/roles/" + role.ID.String()
		address := f.send(http.MethodPost, path+"/take", owner, nil).Header.Get("Location")
		for _, site := range []string{"none", "cross-site", ""} {
			if action, _ := undoIn(f.get(address, owner, "Sec-Fetch-Site", site).body); action != "" {
				t.Errorf("a link of %q offers a change: %s", site, action)
			}
		}
		if action, _ := undoIn(f.get(address, clerk, "Sec-Fetch-Site", "same-origin").body); action != "" {
			t.Errorf("a caller who may not assign roles is offered %s", action)
		}
		action, fields := undoIn(f.get(address, owner, "Sec-Fetch-Site", "same-origin").body)
		if a := f.send(http.MethodPost, action, owner, fields); a.StatusCode != http.StatusSeeOther || action != path {
			t.Fatalf("%q %v: %d %s", action, fields, a.StatusCode, a.body)
		}
		held, _, err := f.node.Directory.Assignments(t.Context(), f.asOwner(), c.holder)
		for _, a := range held {
			if a.Role.ID == role.ID && a.ExpiresAt == before.ExpiresAt && a.Reach.Covers(before.Reach) && before.Reach.Covers(a.Reach) {
				before.Role.ID = rolecall.RoleID{}
			}
		}
		if err != nil || before.Role.ID == role.ID {
			t.Errorf("%v became %+v %v", before, held, err)
		}
	}
}

func TestARoleThatHasExpiredIsNotAssignedAgain(t *testing.T) {
	f := newFixture(t)
	role := f.makeRole("Helper", "users:read")
	eve := f.hire("eve@example.com", "Eve", nil)
	past := url.QueryEscape(rolecall.TimeOf(time.Now().Add(-time.Hour)).String())
	address := "/console/acme/users/" + eve.ID.String() + "?done=role-taken&role=" + role.ID.String() + "&undo-end=" + past
	if action, _ := undoIn(f.get(address, f.signIn("acme", ownerEmail), "Sec-Fetch-Site", "same-origin").body); action != "" {
		t.Errorf("offers %s", action)
	}
}

func TestASuspensionAndADeletionAreUndone(t *testing.T) {
	f := newFixture(t)
	eve := f.hire("eve@example.com", "Eve", nil)
	account := f.makeAccount("Import", f.makeRole("Auditor", "events:read"))
	f.hire("reader@example.com", "Rita Reader", []string{"users:read", "service-accounts:read"})
	owner, reader := f.signIn("acme", ownerEmail), f.signIn("acme", "reader@example.com")
	home := "/console/acme/users/" + eve.ID.String()
	for _, home := range []string{home, "/console/acme/service-accounts/" + account.ID.String()} {
		address := f.send(http.MethodPost, home+"/suspend", owner, nil).Header.Get("Location")
		if action, _ := undoIn(f.get(address, reader, "Sec-Fetch-Site", "same-origin").body); action != "" {
			t.Errorf("a caller who may not resume is offered %s", action)
		}
		action, fields := undoIn(f.get(address, owner, "Sec-Fetch-Site", "same-origin").body)
		if a := f.send(http.MethodPost, action, owner, fields); action != home+"/resume" || !strings.HasSuffix(a.Header.Get("Location"), "?done=resumed") {
			t.Errorf("%q: %d %s", action, a.StatusCode, a.body)
		}
	}
	address := f.send(http.MethodPost, home+"/delete", owner, nil).Header.Get("Location")
	const class = `class="toast-undo" href="`
	if a := f.get(address, owner, "Sec-Fetch-Site", "same-origin"); !strings.Contains(a.body, class+home+"/restore") {
		t.Errorf("%s: %s", address, a.body)
	}
	for _, c := range [][]string{{owner, "none"}, {reader, "same-origin"}} {
		if a := f.get(address, c[0], "Sec-Fetch-Site", c[1]); strings.Contains(a.body, class) || a.StatusCode != http.StatusOK {
			t.Errorf("%v: %d %s", c, a.StatusCode, a.body)
		}
	}
}
