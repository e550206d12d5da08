package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

// reverseProxy is a server with TLS that serves several hosts. A host can have pages of its
// application, or forward requests to a program.
type reverseProxy struct {
	port  string
	mu    sync.Mutex
	hosts map[string]http.Handler
	seen  []passage
}

// passage is a request that the reverse proxy has forwarded to a program, and the response's
// status.
type passage struct {
	line    string // METHOD /path
	session bool   // whether the request has a session cookie
	status  int
}

func newReverseProxy(t *testing.T) *reverseProxy {
	t.Helper()
	f := &reverseProxy{hosts: map[string]http.Handler{}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		f.mu.Lock()
		handler := f.hosts[host]
		f.mu.Unlock()
		if handler == nil {
			http.NotFound(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	f.port = port
	return f
}

// origin returns the origin of the host.
func (f *reverseProxy) origin(host string) string { return "https://" + host + ":" + f.port }

// serve registers the handler for the requests to the host.
func (f *reverseProxy) serve(host string, handler http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[host] = handler
}

// pass returns a handler that forwards requests to the program, as a proxy with TLS does.
func (f *reverseProxy) pass(p *program) http.Handler {
	target := &url.URL{Scheme: "http", Host: p.Address}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target) // SetURL also sets Host to the program's address
			r.SetXForwarded()
		},
		ModifyResponse: func(response *http.Response) error {
			r := response.Request
			f.mu.Lock()
			defer f.mu.Unlock()
			f.seen = append(f.seen, passage{
				line: r.Method + " " + r.URL.Path, status: response.StatusCode,
				session: slices.ContainsFunc(r.CookiesNamed("session"), func(c *http.Cookie) bool { return c.Value != "" }),
			})
			return nil
		},
	}
}

// passed returns the requests that were forwarded since the last call of passed.
func (f *reverseProxy) passed() []passage {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.seen
	f.seen = nil
	return seen
}

// awaitPassed waits until at least one request was forwarded since the last call, and returns
// the forwarded requests.
func (f *reverseProxy) awaitPassed(t *testing.T) (seen []passage) {
	t.Helper()
	if !patience.Poll(func() bool {
		seen = f.passed()
		return seen != nil
	}) {
		t.Fatal("nothing came through")
	}
	return seen
}

// page serves a page of an application. The page contains only the JavaScript functions that
// the scripts of the tests use to call the service.
func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(pageContent)) // fails only if the browser has disconnected
}

const pageContent = `<!doctype html>
<title>Application</title>
<script>
let serial = 0
async function call(service, line, body, headers = {}) {
  const [method, path] = line.split(' ')
  const answer = await fetch(service + path, {
    method, credentials: 'include',
    headers: {'x-tenant-schema': 'acme', ...(body && {'content-type': 'application/json'}), ...(method == 'POST' && {'idempotency-key': 'key-' + serial++}), ...headers},
    body: body && JSON.stringify(body),
  })
  const text = await answer.text()
  return {status: answer.status, header: name => answer.headers.get(name), json: text && JSON.parse(text)}
}
async function thrownBy(promise) {
  try { await promise } catch (thrown) { return thrown.name }
  return 'nothing'
}
</script>`
