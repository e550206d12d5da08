package oidc_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/oidc"
)

// realProvider is a provider that make test-idp has started.
type realProvider struct {
	Name, Issuer, Roots, RedirectURI, AfterSignOut, ClientID, ClientSecret string

	Person struct{ Email, Name, Password string }

	roots *x509.CertPool
	pages *http.Client
	forms int    // how many forms the browser has sent
	token string // the last ID token
}

var errArrived = errors.New("the browser has left the provider")

// visit opens the URL and sends the forms of its pages until the provider sends the browser to the
// destination. It returns this URL.
func (p *realProvider) visit(t *testing.T, address, destination string) *url.URL {
	t.Helper()
	var arrived *url.URL
	p.forms = 0
	p.pages.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), destination) {
			arrived = r.URL
			return errArrived
		}
		return nil
	}
	response, err := p.pages.Get(address)
	for ; arrived == nil && p.forms < 5; p.forms++ {
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		action, values, found := p.form(string(body))
		if !found {
			t.Fatalf("%s: %s has no form, but the status %d: %.2000s", p.Name, response.Request.URL, response.StatusCode, body)
		}
		target, err := response.Request.URL.Parse(action)
		if err != nil {
			t.Fatal(err)
		}
		response, err = p.pages.PostForm(target.String(), values)
		if err != nil && !errors.Is(err, errArrived) {
			t.Fatal(err)
		}
	}
	if arrived == nil {
		t.Fatalf("%s: too many forms", p.Name)
	}
	return arrived
}

var (
	formTags  = regexp.MustCompile(`(?s)<form([^>]*)>(.*?)</form>`)
	inputTags = regexp.MustCompile(`(?s)<(?:input|button)([^>]*)>`)
	attribute = regexp.MustCompile(`(?s)([a-z-]+)="([^"]*)"`)
)

// form returns the first form of a page, with the values of the person.
func (p *realProvider) form(page string) (action string, values url.Values, found bool) {
	form := formTags.FindStringSubmatch(page)
	if form == nil {
		return "", nil, false
	}
	values = url.Values{"logout": {"yes"}} // a button of oidc-provider that is not in the form
	for _, tag := range inputTags.FindAllStringSubmatch(form[2], -1) {
		input := attributes(tag[1])
		switch name := input["name"]; name {
		case "":
		case "login", "username":
			values.Set(name, p.Person.Email)
		case "password":
			values.Set(name, p.Person.Password)
		default:
			values.Set(name, input["value"])
		}
	}
	return attributes(form[1])["action"], values, true
}

func attributes(tag string) map[string]string {
	all := map[string]string{}
	for _, match := range attribute.FindAllStringSubmatch(tag, -1) {
		all[match[1]] = html.UnescapeString(match[2])
	}
	return all
}

func (p *realProvider) client() *oidc.Client {
	return oidc.New(oidc.Options{Networks: loopback, Roots: p.roots})
}

func (p *realProvider) provider() oidc.Provider {
	return oidc.Provider{Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: p.ClientSecret}
}

func (p *realProvider) attempt() oidc.Attempt {
	a := attempt()
	a.RedirectURI = p.RedirectURI
	return a
}

// callback signs the person in and returns the parameters of the callback.
func (p *realProvider) callback(t *testing.T, a oidc.Attempt) url.Values {
	t.Helper()
	address, err := p.client().AuthorizationURL(t.Context(), p.provider(), a)
	if err != nil {
		t.Fatal(err)
	}
	callback := p.visit(t, address, p.RedirectURI).Query()
	if callback.Get("state") != a.State || callback.Get("iss") != p.Issuer {
		t.Errorf("%s: %v", p.Name, callback)
	}
	return callback
}

// realProviders returns the two providers that make test-idp has started.
func realProviders(t *testing.T) (all []*realProvider) {
	t.Helper()
	text := os.Getenv("ROLECALL_TEST_PROVIDERS")
	if text == "" {
		t.Skip("NOT TESTED WITH REAL PROVIDERS: make test-idp starts them and runs this test")
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 {
		t.Fatalf("make test-idp has started %d providers, not 2", len(all))
	}
	for _, p := range all {
		roots, err := os.ReadFile(p.Roots)
		if err != nil {
			t.Fatal(err)
		}
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		p.roots = x509.NewCertPool()
		p.roots.AppendCertsFromPEM(roots)
		p.pages = &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.roots, MinVersion: tls.VersionTLS12}}}
	}
	return all
}

