package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/url"
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
	Base      string // URL of Rolecall
	Tenant    string
	FeedToken string            // API token of a service account with changes:read in the whole tenant; empty: no memory
	Capacity  int               // maximum number of principals in memory; zero: 10,000
	Transport http.RoundTripper // nil: http.DefaultTransport

	// OnError is called with the first error after a successful read of the changes, such as a Problem
	// because FeedToken has expired. While the changes cannot be read, nothing is answered from memory. Nil
	// ignores the errors.
	OnError func(error)
}

// Principals returns the callers of requests to your application, for one tenant of Rolecall. Most
// answers come from memory. It is safe for concurrent use.
//
// It follows the changes of the tenant, and removes the principals that have changed. A revoked session,
// role or permission then has an effect within a second. If the changes cannot be read, or without a
// FeedToken, each call of Get is a request to Rolecall.
type Principals struct {
	loads   *Client
	memory  *memory
	onError func(error)
	cancel  context.CancelFunc
	ended   sync.WaitGroup
}

// NewPrincipals returns Principals. Call Close to stop following the changes.
func NewPrincipals(config PrincipalsConfig) *Principals {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Principals{
		loads:   New(config.Base, config.Tenant, &http.Client{Transport: config.Transport, Timeout: loadTimeout}),
		memory:  newMemory(cmp.Or(config.Capacity, defaultCapacity)),
		onError: config.OnError,
		cancel:  cancel,
	}
	if config.FeedToken != "" {
		feed := NewWithToken(config.Base, config.Tenant, config.FeedToken, &http.Client{Transport: config.Transport, Timeout: feedTimeout})
		p.ended.Go(func() { p.follow(ctx, feed) })
	}
	return p
}

// Close stops following the changes.
func (p *Principals) Close() {
	p.cancel()
	p.ended.Wait()
}

// Get returns the caller of a request with this header, or nil if it has no session cookie and no token
// of Rolecall. If the session or token is not valid, Get returns a Problem with the status 401. After any
// other error, refuse the request with 503, and do not treat the user as signed out.
func (p *Principals) Get(ctx context.Context, header http.Header) (*Principal, error) {
	authorization, cookie := credential(header)
	if authorization == "" && cookie == "" {
		return nil, nil
	}
	key := memoryKey(sha256.Sum256([]byte(authorization + "\n" + cookie)))
	if found := p.memory.get(key); found != nil {
		return found, nil
	}
	began, loaded := time.Now(), &Principal{}
	_, err := p.loads.do(ctx, call{method: http.MethodGet, path: "/auths/session", into: loaded, header: map[string]string{"Authorization": authorization, "Cookie": cookie}})
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusUnauthorized {
		p.memory.forget(key)
	}
	if err != nil {
		return nil, err
	}
	p.memory.add(key, loaded, began)
	return loaded, nil
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

// follow keeps the memory up to date until ctx ends.
func (p *Principals) follow(ctx context.Context, feed *Client) {
	cursor := ""
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		page, err := feed.changesAfter(ctx, cursor)
		if err == nil {
			if cursor == "" {
				p.memory.clear() // changes before the cursor are unknown
			}
			failures, cursor = 0, page.Cursor
			p.memory.apply(page.Items)
			if page.UpToDate {
				p.memory.confirm(began)
				_ = wait(ctx, poll) // if ctx ends, so does the loop
			}
			continue
		}
		problem, refused := errors.AsType[*Problem](err)
		if refused && problem.Status == http.StatusGone {
			cursor = ""
			continue
		}
		if failures == 0 && p.onError != nil && ctx.Err() == nil {
			p.onError(err)
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
func (c *Client) changesAfter(ctx context.Context, cursor string) (page ChangePage, err error) {
	query := url.Values{"at": {"now"}}
	if cursor != "" {
		query = url.Values{"after": {cursor}, "limit": {"200"}}
	}
	_, err = c.once(ctx, call{method: http.MethodGet, path: "/changes", query: query, into: &page})
	if err == nil && page.Cursor == "" {
		err = errNoCursor
	}
	return page, err
}
