package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/web"
)

// loginSetting signs the owner in with the request headers, and returns the cookies that the
// response sets.
func (s *testServer) loginSetting(headers ...string) []*http.Cookie {
	s.t.Helper()
	r := s.request("POST", "/auths/login", `{"email":"`+ownerEmail+`","password":"`+ownerPassword+`"}`, headers...)
	if r.StatusCode != http.StatusOK {
		s.t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	return r.Cookies()
}

func cookieNames(cookies []*http.Cookie) (names []string) {
	for _, cookie := range cookies {
		names = append(names, cookie.Name)
	}
	return names
}

func TestTheKnownDeviceCookieHasTheHostPrefixUnderHTTPS(t *testing.T) {
	public := func(scheme string) *url.URL { return &url.URL{Scheme: scheme, Host: "id.example.com"} }
	for name, c := range map[string]struct {
		options web.Options
		cookie  string
	}{
		"no public address":                   {web.Options{}, "rolecall_device"},
		"plain http":                          {web.Options{PublicURL: public("http"), InsecureCookie: true}, "rolecall_device"},
		"https":                               {web.Options{PublicURL: public("https")}, "__Host-rolecall_device"},
		"https, and a domain for the session": {web.Options{PublicURL: public("https"), CookieDomain: "example.com"}, "__Host-rolecall_device"},
		"the demo behind https":               {web.Options{PublicURL: public("https"), InsecureCookie: true}, "rolecall_device"},
	} {
		t.Run(name, func(t *testing.T) {
			device := newTestServerWith(t, c.options).loginSetting()[0]
			if device.Name != c.cookie || device.Secure == c.options.InsecureCookie || device.Path != "/" || device.Domain != "" || !device.HttpOnly {
				t.Errorf("the cookie is %s", device.Raw)
			}
		})
	}
}

func TestAKnownDeviceCookieOfTheOldNameIsReadAndReplaced(t *testing.T) {
	for _, domain := range []string{"", "example.com"} {
		s := newTestServerWith(t, web.Options{PublicURL: &url.URL{Scheme: "https", Host: "id.example.com"}, CookieDomain: domain})
		mark := s.loginSetting()[0].Value
		cookies := s.loginSetting("Cookie", "rolecall_device="+mark)
		if got := cookieNames(cookies); !slices.Equal(got, []string{"rolecall_device", "__Host-rolecall_device", "session"}) {
			t.Fatalf("a sign-in sets %q", got)
		}
		if old := cookies[0]; old.Value != "" || old.MaxAge >= 0 || old.Domain != domain || !old.Secure {
			t.Errorf("the old cookie is not cleared: %s", old.Raw)
		}
		if got := cookieNames(s.loginSetting("Cookie", "__Host-rolecall_device="+cookies[1].Value)); len(got) != 2 {
			t.Errorf("the next sign-in sets %q", got)
		}
		for range 10 { // these failures reach the limit of this source for unknown browsers
			expectProblem(t, s.request("POST", "/auths/login", `{"email":"`+ownerEmail+`","password":"wrong"}`), 401, "wrong-credentials")
		}
		expectProblem(t, s.request("POST", "/auths/login", `{"email":"`+ownerEmail+`","password":"`+ownerPassword+`"}`), 429, "too-many-attempts")
		for _, name := range []string{"rolecall_device", "__Host-rolecall_device"} {
			s.loginSetting("Cookie", name+"="+mark)
		}
	}
}

func TestTheSessionCookieWithTheHostPrefix(t *testing.T) {
	s := newTestServerWith(t, web.Options{PublicURL: &url.URL{Scheme: "https", Host: "id.example.com"}, HostPrefix: true})
	in := s.request("POST", "/auths/login", `{"email":"`+ownerEmail+`","password":"`+ownerPassword+`"}`)
	cookie, attributes, _ := strings.Cut(in.setSession(), ";")
	token, prefixed := strings.CutPrefix(cookie, "__Host-session=")
	if !prefixed || attributes != " Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax" {
		t.Fatalf("Set-Cookie %q", in.setSession())
	}
	if r := s.as(cookie, "GET", "/auths/session", ""); r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	other := strings.TrimPrefix(s.signIn(ownerEmail, ownerPassword), "__Host-session=")
	for _, planted := range []string{"session=" + other, "__host-session=" + other, "__Secure-session=" + other} {
		expectProblem(t, s.as(planted, "GET", "/auths/session", ""), 401, "unauthenticated")
		if r := s.as(planted+"; "+cookie, "GET", "/auths/session", ""); r.StatusCode != http.StatusOK || !strings.Contains(r.body, in.document(t)["session"].(map[string]any)["id"].(string)) {
			t.Errorf("beside %s: %d %s", planted, r.StatusCode, r.body)
		}
	}
	expectProblem(t, s.as(cookie+"; __Host-session="+other, "GET", "/auths/session", ""), 401, "ambiguous-session")
	out := s.as("__Host-session="+token, "POST", "/auths/logout", "")
	if got := out.setSession(); got != "__Host-session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax" {
		t.Errorf("Set-Cookie %q", got)
	}
	expectProblem(t, s.as(cookie, "GET", "/auths/session", ""), 401, "unauthenticated")
}

func TestPeopleWhoShareABrowserStayKnown(t *testing.T) {
	s := newTestServer(t)
	_ = s.as(s.owner, "POST", "/users", `{"email":"eve@example.com","name":"Eve Adams","invite":true}`, "Idempotency-Key", "eve")
	accepted := s.request("POST", "/auths/invitations/accept", `{"token":"`+s.mailed(t)+`","password":"`+ownerPassword+`"}`)
	eves := accepted.Cookies()[0]
	both := s.loginSetting("Cookie", eves.Name+"="+eves.Value)[0]
	if tokens := strings.Split(both.Value, "."); len(tokens) != 2 || tokens[1] != eves.Value || !both.HttpOnly {
		t.Fatalf("the cookie is %s", both.Raw)
	}
	for range 10 {
		expectProblem(t, s.request("POST", "/auths/login", `{"email":"eve@example.com","password":"wrong"}`), 401, "wrong-credentials")
	}
	login := `{"email":"eve@example.com","password":"` + ownerPassword + `"}`
	expectProblem(t, s.request("POST", "/auths/login", login), 429, "too-many-attempts")
	if r := s.request("POST", "/auths/login", login, "Cookie", both.Name+"="+both.Value); r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
