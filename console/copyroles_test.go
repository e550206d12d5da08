package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

func TestTheRolesOfAUserAreAssignedToAnotherOne(t *testing.T) {
	f := newFixture(t)
	owner := f.signIn("acme", ownerEmail)
	eve, bob := f.hire("eve@example.com", "Eve Adams", nil), f.hire("bob@example.com", "Bob", nil)
	helper, auditor, lost := f.makeRole("Helper", "users:read"), f.makeRole("Auditor", "events:read"), f.makeRole("Unselected", "roles:read")
	end := rolecall.TimeOf(time.Now().Add(100 * time.Hour).Truncate(time.Second))
	give := func(to rolecall.User, role rolecall.Role, draft rolecall.AssignmentDraft) {
		t.Helper()
		if _, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(to.ID), role.ID, draft); err != nil {
			t.Fatal(err)
		}
	}
	give(eve, helper, rolecall.AssignmentDraft{Departments: []string{"Sales"}, ExpiresAt: &end})
	give(eve, auditor, rolecall.AssignmentDraft{})
	give(eve, lost, rolecall.AssignmentDraft{})
	give(bob, auditor, rolecall.AssignmentDraft{ExpiresAt: &end})
	home := "/console/acme/users/" + bob.ID.String()
	path := home + "/roles/copy?with=" + eve.ID.String()
	if a := f.get(home+"/compare?with="+eve.ID.String(), owner); !strings.Contains(a.body, `href="`+path+`"`) {
		t.Errorf("the comparison does not offer it: %s", a.body)
	}
	asked := f.get(path, owner)
	for _, part := range []string{"Assign the roles of <bdi>Eve Adams</bdi> to <bdi>Bob</bdi>?", "In Sales", "Already assigned"} {
		if asked.StatusCode != http.StatusOK || !strings.Contains(asked.body, part) {
			t.Errorf("%d, lacks %q: %s", asked.StatusCode, part, asked.body)
		}
	}
	form := url.Values{"role": {helper.ID.String(), auditor.ID.String()}}
	if a := f.send(http.MethodPost, path, owner, form); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != home+"?done=roles-copied" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	held, _, err := f.node.Directory.Assignments(t.Context(), f.asOwner(), rolecall.HolderOf(bob.ID))
	if err != nil || len(held) != 2 {
		t.Fatalf("%+v %v", held, err)
	}
	for _, a := range held {
		if a.ExpiresAt != end || a.Role.ID == helper.ID && strings.Join(a.Reach.Departments(), ",") != "Sales" {
			t.Errorf("%+v", a)
		}
	}
}

func TestOnlyRolesThatTheCallerMayAssignAreCopied(t *testing.T) {
	f := newFixture(t)
	eve, bob := f.hire("eve@example.com", "Eve Adams", []string{"events:read"}), f.hire("bob@example.com", "Bob", nil)
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "roles:read", "roles:assign"})
	f.hire("reader@example.com", "Rita Reader", []string{"users:read", "roles:read"})
	path := "/console/acme/users/" + bob.ID.String() + "/roles/copy?with=" + eve.ID.String()
	held, _, err := f.node.Directory.Assignments(t.Context(), f.asOwner(), rolecall.HolderOf(eve.ID))
	if err != nil || len(held) != 1 {
		t.Fatalf("%+v %v", held, err)
	}
	form := url.Values{"role": {held[0].Role.ID.String()}}
	clerk := f.signIn("acme", "clerk@example.com")
	if a := f.get(path, clerk); !strings.Contains(a.body, "There is no role that you can assign.") || !strings.Contains(a.body, "permissions that you do not have") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.send(http.MethodPost, path, clerk, form); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "0 roles assigned") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.send(http.MethodPost, path, f.signIn("acme", "reader@example.com"), form); a.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if held, _, err := f.node.Directory.Assignments(t.Context(), f.asOwner(), rolecall.HolderOf(bob.ID)); err != nil || len(held) != 0 {
		t.Errorf("%+v %v", held, err)
	}
}
