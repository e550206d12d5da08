package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	// poll is the time between two requests for changes. A long poll could not confirm in time that
	// there are no changes.
	poll = 200 * time.Millisecond

	loadTimeout     = 5 * time.Second
	feedTimeout     = time.Second
	defaultCapacity = 10_000
)

// PrincipalsConfig configures Principals.
type PrincipalsConfig struct {
	Base   string // URL of Rolecall
	Tenant string // empty: only For is used

	// FeedToken is the API token of a service account with changes:read in the whole tenant. For several tenants,
	// it is an operator key with the scope changes. Empty: no memory.
	FeedToken string
	FeedURL   string            // URL that answers requests for changes, such as that of --operator-listen; empty: Base
	Capacity  int               // maximum number of principals in memory; zero: 10,000
	Transport http.RoundTripper // nil: http.DefaultTransport

	// OnError is called with the first error after a successful read of the changes, such as a Problem
	// because FeedToken has expired. While the changes cannot be read, nothing is answered from memory. Nil
	// ignores the errors.
	OnError func(error)
}

// Principals returns the callers of requests to your application, for one tenant of Rolecall or for several.
// Most answers come from memory. It is safe for concurrent use.
//
// It follows the changes while Get is called, and removes the principals that have changed. A revoked session,
// role or permission then has an effect within a second. If the changes cannot be read, or without a
// FeedToken, each call of Get is a request to Rolecall.
type Principals struct {
	tenant string
	*follower
}

// follower is shared by the Principals of all tenants.
type follower struct {
	loads   *Client
	feed    *Client // nil: without a FeedToken
	ofAll   bool    // whether the feed is that of all tenants
	path    string  // of the feed
	memory  *memory
	onError func(error)
	wanted  chan struct{} // has a value if the feed must be read
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	mu      sync.Mutex
	covered map[string]bool // whether an operator key is for a tenant
}

// NewPrincipals returns Principals. With a FeedToken, it also starts a goroutine that reads the change feed of Rolecall.
// Call Close to stop it.
func NewPrincipals(config PrincipalsConfig) *Principals {
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{
		loads:   New(config.Base, "", &http.Client{Transport: config.Transport, Timeout: loadTimeout}),
		ofAll:   strings.HasPrefix(config.FeedToken, "rco_"),
		path:    "/changes",
		memory:  newMemory(cmp.Or(config.Capacity, defaultCapacity), trust),
		onError: config.OnError,
		wanted:  make(chan struct{}, 1),
		cancel:  cancel,
		covered: map[string]bool{},
	}
	tenant := config.Tenant
	if f.ofAll {
		f.path, f.memory.trust, tenant = "/operator/changes", trustOfAll, ""
	}
	if f.onError == nil {
		f.onError = func(error) {}
	}
	if config.FeedToken != "" {
		f.feed = NewWithToken(cmp.Or(config.FeedURL, config.Base), tenant, config.FeedToken, &http.Client{Transport: config.Transport, Timeout: feedTimeout})
		f.ended.Go(func() { f.follow(ctx) })
	}
	return &Principals{config.Tenant, f}
}

// For returns the Principals of another tenant, with the same memory. It panics if FeedToken is an API token,
// because this follows the changes of one tenant. Close stops all of them.
func (p *Principals) For(tenant string) *Principals {
	if p.feed != nil && !p.ofAll && tenant != p.tenant {
		panic("rolecall: for several tenants, FeedToken must be an operator key")
	}
	return &Principals{tenant, p.follower}
}

// Close stops following the changes.
func (p *Principals) Close() {
	p.cancel()
	p.ended.Wait()
}

// tenantName matches the names that tenants can have. A name that an application takes from a request can be anything.
var tenantName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

// Get returns the caller of a request with this header, or nil if it has no session cookie and no token
// of Rolecall. If the session or token is not valid, Get returns a Problem with the status 401, and one with
// 403 if the tenant is suspended. After any other error, refuse the request with 503, and do not treat the user as
// signed out.
func (p *Principals) Get(ctx context.Context, header http.Header) (*Principal, error) {
	authorization, cookie := credential(header)
	if authorization == "" && cookie == "" {
		return nil, nil
	}
	if !tenantName.MatchString(p.tenant) {
		return nil, &Problem{Code: "unauthenticated", Title: "Unauthorized", Status: http.StatusUnauthorized, Detail: "No tenant can have this name."}
	}
	p.wake()
	key := memoryKey(sha256.Sum256([]byte(p.tenant + "\n" + authorization + "\n" + cookie)))
	if found := p.memory.get(key); found != nil {
		return found, nil
	}
	began, loaded := time.Now(), &Principal{}
	_, err := p.loads.do(ctx, call{method: http.MethodGet, path: "/auths/session", into: loaded, header: map[string]string{"X-Tenant-Schema": p.tenant, "Authorization": authorization, "Cookie": cookie}})
	if problem, ok := errors.AsType[*Problem](err); ok && (problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden) {
		p.memory.forget(key)
	}
	if err != nil {
		return nil, err
	}
	if p.covers(ctx, p.tenant) {
		p.memory.add(key, p.tenant, loaded, began)
	}
	return loaded, nil
}

