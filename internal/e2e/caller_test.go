package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/patience"
)

// caller sends requests to a tenant. It authenticates with a session token or a bearer token,
// or sends no credentials.
type caller struct {
	world  *world
	tenant string
	token  string // the session token, or ""
	bearer string // the API token or operator key, or ""
	id     string // the id of the user, service account or operator key, or ""
	email  string

	bearerID string // the id of the API token
}

// anonymous returns a caller of the same tenant without a session.
func (c *caller) anonymous() *caller { return &caller{world: c.world, tenant: c.tenant} }

// with returns a caller for the same user with another session token.
func (c *caller) with(token string) *caller {
	return &caller{world: c.world, tenant: c.tenant, token: token, id: c.id, email: c.email}
}

// byHeader returns a caller for the same user with a new session, whose token it sends in the
// Authorization header.
func (c *caller) byHeader(t testing.TB) *caller {
	t.Helper()
	body := `{"email":` + quoted(c.email) + `,"password":` + quoted(password) + `,"transport":"bearer"}`
	a := c.anonymous().do(t, "POST /auths/login", body).expect(t, 200)
	return &caller{world: c.world, tenant: c.tenant, bearer: a.text("/token"), id: c.id, email: c.email}
}

// sendsSession reports whether the caller sends the token of a session in the Authorization header.
func (c *caller) sendsSession() bool { return strings.HasPrefix(c.bearer, "rs_") }

// signInAgain gives the caller a new session, whose token it sends in the same way.
func (c *caller) signInAgain(t testing.TB) {
	t.Helper()
	if c.sendsSession() {
		c.bearer = c.byHeader(t).bearer
	} else {
		c.token = c.world.signIn(t, c.email).token
	}
}

// in returns a copy of the caller that sends its requests to another tenant.
func (c *caller) in(tenant string) *caller {
	there := *c
	there.tenant = tenant
	return &there
}

var keys atomic.Uint64

// newKey returns an idempotency key that was not used before.
func newKey() string { return fmt.Sprintf("key-%d", keys.Add(1)) }

// creating matches the paths of the POST operations that accept an idempotency key.
var creating = regexp.MustCompile(`^/(users|roles|groups|service-accounts|webhooks|connections|directories|operator/tenants|operator/webhooks|auths/passkeys)$|/(invitations|tokens)$|^/users/[^/]+/(password-resets|email-changes)$|^/jobs/[a-z-]+$`)

// request returns the request for line ("METHOD /path") with the usual headers: the tenant,
// the credentials, the content type, and a new idempotency key if the operation creates
// something. In header, "name: value" replaces a header, "+name: value" adds a second line,
// and "-name" removes the header.
func (c *caller) request(t testing.TB, line, body string, header ...string) *http.Request {
	t.Helper()
	method, path, _ := strings.Cut(line, " ")
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.world.program.Address+path, content)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Tenant-Schema", c.tenant)
	if c.token != "" {
		r.Header.Set("Cookie", "session="+c.token)
	}
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	if strings.HasPrefix(body, pngSignature) {
		r.Header.Set("Content-Type", "image/png")
	} else if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPost && creating.MatchString(path) {
		r.Header.Set("Idempotency-Key", newKey())
	}
	for _, line := range header {
		name, value, given := strings.Cut(line, ": ")
		switch added, more := strings.CutPrefix(name, "+"); {
		case more:
			r.Header.Add(added, value)
		case given:
			r.Header.Set(name, value)
		default:
			r.Header.Del(strings.TrimPrefix(name, "-"))
		}
	}
	return r
}

