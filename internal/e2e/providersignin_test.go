package e2e

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

func testFirstSignIn(t *testing.T, w *providerWorld) {
	w.provisions(t)
	person(w.provider, "ada")
	b := userAgent{}
	begun := b.visit(t, w.world, w.start(t, w.anonymous(), w.returnTo(), `,"email":"Ada@typed.example"`)).expect(t, 303)
	if len(begun.cookies) != 1 {
		t.Fatalf("the cookies are %v", begun.cookies)
	}
	if c := begun.cookies[0]; !strings.HasPrefix(c.Name, "__Host-rolecall_attempt-") || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 || c.Path != "/" {
		t.Errorf("the cookie of the attempt is %v", c)
	}
	callback := w.provider.Authorize(t, begun.header.Get("Location")).String()
	sent := w.provider.Last(oidctest.PathAuthorization)
	if sent.Get("login_hint") != "Ada@typed.example" || sent.Get("redirect_uri") != publicTLS+"/auths/oidc/callback/"+w.connection || sent.Get("code_challenge_method") != "S256" || sent.Has("max_age") {
		t.Errorf("the provider gets %v", sent)
	}
	stolen := maps.Clone(b)
	query := returned(t, b.visit(t, w.world, callback), w.returnTo())
	if len(query) != 1 || b["session"] != "" {
		t.Fatalf("the browser returns with %v and has %v", query, b)
	}
	b.exchange(t, w.world, query.Get("code")).expect(t, 200)
	if left := b.attempts(); left != nil {
		t.Errorf("the cookies %v are left", left)
	}
	ada := b.user(t, w.world)
	if who := ada.do(t, "GET /auths/session", ""); who.text("/user/email") != address("ada") || who.text("/user/name") != "User ada" || who.text("/user/department") != "Sales" {
		t.Errorf("the user is %s", who.body)
	}
	if sessions := w.owner.do(t, "GET /users/"+ada.id+"/sessions", "").expect(t, 200); sessions.text("/items/0/connectionId") != w.connection {
		t.Errorf("the sessions are %s", sessions.body)
	}
	stolen.visit(t, w.world, callback).refused(t, 403, "sign-in-attempt-invalid")

	if again := w.signsIn(t); again.id != ada.id {
		t.Errorf("the second sign-in is of %s, not of %s", again.id, ada.id)
	}
	w.change(t, `{"provisioning":null}`)
	person(w.provider, "bob")
	w.fails(t, "identity-unknown", "")
	if found := w.owner.do(t, "GET /users?email="+url.QueryEscape(address("bob")), "").expect(t, 200); len(found.list("/items")) > 0 {
		t.Errorf("without provisioning, there is %s", found.body)
	}
}

// testProvisioningOfUsers checks that the person who has set the provisioning must be allowed to do so when it
// is set, and still when it creates a user.
func testProvisioningOfUsers(t *testing.T, w *providerWorld) {
	chris, all := w.member(t, "chris", ""), w.role(t, "Everything", "*:*", "*/*:*")
	w.assign(t, chris.id, all, "")
	role := w.role(t, "Clerk", "users:read")
	set := `{"provisioning":{"roleIds":["` + role + `"]}}`
	chris.do(t, "PATCH /connections/"+w.connection, `{"provisioning":{"roleIds":["`+w.builtIn(t, "owner")+`"]}}`).refused(t, 422, "validation")
	chris.do(t, "PATCH /connections/"+w.connection, set).expect(t, 200)
	person(w.provider, "ada")
	if ada := w.signsIn(t); !slices.Equal(w.owner.do(t, "GET /users/"+ada.id+"/roles", "").texts("role/id"), []string{role}) {
		t.Error("the new user does not have the role of the provisioning")
	}
	w.owner.do(t, "POST /users/"+chris.id+"/suspend", "").expect(t, 200)
	person(w.provider, "bob")
	w.fails(t, "sign-in-refused", "")
	w.owner.do(t, "POST /users/"+chris.id+"/resume", "").expect(t, 200)
	w.owner.do(t, "PATCH /roles/"+all, `{"permissions":["users:create"]}`).expect(t, 200)
	w.fails(t, "sign-in-refused", "") // chris can create bob, but cannot assign the role
	w.owner.do(t, "PATCH /roles/"+all, `{"permissions":["*:*","*/*:*"]}`).expect(t, 200)
	w.signsIn(t)
	w.owner.do(t, "DELETE /roles/"+role+"?force=true", "").expect(t, 204)
	person(w.provider, "eve")
	w.fails(t, "sign-in-refused", "")
	w.owner.do(t, "PATCH /connections/"+w.connection, `{"provisioning":{"roleIds":["`+role+`"],"department":"Sales"}}`).refused(t, 422, "validation")
}

