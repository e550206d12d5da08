package oidc_test

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
)

func TestCallbacks(t *testing.T) {
	f := newFlow(t)
	set := func(name string, values ...string) func(url.Values) { return func(q url.Values) { q[name] = values } }
	for _, test := range []struct {
		name     string
		promised bool // the metadata promises iss
		change   func(url.Values)
		want     string
	}{
		{"as sent", true, func(url.Values) {}, "accepted"},
		{"no iss", true, func(q url.Values) { q.Del("iss") }, oidc.ReasonResponder},
		{"no iss, not promised", false, func(q url.Values) { q.Del("iss") }, "accepted"},
		{"another iss", true, set("iss", "https://other.example"), oidc.ReasonResponder},
		{"another iss, not promised", false, set("iss", "https://other.example"), oidc.ReasonResponder},
		{"iss with a slash", true, set("iss", f.Issuer+"/"), oidc.ReasonResponder},
		{"empty iss", false, set("iss", ""), oidc.ReasonResponder},
		{"two iss", true, set("iss", f.Issuer, "https://other.example"), oidc.ReasonResponder},
		{"no code", true, func(q url.Values) { q.Del("code") }, oidc.ReasonCallback},
		{"empty code", true, set("code", ""), oidc.ReasonCallback},
		{"two codes", true, func(q url.Values) { q.Add("code", "other") }, oidc.ReasonCallback},
		{"code and error", true, set("error", "access_denied"), oidc.ReasonCallback},
		{"another code", true, set("code", "other"), oidc.ReasonCode},
		{"denied", true, func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, oidc.ReasonDenied},
		{"denied by another provider", true, func(q url.Values) {
			q.Del("code")
			q.Set("error", "access_denied")
			q.Set("iss", "https://other.example")
		}, oidc.ReasonResponder},
		{"needs a sign-in", true, func(q url.Values) { q.Del("code"); q.Set("error", "login_required") }, oidc.ReasonProvider},
		{"down", true, func(q url.Values) { q.Del("code"); q.Set("error", "temporarily_unavailable") }, "unavailable"},
		{"failed", true, func(q url.Values) { q.Del("code"); q.Set("error", "server_error") }, "unavailable"},
		{"two errors", true, func(q url.Values) { q.Del("code"); q["error"] = []string{"a", "b"} }, oidc.ReasonCallback},
	} {
		f.Set(func(s *oidctest.Settings) {
			s.Metadata = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = test.promised }
		})
		f.client = f.newClient()
		a := attempt()
		callback := f.callback(t, a)
		test.change(callback)
		before := f.Requests(oidctest.PathToken)
		if _, err := f.client.Redeem(t.Context(), f.provider, a, callback); reason(err) != test.want {
			t.Errorf("%s: %s, want %s", test.name, reason(err), test.want)
		}
		if sent := f.Requests(oidctest.PathToken) > before; sent != (test.want == "accepted" || test.want == oidc.ReasonCode) {
			t.Errorf("%s: sent to the token endpoint: %v", test.name, sent)
		}
	}
}

