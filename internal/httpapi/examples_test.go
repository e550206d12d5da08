package httpapi

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var writeExamples = flag.Bool("examples", false, "write the examples of the OpenAPI document anew, from the requests of all tests")

// recorded are the examples of a run of the tests, by the ids of the operations.
var recorded = struct {
	sync.Mutex
	examples map[string]example
}{examples: map[string]example{}}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *writeExamples && code == 0 {
		if err := saveExamples(); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

// saveExamples writes the examples that were recorded.
func saveExamples() error {
	text, err := json.MarshalIndent(recorded.examples, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile("../../openapi/examples.json", append(text, '\n'), 0o644)
}

// recordExample keeps the first request to each operation that succeeded, and its answer.
func recordExample(r *http.Request, answer reply) {
	if !*writeExamples || answer.StatusCode >= http.StatusMultipleChoices || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return
	}
	op := serves(r)
	if op == nil {
		return
	}
	var e example
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			if sent, err := io.ReadAll(body); err == nil && json.Valid(sent) {
				e.Request = sent
			}
		}
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		e.Response = json.RawMessage(answer.body)
	}
	recorded.Lock()
	defer recorded.Unlock()
	if _, ok := recorded.examples[op.id]; !ok {
		recorded.examples[op.id] = e
	}
}

// TestExamplesOfTheDocument sends requests that the other tests do not send, for the
// examples.
func TestExamplesOfTheDocument(t *testing.T) {
	s := newTestServer(t)
	s.operate()
	done := func(r reply) reply {
		t.Helper()
		if r.StatusCode >= http.StatusMultipleChoices {
			t.Fatalf("%s %s: %d %s", r.Request.Method, r.Request.URL.Path, r.StatusCode, r.body)
		}
		return r
	}
	keys := 0
	as := func(method, path, body string) reply {
		t.Helper()
		keys++
		return done(s.as(s.owner, method, path, body, "Idempotency-Key", fmt.Sprint("example-", keys)))
	}
	role := as("POST", "/roles", `{"name":"Invoice reader","key":"invoice-reader","permissions":["shop/invoices:read","users.name:read"]}`).id(t)
	as("GET", "/roles/"+role, "")

	account := as("POST", "/service-accounts", `{"name":"Nightly import","description":"Imports invoices"}`).id(t)
	as("GET", "/service-accounts", "")
	as("GET", "/service-accounts/"+account, "")
	as("PATCH", "/service-accounts/"+account, `{"description":"Imports invoices every night"}`)
	as("PUT", "/service-accounts/"+account+"/roles/"+role, `{"reach":{"departments":["Sales"]},"expiresAt":"2999-12-31T00:00:00Z"}`)
	as("GET", "/service-accounts/"+account+"/roles", "")
	const token = `{"name":"Import","permissions":["shop/invoices:read"],"expiresAt":"%s"}`
	soon := time.Now().AddDate(0, 1, 0).UTC().Format(time.RFC3339)
	as("POST", "/service-accounts/"+account+"/tokens", fmt.Sprintf(token, soon))
	as("GET", "/service-accounts/"+account+"/tokens", "")
	as("POST", "/service-accounts/"+account+"/suspend", `{"reason":"The import is paused"}`)
	as("POST", "/service-accounts/"+account+"/resume", `{"reason":"The import goes on"}`)

	eve := as("POST", "/users", `{"email":"eve@example.com","name":"Eve Adams","department":"Sales"}`).id(t)
	as("POST", "/users/"+eve+"/invitations", "")
	as("GET", "/invitations", "")
	as("GET", "/users/"+eve+"/tokens", "")
	as("DELETE", "/users/"+eve, "")
	as("POST", "/users/"+eve+"/restore", "")
	_, member := s.member("ada", []string{"users:read"})
	as("POST", "/users/"+member+"/password-resets", "")
	as("POST", "/users/"+member+"/email-changes", `{"email":"ada.king@example.com"}`)
	as("GET", "/users/"+member+"/sessions", "")
	done(s.request("POST", "/auths/password-resets", `{"email":"ada@example.com"}`))
	as("GET", "/auths/factors", "")
	as("POST", "/auths/totp", "")
	s.owner = as("POST", "/auths/confirm", `{"password":"`+ownerPassword+`"}`).sessionCookie()

	operator := func(method, path, body string, headers ...string) reply {
		t.Helper()
		return done(s.request(method, "/operator/tenants"+path, body, append([]string{"X-Tenant-Schema", "", "Authorization", s.operators[0]}, headers...)...))
	}
	operator("POST", "", `{"name":"globex","displayName":"Globex","owner":{"email":"olga@example.com","name":"Olga Owner"}}`, "Idempotency-Key", "example")
	operator("GET", "", "")
	operator("PATCH", "/globex", `{"displayName":"Globex Corporation","settings":{"sessionIdleSeconds":1800}}`)
	operator("POST", "/globex/suspend", `{"reason":"The contract has ended"}`)
	operator("POST", "/globex/resume", `{"reason":"The contract was renewed"}`)
	tag := operator("GET", "/globex", "").Header.Get("Etag")
	operator("DELETE", "/globex", "", "If-Match", tag)
	operator("POST", "/globex/restore", `{"reason":"It was deleted by mistake"}`)
}

// TestExamplesMatchTheDocument checks that each example belongs to an operation, which
// reads its request.
func TestExamplesMatchTheDocument(t *testing.T) {
	examples := loadExamples()
	readers := bodyReaders()
	for id, e := range examples {
		op := operationNamed(id)
		if e.Request == nil || op.endpoint.takes().body == nil {
			continue
		}
		if _, err := readers[op.bodySchema()](string(e.Request)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if least := 55; len(examples) < least && !*writeExamples {
		t.Errorf("%d operations have an example, want at least %d", len(examples), least)
	}
}
