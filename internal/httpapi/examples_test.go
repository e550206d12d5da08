package httpapi

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/sqlitetest"
	"github.com/rolecall/rolecall/internal/store"
)

var writeExamples = flag.Bool("examples", false, "write an example for each operation of the OpenAPI document that has none, from the requests of all tests")

// recorded has the examples that the tests of this run recorded, by operation id.
var recorded = struct {
	sync.Mutex
	examples map[string]operation.Example
}{examples: map[string]operation.Example{}}

func TestMain(m *testing.M) {
	flag.Parse()
	code := sqlitetest.Main(m)
	if *writeExamples && code == 0 {
		if err := saveExamples(); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

// saveExamples adds the recorded examples to the committed ones. It does not replace a committed
// example. To record one again, delete it first.
func saveExamples() error {
	maps.Copy(recorded.examples, loadExamples())
	text, err := json.MarshalIndent(recorded.examples, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile("../../openapi/examples.json", append(text, '\n'), 0o644)
}

// secretTexts are patterns of secrets, with their replacements in examples. A replacement has the
// same format as the secret, but secret scanners do not report it.
var secretTexts = []struct {
	form    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b(rco?_)[A-Za-z0-9_-]{49}\b`), "${1}" + strings.Repeat("EXAMPLE", 7)},
	{regexp.MustCompile(`(["#])[A-Za-z0-9_-]{43}"`), "${1}" + strings.Repeat("EXAMPLE", 6) + `A"`},
	{regexp.MustCompile(`\bwhsec_[A-Za-z0-9+/]{43}=`), "whsec_" + strings.Repeat("EXAMPLE", 6) + "A="},
	{regexp.MustCompile(`\b[A-Z2-7]{32}\b`), "EXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAM"},
	{regexp.MustCompile(`"([0-9a-z]{4}-){6}[0-9a-z]{2}"`), `"exam-p1ee-xamp-1eex-amp1-eexa-mp"`},
}

// withoutSecrets returns the JSON without tokens, secrets and codes.
func withoutSecrets(document []byte) json.RawMessage {
	for _, s := range secretTexts {
		document = s.form.ReplaceAll(document, []byte(s.instead))
	}
	return document
}

// recordExample records the first successful request to each operation, and its response.
func recordExample(r *http.Request, answer reply) {
	if !*writeExamples || answer.StatusCode >= http.StatusMultipleChoices || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return
	}
	op := serves(r)
	if op == nil {
		return
	}
	var e operation.Example
	if r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			if sent, err := io.ReadAll(body); err == nil && json.Valid(sent) {
				e.Request = withoutSecrets(sent)
			}
		}
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		e.Response = withoutSecrets([]byte(answer.body))
	}
	recorded.Lock()
	defer recorded.Unlock()
	if _, ok := recorded.examples[op.ID]; !ok {
		recorded.examples[op.ID] = e
	}
}

// TestExamplesOfTheDocument records examples of operations that the other tests do not call.
func TestExamplesOfTheDocument(t *testing.T) {
	s := newTestServer(t)
	s.node.Access.OIDC = oidc.New(oidc.Options{Resolver: outboundtest.Resolver(t, nil)}) // knows no name, and needs no network
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
	as("GET", "/changes?limit=2", "")
	as("GET", "/events/checkpoint", "")
	as("GET", "/events/consistency?from=1", "")
	events := as("GET", "/events?limit=1", "").items(t)
	as("GET", "/events/"+fmt.Sprint(events[0]["id"])+"/proof", "")
	role := as("POST", "/roles", `{"name":"Invoice reader","key":"invoice-reader","permissions":["shop/invoices:read","users.name:read"]}`).id(t)
	as("GET", "/roles/"+role, "")
	as("GET", "/tenant/summary?timeZone=Europe/Berlin", "")
	as("PATCH", "/tenant", `{"displayName":"Acme Incorporated","settings":{"sessionIdleSeconds":1800}}`)

	done(s.as(s.owner, "PUT", "/tenant/logo", aLogo(t, 320), "Content-Type", "image/png"))

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
	hook := as("POST", "/webhooks", `{"url":"https://hooks.example.com/rolecall","types":["user.created","user.updated","user.deleted"],"serviceAccountId":"`+account+`"}`).id(t)
	as("GET", "/webhooks", "")
	as("GET", "/webhooks/"+hook, "")
	as("PATCH", "/webhooks/"+hook, `{"types":["*"],"ignoreActors":["`+account+`"]}`)
	as("POST", "/webhooks/"+hook+"/rotate-secret", "")
	as("POST", "/webhooks/"+hook+"/test", "")
	as("POST", "/webhooks/"+hook+"/replay", `{"from":"2030-01-31T12:00:00Z","to":"2030-01-31T13:00:00Z"}`)
	as("POST", "/webhooks/"+hook+"/skip", `{"all":false}`)
	as("GET", "/webhooks/"+hook+"/deliveries", "")
	as("DELETE", "/webhooks/"+hook, "")
	sso := as("POST", "/connections", `{"name":"Acme SSO","issuer":"https://login.acme.example","clientId":"rolecall","clientSecret":"correct-horse","domains":["acme.example"]}`).id(t)
	as("GET", "/connections", "")
	as("GET", "/connections/"+sso, "")
	as("PATCH", "/connections/"+sso, `{"secondFactor":"trust","amrValues":["mfa"]}`)
	as("POST", "/connections/"+sso+"/test", "")
	as("GET", "/auths/connections", "")
	as("POST", "/auths/connections/find", `{"email":"ada@acme.example"}`)
	as("POST", "/service-accounts/"+account+"/suspend", `{"reason":"The import is paused"}`)
	as("POST", "/service-accounts/"+account+"/resume", `{"reason":"The import goes on"}`)

	as("PUT", "/users/"+s.ownerID+"/roles/"+role, `{"expiresAt":"2999-12-31T00:00:00Z"}`)
	as("GET", "/access?permission=shop/invoices:read&department=Sales", "")
	as("GET", "/roles?permission=shop/invoices:read", "")

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
	identity := s.link(member, sso)
	as("GET", "/users/"+member+"/identities", "")
	as("DELETE", "/users/"+member+"/identities/"+identity, "")
	as("DELETE", "/connections/"+sso, "")
	done(s.request("POST", "/auths/password-resets", `{"email":"ada@example.com"}`))
	as("GET", "/auths/factors", "")
	as("POST", "/auths/totp", "")
	s.owner = as("POST", "/auths/confirm", `{"password":"`+ownerPassword+`"}`).sessionCookie()

	job := as("POST", "/jobs/suspend-users", `{"users":{"department":"Sales"},"reason":"The office closes"}`).id(t)
	s.runJob()
	as("GET", "/jobs", "")
	as("GET", "/jobs/"+job, "")
	as("GET", "/jobs/"+job+"/results", "")
	as("POST", "/jobs/"+job+"/cancel", "")
	as("POST", "/jobs/resume-users", `{"users":{"status":"suspended"},"reason":"The office opens again"}`)
	as("POST", "/jobs/assign-role", `{"users":{"department":"Sales"},"roleId":"`+role+`","reach":{"departments":["Sales"]},"expiresAt":"2999-12-31T00:00:00Z"}`)
	as("POST", "/jobs/unassign-role", `{"users":{"role":"`+role+`"},"roleId":"`+role+`"}`)

	operator := func(method, path, body string, headers ...string) reply {
		t.Helper()
		return done(s.request(method, "/operator/tenants"+path, body, append([]string{"X-Tenant-Schema", "", "Authorization", s.operators[0]}, headers...)...))
	}
	done(s.request("GET", "/operator/changes?limit=2", "", "X-Tenant-Schema", "", "Authorization", s.operators[0]))
	done(s.request("GET", "/operator/users?email=eve@example.com", "", "X-Tenant-Schema", "", "Authorization", s.operators[0]))
	operator("POST", "", `{"name":"globex","displayName":"Globex","owner":{"email":"olga@example.com","name":"Olga Owner"}}`, "Idempotency-Key", "example")
	operator("GET", "", "")
	operator("PATCH", "/globex", `{"displayName":"Globex Corporation","settings":{"sessionIdleSeconds":1800}}`)
	operator("POST", "/globex/suspend", `{"reason":"The contract has ended"}`)
	operator("POST", "/globex/resume", `{"reason":"The contract was renewed"}`)
	hooks := func(method, path, body string) reply {
		return done(s.request(method, "/operator/webhooks"+path, body, "X-Tenant-Schema", "", "Authorization", s.operators[0], "Idempotency-Key", "example-hook"))
	}
	followed := hooks("POST", "", `{"url":"https://hooks.example.com/all-tenants","types":["user.created","tenant.created"]}`).id(t)
	hooks("GET", "", "")
	hooks("GET", "/"+followed, "")
	hooks("PATCH", "/"+followed, `{"types":["*"],"ignoreActors":["`+account+`"]}`)
	hooks("POST", "/"+followed+"/rotate-secret", "")
	hooks("POST", "/"+followed+"/test", "")
	hooks("POST", "/"+followed+"/replay", `{"from":"2030-01-31T12:00:00Z","to":"2030-01-31T13:00:00Z"}`)
	hooks("POST", "/"+followed+"/skip", `{"all":false}`)
	hooks("GET", "/"+followed+"/deliveries", "")
	hooks("DELETE", "/"+followed, "")
	log := func(path string) map[string]any {
		return done(s.request("GET", "/operator/events"+path, "", "X-Tenant-Schema", "", "Authorization", s.operators[0])).document(t)
	}
	size := log("/checkpoint")["size"]
	log(fmt.Sprintf("/consistency?from=%v", size))
	listed := log("?limit=2")["items"].([]any)
	log("/" + listed[0].(map[string]any)["id"].(string) + "/proof")
	tag := operator("GET", "/globex", "").Header.Get("Etag")
	operator("DELETE", "/globex", "", "If-Match", tag)
	operator("POST", "/globex/restore", `{"reason":"It was deleted by mistake"}`)
}

// link links an identity of the connection to the user and returns its id. Over the API, only a sign-in does
// this.
func (s *testServer) link(user, connection string) string {
	s.t.Helper()
	now := s.node.Access.Now()
	identity := rolecall.Identity{ID: rolecall.NewID[rolecall.Identity](now), Issuer: "https://login.acme.example", Subject: "248289761001", Email: "ada@acme.example", CreatedAt: now}
	err := errors.Join(identity.UserID.UnmarshalText([]byte(user)), identity.ConnectionID.UnmarshalText([]byte(connection)))
	var tenant rolecall.Tenant
	if err == nil {
		tenant, err = s.node.Directory.Tenant(s.t.Context(), tenantName)
	}
	if err == nil {
		err = s.node.Access.Store.Update(s.t.Context(), tenant.ID, func(tx *store.Tx) error {
			tx.InsertIdentity(identity)
			return nil
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return identity.ID.String()
}

// runJob runs the job that has been due for the longest time to its end.
func (s *testServer) runJob() {
	s.t.Helper()
	claimed, err := s.node.Directory.ClaimJob(s.t.Context())
	for more := true; more && err == nil; {
		more, err = s.node.Directory.StepJob(s.t.Context(), claimed)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestExamplesOfSecondFactors records examples of the operations on authenticator apps, recovery
// codes and passkeys.
func TestExamplesOfSecondFactors(t *testing.T) {
	s := newTestServer(t)
	device := passkeytest.New(passkeyOrigin)
	cookie, _ := s.member("ada", []string{"users:read"})
	send := func(status int, path, body string, headers ...string) reply {
		t.Helper()
		r := s.as(cookie, "POST", path, body, headers...)
		if r.StatusCode != status {
			t.Fatalf("POST %s: %d %s", path, r.StatusCode, r.body)
		}
		if r.setSession() != "" {
			cookie = r.sessionCookie()
		}
		return r
	}
	object := func(members map[string]any) string {
		text, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	publicKey := func(r reply) []byte {
		var options struct{ PublicKey json.RawMessage }
		if err := json.Unmarshal([]byte(r.body), &options); err != nil {
			t.Fatal(err)
		}
		return options.PublicKey
	}
	challenge := func(email string) any {
		return s.request("POST", "/auths/login", object(map[string]any{"email": email, "password": ownerPassword})).document(t)["challenge"]
	}

	begun, _ := send(http.StatusOK, "/auths/totp", "").document(t)["secret"].(string)
	raw, err := base32.StdEncoding.DecodeString(begun)
	if err != nil {
		t.Fatal(err)
	}
	code := func(step int64) string { return secret.TOTP(raw).Code(time.Now().Unix()/30 + step) }
	send(http.StatusOK, "/auths/totp/confirm", object(map[string]any{"code": code(0)}))
	send(http.StatusOK, "/auths/recovery-codes", "")
	made := device.Create(t, publicKey(send(http.StatusOK, "/auths/passkeys/options", "")))
	send(http.StatusCreated, "/auths/passkeys", object(map[string]any{"name": "Laptop", "passkey": made}), "Idempotency-Key", "laptop")
	id := base64.RawURLEncoding.EncodeToString(device.Keys[0].ID)
	if r := s.as(cookie, "PATCH", "/auths/passkeys/"+id, `{"name":"Work laptop"}`); r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := s.as(cookie, "GET", "/auths/factors", ""); r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	cookie = ""
	send(http.StatusOK, "/auths/login/second-factor", object(map[string]any{"challenge": challenge("ada@example.com"), "code": code(1)}))
	cookie = ""
	signed := device.Get(t, publicKey(send(http.StatusOK, "/auths/passkeys/sign-in-options", "")))
	send(http.StatusOK, "/auths/passkeys/sign-in", object(map[string]any{"passkey": signed}))

	s.member("grace", []string{"users:read"})
	if r := s.as(s.owner, "PATCH", "/tenant", `{"settings":{"secondFactor":{"required":"all"}}}`); r.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	cookie = ""
	send(http.StatusOK, "/auths/login/enrolment", object(map[string]any{"challenge": challenge("grace@example.com")}))
}

// TestExamplesOfMailedLinks records examples of the operations that accept the mailed links of a
// password reset and of an address change.
func TestExamplesOfMailedLinks(t *testing.T) {
	for path, complete := range map[string]func(s *testServer, token string) reply{
		"/auths/password-resets": func(s *testServer, token string) reply {
			return s.request("POST", "/auths/password-resets/complete", `{"token":"`+token+`","password":"a rather long new password"}`)
		},
		"/users/{id}/email-changes": func(s *testServer, token string) reply {
			return s.request("POST", "/auths/email-changes/complete", `{"token":"`+token+`"}`)
		},
	} {
		s := newTestServer(t)
		email := ownerEmail
		if path != "/auths/password-resets" {
			email = "ada.king@example.com"
		}
		asked := s.as(s.owner, "POST", strings.Replace(path, "{id}", s.ownerID, 1), `{"email":"`+email+`"}`, "Idempotency-Key", "mailed")
		if done := complete(s, s.mailed(t)); asked.StatusCode != http.StatusAccepted || done.StatusCode >= http.StatusMultipleChoices {
			t.Errorf("%s: %d %s, %d %s", path, asked.StatusCode, asked.body, done.StatusCode, done.body)
		}
	}
}

// TestExamplesMatchTheDocument checks that each example belongs to an operation, that the operation
// accepts its request, and that each body of the document has an example.
func TestExamplesMatchTheDocument(t *testing.T) {
	examples := loadExamples()
	readers := bodyReaders()
	for id, e := range examples {
		op := operationNamed(id)
		if e.Request == nil || !op.Input().TakesJSON() {
			continue
		}
		if _, err := readers[bodySchema(op)](string(e.Request)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if *writeExamples { // the loaded examples are older than the written ones
		return
	}
	for _, op := range declared {
		e := examples[op.ID]
		if takes := op.Input(); takes.TakesJSON() && takes.RequiresBody() && e.Request == nil || op.AnswersJSON() && e.Response == nil {
			t.Errorf("%s has no example; send one in a test, and run make examples", op.ID)
		}
	}
}
