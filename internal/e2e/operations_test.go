package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// request is a request that succeeds, with the events that it writes.
type request struct {
	line, body string  // "METHOD /path"; {id} stands for the id
	id         string  // of the object that the request is about
	as         *caller // nil: the owner
	header     []string
	subject    string   // the ID of the subject of the events; "": the id, or the ID in the response
	events     []string // that it writes, the oldest first, such as "user.updated user {id} [name]"; {id} is the subject, and {tenant} the ID of the tenant
}

// preparation makes the objects of a request and returns the request. It can be called many times in a tenant.
type preparation func(*testing.T, *providerWorld) request

// withoutObject prepares a request that needs no object.
func withoutObject(line, body string, events ...string) preparation {
	return func(*testing.T, *providerWorld) request { return request{line: line, body: body, events: events} }
}

// withObject prepares a request about an object, which create makes.
func withObject(create func(*testing.T, *providerWorld) string, line, body string, events ...string) preparation {
	return func(t *testing.T, w *providerWorld) request {
		return request{line: line, body: body, id: create(t, w), events: events}
	}
}

func aUser(t *testing.T, w *providerWorld) string { return w.user(t, newKey(), "Sales") }

func aMember(t *testing.T, w *providerWorld) string { return w.member(t, newKey(), "Sales").id }

func aSuspendedUser(t *testing.T, w *providerWorld) string {
	id := aUser(t, w)
	w.owner.do(t, "POST /users/"+id+"/suspend", "").expect(t, 200)
	return id
}

func aDeletedUser(t *testing.T, w *providerWorld) string {
	id := aUser(t, w)
	w.owner.do(t, "DELETE /users/"+id, "").expect(t, 204)
	return id
}

func anInvitedUser(t *testing.T, w *providerWorld) string {
	id := aUser(t, w)
	w.owner.do(t, "POST /users/"+id+"/invitations", "").expect(t, 201)
	return id
}

func aRole(t *testing.T, w *providerWorld) string {
	return w.role(t, "Role "+newKey(), "users.name:read")
}

func aGroup(t *testing.T, w *providerWorld) string { return w.group(t, "Support "+newKey()) }

func anAccount(t *testing.T, w *providerWorld) string { return w.account(t, "Account "+newKey()) }

func aSuspendedAccount(t *testing.T, w *providerWorld) string {
	id := anAccount(t, w)
	w.owner.do(t, "POST /service-accounts/"+id+"/suspend", "").expect(t, 200)
	return id
}

func aHook(t *testing.T, w *providerWorld) string { return w.makeHook(t, anAccount(t, w)) }

func aConnection(t *testing.T, w *providerWorld) string { return w.makeConnection(t, newKey()) }

func aDirectory(t *testing.T, w *providerWorld) string { return w.makeDirectory(t, newKey()) }

func aJob(t *testing.T, w *providerWorld) string {
	id := w.startJob(t, w.owner, "suspend-users", `{"users":{"department":"Nowhere"}}`)
	w.awaitJob(t, id)
	return id
}

// byOperator prepares a request of an operator about the tenant.
func byOperator(line, body string, events ...string) preparation {
	return func(t *testing.T, w *providerWorld) request {
		return request{as: w.program.operator.of(w.world), line: line, body: body, id: w.name, events: events}
	}
}

// withTenant prepares a request of an operator about a new tenant. The operator has sent the request before, if it is
// not empty.
func withTenant(line, body, before string, events ...string) preparation {
	return func(t *testing.T, w *providerWorld) request {
		operator, tenant := w.program.operator.of(w.world), newWorld(t, w.program)
		subject := tenant.tenantID(t)
		const matches = "if-match: *"
		if before != "" {
			if a := operator.do(t, strings.ReplaceAll(before, "{id}", tenant.name), "", matches); a.status >= http.StatusMultipleChoices {
				t.Fatalf("%s answered %d: %s", a.line, a.status, a.body)
			}
		}
		return request{as: operator, id: tenant.name, subject: subject, line: line, body: body, header: []string{matches}, events: events}
	}
}

// withOperatorHook prepares a request of an operator about a webhook of operators.
func withOperatorHook(line, body string, events ...string) preparation {
	return func(t *testing.T, w *providerWorld) request {
		operator := w.program.operator.of(w.world)
		id := operator.do(t, "POST /operator/webhooks", operatorHook).expect(t, 201).text("/id")
		return request{as: operator, line: line, body: body, id: id, events: events}
	}
}

// TestOperations sends one request to each operation, which must succeed and write exactly the events of its
// specification. The methods that must change nothing follow, with the same path.
func TestOperations(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p, providers := serveWithProviders(t, store, 1)
			w, examples := newProviderWorld(t, p, providers[0], nil), map[string]example{}
			for _, op := range p.document.operations {
				t.Run(op.id, func(t *testing.T) {
					if e := w.sendOne(t, &op); e.Request != nil || e.Response != nil {
						examples[op.id] = e
					}
				})
			}
			if *writeExamples && !t.Failed() {
				saveExamples(t, examples)
			}
		})
	}
}

