package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"testing/synctest"
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

// node is a transport that answers as Rolecall does. It counts the reads of sessions.
type node struct {
	mu      sync.Mutex
	loads   int
	polls   int      // requests for changes with an empty answer
	changes []string // events that the feed has next, such as user.suspended user/1
	expired bool     // whether the cursor of the feed has expired
	tenant  string   // data.tenant of the events
	foreign string   // a tenant for which the operator key is not
	sent    []string // path and tenant of each request
	feed    string   // status of the feed, lost or empty; empty text: 200
	session string   // further members of the session
}

func (n *node) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/problem+json"}}, Request: r}
	body, tenant := "", r.Header.Get("X-Tenant-Schema")
	n.sent = append(n.sent, r.URL.Host+r.URL.Path+" "+tenant)
	isCheck := r.URL.Path == "/changes" && strings.HasPrefix(r.Header.Get("Authorization"), "Bearer rco_")
	isFeed := r.URL.Path == "/changes" || r.URL.Path == "/operator/changes"
	switch {
	case isCheck && tenant == n.foreign:
		answer.StatusCode, body = http.StatusForbidden, `{"code":"permission-denied"}`
	case isCheck:
		body = `{"items":[],"nextCursor":"c","upToDate":true}`
	case isFeed && n.feed == "lost":
		return nil, errors.New("reset")
	case isFeed && n.feed == "empty":
		n.polls++
		body = "{}"
	case isFeed && n.feed != "":
		answer.StatusCode, _ = strconv.Atoi(n.feed) // the tests use numbers
		body = `{"code":"` + n.feed + `"}`
	case isFeed && n.expired && r.URL.Query().Get("after") != "":
		n.expired, answer.StatusCode, body = false, http.StatusGone, `{"code":"changes-expired"}`
	case isFeed:
		var items []string
		for _, change := range n.changes {
			kind, subject, _ := strings.Cut(change, " ")
			of, id, _ := strings.Cut(subject, "/")
			items = append(items, fmt.Sprintf(`{"type":%q,"data":{"tenant":%q,"subject":{"type":%q,"id":%q}}}`, kind, n.tenant, of, id))
		}
		n.changes = nil
		body = `{"items":[` + strings.Join(items, ",") + `],"nextCursor":"c","upToDate":true}`
	default:
		n.loads++
		id := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer rs_")
		body = `{"principal":{"type":"user","id":"` + id + `"}` + n.session + `}`
	}
	answer.Body = io.NopCloser(strings.NewReader(body))
	return answer, nil
}

func (n *node) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// uses sends a request of the user each 10 ms for the time, and returns how many of them read the session.
func (n *node) uses(t *testing.T, p *client.Principals, user string, during time.Duration) int {
	t.Helper()
	n.set(func() { n.loads = 0 })
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		caller, err := p.Get(t.Context(), http.Header{"Authorization": {"Bearer rs_" + user}})
		if err != nil || caller.Caller.ID != user {
			t.Fatalf("Get = %+v, %v", caller, err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.loads
}

// remembered runs a test with principals that have followed the feed for two seconds.
func remembered(t *testing.T, capacity int, test func(*testing.T, *node, *client.Principals)) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		p := client.NewPrincipals(client.PrincipalsConfig{Base: "http://rolecall.example", Tenant: "acme", FeedToken: "rc_feed", Capacity: capacity, Transport: n})
		defer p.Close()
		n.uses(t, p, "another user", 2*time.Second)
		test(t, n, p)
	})
}

// Rolecall must see the use of a session token that was replaced ten seconds ago, and ends the session then.
func TestPrincipalsAreReadEachTenSeconds(t *testing.T) {
	remembered(t, 0, func(t *testing.T, n *node, p *client.Principals) {
		if loads := n.uses(t, p, "1", 10*time.Second-10*time.Millisecond); loads != 1 {
			t.Errorf("%d loads in the first ten seconds", loads)
		}
		if loads := n.uses(t, p, "1", 50*time.Second); loads != 5 {
			t.Errorf("%d loads in the next 50 seconds", loads)
		}
	})
}