// TestMixUp starts an attempt with a hostile provider, which sends the browser to an honest provider.
func TestMixUp(t *testing.T) {
	honest, hostile := newFlow(t), newFlow(t)
	hostile.Set(func(s *oidctest.Settings) {
		s.Metadata = func(m map[string]any) {
			m["authorization_endpoint"] = honest.Issuer + oidctest.PathAuthorization
			delete(m, "authorization_response_iss_parameter_supported")
		}
	})
	a := attempt()
	address, err := hostile.client.AuthorizationURL(t.Context(), hostile.provider, a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hostile.client.Redeem(t.Context(), hostile.provider, a, honest.Authorize(t, address).Query()); reason(err) != oidc.ReasonResponder {
		t.Errorf("%v", err)
	}
	if n := hostile.Requests(oidctest.PathToken); n != 0 {
		t.Error("the hostile provider got the code")
	}
}

func TestCodesAreBoundToTheirAttempt(t *testing.T) {
	f := newFlow(t)
	for name, test := range map[string]struct {
		change func(*oidc.Attempt)
		want   string
	}{
		"nothing changed":          {func(*oidc.Attempt) {}, "accepted"},
		"another verifier":         {func(a *oidc.Attempt) { a.Verifier = "another-verifier-with-more-than-43-characters" }, oidc.ReasonCode},
		"no verifier":              {func(a *oidc.Attempt) { a.Verifier = "" }, oidc.ReasonCode},
		"another nonce":            {func(a *oidc.Attempt) { a.Nonce = "another nonce" }, oidc.ReasonNonce},
		"no nonce":                 {func(a *oidc.Attempt) { a.Nonce = "" }, oidc.ReasonNonce},
		"another redirection":      {func(a *oidc.Attempt) { a.RedirectURI += "/other" }, oidc.ReasonCode},
		"authentication requested": {func(a *oidc.Attempt) { a.Reauthenticate = true }, oidc.ReasonAuthTime},
	} {
		a := attempt()
		callback := f.callback(t, a)
		test.change(&a)
		if _, err := f.client.Redeem(t.Context(), f.provider, a, callback); reason(err) != test.want {
			t.Errorf("%s: %s, want %s", name, reason(err), test.want)
		}
		if _, err := f.client.Redeem(t.Context(), f.provider, a, callback); reason(err) != oidc.ReasonCode {
			t.Errorf("%s, the second time: %s", name, reason(err))
		}
	}
	f.Set(func(s *oidctest.Settings) { s.Token = func(token *oidctest.Token) { token.Claims["nonce"] = "" } })
	a := attempt()
	callback := f.callback(t, a)
	a.Nonce = ""
	if _, err := f.client.Redeem(t.Context(), f.provider, a, callback); reason(err) != oidc.ReasonNonce {
		t.Errorf("an attempt and a token without a nonce: %s", reason(err))
	}
}

func TestClientAuthentication(t *testing.T) {
	f := newFlow(t)
	for _, test := range []struct {
		name         string
		methods      []string // nil: no list
		secret       string
		want         string
		inParameters bool
	}{
		{"no list", nil, oidctest.ClientSecret, "accepted", false},
		{"both", []string{"client_secret_post", "client_secret_basic"}, oidctest.ClientSecret, "accepted", false},
		{"post", []string{"private_key_jwt", "client_secret_post"}, oidctest.ClientSecret, "accepted", true},
		{"wrong secret", nil, "wrong", oidc.ReasonClient, false},
		{"wrong secret by post", []string{"client_secret_post"}, "wrong", oidc.ReasonClient, true},
		{"only keys", []string{"private_key_jwt"}, oidctest.ClientSecret, "unavailable", false},
	} {
		f.Set(func(s *oidctest.Settings) {
			s.Metadata = func(m map[string]any) {
				delete(m, "token_endpoint_auth_methods_supported")
				if test.methods != nil {
					m["token_endpoint_auth_methods_supported"] = test.methods
				}
			}
		})
		client := f.newClient()
		f.provider.ClientSecret = test.secret
		a := attempt()
		callback := f.callback(t, a)
		if _, err := client.Redeem(t.Context(), f.provider, a, callback); reason(err) != test.want {
			t.Errorf("%s: %s, want %s", test.name, reason(err), test.want)
		} else if test.secret != "" && err != nil && strings.Contains(err.Error(), test.secret) {
			t.Errorf("%s: the error has the secret: %v", test.name, err)
		}
		if got := f.Last(oidctest.PathToken).Has("client_id"); test.want != "unavailable" && got != test.inParameters {
			t.Errorf("%s: client_id in the parameters: %v", test.name, got)
		}
	}
}

// faults are what an endpoint can do instead of responding.
func faults(other string) map[string]http.HandlerFunc {
	status := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	return map[string]http.HandlerFunc{
		"slow":      func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"breaks":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusTemporaryRedirect) },
		"huge": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`))
		},
		"slow after the headers": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{`))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
		"fails":       status(http.StatusInternalServerError, `{}`),
		"is busy":     status(http.StatusTooManyRequests, `{}`),
		"is missing":  status(http.StatusNotFound, `not found`),
		"no content":  status(http.StatusNoContent, ``),
		"empty":       status(http.StatusOK, ``),
		"HTML":        status(http.StatusOK, `<html></html>`),
		"an array":    status(http.StatusOK, `[]`),
		"other types": status(http.StatusOK, `{"issuer":1,"keys":{},"access_token":{},"id_token":[]}`),
		"nothing":     status(http.StatusOK, `{}`),
	}
}

