package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/client"
)

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
		p := client.NewPrincipals(client.PrincipalsConfig{Base: "http://rolecall.example", Tenant: "acme", Transport: n})
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
		p := client.NewPrincipals(client.PrincipalsConfig{Base: "http://rolecall.example", Tenant: "acme", FeedToken: "rc_feed", Transport: n, OnError: func(err error) { reported <- err }})
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
