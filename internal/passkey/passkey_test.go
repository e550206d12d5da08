package passkey

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
)

const (
	domain = "example.com"
	origin = "https://id.example.com"
)

func newRelyingParty(t *testing.T) *RelyingParty {
	t.Helper()
	p, err := New(domain, []string{origin, "https://app.example.com:8443"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newUser() *User {
	return &User{User: &rolecall.User{ID: rolecall.NewID[rolecall.User](1 << 50), Email: "ada@example.com", Name: "Ada Lovelace"}, Tenant: "Acme"}
}

// register creates a passkey on the authenticator and adds it to the passkeys of the
// user.
func register(t *testing.T, p *RelyingParty, o *User, a *passkeytest.Authenticator) {
	t.Helper()
	challenge := secret.NewToken()
	options, err := p.CreationOptions(challenge, o)
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, a.Create(t, options))
	if r.Challenge != challenge {
		t.Errorf("the response answers %s, want %s", r.Challenge, challenge)
	}
	key, err := p.Create(r, challenge, o)
	if err != nil {
		t.Fatal(err)
	}
	if string(key.ID) != string(r.ID) || key.UserID != o.User.ID {
		t.Errorf("the passkey is %x of %s", key.ID, key.UserID)
	}
	o.Passkeys = append(o.Passkeys, key)
}

func read(t *testing.T, document []byte) Response {
	t.Helper()
	r, ok := ReadResponse(document)
	if !ok {
		t.Fatalf("no response: %s", document)
	}
	return r
}

func TestCreationOptions(t *testing.T) {
	p, o := newRelyingParty(t), newUser()
	register(t, p, o, passkeytest.New(origin))
	challenge := secret.NewToken()
	document, err := p.CreationOptions(challenge, o)
	if err != nil {
		t.Fatal(err)
	}
	var options struct {
		Challenge              string
		RP                     struct{ ID string }
		User                   struct{ ID, Name, DisplayName string }
		Attestation            string
		AuthenticatorSelection struct{ ResidentKey, UserVerification string }
		ExcludeCredentials     []struct{ ID string }
	}
	if err := json.Unmarshal(document, &options); err != nil {
		t.Fatal(err)
	}
	if options.Challenge != string(challenge) || options.RP.ID != domain || options.Attestation != "none" ||
		options.AuthenticatorSelection.ResidentKey != "preferred" || options.AuthenticatorSelection.UserVerification != "preferred" ||
		options.User.Name != "ada@example.com (Acme)" || options.User.DisplayName != "Ada Lovelace" || len(options.ExcludeCredentials) != 1 {
		t.Errorf("%s", document)
	}
	if strings.Contains(string(document), o.User.ID.String()) {
		t.Errorf("the id is shown as text: %s", document)
	}
}

func TestRequestOptions(t *testing.T) {
	p, o := newRelyingParty(t), newUser()
	register(t, p, o, passkeytest.New(origin))
	register(t, p, o, passkeytest.New(origin))
	for _, test := range []struct {
		owner        *User
		verification string
		allowed      int
	}{{o, "preferred", 2}, {nil, "required", 0}} {
		document, err := p.RequestOptions(secret.NewToken(), test.owner)
		if err != nil {
			t.Fatal(err)
		}
		var options struct {
			RPID             string `json:"rpId"`
			UserVerification string
			AllowCredentials []struct{ ID string }
		}
		if err := json.Unmarshal(document, &options); err != nil {
			t.Fatal(err)
		}
		if options.RPID != domain || options.UserVerification != test.verification || len(options.AllowCredentials) != test.allowed {
			t.Errorf("%s", document)
		}
	}
}

func TestVerify(t *testing.T) {
	p := newRelyingParty(t)
	ours := func(*passkeytest.Authenticator) {}
	for _, test := range []struct {
		name   string
		change func(*passkeytest.Authenticator)
		alone  bool
		ok     bool
	}{
		{"as a second factor", ours, false, true},
		{"alone", ours, true, true},
		{"without verification as a second factor", func(a *passkeytest.Authenticator) { a.Verifies = false }, false, true},
		{"without verification alone", func(a *passkeytest.Authenticator) { a.Verifies = false }, true, false},
		{"of another origin that is allowed", func(a *passkeytest.Authenticator) { a.Origin = "https://app.example.com:8443" }, true, true},
		{"of another origin", func(a *passkeytest.Authenticator) { a.Origin = "https://evil.example.com" }, true, false},
		{"of another port", func(a *passkeytest.Authenticator) { a.Origin = origin + ":8443" }, true, false},
		{"of plain http", func(a *passkeytest.Authenticator) { a.Origin = "http://id.example.com" }, true, false},
		{"for another domain", func(a *passkeytest.Authenticator) { a.Keys[0].Domain = "id.example.com" }, true, false},
		{"under another user's handle", func(a *passkeytest.Authenticator) { a.Keys[0].Handle[3]++ }, true, false},
		{"whose counter went back", func(a *passkeytest.Authenticator) { a.Keys[0].Counter = 1 }, true, false},
		{"that was not synced and is now", func(a *passkeytest.Authenticator) { a.Synced = true }, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, a := newUser(), passkeytest.New(origin)
			register(t, p, o, a)
			for range 2 { // two sign-ins, so that a test can set the signature counter back to 1
				verifies(t, p, o, a)
			}
			test.change(a)
			challenge := secret.NewToken()
			key, err := p.Verify(read(t, a.Sign(t, a.Keys[0], string(challenge))), challenge, o, test.alone)
			if (err == nil) != test.ok || err != nil && !errors.Is(err, ErrRefused) || errors.Is(err, ErrCounter) != (test.name == "whose counter went back") || errors.Is(err, ErrBackup) != (test.name == "that was not synced and is now") {
				t.Errorf("%v, want ok %v", err, test.ok)
			}
			if test.ok && string(key.Credential) == string(o.Passkeys[0].Credential) {
				t.Error("the counter is not kept")
			}
		})
	}
}

// verifies signs in with the first passkey of the user, and stores the updated passkey in
// the user. It fails the test if the sign-in fails.
func verifies(t *testing.T, p *RelyingParty, o *User, a *passkeytest.Authenticator) {
	t.Helper()
	challenge := secret.NewToken()
	options, err := p.RequestOptions(challenge, o)
	if err != nil {
		t.Fatal(err)
	}
	r := read(t, a.Get(t, options))
	if r.User != o.User.ID || string(r.ID) != string(o.Passkeys[0].ID) {
		t.Errorf("the response is of %x of %s", r.ID, r.User)
	}
	if o.Passkeys[0], err = p.Verify(r, challenge, o, true); err != nil {
		t.Fatal(err)
	}
}

func TestSyncedPasskeysHaveNoCounter(t *testing.T) {
	p, o, a := newRelyingParty(t), newUser(), passkeytest.New(origin)
	a.Synced = true
	register(t, p, o, a)
	for range 3 {
		verifies(t, p, o, a)
	}
}

func TestResponsesToOtherOptionsAreRefused(t *testing.T) {
	p, o, a := newRelyingParty(t), newUser(), passkeytest.New(origin)
	register(t, p, o, a)
	challenge := secret.NewToken()
	signed := read(t, a.Sign(t, a.Keys[0], string(challenge)))
	if _, err := p.Verify(signed, secret.NewToken(), o, false); !errors.Is(err, ErrRefused) {
		t.Errorf("another challenge: %v", err)
	}
	other := newUser()
	if _, err := p.Verify(signed, challenge, other, false); !errors.Is(err, ErrRefused) {
		t.Errorf("another user: %v", err)
	}
	register(t, p, other, passkeytest.New(origin))
	forged := strings.Replace(string(signed.raw), text(o.Passkeys[0].ID), text(other.Passkeys[0].ID), 2)
	if _, err := p.Verify(read(t, []byte(forged)), challenge, other, false); !errors.Is(err, ErrRefused) {
		t.Errorf("another's passkey: %v", err)
	}
	if _, err := p.Create(signed, challenge, o); !errors.Is(err, ErrRefused) {
		t.Errorf("an assertion for a creation: %v", err)
	}
	options, err := p.CreationOptions(challenge, o)
	if err != nil {
		t.Fatal(err)
	}
	a.IDLength = 15
	if _, err := p.Create(read(t, a.Create(t, options)), challenge, o); !errors.Is(err, ErrRefused) {
		t.Errorf("an id that is too short: %v", err)
	}
	a.IDLength = 0
	created := read(t, a.Create(t, options))
	if _, err := p.Verify(created, challenge, o, false); !errors.Is(err, ErrRefused) {
		t.Errorf("a creation for an assertion: %v", err)
	}
	if _, err := p.Create(created, secret.NewToken(), o); !errors.Is(err, ErrRefused) {
		t.Errorf("a creation for another challenge: %v", err)
	}
	if _, err := p.Verify(signed, challenge, o, true); err != nil {
		t.Errorf("what was asked for: %v", err)
	}
}

func text(id []byte) string {
	b, err := json.Marshal(map[string]any{"id": id})
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(string(b[len(`{"id":"`) : len(b)-2]))
}

func TestReadResponse(t *testing.T) {
	good := string(passkeytest.New(origin).Create(t, []byte(`{"challenge":"`+string(secret.NewToken())+`","rp":{"id":"example.com"},"user":{"id":"AA"}}`)))
	for _, document := range []string{
		``, `null`, `[]`, `{}`, `{"id":1}`, `{"id":""}`, `{"id":"AA"}`, `{"id":"AA","response":{"clientDataJSON":"e30"}}`,
		`{"id":"AA","response":{"clientDataJSON":"!"}}`, strings.Replace(good, `"id":"`, `"id":"!`, 1),
	} {
		if r, ok := ReadResponse([]byte(document)); ok {
			t.Errorf("ReadResponse(%s) = %+v", document, r)
		}
	}
	if r := read(t, []byte(good)); !r.User.IsZero() {
		t.Errorf("a creation claims to be of %s", r.User)
	}
}

func TestNewRefusesDomainsThatBrowsersRefuse(t *testing.T) {
	for _, domain := range []string{"", "127.0.0.1", "::1", "https://example.com", "example.com:8443", "com", "Bücher.example"} {
		if _, err := New(domain, []string{origin}); err == nil {
			t.Errorf("New(%q) is taken", domain)
		}
	}
	for _, domain := range []string{"localhost", "example.com", "id.example.com"} {
		if _, err := New(domain, []string{origin}); err != nil {
			t.Errorf("New(%q): %v", domain, err)
		}
	}
}

func FuzzResponses(f *testing.F) {
	p, err := New(domain, []string{origin})
	if err != nil {
		f.Fatal(err)
	}
	challenge, o, a := secret.NewToken(), newUser(), passkeytest.New(origin)
	options, err := p.CreationOptions(challenge, o)
	if err != nil {
		f.Fatal(err)
	}
	created := []byte(a.Create(f, options))
	r, _ := ReadResponse(created)
	key, err := p.Create(r, challenge, o)
	if err != nil {
		f.Fatal(err)
	}
	o.Passkeys = []rolecall.Passkey{key}
	f.Add(created)
	f.Add([]byte(a.Sign(f, a.Keys[0], string(challenge))))
	f.Fuzz(func(_ *testing.T, document []byte) {
		if r, ok := ReadResponse(document); ok {
			_, _ = p.Create(r, challenge, o) // only a panic of Create or Verify fails the test
			_, _ = p.Verify(r, challenge, o, false)
		}
	})
}