// clientFor returns a client that gives up early if the fault is a slow endpoint.
func (f *flow) clientFor(fault string) *oidc.Client {
	options := oidc.Options{Networks: loopback, Roots: f.Roots(), Now: f.clock}
	if strings.HasPrefix(fault, "slow") {
		options.Timeout = 200 * time.Millisecond
	}
	return oidc.New(options)
}

func TestFaultsOfProviders(t *testing.T) {
	f := newFlow(t)
	// The token endpoint reports some faults as refusals: the provider works, and its response is wrong.
	refusals := map[string]string{
		"huge": oidc.ReasonResponse, "is missing": oidc.ReasonProvider, "no content": oidc.ReasonResponse, "empty": oidc.ReasonResponse, "HTML": oidc.ReasonResponse,
		"an array": oidc.ReasonResponse, "other types": oidc.ReasonResponse, "nothing": oidc.ReasonResponse,
	}
	f.Set(func(s *oidctest.Settings) { s.Person.Claims = nil })
	for _, path := range []string{oidctest.PathMetadata, oidctest.PathKeys, oidctest.PathToken, oidctest.PathUserInfo} {
		for name, handler := range faults(f.Issuer + "/elsewhere") {
			want := "unavailable"
			if path == oidctest.PathToken && refusals[name] != "" {
				want = refusals[name]
			}
			switch {
			case path == oidctest.PathKeys && name == "nothing":
				want = oidc.ReasonKey
			case path == oidctest.PathUserInfo && (name == "nothing" || name == "other types"):
				want = oidc.ReasonUserInfo // without a subject
			case path == oidctest.PathUserInfo && slices.Contains([]string{"is missing", "empty", "HTML", "an array"}, name):
				want = oidc.ReasonUserInfoResponse
			}
			a := attempt()
			callback := f.callback(t, a)
			f.Set(func(s *oidctest.Settings) { s.Handlers = map[string]http.HandlerFunc{path: handler} })
			_, err := f.redeem(t, f.clientFor(name), a, callback)
			if reason(err) != want {
				t.Errorf("%s %s: %v, want %s", path, name, err, want)
			} else if text := err.Error(); strings.Contains(text, callback.Get("code")) || strings.Contains(text, a.Verifier) || strings.Contains(text, "secret") {
				t.Errorf("%s %s: the error has a secret: %v", path, name, err)
			}
			f.Set(func(s *oidctest.Settings) { s.Handlers = nil })
		}
	}
	if f.Requests("/elsewhere") != 0 {
		t.Error("a redirect was followed")
	}
	f.Stop()
	if _, err := f.newClient().AuthorizationURL(t.Context(), f.provider, attempt()); !errors.Is(err, oidc.ErrUnavailable) {
		t.Errorf("down: %v", err)
	}
}

