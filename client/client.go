// Package client is a Go client for the HTTP API of Rolecall.
//
//	c := client.New("https://id.example.com", "acme", nil)
//	if _, err := c.Login(ctx, "ada@example.com", password); err != nil { … }
//	for user, err := range c.Users(ctx, client.UserFilter{Department: "Sales"}) { … }
//
// A request is repeated after 429, 503 and a lost connection. After a lost connection, only reads and
// creations are repeated, because creations have an idempotency key. Principals checks permissions in
// memory, and has middleware for net/http.
//
// Every error response of the service is a *Problem. If the user has a second factor, Login
// returns one with the challenge and the accepted methods:
//
//	problem, ok := errors.AsType[*client.Problem](err)
//	if ok && problem.Code == "second-factor-required" {
//		code := … // from the authenticator app, if problem.Methods contains "totp"
//		_, err = c.CompleteLogin(ctx, problem.Challenge, client.Proof{Code: code})
//	}
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxAnswer is the maximum length of a response body in bytes.
const maxAnswer = 16 << 20

// Client sends the requests of one signed-in user of one tenant, or of one API token. It is
// safe for concurrent use.
type Client struct {
	// Header has further headers of each request, for example X-Forwarded-For and User-Agent of a browser
	// whose request your server answers. The service accepts X-Forwarded-For only from an address in its
	// --trusted-proxies. Set Header before the first request.
	Header http.Header

	base   string
	tenant string
	bearer bool                   // whether sign-ins return a token instead of a cookie
	token  atomic.Pointer[string] // an API token or the token of a session; nil for a session with a cookie
	http   *http.Client

	mu      sync.Mutex
	cookies map[string]*http.Cookie // of the session and the known device, by name
	set     []*http.Cookie          // from the responses
}

// New returns a client for a tenant of the service at base, an http or https URL that can
// have a base path. A nil h means http.DefaultClient. h should have no cookie jar, because
// the Client stores the session cookie itself.
func New(base, tenant string, h *http.Client) *Client {
	if h == nil {
		h = http.DefaultClient
	}
	return &Client{base: strings.TrimRight(base, "/"), tenant: tenant, http: h, cookies: map[string]*http.Cookie{}}
}

// NewWithToken is like New, but the client sends a token with each request: an API token (rc_…), an operator
// key (rco_…) or the token of a session (rs_…). If Rolecall replaces the token of a session, the client
// sends the new one, which Token returns. For the changes of all tenants, tenant can be empty.
func NewWithToken(base, tenant, token string, h *http.Client) *Client {
	c := New(base, tenant, h)
	c.token.Store(&token)
	c.bearer = strings.HasPrefix(token, sessionToken)
	return c
}

// NewBearer is like New, but sign-ins return a token (rs_…) instead of a cookie. The client sends it with
// each request. Use it for applications whose own clients send the token, such as mobile apps.
func NewBearer(base, tenant string, h *http.Client) *Client {
	c := New(base, tenant, h)
	c.bearer = true
	return c
}

// sessionToken is the prefix of the token of a session.
const sessionToken = "rs_"

// Token returns the token that the client sends, or an empty string.
func (c *Client) Token() string {
	if token := c.token.Load(); token != nil {
		return *token
	}
	return ""
}

// Problem is an error response (RFC 9457). To distinguish problems in a program, compare
// Code.
type Problem struct {
	Type      string  `json:"type"`
	Code      string  `json:"code"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail"`
	Instance  string  `json:"instance"`
	RequestID string  `json:"requestId"`
	Errors    []Fault `json:"errors"`

	// MoreErrors reports whether the request has more errors than the service lists in
	// Errors.
	MoreErrors bool `json:"moreErrors"`

	// Challenge, Methods and PublicKey are set if Code demands a second factor. Pass
	// Challenge to CompleteLogin or BeginEnrolment. Methods are the accepted methods: totp,
	// passkey and recovery-code. Later versions can add methods. PublicKey has the options
	// for navigator.credentials.get. It is nil if the user has no passkey.
	Challenge string          `json:"challenge"`
	Methods   []string        `json:"methods"`
	PublicKey json.RawMessage `json:"publicKey"`

	// RetryAfter is the time to wait before you repeat the request. RetryAfter is zero if
	// the response has no Retry-After header.
	RetryAfter time.Duration `json:"-"`
}

