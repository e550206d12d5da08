package console

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

// exported returns the records of a CSV file that the console exports.
func (f *fixture) exported(path, cookie string) [][]string {
	f.t.Helper()
	a := f.get(path, cookie, "Sec-Fetch-Site", "same-origin")
	text, marked := strings.CutPrefix(a.body, "\ufeff")
	if a.StatusCode != http.StatusOK || !marked || a.Header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.HasPrefix(a.Header.Get("Content-Disposition"), `attachment; filename="acme-`) {
		f.t.Fatalf("%s: %d %v %s", path, a.StatusCode, a.Header, a.body)
	}
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		f.t.Fatal(err)
	}
	return records
}

func TestListsAreExportedAsFiltered(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	reader := f.hire("reader@example.com", "=Reader()", []string{"users.name:read", "roles:read"})
	made := f.makeRole("Support", "users.name:read")
	if _, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(reader.ID), made.ID, rolecall.AssignmentDraft{}); err != nil {
		t.Fatal(err)
	}
	role := made.ID.String()
	for path, want := range map[string]struct {
		rows int
		has  string
	}{
		"/users/export":                    {2, "'=Reader()"},
		"/users/export?q=reader":           {1, "reader@example.com"},
		"/users/export?role=" + role:       {1, "reader@example.com"},
		"/roles/" + role + "/users/export": {1, "reader@example.com"},
		"/events/export?type=user.created": {2, "user.created"},
	} {
		records := f.exported("/console/acme"+path, cookie)
		if text := strings.Join(records[len(records)-1], "|"); len(records)-1 != want.rows || !strings.Contains(text, want.has) {
			t.Errorf("%s: %q", path, records)
		}
	}
	mine := f.signIn("acme", "reader@example.com")
	if records := f.exported("/console/acme/users/export", mine); strings.Join(records[0], ",") != "id,name" {
		t.Errorf("a reader of names gets %q", records)
	}
	if a := f.get("/console/acme/events/export", mine); a.StatusCode != http.StatusForbidden {
		t.Errorf("events: %d", a.StatusCode)
	}
}

func TestExportsAreLinkedWithTheFilters(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for path, link := range map[string]string{
		"/users?q=ada&status=active&cursor=":        `href="/console/acme/users/export?q=ada&amp;status=active"`,
		"/users?externalId=7&email=ada@example.com": `href="/console/acme/users/export?email=ada%40example.com&amp;externalId=7"`,
		"/users?status=bogus":                       "",
		"/events?type=user.created":                 `href="/console/acme/events/export?type=user.created"`,
		"/users/" + f.owner.ID.String() + "/events": "",
	} {
		a := f.get("/console/acme"+path, cookie)
		if strings.Contains(a.body, "/export") != (link != "") || !strings.Contains(a.body, link) {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	part := f.get("/console/acme/users?q=ada", cookie, "Hx-Request", "true", "Hx-Target", "results")
	if !strings.Contains(part.body, `hx-swap-oob="innerHTML:#tools"`) || !strings.Contains(part.body, "/export?q=ada") {
		t.Errorf("the link keeps the old filters: %s", part.body)
	}
}

func TestOtherSitesCauseNoExport(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	a := f.get("/console/acme/users/export?q=ada", cookie, "Sec-Fetch-Site", "cross-site")
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/console/acme/users" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	if events := f.get("/console/acme/events?type=users.exported", cookie); !strings.Contains(events.body, "No events match") {
		t.Errorf("it was recorded: %s", events.body)
	}
}