func TestPrivateAddressesAreNotReached(t *testing.T) {
	f := newFlow(t)
	names := func(addresses ...string) oidc.Options {
		return oidc.Options{Roots: f.Roots(), Now: f.clock, Resolver: outboundtest.Resolver(t, map[string][]string{"example.com": addresses})}
	}
	f.Issuer = strings.Replace(f.Issuer, "localhost", "example.com", 1)
	f.provider.Issuer = f.Issuer
	if _, err := oidc.New(names("127.0.0.1")).AuthorizationURL(t.Context(), f.provider, attempt()); !errors.Is(err, oidc.ErrUnavailable) || !strings.Contains(err.Error(), "address-refused") {
		t.Errorf("%v", err)
	}
	if n := f.Requests(oidctest.PathMetadata); n != 0 {
		t.Errorf("the provider got %d requests", n)
	}
	options := names("127.0.0.1")
	options.Networks = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	if _, err := oidc.New(options).AuthorizationURL(t.Context(), f.provider, attempt()); err != nil {
		t.Errorf("in an allowed network: %v", err)
	}
}

// TestTheSecondLookupIsCheckedToo has a token endpoint with the name of the issuer. The first lookup of the
// name leads to the provider, and the second one to a private address.
func TestTheSecondLookupIsCheckedToo(t *testing.T) {
	f, inside := newFlow(t), newFlow(t)
	f.Issuer = strings.Replace(f.Issuer, "localhost", "example.com", 1)
	f.Set(func(s *oidctest.Settings) {
		s.Metadata = func(m map[string]any) {
			m["token_endpoint"] = strings.Replace(inside.Issuer, "localhost", "example.com", 1) + oidctest.PathToken
		}
	})
	f.provider.Issuer = f.Issuer
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.RootsPEM())
	roots.AppendCertsFromPEM(inside.RootsPEM())
	for _, test := range []struct {
		second string
		want   string
	}{
		{"127.0.0.2", "unavailable"}, {"127.0.0.1", oidc.ReasonCode},
	} {
		client := oidc.New(oidc.Options{
			Roots: roots, Now: f.clock, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
			Resolver: outboundtest.Resolver(t, map[string][]string{"example.com": {"127.0.0.1", test.second}}),
		})
		if _, err := client.Redeem(t.Context(), f.provider, attempt(), url.Values{"code": {"x"}, "iss": {f.Issuer}}); reason(err) != test.want {
			t.Errorf("%s: %v, want %s", test.second, err, test.want)
		}
	}
}