func testInvitationWithProvider(t *testing.T, w *providerWorld) {
	invited := w.user(t, "invited", "")
	token := w.invite(t, w.owner, invited)
	person(w.provider, "mallory")
	w.fails(t, "identity-unknown", `,"invitation":`+quoted(token))
	person(w.provider, "invited")
	w.provider.Set(func(s *oidctest.Settings) { s.Person.Claims["email_verified"] = false })
	w.fails(t, "identity-unknown", "") // without the link, the address must be verified
	w.code(t, w.anonymous(), w.returnTo(), `,"invitation":`+quoted(token))
	if c := w.signsIn(t); c.id != invited {
		t.Errorf("the user is %s, not %s", c.id, invited)
	}
	w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, password)).refused(t, 401, "invitation-invalid")

	// An owner is linked only by a link or in a session, even if the provider has verified the address.
	w.change(t, `{"linking":"verified-email"}`)
	person(w.provider, "owner")
	w.fails(t, "identity-unknown", "")
	w.user(t, "known", "")
	person(w.provider, "known")
	w.signsIn(t)
}

// testTabs signs in in two tabs of one browser at once, and sends one callback many times at once.
func testTabs(t *testing.T, w *providerWorld) {
	w.provisions(t)
	person(w.provider, "ada")
	b := userAgent{}
	first, second := w.begin(t, b), w.begin(t, b)
	if n := len(b.attempts()); n != 2 {
		t.Fatalf("the browser has %d attempts", n)
	}
	for _, callback := range []string{second, first} {
		query := returned(t, b.visit(t, w.world, callback), w.returnTo())
		b.exchange(t, w.world, query.Get("code")).expect(t, 200)
		b.user(t, w.world)
	}

	path := strings.TrimPrefix(w.begin(t, b), publicTLS)
	statuses := atOnce(t, 8, func(int) (*answer, error) {
		return w.anonymous().try(t, "GET "+path, "", "-x-tenant-schema", b.cookie())
	})
	if statuses[303] != 1 || statuses[403] != 7 {
		t.Errorf("one callback, sent eight times at once, got %v", statuses)
	}
}

