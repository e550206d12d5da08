package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/process"
)

const (
	crowdSize  = 64
	crowdPause = 20 * time.Millisecond // maximum pause between requests of clients that pause

	failuresShown = 20
)

// The tenant of a crowd, and its owner.
const crowdTenant, crowdOwner, crowdPassword = "crowd", "owner@crowd.example", "correct horse battery staple"

// crowd is a number of clients that create users and read their session until they are
// stopped. All of their requests must succeed.
type crowd struct {
	t       *testing.T
	address string
	session string // the cookie
	number  int64  // makes the email addresses of its users unique

	stopping atomic.Bool
	running  sync.WaitGroup
	users    atomic.Int64 // number of users whose creation was requested
	answered atomic.Int64
	failed   atomic.Int64
	longest  atomic.Int64 // nanoseconds that a request took
}

// crowds is the number of crowds so far. It is used to number them.
var crowds atomic.Int64

// asker is one client of a crowd.
type asker interface {
	// ask sends the request once, and returns the status of the response.
	ask(r *http.Request) (status int, err error)
	// CloseIdleConnections closes the connection of the client.
	CloseIdleConnections()
}

// makeCrowdTenant creates the crowd's tenant on the database of s.
func makeCrowdTenant(t *testing.T, s *process.Server) {
	t.Helper()
	command(t, s, crowdPassword+"\n", "tenant", "create", crowdTenant, "--owner-email", crowdOwner, "--owner-name", "Olga Owner", "--password-stdin")
}

// gather starts a crowd that sends requests to the address.
func gather(t *testing.T, address string) *crowd {
	t.Helper()
	c := &crowd{t: t, address: address, number: crowds.Add(1)}
	c.signIn()
	for i := range crowdSize {
		var a asker
		kept, strictly, pauses := i%2 == 0, i/2%2 == 0, i/4%2 == 0
		if strictly {
			a = &strict{address: address, keep: kept}
		} else {
			a = ordinary{&http.Transport{DisableKeepAlives: !kept}}
		}
		c.running.Go(func() { c.askOn(a, kept, pauses) })
	}
	t.Cleanup(c.disperse)
	return c
}

func (c *crowd) signIn() {
	c.t.Helper()
	answer, err := http.DefaultClient.Do(c.request(http.MethodPost, "/auths/login", fmt.Sprintf(`{"email":%q,"password":%q}`, crowdOwner, crowdPassword)))
	if err != nil {
		c.t.Fatal(err)
	}
	if err := readToEnd(answer); err != nil {
		c.t.Fatal(err)
	}
	for _, cookie := range answer.Cookies() {
		if cookie.Name == "session" {
			c.session = cookie.Name + "=" + cookie.Value
			return
		}
	}
	c.t.Fatalf("a sign-in is answered %d and gives no session", answer.StatusCode)
}

func (c *crowd) request(method, path, body string) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+c.address+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the requests of the tests are valid
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Tenant-Schema", crowdTenant)
	r.Header.Set("Cookie", c.session)
	return r
}

// repeats is the number of requests per user. Half of them read the session. Of the
// others, the first creates the user, and the rest are replays.
const repeats = 8

func (c *crowd) askOn(a asker, keeps, pauses bool) {
	defer a.CloseIdleConnections()
	var user int64
	var answered time.Time // when the last response arrived on the connection that a keeps
	for i := 0; !c.stopping.Load(); i++ {
		if i%repeats == 0 {
			user = c.users.Add(1)
		}
		began := time.Now()
		r, want := c.next(i, user)
		status, err := askAfter(a, r, answered)
		for isNoFailure(err) && !(c.stopping.Load() && time.Since(began) > patience.Limit) {
			r, want = c.next(i, user)
			status, err = askAfter(a, r, time.Time{})
		}
		if answered = time.Now(); err != nil || !keeps {
			answered = time.Time{}
		}
		c.note(time.Since(began))
		failed := err != nil || status != want
		switch {
		case !failed:
			c.answered.Add(1)
		case c.failed.Add(1) <= failuresShown:
			c.t.Errorf("%s %s by %T after %v: %d, %v", r.Method, r.URL.Path, a, time.Since(began), status, err)
		}
		if pauses || failed { // so that connections are sometimes idle
			time.Sleep(rand.N(crowdPause))
		}
	}
}