func TestIssuers(t *testing.T) {
	public, private := oidc.New(oidc.Options{}), oidc.New(oidc.Options{Networks: loopback})
	for issuer, want := range map[string]struct{ public, private bool }{
		"https://accounts.google.com": {true, true}, "https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0": {true, true},
		"https://acme.eu.auth0.com/": {true, true}, "https://login.acme.example/common": {true, true}, "https://login.acme.example/organizations/v2.0": {true, true}, "https://notmicrosoftonline.com/common": {true, true}, "https://login.acme.example/realms/common": {true, true}, "https://login.acme.example:8443/a/b": {true, true},
		"https://localhost:8443": {false, true}, "https://keycloak/realms/a": {false, true}, "https://127.0.0.1:8443": {false, true}, "https://10.0.0.1": {false, false},
		"": {}, "http://login.acme.example": {}, "login.acme.example": {}, "https://login.acme.example?a=b": {}, "https://login.acme.example?": {}, "https://login.acme.example#a": {},
		"https://ada:pw@login.acme.example": {}, "https://login.microsoftonline.com/common/v2.0": {}, "https://login.microsoftonline.com/Common": {},
		"https://login.microsoftonline.com/organizations/v2.0": {}, "https://login.microsoftonline.com/consumers/v2.0": {}, "https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0": {}, "https://login.microsoftonline.com/9188040D-6C67-4C5B-B112-36A304B66DAD/v2.0": {}, "https://login.microsoftonline.us/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0": {}, "https://login.microsoftonline.us//common": {}, "https://LOGIN.microsoftonline.COM/common": {}, "https://sts.windows.net/common": {}, "https://login.partner.microsoftonline.cn/common/v2.0": {},
		"https://login.microsoftonline.com/{tenantid}/v2.0": {}, "https://login.microsoftonline.com/%7Btenantid%7D/v2.0": {}, "https://login.microsoftonline.com/%63ommon/v2.0": {},
	} {
		if err := public.CheckIssuer(issuer); (err == nil) != want.public {
			t.Errorf("%s: %v", issuer, err)
		}
		if err := private.CheckIssuer(issuer); (err == nil) != want.private {
			t.Errorf("%s, with private networks: %v", issuer, err)
		}
		if _, err := private.AuthorizationURL(canceled(), oidc.Provider{Issuer: issuer}, attempt()); !errors.Is(err, oidc.ErrUnavailable) {
			t.Errorf("%s: %v", issuer, err)
		}
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestProblemsOfMetadata(t *testing.T) {
	f := newFlow(t)
	for name, test := range map[string]struct {
		change func(m map[string]any)
		want   string
	}{
		"another issuer":      {func(m map[string]any) { m["issuer"] = f.Issuer + "/" }, "exactly the same"},
		"no issuer":           {func(m map[string]any) { delete(m, "issuer") }, "exactly the same"},
		"http":                {func(m map[string]any) { m["token_endpoint"] = "http://login.acme.example/token" }, "The token_endpoint of the metadata must be a URL that begins with https://"},
		"no authorization":    {func(m map[string]any) { delete(m, "authorization_endpoint") }, "The authorization_endpoint of the metadata must"},
		"javascript":          {func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }, "The authorization_endpoint of the metadata must"},
		"a private address":   {func(m map[string]any) { m["jwks_uri"] = "https://169.254.169.254/latest" }, "The jwks_uri of the metadata must have a host on the internet"},
		"user info by http":   {func(m map[string]any) { m["userinfo_endpoint"] = "http://login.acme.example/" }, "The userinfo_endpoint of the metadata must"},
		"sign-out with http":  {func(m map[string]any) { m["end_session_endpoint"] = "http://login.acme.example/" }, "The end_session_endpoint of the metadata must"},
		"only HMAC":           {func(m map[string]any) { m["id_token_signing_alg_values_supported"] = []string{"HS256", "none"} }, "none of the algorithms"},
		"only implicit":       {func(m map[string]any) { m["response_types_supported"] = []string{"id_token"} }, "authorization code flow"},
		"plain PKCE":          {func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }, "PKCE"},
		"only public clients": {func(m map[string]any) { m["token_endpoint_auth_methods_supported"] = []string{"none"} }, "client secret"},
		"only keys":           {func(m map[string]any) { m["token_endpoint_auth_methods_supported"] = []string{"private_key_jwt"} }, "client secret"},
	} {
		f.Set(func(s *oidctest.Settings) { s.Metadata = test.change })
		m, err := f.client.Inspect(t.Context(), f.Issuer)
		if problems := strings.Join(m.Problems, " "); err != nil || !strings.Contains(problems, test.want) {
			t.Errorf("%s: %q, %v", name, problems, err)
		}
		optional := name == "user info by http" || name == "sign-out with http"
		if _, err := f.newClient().AuthorizationURL(t.Context(), f.provider, attempt()); errors.Is(err, oidc.ErrUnavailable) == optional {
			t.Errorf("%s: %v", name, err)
		}
		if optional {
			f.client = f.newClient()
			if claims, err := f.signIn(t, attempt()); err != nil || claims.EndsSessions == (name == "sign-out with http") {
				t.Errorf("%s: %+v, %v", name, claims, err)
			}
		}
	}
}