// atOnce calls send n times at once. It returns the number of responses for each status.
func atOnce(t *testing.T, n int, send func(i int) (*answer, error)) map[int]int {
	t.Helper()
	statuses := map[int]int{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			a, err := send(i)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	running.Wait()
	return statuses
}

// do sends a request and returns the response. It fails the test if the request fails or if
// the response breaks the OpenAPI document.
func (c *caller) do(t testing.TB, line, body string, header ...string) *answer {
	t.Helper()
	a, err := c.try(t, line, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// try is like do, but returns errors instead of failing the test. Goroutines must use try,
// because only the goroutine of the test may end it.
func (c *caller) try(t testing.TB, line, body string, header ...string) (*answer, error) {
	t.Helper()
	return c.world.send(c.request(t, line, body, header...))
}

// send sends the request as it is. If no response arrives within patience.Limit, send kills the
// program, so that the remaining tests fail quickly.
func (w *world) send(r *http.Request) (*answer, error) {
	begun := time.Now()
	response, err := w.client.Do(r)
	if err != nil && time.Since(begun) >= patience.Limit {
		return nil, errors.Join(err, w.program.Signal(os.Kill))
	}
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return &answer{line: r.Method + " " + r.URL.RequestURI(), status: response.StatusCode, header: response.Header, body: body, cookies: response.Cookies()}, response.Body.Close()
}

// answer is a response whose body has been read.
type answer struct {
	line    string
	status  int
	header  http.Header
	body    []byte
	cookies []*http.Cookie
	decoded any // the decoded body, set when it is first needed
}

// expect fails the test unless the response has the status.
func (a *answer) expect(t testing.TB, status int) *answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("%s answered %d, not %d: %s", a.line, a.status, status, a.body)
	}
	return a
}

// refused fails the test unless the response is a problem with the status and the code.
func (a *answer) refused(t testing.TB, status int, code string) *answer {
	t.Helper()
	if a.expect(t, status); a.text("/code") != code {
		t.Fatalf("%s was refused with %q, not %q: %s", a.line, a.text("/code"), code, a.body)
	}
	return a
}

// value returns the value at a JSON pointer of the body, or nil if the body has no such value.
func (a *answer) value(pointer string) any {
	if a.decoded == nil && json.Unmarshal(a.body, &a.decoded) != nil {
		return nil
	}
	value := a.decoded
	for _, part := range strings.Split(pointer, "/")[1:] {
		switch inner := value.(type) {
		case map[string]any:
			value = inner[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(inner) {
				return nil
			}
			value = inner[i]
		default:
			return nil
		}
	}
	return value
}

// text returns the string at a JSON pointer, or "" if no string is there.
func (a *answer) text(pointer string) string {
	text, _ := a.value(pointer).(string)
	return text
}

// list returns the array at a JSON pointer, or nil if no array is there.
func (a *answer) list(pointer string) []any {
	list, _ := a.value(pointer).([]any)
	return list
}

// members returns the sorted member names of the object at a JSON pointer.
func (a *answer) members(pointer string) []string {
	object, _ := a.value(pointer).(map[string]any)
	return slices.Sorted(maps.Keys(object))
}

// texts returns the text of the given member in each item of a list response.
func (a *answer) texts(member string) []string {
	texts := []string{}
	for i := range a.list("/items") {
		texts = append(texts, a.text(fmt.Sprintf("/items/%d/%s", i, member)))
	}
	return texts
}

// faults returns the field errors of a problem response, sorted. Each has the form "place
// code", such as "/name length" or "header:if-match format".
func (a *answer) faults() []string {
	var faults []string
	for i := range a.list("/errors") {
		at := fmt.Sprintf("/errors/%d", i)
		where := a.text(at + "/pointer")
		if header := a.text(at + "/header"); header != "" {
			where = "header:" + header
		}
		if parameter := a.text(at + "/parameter"); parameter != "" {
			where = "parameter:" + parameter
		}
		faults = append(faults, where+" "+a.text(at+"/code"))
	}
	slices.Sort(faults)
	return faults
}

// session returns the value of the session cookie in the response. It fails the test if the
// response has none.
func (a *answer) session(t testing.TB) string {
	t.Helper()
	if cookie := a.cookie("session"); cookie != nil && cookie.Value != "" {
		return cookie.Value
	}
	t.Fatalf("%s set no session: %s", a.line, a.body)
	return ""
}

// cookie returns the cookie with the name, or nil if the response does not set it.
func (a *answer) cookie(name string) *http.Cookie {
	for _, cookie := range a.cookies {
		if cookie.Name == name {
			return cookie
		}
	}
	return nil
}

// quoted returns text as a JSON string.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return string(b)
}

// never is an id that no object has.
var never = rolecall.NewID[any](1).String()
