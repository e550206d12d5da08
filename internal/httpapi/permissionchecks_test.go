package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/web"
)

func TestChecks(t *testing.T) {
	s := newTestServer(t)
	clerk, id := s.member("clerk", []string{"shop/invoices:approve", "users:read"}, "Sales")
	for query, want := range map[string]int{
		"permission=shop/invoices:approve&department=sales":   204,
		"permission=shop%2Finvoices%3Aapprove&department=Ops": 403,
		"permission=shop/invoices:approve":                    403,
		"permission=users.email:read&department=Sales":        204,
		"permission=users:delete&department=Sales":            403,
		"":                                  400,
		"permission=":                       400,
		"permission=shop/*:approve":         400,
		"permission=shop/invoices:*":        400,
		"permission=users.*:read":           400,
		"permission=invoices":               400,
		"permission=users:read&department=": 400,
		"permission=users:read&permission=users:read":          400,
		"permission=users:read&user=" + id:                     400,
		"permission=" + strings.Repeat("a", 201) + ":read&x=1": 400,
	} {
		r := s.as(clerk, "GET", "/auths/check?"+query, "")
		if r.StatusCode != want {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.body)
		}
		if user, tenant := r.Header.Get("X-Auth-User"), r.Header.Get("X-Auth-Tenant"); want == 204 && (user != id || tenant != tenantName || r.body != "") || want != 204 && user+tenant != "" {
			t.Errorf("%s: %s of %s", query, user, tenant)
		}
	}
	expectProblem(t, s.request("GET", "/auths/check?permission=users:read", ""), 401, "unauthenticated")
	if err := s.node.Access.Refusals.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := s.as(s.owner, "GET", "/events?type=request.refused", ""); len(r.document(t)["items"].([]any)) != 0 {
		t.Errorf("an answer to a question was recorded as a refusal: %s", r.body)
	}
}

// checked is one check in a request, or its result in a response.
type checked struct {
	Permission string  `json:"permission"`
	Department *string `json:"department,omitempty"`
	Allowed    bool    `json:"allowed,omitempty"`
}

// checkAll checks the permissions in one request.
func (s *testServer) checkAll(cookie string, checks []checked) reply {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"checks": checks})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.as(cookie, "POST", "/auths/checks", string(body))
}

func TestManyChecksAgreeWithSingleOnes(t *testing.T) {
	s := newTestServer(t)
	clerk, _ := s.member("clerk", []string{"shop/invoices:approve", "shop/orders.*:read", "*/stock:count", "users:read", "*:update", "roles:create"}, "Sales", "Ops")
	lead, _ := s.member("lead", []string{"shop/*:*", "users.name:read", "events:read"})
	callers := []string{s.owner, clerk, lead}
	any := func(t *rapid.T, name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, name) }
	rapid.Check(t, func(t *rapid.T) {
		cookie := any(t, "caller", callers...)
		checks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) checked {
			c := checked{Permission: any(t, "application", "", "shop/", "store/", "*/", "Shop/") + any(t, "resource", "invoices", "orders", "users", "roles", "events", "stock", "*", "") +
				any(t, "field", "", ".total", ".name", ".*", ".") + any(t, "action", ":approve", ":read", ":update", ":create", ":count", ":*", "")}
			if department := any(t, "department", "-", "Sales", "sALES", "Sáles", "Ops", "Board", "", "\u0001"); department != "-" {
				c.Department = &department
			}
			return c
		}), 0, 6).Draw(t, "checks")
		many := s.checkAll(cookie, checks)
		var faults []string
		var results []checked
		for i, c := range checks {
			query := "permission=" + url.QueryEscape(c.Permission)
			if c.Department != nil {
				query += "&department=" + url.QueryEscape(*c.Department)
			}
			one := s.as(cookie, "GET", "/auths/check?"+query, "")
			if one.StatusCode == 400 {
				for _, f := range faultsOf(t, one) {
					faults = append(faults, fmt.Sprintf("/checks/%d/%s %s %s", i, f.Parameter, f.Code, f.Detail))
				}
				continue
			}
			c.Allowed = one.StatusCode == 204
			results = append(results, c)
		}
		if faults != nil {
			var told []string
			for _, f := range faultsOf(t, many) {
				told = append(told, f.Pointer+" "+f.Code+" "+f.Detail)
			}
			slices.Sort(told)
			slices.Sort(faults)
			if many.StatusCode != 422 || !slices.Equal(told, faults) {
				t.Fatalf("one by one the faults are %q, together %d %q", faults, many.StatusCode, told)
			}
			return
		}
		var answer struct{ Results []checked }
		if err := json.Unmarshal([]byte(many.body), &answer); err != nil || many.StatusCode != 200 {
			t.Fatalf("%d %s: %v", many.StatusCode, many.body, err)
		}
		if got, want := asText(answer.Results), asText(results); got != want {
			t.Fatalf("one by one %s, together %s", want, got)
		}
	})
}