func TestProblemsOfFetches(t *testing.T) {
	f := newFlow(t)
	want := map[string]string{
		"slow": "no response in time", "slow after the headers": "no response in time", "breaks": "no connection, or it broke", "redirects": "redirects", "huge": "too large", "fails": "status 500",
		"is busy": "status 429", "is missing": "status 404", "no content": "status 204", "empty": "not JSON", "HTML": "not JSON", "an array": "not JSON", "other types": "not JSON", "nothing": "key",
	}
	for name, handler := range faults(f.Issuer + "/elsewhere") {
		for _, path := range []string{oidctest.PathMetadata, oidctest.PathKeys, oidctest.PathUserInfo} {
			if path == oidctest.PathUserInfo && slices.Contains([]string{"empty", "HTML", "an array", "other types", "nothing"}, name) {
				continue // the endpoint responds without an access token
			}
			f.Set(func(s *oidctest.Settings) { s.Handlers = map[string]http.HandlerFunc{path: handler} })
			m, err := f.clientFor(name).Inspect(t.Context(), f.Issuer)
			if problems := strings.Join(m.Problems, " "); err != nil || !strings.Contains(problems, want[name]) && (path != oidctest.PathMetadata || name != "nothing") {
				t.Errorf("%s %s: %q, %v", path, name, problems, err)
			}
		}
	}
	if m, err := f.client.Inspect(t.Context(), "https://login.microsoftonline.com/common/v2.0"); err != nil || len(m.Problems) != 1 || !strings.HasPrefix(m.Problems[0], "The issuer must be") {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := f.client.Inspect(t.Context(), "https://127.0.0.1:1"); err != nil || len(m.Problems) != 1 || !strings.Contains(m.Problems[0], "no connection") {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := f.client.Inspect(canceled(), f.Issuer); err == nil {
		t.Error("no error after the context ended")
	}
}

func TestConcurrentRequestsShareAFetch(t *testing.T) {
	f := newFlow(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.Set(func(s *oidctest.Settings) {
		s.Handlers = map[string]http.HandlerFunc{oidctest.PathMetadata: func(w http.ResponseWriter, r *http.Request) {
			once.Do(func() { close(arrived) })
			<-release
			f.ServeMetadata(w, r)
		}}
	})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := f.client.AuthorizationURL(ctx, f.provider, attempt())
		first <- err
	}()
	<-arrived
	var others sync.WaitGroup
	for range 50 {
		others.Go(func() {
			if _, err := f.client.AuthorizationURL(t.Context(), f.provider, attempt()); err != nil {
				t.Error(err)
			}
		})
	}
	cancel() // of the caller that started the fetch
	if err := <-first; !errors.Is(err, oidc.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(release)
	others.Wait()
	if n := f.Requests(oidctest.PathMetadata); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestFreshness(t *testing.T) {
	f := newFlow(t)
	for _, step := range []struct {
		name           string
		later          time.Duration
		metadata, keys int // requests until then
	}{
		{"first", 0, 1, 1}, {"again", 0, 1, 1}, {"before an hour", time.Hour - time.Second, 1, 1}, {"after an hour", time.Second, 2, 2},
	} {
		f.now = f.now.Add(step.later)
		if _, err := f.signIn(t, attempt()); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if metadata, keys := f.Requests(oidctest.PathMetadata), f.Requests(oidctest.PathKeys); metadata != step.metadata || keys != step.keys {
			t.Errorf("%s: %d requests for metadata and %d for keys, want %d and %d", step.name, metadata, keys, step.metadata, step.keys)
		}
	}
}

func TestFailuresPauseFetches(t *testing.T) {
	f := newFlow(t)
	f.Set(func(s *oidctest.Settings) {
		s.Handlers = map[string]http.HandlerFunc{oidctest.PathMetadata: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }}
	})
	try := func(want int) {
		t.Helper()
		for range 10 {
			if _, err := f.client.AuthorizationURL(t.Context(), f.provider, attempt()); !errors.Is(err, oidc.ErrUnavailable) {
				t.Error(err)
			}
		}
		if n := f.Requests(oidctest.PathMetadata); n != want {
			t.Errorf("%d requests, want %d", n, want)
		}
	}
	try(1)
	f.now = f.now.Add(5 * time.Second)
	try(2)
	f.Set(func(s *oidctest.Settings) { s.Handlers = nil })
	f.now = f.now.Add(5 * time.Second)
	if _, err := f.signIn(t, attempt()); err != nil {
		t.Error(err)
	}
}
