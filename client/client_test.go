package client_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/client"
)

// is reports whether err is a Problem whose Code is code.
func is(err error, code string) bool {
	problem, ok := errors.AsType[*client.Problem](err)
	return ok && problem.Code == code
}

// If the response has fewer results than checks, the client must return an error. Otherwise
// the missing results could count as permission.
func TestCheckPermissionsRequiresAResultForEachCheck(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"results":[{"allowed":true}]}`) // if the write fails, the client has disconnected
	}))
	defer server.Close()
	c := client.New(server.URL, "acme", nil)
	if got, err := c.CheckPermissions(t.Context(), client.PermissionCheck{Permission: "a/b:c"}, client.PermissionCheck{Permission: "a/b:d"}); err == nil {
		t.Errorf("one result of two checks: %v", got)
	}
}

// A proxy between client and service can send error responses in other formats.
func TestResponsesOfProxies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "<h1>Bad gateway</h1>", http.StatusBadGateway)
	}))
	defer server.Close()
	_, err := client.New(server.URL, "acme", nil).Session(t.Context())
	problem, ok := errors.AsType[*client.Problem](err)
	if !ok || problem.Status != http.StatusBadGateway || problem.Code != "unknown" || problem.RetryAfter != 7*time.Second {
		t.Errorf("Session = %v", err)
	}
}

func TestLongResponsesAreRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("{}")) // the client stops to read
		_, _ = w.Write(bytes.Repeat([]byte(" "), 16<<20))
	}))
	defer server.Close()
	if _, err := client.New(server.URL, "acme", nil).Session(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("Session = %v", err)
	}
}

func TestAProgramSendsItsTokenAndNoCookie(t *testing.T) {
	var sent http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Clone()
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "somebody's"})
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	c := client.NewWithToken(server.URL, "acme", "rc_token", nil)
	for range 2 {
		if err := c.Logout(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sent.Get("Authorization") != "Bearer rc_token" || sent.Get("Cookie") != "" || sent.Get("X-Tenant-Schema") != "acme" {
			t.Errorf("sent %v", sent)
		}
	}
}

func TestABearerClientKeepsNoCookies(t *testing.T) {
	var sent http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Clone()
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "somebody's"})
		_, _ = io.WriteString(w, `{"token":"rs_token"}`) // if the write fails, the client has disconnected
	}))
	defer server.Close()
	c := client.NewBearer(server.URL, "acme", nil)
	_, err := c.Login(t.Context(), "ada@example.com", "password")
	if _, read := c.Session(t.Context()); err != nil || read != nil || sent.Get("Authorization") != "Bearer rs_token" {
		t.Fatal(err, read, sent)
	}
	if err := c.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Session(t.Context()); err != nil || sent.Get("Cookie") != "" {
		t.Errorf("sent %v: %v", sent, err)
	}
}

func TestAClientForABrowserSendsAndReturnsItsCookies(t *testing.T) {
	var sent http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header
		w.Header().Add("Set-Cookie", "other=1; Path=/")
		if r.URL.Path == "/auths/login" {
			w.Header().Add("Set-Cookie", "__Host-rolecall_device=known; Path=/; Max-Age=60; Secure; HttpOnly; SameSite=Lax")
			w.Header().Add("Set-Cookie", "__Host-session=token; Path=/; Secure; HttpOnly; SameSite=Lax")
		} else {
			w.Header().Add("Set-Cookie", "__Host-session=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax")
		}
		_, _ = io.WriteString(w, "{}") // the client reports an incomplete response
	}))
	defer server.Close()
	browser := []*http.Cookie{{Name: "theme", Value: "dark"}, {Name: "__Host-session", Value: "before"}, {Name: "rolecall_device", Value: "d"}}
	c := client.NewWithCookies(server.URL, "acme", browser, nil)
	c.Header = http.Header{"X-Forwarded-For": {"192.0.2.1"}, "User-Agent": {"Browser/1"}}
	if _, err := c.Login(t.Context(), "ada@example.com", "password"); err != nil {
		t.Fatal(err)
	}
	if got := sent.Get("Cookie") + ", " + sent.Get("X-Forwarded-For") + ", " + sent.Get("User-Agent"); got != "__Host-session=before; rolecall_device=d, 192.0.2.1, Browser/1" {
		t.Errorf("sent %s", got)
	}
	lines := func() (lines []string) {
		for _, cookie := range c.Cookies() {
			lines = append(lines, cookie.String())
		}
		return lines
	}
	const device = "__Host-rolecall_device=known; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax"
	if got, want := lines(), []string{device, "__Host-session=token; Path=/; HttpOnly; Secure; SameSite=Lax"}; !slices.Equal(got, want) {
		t.Errorf("after the sign-in: %q, want %q", got, want)
	}
	if err := c.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := lines(), []string{device, "__Host-session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"}; !slices.Equal(got, want) {
		t.Errorf("after the sign-out: %q, want %q", got, want)
	}
}

// Another program of the host, or a neighbouring host, can have set a cookie with a name that Rolecall uses with
// another configuration.
func TestAClientForABrowserSendsCookiesWithAndWithoutThePrefix(t *testing.T) {
	for prefix, want := range map[string][]string{
		"__Host-": {"__Host-session=a; session=b; __Host-rolecall_device=c; rolecall_device=d", "__Host-session=new; session=b; __Host-rolecall_device=c; rolecall_device=d", "session=b; __Host-rolecall_device=c; rolecall_device=d"},
		"":        {"__Host-session=a; session=b; __Host-rolecall_device=c; rolecall_device=d", "__Host-session=a; session=new; __Host-rolecall_device=c; rolecall_device=d", "__Host-session=a; __Host-rolecall_device=c; rolecall_device=d"},
	} {
		var sent []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = append(sent, r.Header.Get("Cookie"))
			value := "new"
			if r.URL.Path == "/auths/logout" {
				value = "; Max-Age=0"
			}
			w.Header().Set("Set-Cookie", prefix+"session="+value)
			_, _ = io.WriteString(w, "{}") // the client reports an incomplete response
		}))
		defer server.Close()
		browser := []*http.Cookie{{Name: "__Host-session", Value: "a"}, {Name: "session", Value: "b"}, {Name: "__Host-rolecall_device", Value: "c"}, {Name: "rolecall_device", Value: "d"}}
		for range 2 { // in both orders
			c := client.NewWithCookies(server.URL, "acme", browser, nil)
			_, err := c.Refresh(t.Context())
			if again := c.Logout(t.Context()); err != nil || again != nil {
				t.Fatal(err, again)
			}
			if _, err := c.Session(t.Context()); err != nil {
				t.Fatal(err)
			}
			slices.Reverse(browser)
		}
		if all := slices.Concat(want, want); !slices.Equal(sent, all) {
			t.Errorf("sent %q, want %q", sent, all)
		}
	}
}

func TestTheClientKeepsCookiesWithThePrefix(t *testing.T) {
	var presented []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		presented = append(presented, r.Header.Get("Cookie"))
		switch r.URL.Path {
		case "/auths/login":
			w.Header().Add("Set-Cookie", "rolecall_device=; Path=/; Max-Age=0; Secure; HttpOnly")
			w.Header().Add("Set-Cookie", "__Host-rolecall_device=known; Path=/; Secure; HttpOnly")
			w.Header().Add("Set-Cookie", "__Host-session=token; Path=/; Secure; HttpOnly")
		case "/auths/logout":
			w.Header().Set("Set-Cookie", "__Host-session=; Path=/; Max-Age=0; Secure; HttpOnly")
		}
		_, _ = io.WriteString(w, "{}") // the client reports an incomplete response
	}))
	defer server.Close()
	c := client.New(server.URL, "acme", nil)
	_, err := c.Login(t.Context(), "ada@example.com", "password")
	if _, read := c.Session(t.Context()); err != nil || read != nil {
		t.Fatal(err, read)
	}
	if err := c.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Session(t.Context()); err != nil {
		t.Fatal(err)
	}
	const known = "__Host-rolecall_device=known"
	if want := []string{"", "__Host-session=token; " + known, "__Host-session=token; " + known, known}; !slices.Equal(presented, want) {
		t.Errorf("the client presents %q, want %q", presented, want)
	}
}