// errIdleTooLong is the error for a request that the client sent so late that the server had closed the idle connection.
var errIdleTooLong = errors.New("the connection was idle for too long")

// idleTime is how long a client may leave its connection idle. A server that stops waits for twice this time for the
// next request. Then it closes the connection, and the client must repeat a request (RFC 9112, section 9.3.1).
const idleTime = 500 * time.Millisecond

// isNoFailure reports whether the request failed only because the machine is slow, so that the client repeats it.
func isNoFailure(err error) bool {
	return errors.Is(err, errPostponed) || errors.Is(err, errIdleTooLong)
}

// askAfter sends the request once. It returns errIdleTooLong if that failed because the kept connection, whose last
// response arrived at answered, was idle for idleTime. A response that has begun must be complete.
func askAfter(a asker, r *http.Request, answered time.Time) (status int, err error) {
	var sent atomic.Int64
	var begun atomic.Bool // a byte of the response has arrived
	status, err = a.ask(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteRequest:         func(httptrace.WroteRequestInfo) { sent.CompareAndSwap(0, time.Now().UnixNano()) },
		GotFirstResponseByte: func() { begun.Store(true) },
	})))
	sent.CompareAndSwap(0, time.Now().UnixNano())
	if err != nil && !begun.Load() && !answered.IsZero() && time.Unix(0, sent.Load()).Sub(answered) > idleTime {
		return 0, errIdleTooLong
	}
	return status, err
}

// Only a request that got no answer at all may have met a connection that the server closed.
func TestOnlyRequestsWithoutAnAnswerAreRepeated(t *testing.T) {
	for _, test := range []struct {
		answer  string
		excused bool
	}{{"", true}, {"H", false}, {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", false}} {
		for _, keep := range []bool{true, false} {
			address := answering(t, test.answer)
			c := &crowd{address: address}
			for _, a := range []asker{&strict{address: address, keep: keep}, ordinary{&http.Transport{DisableKeepAlives: !keep}}} {
				_, err := askAfter(a, c.request(http.MethodPost, "/users", "{}"), time.Now().Add(-time.Minute))
				if err == nil || errors.Is(err, errIdleTooLong) != test.excused {
					t.Errorf("%T, answered %q: %v", a, test.answer, err)
				}
				a.CloseIdleConnections()
			}
		}
	}
}

// answering returns the address of a server that reads one request of each connection, writes the answer, and closes the
// connection.
func answering(t *testing.T, answer string) (address string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r, err := http.ReadRequest(bufio.NewReader(conn))
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
			}
			if err == nil {
				_, err = io.WriteString(conn, answer)
			}
			if err := errors.Join(err, conn.Close()); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return listener.Addr().String()
}

// next returns the request with the index i, and the status of its answer.
func (c *crowd) next(i int, user int64) (r *http.Request, want int) {
	if i%2 != 0 {
		return c.request(http.MethodGet, "/auths/session", ""), http.StatusOK
	}
	r = c.request(http.MethodPost, "/users", fmt.Sprintf(`{"email":%q,"name":"One of many"}`, c.email(user)))
	r.Header["idempotency-key"] = []string{c.email(user)} // net/http would repeat a POST with the header in its usual spelling
	return r, http.StatusCreated
}

// email returns the address of a user that the crowd creates.
func (c *crowd) email(user int64) string {
	return fmt.Sprintf("user-%d@crowd-%d.example", user, c.number)
}

// note updates the longest duration of a request.
func (c *crowd) note(took time.Duration) {
	for longest := c.longest.Load(); int64(took) > longest && !c.longest.CompareAndSwap(longest, int64(took)); {
		longest = c.longest.Load()
	}
}