// testStates checks that a callback works only in the browser of its attempt and with its state.
func testStates(t *testing.T, w *providerWorld) {
	w.provisions(t)
	person(w.provider, "ada")
	b := userAgent{}
	callback := w.begin(t, b)
	name := b.attempts()[0]
	elsewhere := userAgent{}
	w.begin(t, elsewhere)
	there := newProviderWorld(t, w.program, w.provider, w.other)
	ofTenant := userAgent{}
	there.begin(t, ofTenant)
	u, err := url.Parse(callback)
	if err != nil {
		t.Fatal(err)
	}
	with := func(name, value string) string {
		changed, query := *u, u.Query()
		if query.Set(name, value); value == "" {
			query.Del(name)
		}
		changed.RawQuery = query.Encode()
		return changed.String()
	}
	state := u.Query().Get("state")
	swapped := maps.Clone(b)
	otherState := func() string {
		u, err := url.Parse(w.begin(t, swapped))
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("state")
	}()
	for what, test := range map[string]struct {
		cookies userAgent
		address string
	}{
		"another browser":            {elsewhere, callback},
		"no cookie":                  {userAgent{}, callback},
		"the cookie of another one":  {userAgent{name: elsewhere[elsewhere.attempts()[0]]}, callback},
		"the cookie of a tenant":     {userAgent{name: ofTenant[ofTenant.attempts()[0]]}, callback},
		"all cookies of a tenant":    {ofTenant, callback},
		"no state":                   {maps.Clone(b), with("state", "")},
		"the state without its end":  {maps.Clone(b), with("state", state[:len(state)-1])},
		"the state with another end": {maps.Clone(b), with("state", state[:36]+otherState[36:])},
		"two states":                 {maps.Clone(b), callback + "&state=" + state},
	} {
		a := test.cookies.visit(t, w.world, test.address)
		if a.status != 403 || a.text("/code") != "sign-in-attempt-invalid" || a.header.Get("Location") != "" || test.cookies["session"] != "" {
			t.Errorf("%s: %d to %q: %s", what, a.status, a.header.Get("Location"), a.body)
		}
	}
	query := returned(t, swapped.visit(t, w.world, with("state", otherState)), w.returnTo()) // the code of the first attempt
	if query.Encode() != "error=sign-in-refused" || swapped["session"] != "" {
		t.Errorf("the code of another attempt returns with %v", query)
	}
	again := w.begin(t, b)
	if query := returned(t, b.visit(t, w.world, again), w.returnTo()); !query.Has("code") {
		t.Errorf("the browser returns with %v", query)
	}
}

// testMixUp checks that no code reaches a provider that has not issued it, and that subjects belong to their
// issuer.
func testMixUp(t *testing.T, w *providerWorld) {
	w.provisions(t)
	person(w.provider, "ada")
	w.signsIn(t)
	there := &providerWorld{world: w.world, provider: w.other, connection: w.connect(t, w.other, "Other SSO")}
	tokens := func() int {
		return w.provider.Requests(oidctest.PathToken) + w.other.Requests(oidctest.PathToken)
	}
	before := tokens()
	for _, issuer := range []string{w.other.Issuer, "", w.provider.Issuer + "/"} {
		w.provider.Set(func(s *oidctest.Settings) {
			s.Callback = func(query url.Values) {
				if query.Set("iss", issuer); issuer == "" {
					query.Del("iss")
				}
			}
		})
		w.fails(t, "sign-in-refused", "")
	}
	if n := tokens(); n != before {
		t.Errorf("%d codes were sent to a provider", n-before)
	}
	person(w.other, "ada") // the same subject and address
	there.fails(t, "identity-unknown", "")
}

// testReturnAddresses checks that a sign-in returns to registered addresses only, and not to the console.
func testReturnAddresses(t *testing.T, w *providerWorld) {
	for _, returnTo := range []string{
		publicTLS + "/console/" + w.name, publicTLS + "/console/" + w.name + "/sign-in/connected", publicTLS + "/docs", "/console/" + w.name,
		"https://other.app.example/signed-in", w.returnTo() + "/", w.returnTo() + "?next=https://evil.example", "https://evil.example/signed-in", "com.example.app:/other",
	} {
		for _, line := range []string{"POST /auths/oidc/start", "POST /auths/oidc/sign-out"} {
			body := w.startBody(returnTo, "")
			if line == "POST /auths/oidc/sign-out" {
				body = `{"returnTo":` + quoted(returnTo) + `}`
			}
			if a := w.anonymous().do(t, line, body); a.status != 422 || !slices.Equal(a.faults(), []string{"/returnTo unregistered"}) {
				t.Errorf("%s with %s: %d %s", line, returnTo, a.status, a.body)
			}
		}
	}
}
