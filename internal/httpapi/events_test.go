package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// items returns the items of a page.
func (r reply) items(t *testing.T) (items []map[string]any) {
	t.Helper()
	page, ok := r.document(t)["items"].([]any)
	if r.StatusCode != 200 || !ok {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for _, item := range page {
		items = append(items, item.(map[string]any))
	}
	return items
}

func TestEvents(t *testing.T) {
	s := newTestServer(t)
	created := s.as(s.owner, "POST", "/users", `{"email":"eve@example.com","name":"Eve Adams"}`, "Idempotency-Key", "k")
	path := created.Header.Get("Location")
	changed := s.as(s.owner, "PATCH", path, `{"name":"Eva Adams","department":"Sales"}`)
	s.as(s.owner, "POST", path+"/suspend", `{"reason":"left"}`)

	items := s.as(s.owner, "GET", path+"/events", "").items(t)
	if len(items) != 3 {
		t.Fatalf("there are %d events", len(items))
	}
	suspended, updated := items[0], items[1]
	if suspended["type"] != "user.suspended" || suspended["reason"] != "left" || fmt.Sprint(suspended["before"], suspended["after"]) != "map[status:pending] map[status:suspended]" {
		t.Errorf("%v", suspended)
	}
	actor, subject := updated["actor"].(map[string]any), updated["subject"].(map[string]any)
	if updated["type"] != "user.updated" || actor["type"] != "user" || actor["id"] != s.ownerID || actor["via"] != "http" ||
		subject["type"] != "user" || subject["id"] != created.id(t) || fmt.Sprint(updated["members"]) != "[name department]" ||
		updated["requestId"] != changed.Header.Get("X-Request-Id") || updated["sessionId"] == nil || updated["source"] != "127.0.0.1" || updated["reason"] != nil ||
		fmt.Sprint(updated["before"], updated["after"]) != "map[department:<nil> name:Eve Adams] map[department:Sales name:Eva Adams]" {
		t.Errorf("%v", updated)
	}

	auditor, _ := s.member("auditor", []string{"events:read", "users.department:read"})
	for _, query := range []string{path + "/events?type=user.updated", "/events?type=user.updated&subject=" + created.id(t)} {
		seen := s.as(auditor, "GET", query, "").items(t)
		if len(seen) != 1 || fmt.Sprint(seen[0]["before"], seen[0]["after"]) != "map[department:<nil>] map[department:Sales]" {
			t.Errorf("%s: %v", query, seen)
		}
	}
	overview := s.as(auditor, "GET", path+"/overview", "")
	if strings.Contains(overview.body, "Adams") || !strings.Contains(overview.body, `"after":{"department":"Sales"}`) {
		t.Errorf("the overview shows what may not be read: %s", overview.body)
	}
	viewer, _ := s.member("viewer", []string{"users:read"})
	expectProblem(t, s.as(viewer, "GET", "/events", ""), 403, "permission-denied")
	expectProblem(t, s.as(viewer, "GET", path+"/events", ""), 403, "permission-denied")
	expectProblem(t, s.as(s.owner, "GET", "/users/00000000-0000-7000-8000-000000000000/events", ""), 404, "not-found")
}

func TestFiltersOfEvents(t *testing.T) {
	s := newTestServer(t)
	middle := rolecall.TimeOf(time.Now())
	created := s.as(s.owner, "POST", "/users", `{"email":"eve@example.com","name":"Eve Adams"}`, "Idempotency-Key", "k")
	moment := url.QueryEscape(middle.String())
	for query, want := range map[string]string{
		"":                                 "user.created session.started tenant.created role.assigned user.created",
		"type=session.started":             "session.started",
		"actor=" + s.ownerID:               "user.created session.started",
		"subject=" + s.ownerID:             "session.started role.assigned user.created",
		"subject=" + created.id(t):         "user.created",
		"from=" + moment:                   "user.created",
		"to=" + moment:                     "session.started tenant.created role.assigned user.created",
		"from=" + moment + "&to=" + moment: "",
		"limit=1":                          "user.created",
	} {
		var types []string
		for _, item := range s.as(s.owner, "GET", "/events?"+query, "").items(t) {
			types = append(types, item["type"].(string))
		}
		if got := strings.Join(types, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	r := s.as(s.owner, "GET", "/events?type=no.such_type&actor=x&subject=1&from=yesterday&to=2030-01-01&sort=name&count=true&limit=0", "")
	if got, want := r.faults(t), "actor format; subject format; from format; to format; sort unknown; count unknown; limit range"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if r := s.as(s.owner, "GET", "/users/"+s.ownerID+"/events?subject="+s.ownerID, ""); r.faults(t) != "subject unknown" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestUnknownValuesOfFilters(t *testing.T) {
	s := newTestServer(t)
	roles := s.as(s.owner, "GET", "/roles?key=owner", "").items(t)
	held := "/roles/" + roles[0]["id"].(string) + "/users"
	for _, test := range []struct{ path, name, known string }{
		{"/events?type=no.such_type", "type", "such as user.updated"},
		{"/events?type=user.update&limit=1", "type", "such as user.updated"},
		{"/events?type=", "type", "/docs/events"},
		{"/events?type=User.Updated", "type", "/docs/events"},
		{"/users/" + s.ownerID + "/events?type=x", "type", "/docs/events"},
		{"/users?status=activ", "status", "pending, active, suspended or deleted"},
		{"/users?status=Active", "status", "pending, active, suspended or deleted"},
		{"/users?status=%07", "status", "pending, active, suspended or deleted"},
		{"/users?status=&count=true", "status", "pending, active, suspended or deleted"},
		{held + "?status=gone", "status", "must be pending, active or suspended"},
		{held + "?status=deleted", "status", "must be pending, active or suspended"},
	} {
		r := s.as(s.owner, "GET", test.path, "")
		expectProblem(t, r, 422, "validation")
		if r.faults(t) != test.name+" unknown-value" || !strings.Contains(r.body, test.known) {
			t.Errorf("%s: %s", test.path, r.body)
		}
	}
	if r := s.as(s.owner, "GET", "/users?status=activ&limit=0", ""); r.StatusCode != 400 || r.faults(t) != "limit range" {
		t.Errorf("with a malformed parameter: %d %s", r.StatusCode, r.body)
	}
	plain, _ := s.member("plain", []string{"roles:read"})
	expectProblem(t, s.as(plain, "GET", "/users?status=activ", ""), 403, "permission-denied")
	for _, kind := range rolecall.EventDescriptions() {
		if r := s.as(s.owner, "GET", "/events?type="+string(kind.Type), ""); r.StatusCode != 200 {
			t.Errorf("%s: %d %s", kind.Type, r.StatusCode, r.body)
		}
	}
	for _, status := range []string{"pending", "active", "suspended", "deleted"} {
		if r := s.as(s.owner, "GET", "/users?status="+status, ""); r.StatusCode != 200 {
			t.Errorf("%s: %d %s", status, r.StatusCode, r.body)
		}
	}
}

func TestPagesOfEventsHaveEachEventOnce(t *testing.T) {
	s := newTestServer(t)
	for i := range 5 {
		s.as(s.owner, "POST", "/roles", fmt.Sprintf(`{"name":"Role %d"}`, i), "Idempotency-Key", fmt.Sprint(i))
	}
	const first = "/events?limit=2&type=role.created"
	path, seen, cursor := first, map[any]bool{}, ""
	for pages := 0; path != ""; pages++ {
		if pages > 20 {
			t.Fatal("the walk does not end")
		}
		r := s.as(s.owner, "GET", path, "")
		for _, item := range r.items(t) {
			seen[item["id"]] = true
		}
		link, hasLink := strings.CutSuffix(r.Header.Get("Link"), `>; rel="next"`)
		next, hasNext := r.document(t)["nextCursor"].(string)
		if hasLink != hasNext {
			t.Fatalf("Link %q, cursor %q", link, next)
		}
		if cursor == "" {
			cursor = next
		}
		path = strings.TrimPrefix(link, "<")
	}
	if len(seen) != 5 {
		t.Errorf("the walk has %d events", len(seen))
	}
	other, _ := s.member("other", []string{"events:read"})
	for what, r := range map[string]reply{
		"another type": s.as(s.owner, "GET", "/events?type=role.updated&cursor="+cursor, ""),
		"another list": s.as(s.owner, "GET", "/users/"+s.ownerID+"/events?type=role.created&cursor="+cursor, ""),
		"from on":      s.as(s.owner, "GET", first+"&from=2020-01-01T00:00:00Z&cursor="+cursor, ""),
		"another user": s.as(other, "GET", first+"&cursor="+cursor, ""),
	} {
		if r.StatusCode != 400 || r.faults(t) != "cursor cursor" {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
	}
}

func TestARefusalIsRecordedOnce(t *testing.T) {
	s := newTestServer(t)
	clerk, id := s.member("clerk", []string{"roles:read"})
	for range 3 {
		expectProblem(t, s.as(clerk, "GET", "/users", ""), 403, "permission-denied")
	}
	expectProblem(t, s.as(clerk, "DELETE", "/users/"+s.ownerID, ""), 403, "permission-denied")
	expectProblem(t, s.as(clerk, "GET", "/roles/00000000-0000-7000-8000-000000000000", ""), 404, "not-found")
	expectProblem(t, s.as(clerk, "GET", "/users", "", "X-Tenant-Schema", "nobody"), 401, "unauthenticated")
	expectProblem(t, s.as(clerk, "POST", "/roles", `{"name":"Night shift"}`, "Sec-Fetch-Site", "cross-site"), 403, "cross-origin")
	for range 2 {
		if err := s.node.Access.Refusals.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	recorded := map[string]string{}
	for _, e := range s.as(s.owner, "GET", "/events?type=request.refused&actor="+id, "").items(t) {
		recorded[e["reason"].(string)] = fmt.Sprint(e["subject"].(map[string]any)["id"])
	}
	tenant := s.as(s.owner, "GET", "/tenant", "").id(t)
	want := map[string]string{
		"UsersController_listUsers: permission-denied, 3 times": tenant,
		"UsersController_deleteUser: permission-denied":         s.ownerID,
	}
	if fmt.Sprint(recorded) != fmt.Sprint(want) {
		t.Errorf("recorded is %v, want %v", recorded, want)
	}
}

// changes requests the changes after the cursor, and returns the answer and the next cursor.
func (s *testServer) changes(t *testing.T, after string) (answer reply, next string) {
	t.Helper()
	path := "/changes"
	if after != "" {
		path += "?after=" + url.QueryEscape(after)
	}
	answer = s.as(s.owner, "GET", path, "")
	if answer.StatusCode == http.StatusOK {
		next, _ = answer.document(t)["nextCursor"].(string)
	}
	return answer, next
}

// raw executes a statement in the tenant. A ? stands for the tenant.
func (s *testServer) raw(t *testing.T, statement string) {
	t.Helper()
	tenant, err := s.node.Directory.Tenant(t.Context(), tenantName)
	if err == nil {
		err = s.db.Update(t.Context(), tenant.ID, func(q store.Querier) error {
			q.Exec(strings.ReplaceAll(statement, "?", "$1"), tenant.ID)
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestACursorOfChangesExpires(t *testing.T) {
	expired := func(t *testing.T, s *testServer, cursor string) {
		t.Helper()
		if answer, _ := s.changes(t, cursor); answer.StatusCode != http.StatusGone || !strings.Contains(answer.body, `"code":"changes-expired"`) {
			t.Errorf("%d %s", answer.StatusCode, answer.body)
		}
	}
	t.Run("when events after it were deleted", func(t *testing.T) {
		s := newTestServer(t)
		s.as(s.owner, "PATCH", "/users/"+s.ownerID, `{"name":"Ada King"}`)
		_, at := s.changes(t, "")
		old := s.as(s.owner, "GET", "/changes?limit=1", "").document(t)["nextCursor"].(string)
		purged := rolecall.TimeOf(time.Now().Add(time.Minute))
		tenant, err := s.node.Directory.Tenant(t.Context(), tenantName)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.node.Access.Store.Update(t.Context(), tenant.ID, func(tx *store.Tx) error {
			_, err := tx.PurgeExpired(0, purged, 100)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		expired(t, s, old)
		if answer, _ := s.changes(t, at); len(answer.items(t)) != 0 {
			t.Errorf("after all: %s", answer.body)
		}
		s.as(s.owner, "PATCH", "/users/"+s.ownerID, `{"name":"Ada Byron"}`)
		for _, cursor := range []string{"", at} {
			if answer, _ := s.changes(t, cursor); len(answer.items(t)) != 1 {
				t.Errorf("after the next change: %s", answer.body)
			}
		}
	})
	t.Run("when the database has lost changes", func(t *testing.T) {
		s := newTestServer(t)
		_, before := s.changes(t, "")
		s.as(s.owner, "PATCH", "/users/"+s.ownerID, `{"name":"Ada King"}`)
		_, lost := s.changes(t, "")
		s.raw(t, "delete from events where tenant_id = ? and id in (select event_id from changes where tenant_id = ? and number = (select last from feeds where tenant_id = ?))")
		s.raw(t, "delete from changes where tenant_id = ? and number = (select last from feeds where tenant_id = ?)")
		s.raw(t, "update feeds set last = last - 1 where tenant_id = ?")
		expired(t, s, lost)
		s.as(s.owner, "PATCH", "/users/"+s.ownerID, `{"name":"Ada Byron"}`)
		if answer, _ := s.changes(t, before); len(answer.items(t)) != 1 {
			t.Errorf("after what was kept: %s", answer.body)
		}
		expired(t, s, lost) // its number belongs to another event now
	})
	t.Run("when an event of the range is missing", func(t *testing.T) {
		s := newTestServer(t)
		_, before := s.changes(t, "")
		s.as(s.owner, "PATCH", "/users/"+s.ownerID, `{"name":"Ada King"}`)
		_, after := s.changes(t, "")
		s.raw(t, "delete from events where tenant_id = ? and id in (select event_id from changes where tenant_id = ? and number = (select last from feeds where tenant_id = ?))")
		expired(t, s, before)
		if answer, _ := s.changes(t, after); len(answer.items(t)) != 0 {
			t.Errorf("after it: %s", answer.body)
		}
	})
}

func TestEventsWithoutANumberAreRead(t *testing.T) {
	s := newTestServer(t) // nothing numbers events in the background
	answer, at := s.changes(t, "")
	if len(answer.items(t)) < 3 || !strings.Contains(answer.body, `"upToDate":true`) {
		t.Errorf("%s", answer.body)
	}
	s.as(s.owner, "PATCH", "/users/"+s.ownerID, `{"name":"Ada King"}`)
	s.raw(t, "delete from event_queue where tenant_id = ?") // as if it was older than the feed
	s.raw(t, "update events set arrival = 0 where tenant_id = ? and type = 'user.updated'")
	if answer, _ := s.changes(t, at); len(answer.items(t)) != 1 {
		t.Errorf("%s", answer.body)
	}
}
