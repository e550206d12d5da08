package e2e

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// rows returns the rows of a CSV response without the header row. Each row is a map from
// column name to cell.
func (a *answer) rows(t testing.TB) (rows []map[string]string) {
	t.Helper()
	if got := a.header.Get("Content-Type"); got != "text/csv; charset=utf-8" {
		t.Fatalf("%s: the content type is %q", a.line, got)
	}
	records, err := csv.NewReader(bytes.NewReader(a.body)).ReadAll()
	if err != nil || len(records) == 0 {
		t.Fatalf("%s: %v: %s", a.line, err, a.body)
	}
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, name := range records[0] {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// column returns the cells of one column, from top to bottom.
func column(rows []map[string]string, name string) (cells []string) {
	for _, row := range rows {
		cells = append(cells, row[name])
	}
	return cells
}

// testExports checks the CSV exports: they contain the rows of the corresponding lists,
// formulas are neutralized, and each export is recorded as an event.
func testExports(t *testing.T, p *program) {
	t.Run("contain what the lists contain", func(t *testing.T) { testExportsAreTheLists(t, newWorld(t, p)) })
	t.Run("neutralize formulas", func(t *testing.T) { testExportedFormulas(t, newWorld(t, p)) })
	t.Run("name the users, roles and service accounts of events", func(t *testing.T) { testExportedEventsHaveNames(t, newWorld(t, p)) })
	t.Run("are recorded", func(t *testing.T) { testExportsAreRecorded(t, newWorld(t, p)) })
}

func testExportsAreTheLists(t *testing.T, w *world) {
	role := w.role(t, "Exported", "users:read")
	for i := range 230 { // more than one page of the lists
		id := w.user(t, fmt.Sprintf("row-%d", i), []string{"Sales", "Ops"}[i%2])
		if i%10 == 0 {
			w.assign(t, id, role, "")
		}
	}
	reader := w.holder(t, "reader", "", "Sales", "users.name:read", "users.status:read", "roles:read")
	for _, c := range []struct {
		who            *caller
		export, listed string
	}{
		{w.owner, "/exports/users", "/users?limit=200"},
		{w.owner, "/exports/users?q=row&sort=-name&department=sales&status=pending", "/users?q=row&sort=-name&department=sales&status=pending&limit=200"},
		{w.owner, "/exports/users?role=" + role, "/users?limit=200&role=" + role},
		{w.owner, "/exports/roles/" + role + "/users?sort=email", "/roles/" + role + "/users?sort=email"},
		{w.owner, "/exports/users?email=row-7@canary.example", "/users?email=row-7@canary.example"},
		{w.owner, "/exports/events?type=user.created", "/events?type=user.created&limit=200"},
		{reader, "/exports/users", "/users?limit=200"},
	} {
		listed := c.who.readAll(t, c.listed)
		today := time.Now().UTC().Format(time.DateOnly)
		a := c.who.do(t, "GET "+c.export, "", "accept: text/csv").expect(t, 200)
		if got := column(a.rows(t), "id"); !slices.Equal(got, listed) || len(listed) == 0 {
			t.Errorf("%s has %d rows, and the list %d", c.export, len(got), len(listed))
		}
		if got, want := a.header.Get("Content-Disposition"), fmt.Sprintf(`attachment; filename="%s-`, w.name); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, today+`.csv"`) && !strings.HasSuffix(got, time.Now().UTC().Format(time.DateOnly)+`.csv"`) {
			t.Errorf("%s: %s", c.export, got)
		}
	}
	head, _, _ := strings.Cut(string(reader.do(t, "GET /exports/users", "").body), "\r\n")
	if head != "id,name,status" {
		t.Errorf("the columns are %s", head)
	}
	w.owner.do(t, "GET /exports/users", "", "accept: application/json").refused(t, 406, "not-acceptable")
	w.owner.do(t, "GET /exports/users?status=bogus", "").refused(t, 422, "validation")
	w.owner.do(t, "GET /exports/roles/"+never+"/users", "").refused(t, 404, "not-found")
	reader.do(t, "GET /exports/users?sort=email", "").refused(t, 403, "field-not-readable")
	reader.do(t, "GET /exports/events", "").refused(t, 403, "permission-denied")
}

func testExportedFormulas(t *testing.T, w *world) {
	for i, name := range []string{"=1+1", "+1+1", "-1-1", "@SUM(A1)", `=HYPERLINK("http://evil.example","a, b")`, `Ada "Countess" Lovelace`, "Sales;=1+1", "＝1+1", "Ada; Countess"} {
		id := w.owner.do(t, "POST /users", fmt.Sprintf(`{"email":"formula-%d@canary.example","name":%q}`, i, name)).expect(t, 201).text("/id")
		rows := w.owner.do(t, "GET /exports/users", "").expect(t, 200).rows(t)
		row := rows[slices.Index(column(rows, "id"), id)]
		want := name
		if strings.ContainsAny(name[:1], "=+-@") {
			want = "'" + name
		}
		switch name {
		case "Sales;=1+1":
			want = "Sales;'=1+1"
		case "＝1+1":
			want = "'＝1+1"
		}
		if row["name"] != want {
			t.Errorf("%s was exported as %s", name, row["name"])
		}
		rows = w.owner.do(t, "GET /exports/users?raw=true", "").expect(t, 200).rows(t)
		if got := rows[slices.Index(column(rows, "id"), id)]["name"]; got != name {
			t.Errorf("%s was exported raw as %s", name, got)
		}
	}
}

func testExportedEventsHaveNames(t *testing.T, w *world) {
	role, user, erased := w.role(t, "Night shift", "users:read"), w.user(t, "named", "Sales"), w.user(t, "erased", "Sales")
	group, deleted := w.group(t, "Day shift"), w.group(t, "Late shift")
	w.owner.do(t, "DELETE /roles/"+role, "").expect(t, 204)
	w.owner.do(t, "DELETE /groups/"+deleted, "").expect(t, 204)
	w.owner.do(t, "POST /users/"+erased+"/erase", "").expect(t, 204)
	for _, c := range []struct {
		who   *caller
		names map[string]string // of the subjects with these ids
		actor string
	}{
		{w.owner, map[string]string{role: "Night shift", group: "Day shift", deleted: "Late shift", user: "User named", erased: ""}, w.owner.do(t, "GET /users/"+w.owner.id, "").text("/name")},
		{w.holder(t, "auditor", "", "", "events:read"), map[string]string{role: "", group: "", deleted: "", user: "", erased: ""}, ""},
		{w.holder(t, "clerk", "", "", "events:read", "users.name:read"), map[string]string{role: "", group: "", deleted: "", user: "User named", erased: ""}, w.owner.do(t, "GET /users/"+w.owner.id, "").text("/name")},
	} {
		for id, want := range c.names {
			rows := c.who.do(t, "GET /exports/events?subject="+id, "").expect(t, 200).rows(t)
			if len(rows) == 0 {
				t.Fatalf("no events about %s", id)
			}
			for _, row := range rows {
				if row["subject.name"] != want || row["actor.id"] == w.owner.id && row["actor.name"] != c.actor {
					t.Errorf("%s by %q about %q, want %q by %q", row["type"], row["actor.name"], row["subject.name"], want, c.actor)
				}
			}
		}
	}
}

func testExportsAreRecorded(t *testing.T, w *world) {
	role := w.role(t, "Exported", "users:read")
	tenant := w.owner.do(t, "GET /tenant", "").text("/id")
	for _, c := range []struct{ line, kind, subject, members, after string }{
		{"/exports/users?q=ada&status=active&sort=name", "users.exported", tenant, "[q status]", "map[status:active]"},
		{"/exports/roles/" + role + "/users?email=ada@example.com", "role.users_exported", role, "[email]", "<nil>"},
		{"/exports/events?actor=" + w.owner.id, "events.exported", tenant, "[actor]", "map[actor:" + w.owner.id + "]"},
	} {
		before := w.count(t)
		head := w.owner.do(t, "HEAD "+c.line, "").expect(t, 200)
		a := w.owner.do(t, "GET "+c.line, "").expect(t, 200)
		if got, want := head.header.Get("Content-Disposition"), a.header.Get("Content-Disposition"); got != want || len(head.body) > 0 {
			t.Errorf("HEAD %s: %q, %d bytes", c.line, got, len(head.body))
		}
		event := w.owner.do(t, "GET /events?limit=1", "").expect(t, 200)
		s := scenario{status: 200, has: map[string]any{"/items/0/type": c.kind, "/items/0/subject/id": c.subject, "/items/0/actor/id": w.owner.id, "/items/0/requestId": a.header.Get("X-Request-Id")}}
		s.check(t, event)
		if got := fmt.Sprint(event.value("/items/0/members"), event.value("/items/0/after")); got != c.members+" "+c.after {
			t.Errorf("%s: the event has %s", c.line, got)
		}
		if n := w.count(t) - before; n != 1 {
			t.Errorf("%s wrote %d events", c.line, n)
		}
	}
}

func exportUsersCells(t *testing.T, m *matrix, p *principal) {
	subjects := m.subjects(t, p)
	a := p.compare(t, "users", "GET /exports/users", "", first(done(200, ""), check{p.readsAnything(), mayNot}))
	if a.status != http.StatusOK {
		return
	}
	rows := a.rows(t)
	for _, s := range subjects {
		i := slices.Index(column(rows, "id"), s.id)
		if exported := i >= 0; exported != (s.exists && p.knowsDepartment(s.department)) {
			t.Errorf("%s: exported is %v", s.name, exported)
		} else if !exported {
			continue
		}
		readable := strings.Fields(p.membersOf(s.department))
		for name, cell := range rows[i] {
			if cell != "" && !slices.Contains(readable, name) {
				t.Errorf("%s: %s is exported, and may not be read", s.name, name)
			}
		}
		for _, name := range []string{"email", "name", "status", "createdAt"} {
			if slices.Contains(readable, name) && rows[i][name] == "" {
				t.Errorf("%s: %s is not exported", s.name, name)
			}
		}
	}
}

var _ = specify("ExportsController_exportUsers", changesNothing, withoutObject("GET /exports/users", "", "users.exported tenant {tenant} []"), exportUsersCells)

func exportRoleUsersCells(t *testing.T, m *matrix, p *principal) {
	for _, r := range m.roles {
		p.compare(t, r.name, "GET /exports/roles/"+r.id+"/users", "", first(done(200, ""),
			check{p.mayAnywhere("roles:read") && p.readsAnything(), mayNot}, check{r.exists, notThere}))
	}
}

var _ = specify("ExportsController_exportRoleUsers", changesNothing, withObject(aRole, "GET /exports/roles/{id}/users", "", "role.users_exported role {id} []"), exportRoleUsersCells)

func exportEventsCells(t *testing.T, _ *matrix, p *principal) {
	p.compare(t, "events", "GET /exports/events?type=role.created", "", first(done(200, ""), check{p.mayAnywhere("events:read"), mayNot}))
}

var _ = specify("ExportsController_exportEvents", changesNothing, withoutObject("GET /exports/events?type=role.created", "", "events.exported tenant {tenant} [type]"), exportEventsCells)