func asText(results []checked) string {
	var b strings.Builder
	for _, r := range results {
		department := "everywhere"
		if r.Department != nil {
			department = *r.Department
		}
		fmt.Fprintf(&b, "%s in %s: %v; ", r.Permission, department, r.Allowed)
	}
	return b.String()
}

// faultsOf returns the field errors of a problem.
func faultsOf(t interface{ Fatalf(string, ...any) }, r reply) []rolecall.FieldError {
	var problem struct{ Errors []rolecall.FieldError }
	if err := json.Unmarshal([]byte(r.body), &problem); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
	return problem.Errors
}

func TestManyChecksReportAllFieldErrors(t *testing.T) {
	s := newTestServer(t)
	repeated := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"permission":"shop/a:b"},`, n), ",") }
	for body, want := range map[string]string{
		`{"checks":[]}`: "",
		`{"checks":[{"permission":"shop/a:b","department":null}]}`: "",
		`{"checks":[` + repeated(200) + `]}`:                       "",
		`{"checks":[` + repeated(201) + `]}`:                       "/checks too-many",
		`{}`:                                                       "/checks required",
		`{"checks":null}`:                                          "/checks type",
		`{"checks":{}}`:                                            "/checks type",
		`{"checks":["shop/a:b"]}`:                                  "/checks/0 type",
		`{"checks":[{"permission":null},{"permission":7,"department":7},{}]}`:                                       "/checks/0/permission type, /checks/1/permission type, /checks/1/department type, /checks/2/permission required",
		`{"checks":[{"permission":"users"},{"permission":"shop/*:b"},{"permission":"users:fly"}]}`:                  "/checks/0/permission format, /checks/1/permission wildcard, /checks/2/permission unknown-permission",
		`{"checks":[{"permission":"shop/a:b","department":""},{"permission":"shop/a:b","Department":""}],"user":1}`: "/checks/0/department length, /checks/1/Department unknown, /user unknown",
	} {
		r := s.as(s.owner, "POST", "/auths/checks", body)
		var got []string
		for _, f := range faultsOf(t, r) {
			got = append(got, f.Pointer+" "+f.Code)
		}
		if status := map[bool]int{true: 200, false: 422}[want == ""]; r.StatusCode != status || strings.Join(got, ", ") != want {
			t.Errorf("%.80s: %d %q, not %q", body, r.StatusCode, got, want)
		}
	}
	r := s.as(s.owner, "POST", "/auths/checks", `{"checks":[{"permission":"shop/a:b"},{"permission":"shop/a:b","department":"Sales"},{"permission":"shop/a:b"}]}`, "Idempotency-Key", "ignored")
	if want := `{"results":[{"permission":"shop/a:b","department":null,"allowed":true},{"permission":"shop/a:b","department":"Sales","allowed":true},{"permission":"shop/a:b","department":null,"allowed":true}]}`; r.body != want || r.Header.Get("X-Auth-User") != s.ownerID || r.Header.Get("X-Auth-Tenant") != tenantName {
		t.Errorf("%v %s", r.Header, r.body)
	}
	expectProblem(t, s.request("POST", "/auths/checks", `{"checks":[]}`), 401, "unauthenticated")
	if r := s.as(s.owner, "POST", "/auths/checks", `{"checks":[]}`, "Content-Type", "text/plain"); r.StatusCode != 415 {
		t.Errorf("text is answered with %d", r.StatusCode)
	}
}

// countedDatabase counts the transactions of a database.
type countedDatabase struct {
	store.Database
	transactions atomic.Int32
}

func (c *countedDatabase) View(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	c.transactions.Add(1)
	return c.Database.View(ctx, tenant, fn)
}

func (c *countedDatabase) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	c.transactions.Add(1)
	return c.Database.Update(ctx, tenant, fn)
}

func TestChecksOfACachedPrincipalReadNothing(t *testing.T) {
	s := newTestServer(t)
	counted := &countedDatabase{Database: s.db}
	counting := node.New(counted, access.Options{Keys: s.keys})
	edge := New(counting.Access, counting.Directory, counting.SignIn, counting.Webhooks, web.New(web.Options{Logger: slog.New(slog.DiscardHandler)}), Options{})
	send := func() int {
		r := httptest.NewRequest(http.MethodPost, "/auths/checks", strings.NewReader(`{"checks":[{"permission":"shop/a:b"},{"permission":"users:read","department":"Sales"}]}`))
		r.Header = http.Header{"X-Tenant-Schema": {tenantName}, "Cookie": {s.owner}, "Content-Type": {"application/json"}}
		w := &sink{header: http.Header{}}
		edge.ServeHTTP(w, r)
		return int(counted.transactions.Swap(0))
	}
	if first, second := send(), send(); first == 0 || second != 0 {
		t.Errorf("the first request took %d transactions, the second %d", first, second)
	}
}