// moreAnswers waits until n more requests have been answered.
func (c *crowd) moreAnswers(n int64) {
	c.t.Helper()
	want := c.answered.Load() + n
	await(c.t, "requests are not answered", func() bool { return c.answered.Load() >= want })
}

// disperse stops the crowd.
func (c *crowd) disperse() {
	c.stopping.Store(true)
	c.running.Wait()
}

// leave stops the crowd, and checks that each requested user exists exactly once.
func (c *crowd) leave() {
	c.t.Helper()
	c.disperse()
	found := map[string]int{}
	for query := "?limit=200"; query != ""; {
		page := c.page(query)
		for _, user := range page.Items {
			found[user.Email]++
		}
		if query = ""; page.NextCursor != "" {
			query = "?limit=200&cursor=" + url.QueryEscape(page.NextCursor)
		}
	}
	missing := 0
	for i := range c.users.Load() {
		if found[c.email(i+1)] != 1 {
			missing++
		}
	}
	if missing > 0 {
		c.t.Errorf("of %d users %d are not there, or not once", c.users.Load(), missing)
	}
}

// usersPage is a page of GET /users.
type usersPage struct {
	Items      []struct{ Email string }
	NextCursor string // empty: the last page
}

// page returns a page of the users of the tenant.
func (c *crowd) page(query string) (page usersPage) {
	c.t.Helper()
	answer, err := http.DefaultClient.Do(c.request(http.MethodGet, "/users"+query, ""))
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %v", answer.Status, err)
	}
	return page
}

// String returns a summary of the requests.
func (c *crowd) String() string {
	return fmt.Sprintf("%d clients: %d requests answered, %d failed; the longest took %v",
		crowdSize, c.answered.Load(), c.failed.Load(), time.Duration(c.longest.Load()).Round(time.Millisecond))
}

// ordinary sends requests like other Go programs. If a request on a kept connection fails,
// net/http sends a GET again. It sends a POST again only if none of it was written.
type ordinary struct{ *http.Transport }

func (o ordinary) ask(r *http.Request) (int, error) {
	answer, err := o.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, readToEnd(answer)
}

// strict sends each request once. It detects a closed connection only when a request fails.
type strict struct {
	address string
	keep    bool
	conn    net.Conn
	answers *bufio.Reader
}

func (s *strict) ask(r *http.Request) (status int, err error) {
	if s.conn == nil {
		if s.conn, err = net.Dial("tcp", s.address); err != nil {
			return 0, err
		}
		s.answers = bufio.NewReader(s.conn)
	}
	answer, err := s.exchange(r)
	if err != nil || answer.Close || !s.keep {
		s.CloseIdleConnections()
	}
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, nil
}

func (s *strict) CloseIdleConnections() {
	if s.conn != nil {
		_ = s.conn.Close() // all important responses have arrived or failed
		s.conn = nil
	}
}

// exchange sends the request and reads the whole answer.
func (s *strict) exchange(r *http.Request) (*http.Response, error) {
	if err := s.conn.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
		return nil, err
	}
	if err := r.Write(s.conn); err != nil {
		return nil, err
	}
	if _, err := s.answers.Peek(1); err != nil {
		return nil, err
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil { // as http.Transport does
		trace.GotFirstResponseByte()
	}
	answer, err := http.ReadResponse(s.answers, r)
	if err != nil {
		return nil, err
	}
	return answer, readToEnd(answer)
}

// errPostponed is the error for an answer that asks to repeat the request, because the node has too much work.
var errPostponed = errors.New("the node is overloaded")

// readToEnd reads the body of an answer to its end. It can return errPostponed.
func readToEnd(answer *http.Response) error {
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if answer.StatusCode == http.StatusServiceUnavailable && bytes.Contains(body, []byte("The service is overloaded. Nothing was done.")) {
		return errPostponed
	}
	return nil
}

// await waits until the condition is true, and fails the test after patience.Limit.
func await(t *testing.T, otherwise string, condition func() bool) {
	t.Helper()
	if !patience.Poll(condition) {
		t.Fatal(otherwise)
	}
}
