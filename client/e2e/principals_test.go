package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/client"
)

// send sends a request with a session cookie, and returns the body of the answer. It fails the test if the
// answer is an error.
func (d demo) send(t *testing.T, cookie, method, path, body string) []byte {
	t.Helper()
	_, answer := d.exchange(t, cookie, method, path, body)
	return answer
}

// session signs in, and returns the session cookie.
func (d demo) session(t *testing.T, email, password string) string {
	t.Helper()
	header, _ := d.exchange(t, "", http.MethodPost, "/auths/login", `{"email":"`+email+`","password":"`+password+`"}`)
	for _, line := range header["Set-Cookie"] {
		if cookie, _, _ := strings.Cut(line, ";"); strings.HasPrefix(cookie, "session=") {
			return cookie
		}
	}
	t.Error("no session")
	return ""
}

func (d demo) exchange(t *testing.T, cookie, method, path, body string) (http.Header, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.Address+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	r.Header.Set("X-Tenant-Schema", d.Tenant)
	r.Header.Set("Idempotency-Key", strconv.FormatUint(rand.Uint64(), 36))
	r.Header.Set("Cookie", cookie)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= http.StatusBadRequest {
		t.Errorf("%s %s: %s %v", method, path, text, err)
	}
	return answer.Header, text
}

// feedToken returns an API token of a service account that may follow the changes.
func (d demo) feedToken(t *testing.T) string {
	t.Helper()
	owner := d.session(t, d.Email, d.Password)
	create := func(path, body string) (made struct{ ID, Token string }) {
		if err := json.Unmarshal(d.send(t, owner, http.MethodPost, path, body), &made); err != nil {
			t.Fatal(err)
		}
		return made
	}
	role := create("/roles", `{"name":"Follower","permissions":["changes:read"]}`).ID
	account := create("/service-accounts", `{"name":"Follower"}`).ID
	d.send(t, owner, http.MethodPut, "/service-accounts/"+account+"/roles/"+role, "")
	expires := time.Now().Add(time.Hour).Format(time.RFC3339)
	return create("/service-accounts/"+account+"/tokens", `{"name":"Follower","permissions":["changes:read"],"expiresAt":"`+expires+`"}`).Token
}

