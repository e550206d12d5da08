package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// The log names the tenant of the path even if no route matches the request.
func TestTheLogNamesTheTenantOfThePath(t *testing.T) {
	var log bytes.Buffer
	site := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	router := site.NewRouter(site.RespondProblem)
	router.Handle([]Route{{Method: http.MethodGet, Path: "/pages/{tenant}", Label: "page", Handler: http.NotFoundHandler()}}, nil)
	handler := site.Handler(router, site.RespondProblem)
	for _, method := range []string{http.MethodOptions, http.MethodPut, http.MethodGet} {
		log.Reset()
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/pages/acme", nil))
		if got := log.String(); !strings.Contains(got, "tenant=acme") || !strings.Contains(got, "route=/pages/{tenant}") {
			t.Errorf("%s: %s", method, got)
		}
	}
	log.Reset()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/pages/No%20Tenant", nil))
	if got := log.String(); !strings.Contains(got, `tenant=""`) {
		t.Errorf("a text that is no name is logged: %s", got)
	}
}

// On every path, the middleware handles panics, request targets that are too long, and headers that
// are too long.
func TestTheMiddlewareRefusesBeforeTheHandler(t *testing.T) {
	site := New(Options{Logger: slog.New(slog.DiscardHandler)})
	router := site.NewRouter(site.RespondProblem)
	router.Handle([]Route{{Method: http.MethodGet, Path: "/panic", Label: "panic", Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("cause") })}}, nil)
	handler := site.Handler(router, site.RespondProblem)
	long := httptest.NewRequest(http.MethodGet, "/panic?"+strings.Repeat("x", MaxURL), nil)
	many := httptest.NewRequest(http.MethodGet, "/panic", nil)
	many.Header["X-Line"] = make([]string, MaxLines+1)
	for status, request := range map[int]*http.Request{500: httptest.NewRequest(http.MethodGet, "/panic", nil), 414: long, 431: many} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		if w.Code != status || w.Header().Get("X-Request-Id") == "" || strings.Contains(w.Body.String(), "cause") {
			t.Errorf("%d %s, want %d", w.Code, w.Body, status)
		}
	}
}

// FuzzPath checks that decoding the unreserved characters of a path changes neither its meaning nor
// its segments. It also checks that decoding the path twice gives the same result as decoding it
// once.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"/users", "/%75sers", "/users%2Fx", "/%2e%2E/users", "/%2575sers", "/%75%2fa%20b", "/a%7eb%5F", "/%c3%a9%41", "/%00%41", "/a;b%3B%41"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" {
			return
		}
		decoded := decodeUnreserved(u)
		if decoded.Path != u.Path || strings.Count(decoded.EscapedPath(), "/") != strings.Count(u.EscapedPath(), "/") {
			t.Fatalf("%q becomes %q, which is %q and not %q", path, decoded.EscapedPath(), decoded.Path, u.Path)
		}
		if again := decodeUnreserved(decoded); *again != *decoded {
			t.Fatalf("%q becomes %+v, and that %+v", path, decoded, again)
		}
		if isCanonical(decoded) != (decoded.RawPath == "" && isCanonical(&url.URL{Path: u.Path})) {
			t.Fatalf("%q is one path: %v", path, isCanonical(decoded))
		}
	})
}