// Fault is one error in a request. One of Pointer, Header and Parameter locates the error:
// Pointer is a JSON pointer into the request body, and Header and Parameter are names.
type Fault struct {
	Pointer   string `json:"pointer"`
	Header    string `json:"header"`
	Parameter string `json:"parameter"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
}

// Error returns the problem as one line.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail)
	for _, fault := range p.Errors {
		text += fmt.Sprintf("; %s%s%s %s", fault.Pointer, fault.Header, fault.Parameter, fault.Detail)
	}
	return text
}

// call describes one request. The response body is decoded into the variable that into
// points to.
type call struct {
	method, path string
	query        url.Values
	header       map[string]string
	body         any // sent as JSON; nil for a request without a body
	into         any // pointer; nil ignores the response body
}

// do sends the request and returns the header of the response. It returns a *Problem if the
// response status is 400 or higher. It repeats the request after 429, 503 and, if a repetition has no
// second effect, a lost connection.
func (c *Client) do(ctx context.Context, call call) (http.Header, error) {
	attempts := attempts{call: call}
	for {
		header, err := c.once(ctx, call)
		if err == nil {
			return header, nil
		}
		if err := attempts.rest(ctx, err); err != nil {
			return header, err
		}
	}
}

// once is like do, without repetitions.
func (c *Client) once(ctx context.Context, call call) (http.Header, error) {
	request, err := c.request(ctx, call)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, &lostError{fmt.Errorf("rolecall: %w", err)}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("it is larger than %d MiB", maxAnswer>>20)
	}
	if err != nil {
		return nil, &lostError{fmt.Errorf("rolecall: read the answer of %s %s: %w", call.method, call.path, err)}
	}
	if !c.bearer {
		c.keepCookies(answer)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return answer.Header, problem(answer, body)
	}
	if c.bearer && strings.HasPrefix(call.path, "/auths/") {
		c.keepToken(call.path, body)
	}
	if call.into != nil {
		if err := json.Unmarshal(body, call.into); err != nil {
			return answer.Header, fmt.Errorf("rolecall: answer of %s %s: %w", call.method, call.path, err)
		}
	}
	return answer.Header, nil
}

// lostError is the error of a request that got no complete response.
type lostError struct{ error }

// Unwrap returns the cause.
func (e *lostError) Unwrap() error { return e.error }

func (c *Client) request(ctx context.Context, call call) (*http.Request, error) {
	var body io.Reader
	if call.body != nil {
		encoded, err := json.Marshal(call.body)
		if err != nil {
			return nil, fmt.Errorf("rolecall: encode the body: %w", err)
		}
		body = bytes.NewReader(encoded)
	}
	target := c.base + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, call.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("rolecall: %w", err)
	}
	if c.tenant != "" {
		request.Header.Set("X-Tenant-Schema", c.tenant)
	}
	for name, values := range c.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Header.Set("Accept", "application/json, application/problem+json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range call.header {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	if call.header["Authorization"]+call.header["Cookie"] != "" {
		return request, nil // the credential of another caller
	}
	if token := c.Token(); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
		return request, nil
	}
	c.addCookies(request)
	return request, nil
}

// keepToken stores the token of the session from a response, and removes it after a sign-out.
func (c *Client) keepToken(path string, body []byte) {
	var in struct {
		Token string `json:"token"`
	}
	if path == "/auths/logout" {
		c.token.Store(nil)
	} else if json.Unmarshal(body, &in) == nil && strings.HasPrefix(in.Token, sessionToken) {
		c.token.Store(&in.Token)
	}
}

// transport returns the member transport of a request that begins a sign-in.
func (c *Client) transport() string {
	if c.bearer {
		return "bearer"
	}
	return "cookie"
}

// problem returns an error response as a *Problem. If a proxy sent the response in another
// format, Code is unknown.
func problem(answer *http.Response, body []byte) error {
	p := &Problem{}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || kind != "application/problem+json" || json.Unmarshal(body, p) != nil {
		p = &Problem{Code: "unknown", Title: answer.Status, Detail: "The answer is not one of Rolecall's."}
	}
	p.Status = answer.StatusCode
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return p
}

// pages requests all pages of a list, one after the other, and yields their items. After an
// error, it yields the error and ends.
func pages[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := maps.Clone(query)
		for {
			var page struct {
				Items      []T     `json:"items"`
				NextCursor *string `json:"nextCursor"`
			}
			if _, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, into: &page}); err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.NextCursor == nil { // an empty page can still have a next page
				return
			}
			query.Set("cursor", *page.NextCursor)
		}
	}
}
