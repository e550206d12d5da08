package e2e

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

// unavailable starts a sign-in, which must fail because the provider cannot be reached.
func (w *providerWorld) unavailable(t testing.TB) {
	t.Helper()
	a := w.anonymous().do(t, "POST /auths/oidc/start", w.startBody(w.returnTo(), "")).refused(t, 503, "connection-unavailable")
	if a.header.Get("Retry-After") == "" {
		t.Error("the response does not say when to try again")
	}
}

func testProviderDown(t *testing.T, w *providerWorld) {
	w.provisions(t)
	person(w.provider, "ada")
	w.signsIn(t)
	b := userAgent{}
	callback := w.begin(t, b)
	w.provider.Stop()
	if query := returned(t, b.visit(t, w.world, callback), w.returnTo()); query.Encode() != "error=connection-unavailable" || b["session"] != "" {
		t.Errorf("the browser returns with %v", query)
	}
	b.visit(t, w.world, callback).refused(t, 403, "sign-in-attempt-invalid")

	w.connection = w.connect(t, w.other, "Other SSO")
	w.other.Stop()
	w.unavailable(t)
	w.owner.do(t, "GET /auths/session", "").expect(t, 200)
}

// testProviderRedirects checks that Rolecall follows no redirect of a provider.
func testProviderRedirects(t *testing.T, w *providerWorld) {
	w.provisions(t)
	person(w.provider, "ada")
	person(w.other, "ada")
	redirects := func(path string) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, w.other.Issuer+path, http.StatusTemporaryRedirect)
		}
	}
	replaced(w.provider, oidctest.PathMetadata, redirects(oidctest.PathMetadata))
	w.unavailable(t)
	if n := w.provider.Requests(oidctest.PathMetadata); n != 1 {
		t.Errorf("%d requests for the metadata", n)
	}
	if n := w.other.Requests(oidctest.PathMetadata); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
	there := &providerWorld{world: w.world, provider: w.other, connection: w.connect(t, w.other, "Other SSO")}
	replaced(w.other, oidctest.PathToken, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, w.provider.Issuer+oidctest.PathToken, http.StatusTemporaryRedirect)
	})
	there.fails(t, "connection-unavailable", "")
	if n := w.provider.Requests(oidctest.PathToken); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// callsOfTenant is how many calls of identity providers a tenant can have at once.
const callsOfTenant = 32

// callLimit is how long the program waits for an identity provider, minus one second.
const callLimit = 9 * time.Second

// testProviderSlow checks that a provider that does not respond uses up the calls of its tenant only.
func testProviderSlow(t *testing.T, w *providerWorld) {
	there := newProviderWorld(t, w.program, w.other, nil) // before, because the calls below end after 10 seconds
	there.provisions(t)
	person(w.other, "ada")
	release := make(chan struct{})
	end := sync.OnceFunc(func() { close(release) })
	replaced(w.provider, oidctest.PathMetadata, func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		w.provider.ServeMetadata(rw, r)
	})
	const more = 8
	begun := time.Now()
	results := make(chan *answer, callsOfTenant+more)
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(end)
	for range callsOfTenant + more {
		running.Go(func() {
			a, err := w.anonymous().try(t, "POST /auths/oidc/start", w.startBody(w.returnTo(), ""))
			if err != nil {
				t.Error(err)
				a = &answer{line: err.Error()}
			}
			results <- a
		})
	}
	for range more { // the others wait for the provider
		(<-results).refused(t, 503, "connection-unavailable")
	}
	there.signsIn(t)
	w.owner.do(t, "GET /users", "").expect(t, 200)
	end()
	running.Wait()
	close(results)
	n, isLate := 0, time.Since(begun) >= callLimit // on a slow machine
	for a := range results {
		if !isLate {
			a.expect(t, 200)
		}
		n++
	}
	if n != callsOfTenant {
		t.Errorf("%d sign-ins have started, not %d", n, callsOfTenant)
	}
}

// testProviderAtPrivateAddress checks that Rolecall sends no request to a private address that the operator
// has not allowed: neither to an issuer, nor to an endpoint, nor to a name.
func testProviderAtPrivateAddress(t *testing.T, w *providerWorld) {
	for _, issuer := range []string{"https://127.0.0.2", "https://10.0.0.1", "https://169.254.169.254", "https://[::ffff:10.0.0.1]", "https://[fd00::1]", "https://0x7f.2", "https://2130706434"} {
		w.owner.do(t, "POST /connections", newConnection("Inside", issuer, "")).refused(t, 422, "validation")
	}
	w.other.Set(func(s *oidctest.Settings) {
		s.Metadata = func(metadata map[string]any) { metadata["token_endpoint"] = "https://169.254.169.254/token" }
	})
	there := &providerWorld{world: w.world, provider: w.other, connection: w.connect(t, w.other, "Other SSO")}
	there.unavailable(t)

	strict := serve(t, w.program.Binary, w.program.Database, "--public-url", publicTLS, "--oidc-return-urls", returnURLs)
	onStrict := *w.owner
	onStrict.world = &world{program: strict, client: w.client, name: w.name}
	a := onStrict.anonymous().do(t, "POST /auths/oidc/start", w.startBody(w.returnTo(), ""))
	a.refused(t, 503, "connection-unavailable")
	if n := w.provider.Requests(oidctest.PathMetadata); n > 0 {
		t.Errorf("%d requests to a private address", n)
	}
	onStrict.do(t, "POST /connections", newConnection("Inside", "https://localhost", "")).refused(t, 422, "validation")
}