// sendOne sends the request of the specification, and checks its effects. It returns the bodies of the request and of
// the response.
func (w *providerWorld) sendOne(t *testing.T, op *operation) example {
	t.Helper()
	prepare := specs[op.id].prepare
	if prepare == nil {
		t.Fatal("it has no specification: call specify next to the function that sends its requests")
	}
	r := prepare(t, w)
	if r.as == nil {
		r.as = w.owner
	}
	line := strings.ReplaceAll(r.line, "{id}", r.id)
	method, path, _ := strings.Cut(line, " ")
	if found := w.program.document.find(method, strings.SplitN(path, "?", 2)[0]); found == nil || found.id != op.id {
		t.Fatalf("%s is not a request to %s", line, op.id)
	}
	a := r.as.do(t, line, r.body, r.header...)
	if a.status >= http.StatusMultipleChoices {
		t.Fatalf("%s answered %d: %s", a.line, a.status, a.body)
	}
	subject := cmp.Or(r.subject, r.id, a.text("/id"), a.text("/tenant/id"), a.text("/user/id"))
	var wanted []string
	for _, event := range r.events {
		wanted = append(wanted, strings.NewReplacer("{id}", subject, "{tenant}", w.tenantID(t)).Replace(event))
	}
	if written := w.eventsOf(t, a); !slices.Equal(written, wanted) {
		t.Errorf("%s wrote %q, want %q", a.line, written, wanted)
	}
	w.sendSafe(t, r.as, op, path)
	return exampleOf(r.body, a)
}

// sendSafe sends the methods that must change nothing. A GET operation answers GET, HEAD and OPTIONS.
func (w *providerWorld) sendSafe(t *testing.T, as *caller, op *operation, path string) {
	t.Helper()
	before := w.state(t)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace} {
		a := as.do(t, method+" "+path, "")
		if served := op.method == http.MethodGet && method != http.MethodTrace; served && a.status >= http.StatusMultipleChoices || method == http.MethodTrace && a.status < http.StatusBadRequest {
			t.Errorf("%s %s answered %d", method, path, a.status)
		}
	}
	if after := w.state(t); after != before {
		t.Errorf("reading %s changed something: %s, %s", path, before, after)
	}
}

// state describes the objects of the tenant with their versions, the tenants, and the last events of the tenant and of
// operators. It contains no event about an export, which is a read.
func (w *providerWorld) state(t *testing.T) string {
	t.Helper()
	var all []string
	operator := w.program.operator.of(w.world)
	for path, reader := range map[string]*caller{
		"/users?limit=200": w.owner, "/roles?limit=200": w.owner, "/groups?limit=200": w.owner, "/service-accounts?limit=200": w.owner, "/webhooks": w.owner, "/connections": w.owner, "/directories": w.owner,
		"/operator/tenants?limit=200": operator, "/operator/webhooks": operator,
	} {
		a := reader.do(t, "GET "+path, "").expect(t, 200)
		if a.value("/nextCursor") != nil {
			t.Fatalf("GET %s has more than one page; read all of them", path)
		}
		all = append(all, fmt.Sprint(path, a.texts("id"), a.texts("updatedAt")))
	}
	slices.Sort(all)
	all = append(all, w.owner.do(t, "GET /tenant", "").expect(t, 200).header.Get("Etag"))
	for _, lines := range w.eventLines(t) {
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(strings.Fields(line)[0], "exported") })
		all = append(all, lines[:min(len(lines), 20)]...) // fewer than were read, because those that are left out push others from the page
	}
	return strings.Join(all, "\n")
}

// eventsOf returns the events that the request of the response wrote, the oldest first. If the request was about another
// tenant, they are only those in the log of operators.
func (w *providerWorld) eventsOf(t *testing.T, a *answer) (lines []string) {
	t.Helper()
	for _, line := range slices.Concat(w.eventLines(t)...) {
		if event, ours := strings.CutSuffix(line, " "+a.header.Get("X-Request-Id")); ours {
			lines = append(lines, event)
		}
	}
	slices.Reverse(lines)
	return lines
}

// eventLines returns the last events of the tenant and those of operators, the newest first, without those that the
// program writes in the background. Each line has the type, the subject, the members and the ID of the request.
func (w *providerWorld) eventLines(t *testing.T) [][]string {
	t.Helper()
	read := func(reader *caller, path string) (lines []string) {
		a := reader.do(t, "GET "+path+"?limit=50", "").expect(t, 200)
		for i := range a.list("/items") {
			at := fmt.Sprintf("/items/%d", i)
			if a.text(at+"/type") == "job.ended" || a.text(at+"/requestId") == "" {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s %s %s %v %s", a.text(at+"/type"), a.text(at+"/subject/type"), a.text(at+"/subject/id"), a.value(at+"/members"), a.text(at+"/requestId")))
		}
		return lines
	}
	return [][]string{read(w.owner, "/events"), read(w.program.operator.of(w.world), "/operator/events")}
}
