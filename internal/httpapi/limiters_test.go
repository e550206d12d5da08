package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/web"
)

// shed returns the number of requests that the limiter has refused, from the metrics.
func (s *testServer) shed(t *testing.T, limiter string) float64 {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "rolecall_http_requests_shed_total" && metric.GetLabel()[0].GetValue() == limiter {
				return metric.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("the metrics say nothing of the limiter %s", limiter)
	return 0
}

// limiterLabels are the names of the limiters in the metrics.
var limiterLabels = map[web.Limiter]string{web.WorkLimiter: "work", web.SessionLimiter: "session", web.PasswordLimiter: "password", web.LargeLimiter: "large"}

// TestFullLimiter fills one limiter after the other. While a limiter is full, its operations are
// refused without an effect. The operations of other limiters and the health checks still succeed.
func TestFullLimiter(t *testing.T) {
	t.Parallel() // because a refused request waits for a second
	s := newTestServer(t)
	const none = web.Limiter(-1)
	operations := []struct {
		limiter      web.Limiter
		method, path string
		body         string
		well         int
		changes      bool
	}{
		{web.WorkLimiter, "GET", "/users", "", http.StatusOK, false},
		{web.WorkLimiter, "POST", "/users", `{"email":"shed@example.com","name":"Shed"}`, http.StatusCreated, true},
		{web.PasswordLimiter, "PUT", "/auths/password", `{"currentPassword":"` + ownerPassword + `","newPassword":"` + ownerPassword + ` new"}`, http.StatusNoContent, true},
		{none, "GET", "/livez", "", http.StatusOK, false},
		{none, "GET", "/readyz", "", http.StatusOK, false},
		{web.SessionLimiter, "GET", "/auths/session", "", http.StatusOK, false},
		{web.SessionLimiter, "POST", "/auths/logout", "", http.StatusNoContent, true},
	}
	for full, name := range limiterLabels {
		free := s.site.Occupy(t.Context(), full)
		refused := 0
		for _, op := range operations {
			if op.limiter != full && op.changes {
				continue
			}
			r := s.as(s.owner, op.method, op.path, op.body, "Idempotency-Key", "shed")
			switch {
			case op.limiter != full && r.StatusCode != op.well:
				t.Errorf("%s %s answered %d while the limiter %s is full: %s", op.method, op.path, r.StatusCode, name, r.body)
			case op.limiter == full:
				refused++
				if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
					t.Errorf("%s %s answered %d in the full limiter %s, Retry-After %q", op.method, op.path, r.StatusCode, name, r.Header.Get("Retry-After"))
				}
			}
		}
		free()
		if shed := s.shed(t, name); shed != float64(refused) {
			t.Errorf("%d requests were refused in the limiter %s, and %v counted", refused, name, shed)
		}
	}
	for _, op := range operations { // with free slots, the same requests succeed, because the refused ones had no effect
		if r := s.as(s.owner, op.method, op.path, op.body, "Idempotency-Key", "shed"); r.StatusCode != op.well || r.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s %s answered %d after all: %s", op.method, op.path, r.StatusCode, r.body)
		}
	}
}

// TestEveryHashIsInThePasswordLimiter checks that exactly the operations in the password limiter
// declare the problem busy. Operations declare this problem if they hash passwords.
func TestEveryHashIsInThePasswordLimiter(t *testing.T) {
	for _, op := range declared {
		hashes := false
		for _, problem := range op.Problems {
			hashes = hashes || problem.Code == "busy"
		}
		if hashes != (op.Limiter == web.PasswordLimiter) {
			t.Errorf("%s: answers busy: %v, limiter %s", op.ID, hashes, limiterLabels[op.Limiter])
		}
	}
}

// TestLargeSessionsWaitForEachOther requests the session of a caller with thousands of permissions while the limiter of
// such sessions is full.
func TestLargeSessionsWaitForEachOther(t *testing.T) {
	t.Parallel() // because a refused request waits for a second
	s := newTestServer(t)
	holder, id := s.member("holder", []string{"users:read"})
	small := s.as(holder, "GET", "/auths/session", "")
	for i := range 18 {
		var permissions []string
		for j := range rolecall.RolePermissionsMax {
			permissions = append(permissions, fmt.Sprintf("shop/r%d:a%d", i, j))
		}
		role := s.as(s.owner, "POST", "/roles", fmt.Sprintf(`{"name":"Large %d","permissions":["%s"]}`, i, strings.Join(permissions, `","`)), "Idempotency-Key", fmt.Sprint("large", i))
		if r := s.as(s.owner, "PUT", "/users/"+id+"/roles/"+role.id(t), ""); r.StatusCode != http.StatusCreated {
			t.Fatalf("assign: %d %s", r.StatusCode, r.body)
		}
	}
	free := s.site.Occupy(t.Context(), web.LargeLimiter)
	for _, request := range []struct {
		who, method, path, body string
		status                  int
	}{
		{holder, "GET", "/auths/session", "", http.StatusServiceUnavailable},
		{holder, "POST", "/auths/checks", `{"checks":[]}`, http.StatusOK},
		{holder, "GET", "/users", "", http.StatusOK},
		{s.owner, "GET", "/auths/session", "", http.StatusOK},
	} {
		if r := s.as(request.who, request.method, request.path, request.body); r.StatusCode != request.status {
			t.Errorf("%s %s answered %d: %s", request.method, request.path, r.StatusCode, r.body)
		}
	}
	free()
	if r := s.as(holder, "GET", "/auths/session", ""); r.StatusCode != http.StatusOK || len(r.body) < len(small.body)+4000*10 {
		t.Errorf("GET /auths/session answered %d with %d bytes", r.StatusCode, len(r.body))
	}
	if r := s.as(holder, "POST", "/auths/checks", `{"checks":[{"permission":"shop/r17:a255"}]}`); r.StatusCode != http.StatusOK || !strings.Contains(r.body, "true") {
		t.Errorf("POST /auths/checks answered %d: %s", r.StatusCode, r.body)
	}
}

// TestChecksOfPermissionsOnlyRead checks what the middleware learns from the declaration of an operation: whether it may
// cut off the response of a slow client.
func TestChecksOfPermissionsOnlyRead(t *testing.T) {
	s := newTestServer(t)
	for _, id := range []string{"AuthsController_checkAll", "AuthsController_logout"} {
		operations := s.edge.operations()
		op := operations[slices.IndexFunc(operations, func(op *operation.Operation) bool { return op.ID == id })]
		handler, readsOnly := s.edge.runner.Handler(op), false
		observed := s.site.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(w, r)
			readsOnly = web.RequestOf(r).ReadsOnly
		}), s.site.RespondProblem)
		r := httptest.NewRequest(op.Method, op.Path, strings.NewReader(`{"checks":[]}`))
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-Tenant-Schema": {tenantName}, "Cookie": {s.owner}}
		w := httptest.NewRecorder()
		observed.ServeHTTP(w, r)
		if want := id == "AuthsController_checkAll"; w.Code >= 400 || readsOnly != want {
			t.Errorf("%s answered %d, and only reads: %v", id, w.Code, readsOnly)
		}
	}
}