// A node can be a second behind, so without the feed nothing proves that a session is not revoked.
func TestWithoutTheFeedEachRequestReadsTheSession(t *testing.T) {
	for _, feed := range []string{"lost", "401", "503", "500", "empty"} {
		remembered(t, 0, func(t *testing.T, n *node, p *client.Principals) {
			n.uses(t, p, "1", 5*time.Second)
			n.set(func() { n.feed = feed })
			n.uses(t, p, "1", time.Second)
			if loads := n.uses(t, p, "1", 10*time.Second); loads != 1000 {
				t.Errorf("%s: %d loads for 1000 requests", feed, loads)
			}
			n.set(func() { n.feed = "" })
			n.uses(t, p, "1", time.Minute) // longer than the longest pause
			if loads := n.uses(t, p, "1", 9*time.Second); loads > 1 {
				t.Errorf("%s: %d loads after the feed has returned", feed, loads)
			}
			if n.polls > 100 {
				t.Errorf("%d requests for changes in 11 s", n.polls)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		n := &node{}
		p := client.NewPrincipals(client.PrincipalsConfig{Base: "http://rolecall.example", Transport: n})
		defer p.Close()
		if loads := n.uses(t, p, "1", 8*time.Second); loads != 800 {
			t.Errorf("without a token: %d loads for 800 requests", loads)
		}
	})
}

// Processes of an application that has no requests cost Rolecall nothing.
func TestNothingIsSentWithoutCalls(t *testing.T) {
	remembered(t, 0, func(t *testing.T, n *node, p *client.Principals) {
		n.uses(t, p, "1", 2*time.Second)
		time.Sleep(time.Second)
		n.set(func() { n.sent = nil })
		time.Sleep(time.Hour)
		n.set(func() {
			if len(n.sent) > 0 {
				t.Errorf("%d requests in an hour without a call", len(n.sent))
			}
			n.changes = []string{"user.suspended user/1"}
		})
		n.uses(t, p, "1", 2*time.Second)
		if loads := n.uses(t, p, "1", 5*time.Second); loads != 0 {
			t.Errorf("%d loads after the pause", loads)
		}
	})
}

func TestOneFeedOfAllTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{tenant: "globex", foreign: "initech"}
		p := client.NewPrincipals(client.PrincipalsConfig{Base: "http://rolecall.example", FeedToken: "rco_key", FeedURL: "http://operators.example", Transport: n})
		defer p.Close()
		acme, globex, initech := p.For("acme"), p.For("globex"), p.For("initech")
		for range 20 {
			for _, each := range []*client.Principals{acme, globex, initech} {
				n.uses(t, each, "1", 100*time.Millisecond)
			}
		}
		for _, each := range []*client.Principals{acme, globex} {
			if loads := n.uses(t, each, "1", 100*time.Millisecond); loads != 0 {
				t.Errorf("%d loads", loads)
			}
		}
		if loads := n.uses(t, initech, "1", time.Second); loads != 100 {
			t.Errorf("the feed does not have the changes of the tenant: %d loads of 100", loads)
		}
		times := map[string]int{}
		n.set(func() {
			for _, sent := range n.sent {
				times[sent]++
			}
			n.changes = []string{"role.updated role/2"}
		})
		if times["operators.example/operator/changes "] > 50 || times["operators.example/changes acme"] != 1 || times["operators.example/changes initech"] != 1 {
			t.Errorf("in seven seconds, the requests are %v", times)
		}
		n.uses(t, initech, "1", 300*time.Millisecond) // reads the feed
		if loads := n.uses(t, acme, "1", 100*time.Millisecond); loads != 0 {
			t.Errorf("a change in another tenant causes %d loads", loads)
		}
		if loads := n.uses(t, globex, "1", 100*time.Millisecond); loads != 10 {
			t.Errorf("after the change, %d loads of 10", loads)
		}
		n.set(func() { n.feed = "lost" })
		n.uses(t, initech, "1", 500*time.Millisecond)
		if loads := n.uses(t, acme, "1", 100*time.Millisecond); loads != 10 {
			t.Errorf("500 ms after the last proof, %d loads of 10", loads)
		}
	})
}

func TestTheFirstErrorOfTheFeedIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, reported := &node{feed: "401"}, make(chan error, 10)
		p := client.NewPrincipals(client.PrincipalsConfig{Base: "http://rolecall.example", FeedToken: "rc_feed", Transport: n, OnError: func(err error) { reported <- err }})
		n.uses(t, p, "1", 5*time.Minute)
		n.set(func() { n.feed = "" })
		n.uses(t, p, "1", 5*time.Minute)
		n.set(func() { n.feed = "lost" })
		n.uses(t, p, "1", 5*time.Minute)
		p.Close()
		close(reported)
		var all []error
		for err := range reported {
			all = append(all, err)
		}
		if len(all) != 2 || !is(all[0], "401") || !strings.Contains(all[1].Error(), "reset") {
			t.Errorf("the reported errors are %v", all)
		}
	})
}

// After a change, each request reads the session for a second, because a node can be a second behind.
func TestChangesRemoveWhatTheyAffect(t *testing.T) {
	for change, isAffected := range map[string]bool{
		"user.suspended user/1": true, "session.ended user/1": true, "something.new user/1": true, "role.updated role/2": true, "tenant.updated tenant/3": true,
		"something.new something/4": true, "something.new user/": true, "user.suspended user/2": false, "request.refused user/1": false,
		"session.sign_in_failed tenant/3": false, "webhook.updated webhook/5": false, "token.revoked service_account/6": false,
	} {
		remembered(t, 0, func(t *testing.T, n *node, p *client.Principals) {
			n.uses(t, p, "1", 2*time.Second)
			n.set(func() { n.changes = []string{change} })
			loads := n.uses(t, p, "1", 5*time.Second)
			if isAffected && (loads < 90 || loads > 110) || !isAffected && loads != 0 {
				t.Errorf("%s: %d loads", change, loads)
			}
		})
	}
}

func TestAGapInTheFeedRemovesAll(t *testing.T) {
	remembered(t, 0, func(t *testing.T, n *node, p *client.Principals) {
		n.uses(t, p, "1", 2*time.Second)
		n.set(func() { n.expired = true })
		if loads := n.uses(t, p, "1", 3*time.Second); loads < 90 || loads > 150 {
			t.Errorf("%d loads", loads)
		}
	})
}

func TestAnEntryExpiresWithTheSessionOrAnAssignment(t *testing.T) {
	for _, session := range []string{`,"permissionsExpireAt":%q`, `,"session":{"expiresAt":%q}`, `,"session":{"idleExpiresAt":%q}`, `,"session":{"tokenExpiresAt":%q}`} {
		remembered(t, 0, func(t *testing.T, n *node, p *client.Principals) {
			n.session = fmt.Sprintf(session, time.Now().Add(5*time.Second).Format(time.RFC3339Nano))
			if loads := n.uses(t, p, "1", 5*time.Second); loads != 1 {
				t.Errorf("%s: %d loads before", session, loads)
			}
			if loads := n.uses(t, p, "1", time.Second); loads != 100 {
				t.Errorf("%s: %d loads of 100 after", session, loads)
			}
		})
	}
}

func TestMemoryIsBounded(t *testing.T) {
	remembered(t, 3, func(t *testing.T, n *node, p *client.Principals) {
		for range 3 {
			for _, user := range []string{"1", "2", "3"} {
				n.uses(t, p, user, 10*time.Millisecond)
			}
		}
		n.uses(t, p, "1", 10*time.Millisecond) // 2 is now the least recently used
		n.uses(t, p, "4", 10*time.Millisecond)
		for user, want := range map[string]int{"1": 0, "3": 0, "4": 0} {
			if loads := n.uses(t, p, user, 10*time.Millisecond); loads != want {
				t.Errorf("%s: %d loads", user, loads)
			}
		}
		if loads := n.uses(t, p, "2", 10*time.Millisecond); loads != 1 {
			t.Errorf("2: %d loads", loads)
		}
		n.set(func() {
			for i := range 1000 {
				n.changes = append(n.changes, "user.updated user/"+strconv.Itoa(i+100))
			}
			n.changes = append([]string{"user.updated user/1"}, n.changes...)
		})
		if loads := n.uses(t, p, "1", time.Second); loads < 75 {
			t.Errorf("%d loads after many changes", loads)
		}
	})
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
