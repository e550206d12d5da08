package e2e

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
	"github.com/rolecall/rolecall/internal/patience"
)

// testOperatorWebhooks follows a webhook of operators from its creation to its end.
func testOperatorWebhooks(t *testing.T, w *world) {
	operator, follower := w.program.operator.of(w), w.program.follower(t, w)
	const create, body = "POST /operator/webhooks", `{"url":"https://hooks.invalid/all","types":["user.created"]}`
	made := operator.do(t, create, body, "idempotency-key: operators-hook", "-x-tenant-schema").expect(t, 201)
	id := made.text("/id")
	line := "/operator/webhooks/" + id
	again := operator.do(t, create, body, "idempotency-key: operators-hook").expect(t, 201)
	if made.header.Get("Location") != line || !strings.HasPrefix(made.text("/secret"), "whsec_") || again.value("/secret") != nil || again.value("/secretWithheld") != true || again.text("/id") != id || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("created was %s, and again %s", made.body, again.body)
	}
	got := follower.do(t, "GET "+line, "").expect(t, 200)
	if tag := got.header.Get("Etag"); tag == "" || tag != made.header.Get("Etag") || got.value("/secret") != nil {
		t.Errorf("the ETag is %q and %q of %s", made.header.Get("Etag"), tag, got.body)
	}
	tag := got.header.Get("Etag")
	bad := func(name, send, body string, status int, faults ...string) scenario {
		return scenario{name: name, as: operator, send: send, body: body, status: status, faults: faults}
	}
	const span = `{"from":"2030-01-02T00:00:00Z","to":"2030-01-01T00:00:00Z"}`
	play(t, []scenario{
		{name: "the list", as: follower, send: "GET /operator/webhooks?limit=200", status: 200, contains: []string{id}, lacks: []string{"secret", "serviceAccountId"}},
		{name: "an unchanged webhook", as: follower, send: "GET " + line, header: []string{"if-none-match: " + tag}, status: 304},
		{name: "another body with the key", as: operator, send: create, body: `{"url":"https://other.invalid/"}`, header: []string{"idempotency-key: operators-hook"}, status: 422, code: "idempotency-key-reused"},
		{name: "no key", as: operator, send: create, body: body, header: []string{"-idempotency-key"}, status: 400},
		bad("no URL", create, `{}`, 422, "/url required"),
		bad("an address of the machine", create, `{"url":"https://127.0.0.1/"}`, 422, "/url url"),
		bad("an address of a cloud", create, `{"url":"https://169.254.169.254/latest"}`, 422, "/url url"),
		bad("a private name", create, `{"url":"https://db.internal/"}`, 422, "/url url"),
		bad("plain HTTP", create, `{"url":"http://hooks.example.com/"}`, 422, "/url url"),
		bad("a service account", create, `{"url":"https://hooks.example.com/","serviceAccountId":"`+never+`"}`, 422, "/serviceAccountId unknown"),
		bad("no types, which are not all", "PATCH "+line, `{"types":[]}`, 422, "/types too-few"),
		bad("null, which is not all", "PATCH "+line, `{"types":null}`, 422, "/types type"),
		bad("all and another", "PATCH "+line, `{"types":["*","user.created"]}`, 422, "/types conflict"),
		bad("an unknown type", "PATCH "+line, `{"types":["user.painted"]}`, 422, "/types/0 unknown"),
		bad("a private URL later", "PATCH "+line, `{"url":"https://[::1]/"}`, 422, "/url url"),
		bad("a replay backwards", "POST "+line+"/replay", span, 422, "/to range"),
		{name: "a stale tag", as: operator, send: "PATCH " + line, body: `{"types":["*"]}`, header: []string{`if-match: "stale"`}, status: 412, code: "precondition-failed"},
		{name: "a change", as: operator, send: "PATCH " + line, body: `{"types":["*"]}`, header: []string{"if-match: " + tag}, status: 200, members: operatorHookMembers},
		{name: "a new secret", as: operator, send: "POST " + line + "/rotate-secret", status: 200, members: operatorHookMembers + " secret"},
		{name: "an owner", as: w.owner, send: "GET " + line, status: 401, code: "unauthenticated"},
		{name: "in a tenant", as: w.owner, send: "GET /webhooks/" + id, status: 404, code: "not-found"},
		{name: "a key that follows changes", as: follower, send: "DELETE " + line, status: 403, code: "scope-missing"},
		{name: "a key for one tenant", as: w.program.operatorKey(t, "--tenant", w.name).of(w), send: "GET " + line, status: 403, code: "permission-denied"},
	})
	item := follower.do(t, "POST "+line+"/test", "").expect(t, 200).text("/itemId")
	if !patience.Poll(func() bool {
		a := follower.do(t, "GET "+line+"/deliveries?result=failed", "").expect(t, 200)
		return slices.Contains(a.texts("itemId"), item) && !slices.Contains(a.texts("error"), "")
	}) {
		t.Error("the test has no failed delivery")
	}
	follower.do(t, "POST "+line+"/replay", `{"from":"2020-01-01T00:00:00Z","to":"2020-01-02T00:00:00Z"}`).expect(t, 204)
	follower.do(t, "POST "+line+"/skip", `{"all":true}`).expect(t, 204)
	operator.do(t, "DELETE "+line, "", "if-match: "+tag).refused(t, 412, "precondition-failed")
	operator.do(t, "DELETE "+line, "").expect(t, 204)
	follower.do(t, "GET "+line, "").refused(t, 404, "not-found")
	events := operator.do(t, "GET /operator/events?limit=200&subject="+id, "").expect(t, 200)
	want := []string{"webhook.deleted", "webhook.skipped", "webhook.replayed", "webhook.secret_rotated", "webhook.updated", "webhook.created"}
	if types := events.texts("type"); !slices.Equal(types, want) || strings.Contains(string(events.body), "whsec_") || strings.Contains(string(events.body), "serviceAccountId") {
		t.Errorf("the operators' log has %q: %s", types, events.body)
	}
}