// revocations is how many revocations TestRevocationsAreSeenWithinASecond makes.
func revocations(t *testing.T) int {
	text := os.Getenv("ROLECALL_TEST_REVOCATIONS")
	switch {
	case text == "" && testing.Short():
		return 5
	case text == "":
		return 50
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// feedThrough sends requests for changes to another address.
type feedThrough struct{ relay *relay }

func (f feedThrough) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/changes" {
		r.URL.Host = f.relay.address()
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestRevocationsAreSeenWithinASecond(t *testing.T) {
	d := newDemo(t)
	relay := newRelay(t, d.Address)
	p := client.NewPrincipals(client.PrincipalsConfig{Base: d.Address, Tenant: d.Tenant, FeedToken: d.feedToken(t), Transport: feedThrough{relay}})
	defer p.Close()
	stop := make(chan struct{})
	var saboteur, users sync.WaitGroup
	saboteur.Go(func() { relay.sabotage(stop) })
	var mu sync.Mutex
	var times []time.Duration
	for seed := range 5 {
		users.Go(func() {
			for _, took := range d.revoke(t, p, revocations(t)/5, uint64(seed)) {
				mu.Lock()
				times = append(times, took)
				mu.Unlock()
			}
		})
	}
	users.Wait()
	close(stop)
	saboteur.Wait()
	if len(times) == 0 {
		t.Fatal("no revocation")
	}
	slices.Sort(times)
	// This bound does not depend on the speed of the machine. Memory answers a request only if a read of the
	// changes that began less than a second before it has shown no revocation.
	t.Logf("%d revocations were seen within %v, half of them within %v", len(times), times[len(times)-1], times[len(times)/2])
	if times[len(times)-1] >= time.Second {
		t.Errorf("a revocation was seen after %v", times[len(times)-1])
	}
}

// sabotage cuts, refuses and holds connections at random times, until stop is closed.
func (r *relay) sabotage(stop <-chan struct{}) {
	random := rand.New(rand.NewPCG(7, 7))
	pause := func(longest time.Duration) bool {
		select {
		case <-stop:
			return false
		case <-time.After(rand.N(longest)):
			return true
		}
	}
	for pause(600 * time.Millisecond) {
		switch random.IntN(4) {
		case 0:
			r.refuses.Store(true)
			r.cut()
			pause(2 * time.Second)
			r.refuses.Store(false)
		case 1:
			r.hold(true)
			pause(2 * time.Second)
			r.hold(false)
		default:
			r.cut()
		}
	}
}

// revoke ends sessions of a person the given number of times. It returns how long after the answer of
// each revocation the last request began that was still allowed.
func (d demo) revoke(t *testing.T, p *client.Principals, number int, seed uint64) (times []time.Duration) {
	owner, ctx := d.signedIn(t), t.Context()
	random := rand.New(rand.NewPCG(seed, 1))
	in, err := d.person(t, owner, nil, "shop/invoices:approve").Session(ctx)
	if err != nil {
		t.Error(err)
		return nil
	}
	for range number {
		session := d.session(t, in.User.Email, password)
		header := http.Header{"Cookie": {"theme=dark; " + session}}
		isAllowed := func() bool {
			caller, err := p.Get(ctx, header)
			for errors.Is(err, context.DeadlineExceeded) { // the time limit of the client, on a slow machine
				caller, err = p.Get(ctx, header)
			}
			if err != nil && !is(err, "unauthenticated") {
				t.Error(err)
			}
			return err == nil && client.Can(caller, "shop/invoices:approve", "")
		}
		// Use the session for a random time, so that entries of every age are revoked.
		for end := time.Now().Add([]time.Duration{50, 500, 1500, 2500}[random.IntN(4)] * time.Millisecond); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
			if !isAllowed() {
				t.Error("a valid session is refused")
				return nil
			}
		}
		d.send(t, session, http.MethodPost, "/auths/logout", "")
		revoked, last := time.Now(), time.Now()
		for now := time.Now(); isAllowed(); now = time.Now() {
			if last = now; last.Sub(revoked) > 10*time.Second {
				break
			}
			<-time.After(5 * time.Millisecond)
		}
		times = append(times, last.Sub(revoked))
	}
	return times
}

func TestMiddleware(t *testing.T) {
	d := newDemo(t)
	in, err := d.person(t, d.signedIn(t), &client.Reach{Departments: []string{"Sales"}}, "shop/invoices:approve").Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	owner, person := d.session(t, d.Email, d.Password), d.session(t, in.User.Email, password)
	p := client.NewPrincipals(client.PrincipalsConfig{Base: d.Address, Tenant: d.Tenant, FeedToken: d.feedToken(t)})
	defer p.Close()
	var calls atomic.Int32
	done := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if caller := client.FromContext(r.Context()); caller != nil {
			_, _ = io.WriteString(w, caller.Caller.Name) // the recorder accepts all
		}
	})
	mux := http.NewServeMux()
	mux.Handle("/", done)
	mux.Handle("/report", client.Require("shop/reports:read", nil, done))
	mux.Handle("/approve/{department}", client.Require("shop/invoices:approve", func(r *http.Request) string { return r.PathValue("department") }, done))
	unreachable := client.NewPrincipals(client.PrincipalsConfig{Base: "http://127.0.0.1:1", Tenant: d.Tenant})
	defer unreachable.Close()
	for _, c := range []struct {
		method, path, cookie, site string
		status                     int
		principals                 *client.Principals
	}{
		{"GET", "/", "", "", 200, p}, {"GET", "/", "session=x", "", 200, p}, {"GET", "/report", "", "", 401, p}, {"GET", "/report", "session=x", "", 401, p},
		{"GET", "/report", owner, "", 200, p}, {"GET", "/report", person, "", 403, p},
		{"POST", "/approve/Sales", person, "", 200, p}, {"POST", "/approve/Ops", person, "", 403, p},
		{"POST", "/report", owner, "same-origin", 200, p}, {"POST", "/report", owner, "none", 200, p},
		{"POST", "/report", owner, "cross-site", 403, p}, {"POST", "/report", owner, "same-site", 403, p},
		{"GET", "/report", owner, "cross-site", 200, p}, {"POST", "/", "", "cross-site", 200, p},
		{"POST", "/report", owner, "http://example.com", 200, p}, {"POST", "/report", owner, "https://evil.example", 403, p}, {"POST", "/report", owner, "null", 403, p},
		{"UPGRADE", "/report", owner, "", 200, p}, {"UPGRADE", "/report", owner, "same-origin", 200, p}, {"UPGRADE", "/report", owner, "cross-site", 403, p}, {"UPGRADE", "/report", owner, "https://evil.example", 403, p},
		{"GET", "/", "session=x", "", 503, unreachable}, {"GET", "/", "", "", 200, unreachable},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("Cookie", c.cookie)
		if c.method == "UPGRADE" {
			r.Method = http.MethodGet
			r.Header.Set("Upgrade", "websocket")
		}
		if c.site == "null" || strings.HasPrefix(c.site, "http") {
			r.Header.Set("Origin", c.site) // as browsers without Sec-Fetch-Site do
		} else if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		w, before := httptest.NewRecorder(), calls.Load()
		c.principals.Middleware(mux).ServeHTTP(w, r)
		if w.Code != c.status || (calls.Load() > before) != (c.status == http.StatusOK) {
			t.Errorf("%s %s of %q from %q: %d %s", c.method, c.path, c.cookie, c.site, w.Code, w.Body)
		}
	}
}

func TestRefusalsThatAreNoOutage(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"status":403,"code":"tenant-suspended","detail":"This tenant is suspended."}`)
	}))
	defer refusing.Close()
	p := client.NewPrincipals(client.PrincipalsConfig{Base: refusing.URL, Tenant: "acme"})
	defer p.Close()
	done := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if client.FromContext(r.Context()) != nil {
			t.Error("there is a caller")
		}
	})
	for tenant, status := range map[string]int{"acme": 403, "": 200, "NOSUCH": 200, "a\r\nx": 200, "é": 200, strings.Repeat("a", 64): 200} {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("Cookie", "session=x")
		if p.For(tenant).Middleware(done).ServeHTTP(w, r); w.Code != status {
			t.Errorf("tenant %q: %d %s", tenant, w.Code, w.Body)
		}
	}
}

func TestPrincipalsOfAPITokens(t *testing.T) {
	d := newDemo(t)
	p := client.NewPrincipals(client.PrincipalsConfig{Base: d.Address, Tenant: d.Tenant})
	defer p.Close()
	caller, err := p.Get(t.Context(), http.Header{"Authorization": {"Bearer " + d.feedToken(t)}})
	if err != nil || caller.Caller.Type != "service_account" || caller.PermissionsExpireAt == nil || !client.Can(caller, "changes:read", "") {
		t.Errorf("Get = %+v, %v", caller, err)
	}
	for _, header := range []http.Header{{}, {"Authorization": {"Basic rs_x"}}, {"Authorization": {"Bearer eyJ"}, "Cookie": {"sessions=x; theme=session"}}} {
		if caller, err := p.Get(t.Context(), header); caller != nil || err != nil {
			t.Errorf("Get of %v = %+v, %v", header, caller, err)
		}
	}
}