// covers reports whether the feed has the changes of the tenant. The feed of an operator key that is limited to
// other tenants has none of them, and looks the same.
func (f *follower) covers(ctx context.Context, tenant string) bool {
	if f.feed == nil || !f.ofAll {
		return f.feed != nil
	}
	f.mu.Lock()
	covered, known := f.covered[tenant]
	f.mu.Unlock()
	if known {
		return covered
	}
	_, err := f.feed.once(ctx, call{method: http.MethodGet, path: "/changes", query: url.Values{"at": {"now"}}, header: map[string]string{"X-Tenant-Schema": tenant}})
	problem, refused := errors.AsType[*Problem](err)
	if err == nil || refused && (problem.Status == http.StatusUnauthorized || problem.Status == http.StatusForbidden) {
		f.mu.Lock()
		f.covered[tenant] = err == nil
		f.mu.Unlock()
	}
	if err != nil {
		f.onError(fmt.Errorf("the changes of the tenant %s: %w", tenant, err))
	}
	return err == nil
}

// wake lets the goroutine read the feed.
func (f *follower) wake() {
	select {
	case f.wanted <- struct{}{}:
	default:
	}
}

// credential returns the parts of a header that identify the caller to Rolecall, such as Bearer rs_… and
// session=…. Other cookies and other schemes of authorization are ignored.
func credential(header http.Header) (authorization, cookie string) {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if strings.EqualFold(scheme, "Bearer") && (strings.HasPrefix(token, "rs_") || strings.HasPrefix(token, "rc_") || strings.HasPrefix(token, "rco_")) {
		authorization = "Bearer " + token
	}
	for _, line := range header["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			pair = strings.TrimSpace(pair)
			if name, _, _ := strings.Cut(pair, "="); strings.TrimPrefix(name, hostPrefix) != sessionCookie {
				continue
			}
			if cookie != "" {
				cookie += "; "
			}
			cookie += pair
		}
	}
	return authorization, cookie
}

// follow keeps the memory up to date until ctx ends. It reads the feed only while Get is called.
func (f *follower) follow(ctx context.Context) {
	cursor, read := "", time.Time{}
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-f.wanted:
		}
		began := time.Now()
		if began.Sub(read) > readAgain {
			cursor = "" // the memory has no entry from before
		}
		page, err := f.changesAfter(ctx, cursor)
		if err == nil {
			if cursor == "" {
				f.memory.clear() // changes before the cursor are unknown
			}
			failures, cursor, read = 0, page.Cursor, began
			f.memory.apply(page.Items)
			if page.UpToDate {
				f.memory.confirm(began)
				_ = wait(ctx, poll) // if ctx ends, so does the loop
			} else {
				f.wake()
			}
			continue
		}
		problem, refused := errors.AsType[*Problem](err)
		if refused && problem.Status == http.StatusGone {
			cursor = ""
			f.wake()
			continue
		}
		if failures == 0 && ctx.Err() == nil {
			f.onError(err)
		}
		pause := poll // after a lost connection
		if refused {
			pause = pauseAfter(failures, problem.RetryAfter)
		}
		_ = wait(ctx, pause)
		failures++
	}
}

// changesAfter returns the changes after the cursor without waiting for them. Without a cursor, it returns
// the cursor of this moment.
func (f *follower) changesAfter(ctx context.Context, cursor string) (page ChangePage, err error) {
	query := url.Values{"at": {"now"}}
	if cursor != "" {
		query = url.Values{"after": {cursor}, "limit": {"200"}}
	}
	_, err = f.feed.once(ctx, call{method: http.MethodGet, path: f.path, query: query, into: &page})
	if err == nil && page.Cursor == "" {
		err = errNoCursor
	}
	return page, err
}