// hookReceiver is an endpoint of a webhook. It answers slowly, so that the program is killed during attempts.
type hookReceiver struct {
	t       *testing.T
	server  *httptest.Server
	secret  string
	mu      sync.Mutex
	first   []string          // the ids of the items, in the order of their first delivery
	bodies  map[string]string // by the id of the item
	repeats int
}

func newHookReceiver(t *testing.T, p *program) *hookReceiver {
	r := &hookReceiver{t: t, bodies: map[string]string{}}
	r.server = outboundtest.Endpoint(t, "127.0.0.1:0", r.receive)
	file := filepath.Join(t.TempDir(), "receiver.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = append(p.Env, "SSL_CERT_FILE="+file)
	return r
}

func (r *hookReceiver) receive(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	<-time.After(5 * time.Millisecond)
	if err != nil || q.Context().Err() != nil { // the program was killed
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := q.Header.Get("webhook-id")
	if err := outboundtest.VerifyDelivery(r.secret, q.Header, body); err != nil {
		r.t.Errorf("%s: %v", id, err)
	}
	if _, again := r.bodies[id]; again {
		r.repeats++
	} else {
		r.first = append(r.first, id)
	}
	r.bodies[id] = string(body)
	w.WriteHeader(http.StatusNoContent)
}

// verify makes the receiver verify the signatures of all items with the secret.
func (r *hookReceiver) verify(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = secret
}

// body returns the last body of the item.
func (r *hookReceiver) body(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies[id]
}

// requests returns the number of requests.
func (r *hookReceiver) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.first) + r.repeats
}

// received returns the ids of the items in the order of their first delivery.
func (r *hookReceiver) received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.first)
}

// TestWebhooksOfOperatorsLoseNothing kills and restarts the program while it sends the changes of two
// tenants. Each change is sent as GET /operator/changes shows it, and those of a subject in their order.
func TestWebhooksOfOperatorsLoseNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("claims of a killed program end after a minute")
	}
	t.Parallel()
	binary := build(t)
	for _, store := range stores[:2] {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, binary, store.database(t), "--operator-webhook-networks", "127.0.0.1/32")
			r := newHookReceiver(t, p)
			p.start(t)
			t.Cleanup(func() { p.stop(t) })
			if !patience.Poll(func() bool { return strings.Contains(p.Log(), "--operator-webhook-networks lets") }) {
				t.Error("the program does not warn about the networks")
			}
			worlds := []*world{newWorld(t, p), newWorld(t, p)}
			operator := p.operatorKey(t).of(worlds[0])
			operator.do(t, "POST /operator/webhooks", `{"url":"https://127.0.0.2/"}`).refused(t, 422, "validation")
			for _, w := range worlds {
				w.owner.now(t) // numbers earlier events
			}
			cursor := operator.nowOfTenants(t)
			made := operator.do(t, "POST /operator/webhooks", `{"url":"https://127.0.0.1:`+outboundtest.Port(r.server)+`/hook"}`).expect(t, 201)
			r.verify(made.text("/secret"))
			users := []string{worlds[0].user(t, "changed", ""), worlds[1].user(t, "changed", "")}
			const rounds, each = 2, 25
			for round := range rounds {
				for i := range each {
					for j, w := range worlds {
						w.user(t, fmt.Sprintf("user-%d-%d", round, i), "")
						w.owner.do(t, "PATCH /users/"+users[j], fmt.Sprintf(`{"name":"Round %d of %d"}`, round, i)).expect(t, 200)
					}
				}
				if round == 0 && !patience.Poll(func() bool { return len(r.received()) > 10 }) {
					t.Fatalf("received only %d items", len(r.received()))
				}
				p.kill(t) // the claims in progress end after a minute
				p.start(t)
			}
			items := map[string]string{}
			var subjects [][2]string // the subject and the id of each item
			read := func() bool {
				a := operator.do(t, sinceOfTenants(cursor, "limit=200"), "").expect(t, 200)
				for i, id := range a.texts("id") {
					items[id] = fmt.Sprint(a.value(fmt.Sprintf("/items/%d", i)))
					subjects = append(subjects, [2]string{a.text(fmt.Sprintf("/items/%d/subject", i)), id})
				}
				cursor = a.text("/nextCursor")
				return len(items) >= 2+4*rounds*each && a.value("/upToDate") == true
			}
			if !patience.Poll(read) { // after its start, the program numbers what it had left
				t.Errorf("there are only %d changes", len(items))
			}
			complete := func() bool { return len(r.received()) >= len(items) }
			for tries := 1; !patience.Poll(complete); tries++ { // until the claims end
				if tries == 3 {
					t.Fatalf("received %d of %d items", len(r.received()), len(items))
				}
			}
			first := r.received()
			for id, want := range items {
				var sent any
				if err := json.Unmarshal([]byte(r.body(id)), &sent); err != nil || fmt.Sprint(sent) != want {
					t.Errorf("sent was %s, want %s", r.body(id), want)
				}
			}
			last := map[string]int{}
			for _, one := range subjects {
				at := slices.Index(first, one[1])
				if before, known := last[one[0]]; known && at < before {
					t.Errorf("%s of %s came before an earlier item", one[1], one[0])
				}
				last[one[0]] = at
			}
			t.Logf("%d items in %d requests", len(first), r.requests())
		})
	}
}