func TestRealProviders(t *testing.T) {
	all := realProviders(t)
	for i, p := range all {
		t.Run(p.Name, func(t *testing.T) {
			m, err := p.client().Inspect(t.Context(), p.provider().Issuer)
			if err != nil || len(m.Problems) > 0 || m.Keys == 0 || m.EndSessionEndpoint == "" {
				t.Fatalf("%+v, %v", m, err)
			}
			p.signIn(t)
			p.refuse(t, all[1-i])
			p.signOut(t)
		})
	}
}

// awaitNextSecond waits until the second of the time has ended. Until then, max_age=0 lets Keycloak accept the
// sign-in of this second.
func awaitNextSecond(t time.Time) {
	clock := time.NewTicker(10 * time.Millisecond)
	defer clock.Stop()
	for time.Now().Unix() <= t.Unix() {
		<-clock.C
	}
}

// signIn signs in with the forms of the provider, again without forms, and again after step-up. Then it
// sends the last code again.
func (p *realProvider) signIn(t *testing.T) {
	t.Helper()
	var signedInAt time.Time
	for _, test := range []struct {
		name           string
		reauthenticate bool
		forms          bool
	}{{"first", false, true}, {"again", false, false}, {"step-up", true, true}} {
		a := p.attempt()
		if a.Reauthenticate = test.reauthenticate; a.Reauthenticate {
			awaitNextSecond(signedInAt)
		}
		callback := p.callback(t, a)
		if sent := p.forms > 0; sent != test.forms {
			t.Errorf("%s: %d forms", test.name, p.forms)
		}
		claims, err := p.client().Redeem(t.Context(), p.provider(), a, callback)
		if err == nil && claims.HasMore() {
			err = p.client().AddUserInfo(t.Context(), p.provider(), &claims)
		}
		if err != nil || claims.Subject == "" || claims.Email != p.Person.Email || !claims.EmailVerified || claims.Name != p.Person.Name {
			t.Errorf("%s: %+v, %v", test.name, claims, err)
		}
		signedInAt, p.token = claims.AuthTime, claims.IDToken
		if !test.reauthenticate {
			continue
		}
		if since := time.Since(claims.AuthTime).Abs(); since > time.Hour {
			t.Errorf("authenticated %s ago", since)
		}
		if _, err := p.client().Redeem(t.Context(), p.provider(), a, callback); reason(err) != oidc.ReasonCode {
			t.Errorf("the code, the second time: %v", err)
		}
	}
}

// refuse sends wrong values to the provider, and its code to another provider.
func (p *realProvider) refuse(t *testing.T, other *realProvider) {
	t.Helper()
	for want, change := range map[string]func(provider *oidc.Provider, a *oidc.Attempt){
		oidc.ReasonClient:    func(provider *oidc.Provider, _ *oidc.Attempt) { provider.ClientSecret = "wrong" },
		oidc.ReasonNonce:     func(_ *oidc.Provider, a *oidc.Attempt) { a.Nonce = "another nonce" },
		oidc.ReasonCode:      func(_ *oidc.Provider, a *oidc.Attempt) { a.Verifier = strings.Repeat("another-verifier", 4) },
		oidc.ReasonResponder: func(provider *oidc.Provider, _ *oidc.Attempt) { provider.Issuer = other.Issuer },
	} {
		a, provider := p.attempt(), p.provider()
		callback := p.callback(t, a)
		change(&provider, &a)
		if _, err := p.client().Redeem(t.Context(), provider, a, callback); reason(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// signOut signs out, after which the provider shows its form again.
func (p *realProvider) signOut(t *testing.T) {
	t.Helper()
	address, err := p.client().SignOutURL(t.Context(), p.provider(), p.token, p.AfterSignOut)
	if err != nil {
		t.Fatal(err)
	}
	p.visit(t, address, p.AfterSignOut)
	p.callback(t, p.attempt())
	if p.forms == 0 {
		t.Error("the provider still knows the person")
	}
}
