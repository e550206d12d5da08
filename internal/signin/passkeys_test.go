package signin_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// signInOptions returns the options of a sign-in with any passkey.
func signInOptions(f *nodetest.Fixture) []byte {
	f.Helper()
	options, err := f.SignIn.PasskeySignInOptions(f.Attempt())
	f.OK(err)
	return options
}

func byPasskey(f *nodetest.Fixture, document []byte) (signin.SignIn, error) {
	return f.SignIn.PasskeySignIn(f.Context(), f.Attempt(), document)
}

func TestAPasskeyIsASecondFactor(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, phone := f.WithPasskey("ada")
		asked := f.Challenge(f.Attempt(), "ada", rolecall.ErrSecondFactorRequired)
		if !slices.Contains(asked.Methods, rolecall.FactorPasskey) {
			t.Errorf("asked for %q", asked.Methods)
		}
		phone.Verifies = false // the password has already been proved
		challenge, signed := secret.Token(asked.Token), phone.Get(t, asked.PublicKey)
		forged := bytes.Replace(signed, []byte(`"signature":"ME`), []byte(`"signature":"MF`), 1)
		f.Is(nodetest.ErrorOf(f.Answer(challenge, signin.Proof{Passkey: forged})), rolecall.ErrWrongCode)
		other := f.FactorChallenge("ada")
		f.Is(nodetest.ErrorOf(f.Answer(other, signin.Proof{Passkey: signed})), rolecall.ErrWrongCode)
		in, err := f.Answer(challenge, signin.Proof{Passkey: signed})
		f.OK(err)
		if in.Principal.User.ID != user.ID || !in.Principal.Session.SecondFactor {
			t.Errorf("signed in as %+v", in.Principal)
		}
		own, err := f.SignIn.Factors(f.Context(), f.CallerOf(in))
		f.OK(err)
		if own.Passkeys[0].LastUsedAt != f.Clock.Now() || own.Passkeys[0].Name != "Telefon" {
			t.Errorf("%+v", own.Passkeys[0])
		}
	})
}

func TestAPasskeySignsInWithoutAPassword(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, phone := f.WithPasskey("ada")
		in, err := byPasskey(f, phone.Get(t, signInOptions(f)))
		f.OK(err)
		if in.Principal.User.ID != user.ID || !in.Principal.Session.SecondFactor || in.Device == "" {
			t.Errorf("signed in as %+v", in.Principal)
		}
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)))
	})
}

func TestInvalidPasswordlessSignIns(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, phone := f.WithPasskey("ada")
		grace, hers := f.WithPasskey("grace")
		get := func() []byte { return phone.Get(t, signInOptions(f)) }
		for name, document := range map[string][]byte{
			"nothing":     nil,
			"no document": []byte(`{"id":1}`),
			"without verification": func() []byte {
				phone.Verifies = false
				defer func() { phone.Verifies = true }()
				return get()
			}(),
			"at another origin": func() []byte {
				phone.Origin = "https://evil.example.com"
				defer func() { phone.Origin = nodetest.Origin }()
				return get()
			}(),
			"of nobody": strangersAnswer(f),
			"under another's handle": func() []byte {
				own := phone.Keys[0].Handle
				phone.Keys[0].Handle = grace.ID[:]
				defer func() { phone.Keys[0].Handle = own }()
				return get()
			}(),
			"without a handle": func() []byte {
				own := phone.Keys[0].Handle
				phone.Keys[0].Handle = nil
				defer func() { phone.Keys[0].Handle = own }()
				return get()
			}(),
			"for the challenge of a sign-in with a password": phone.Sign(t, phone.Keys[0], f.Challenge(f.Attempt(), "ada", rolecall.ErrSecondFactorRequired).Token),
			"for a challenge of nobody":                      phone.Sign(t, phone.Keys[0], string(secret.NewToken())),
		} {
			if err := nodetest.ErrorOf(byPasskey(f, document)); !rolecall.ErrPasskeyRefused.Is(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		late := get()
		f.Clock.Advance(5 * time.Minute)
		f.Is(nodetest.ErrorOf(byPasskey(f, late)), rolecall.ErrPasskeyRefused)
		f.OK(nodetest.ErrorOf(byPasskey(f, get())))

		foreign, home := hers.Get(t, signInOptions(f)), f.Tenant
		f.Tenant = f.NewTenant("other")
		f.Is(nodetest.ErrorOf(byPasskey(f, foreign)), rolecall.ErrPasskeyRefused)
		f.Is(nodetest.ErrorOf(byPasskey(f, hers.Get(t, signInOptions(f)))), rolecall.ErrPasskeyRefused)
		elsewhere := hers.Get(t, signInOptions(f))
		f.Tenant = home
		f.Is(nodetest.ErrorOf(byPasskey(f, elsewhere)), rolecall.ErrPasskeyRefused) // the challenge belongs to the other tenant
		foreign = hers.Get(t, signInOptions(f))
		f.OK(nodetest.ErrorOf(byPasskey(f, foreign)))

		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, grace.ID, "")))
		f.Is(nodetest.ErrorOf(byPasskey(f, hers.Get(t, signInOptions(f)))), rolecall.ErrUserSuspended)
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, user.ID, nil))
		f.Is(nodetest.ErrorOf(byPasskey(f, get())), rolecall.ErrPasskeyRefused)
	})
}

// strangersAnswer returns an assertion of a passkey that is not stored.
func strangersAnswer(f *nodetest.Fixture) []byte {
	f.Helper()
	stranger := passkeytest.New(nodetest.Origin)
	options, err := f.SignIn.PasskeyCreationOptions(f.Context(), f.Owner)
	f.OK(err)
	stranger.Create(f, options)
	return stranger.Get(f, signInOptions(f))
}

func TestAPasskeyResponseSignsInOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, phone := f.WithPasskey("ada")
		phone.Synced = false
		signed := phone.Get(t, signInOptions(f))
		results := f.InParallel(50, func(int) error { return nodetest.ErrorOf(byPasskey(f, signed)) })
		if results[nil] != 1 || results[rolecall.ErrPasskeyRefused] != 49 {
			t.Errorf("%v", results)
		}
		_, synced := f.NewMember("grace"), passkeytest.New(nodetest.Origin)
		synced.Synced = true
		f.Passkey(f.CallerOf(f.LogIn("grace")), synced)
		signed = synced.Get(t, signInOptions(f))
		results = f.InParallel(50, func(int) error { return nodetest.ErrorOf(byPasskey(f, signed)) })
		if results[nil] != 1 || results[rolecall.ErrPasskeyRefused] != 49 {
			t.Errorf("without a counter: %v", results)
		}
	})
}

// TestAUsedPasskeyResponseStaysUsed changes the password after the assertion was used.
func TestAUsedPasskeyResponseStaysUsed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, phone := f.NewMember("ada"), passkeytest.New(nodetest.Origin)
		phone.Synced = true // a synced passkey has no signature counter
		f.Passkey(f.CallerOf(f.LogIn("ada")), phone)
		signed := phone.Get(t, signInOptions(f))
		f.OK(nodetest.ErrorOf(byPasskey(f, signed)))
		f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address("ada"), nodetest.AnotherPassword))
		f.Is(nodetest.ErrorOf(byPasskey(f, signed)), rolecall.ErrPasskeyRefused)
	})
}

func TestAPasskeyWhoseCounterWentBackIsRefused(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, phone := f.WithPasskey("ada")
		for range 3 {
			f.OK(nodetest.ErrorOf(byPasskey(f, phone.Get(t, signInOptions(f)))))
		}
		phone.Keys[0].Counter = 1
		f.Is(nodetest.ErrorOf(byPasskey(f, phone.Get(t, signInOptions(f)))), rolecall.ErrPasskeyRefused)
	})
}

func TestAddingPasskeys(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		c, phone := f.CallerOf(f.LogIn("ada")), passkeytest.New(nodetest.Origin)
		other := f.LogIn("ada")
		options, err := f.SignIn.PasskeyCreationOptions(f.Context(), c)
		f.OK(err)
		key, document := nodetest.NewKey(), phone.Create(t, options)
		first, err := f.SignIn.AddPasskey(f.Context(), c, key, "Telefon", document)
		f.OK(err)
		if len(first.Value.RecoveryCodes) != secret.RecoveryCodes || first.Replayed {
			t.Errorf("%+v", first)
		}
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, other.Token)), rolecall.ErrUnauthenticated)
		f.Clock.Advance(time.Hour)
		again, err := f.SignIn.AddPasskey(f.Context(), c, key, "Telefon", document)
		f.OK(err)
		if !again.Replayed || again.Value.RecoveryCodes != nil || string(again.Value.ID) != string(first.Value.ID) {
			t.Errorf("%+v", again)
		}
		f.Is(nodetest.ErrorOf(f.SignIn.AddPasskey(f.Context(), c, nodetest.NewKey(), "Telefon", document)), rolecall.ErrValidation) // expired
		f.Is(nodetest.ErrorOf(f.SignIn.AddPasskey(f.Context(), c, nodetest.NewKey(), "", []byte("{}"))), rolecall.ErrValidation)

		options, err = f.SignIn.PasskeyCreationOptions(f.Context(), f.Owner)
		f.OK(err)
		f.Is(nodetest.ErrorOf(f.SignIn.AddPasskey(f.Context(), c, nodetest.NewKey(), "Hers", passkeytest.New(nodetest.Origin).Create(t, options))), rolecall.ErrValidation)

		for range rolecall.PasskeysMax - 1 {
			f.Passkey(c, phone)
		}
		f.Is(nodetest.ErrorOf(f.SignIn.PasskeyCreationOptions(f.Context(), c)), rolecall.ErrTooManyPasskeys)
		f.OK(f.SignIn.RemovePasskey(f.Context(), c, first.Value.ID))
		f.Is(f.SignIn.RemovePasskey(f.Context(), c, first.Value.ID), rolecall.ErrNotFound)
		f.Is(f.SignIn.RemovePasskey(f.Context(), f.Owner, phone.Keys[3].ID), rolecall.ErrNotFound)
		f.Passkey(c, phone)
	})
}

func TestPasskeysNeedADomain(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, phone := f.WithPasskey("ada")
		signed, c := phone.Get(t, signInOptions(f)), f.Owner
		f.Passkeys = nil
		f.Node = f.NewNode()
		f.Is(nodetest.ErrorOf(f.SignIn.PasskeySignInOptions(f.Attempt())), rolecall.ErrPasskeysUnavailable)
		f.Is(nodetest.ErrorOf(f.SignIn.PasskeyCreationOptions(f.Context(), c)), rolecall.ErrPasskeysUnavailable)
		f.Is(nodetest.ErrorOf(byPasskey(f, signed)), rolecall.ErrPasskeyRefused)
		asked := f.Challenge(f.Attempt(), "ada", rolecall.ErrSecondFactorRequired)
		if !slices.Equal(asked.Methods, []rolecall.FactorMethod{rolecall.FactorRecoveryCode}) {
			t.Errorf("asked for %q", asked.Methods)
		}
		f.Is(nodetest.ErrorOf(f.Answer(secret.Token(asked.Token), signin.Proof{Passkey: signed})), rolecall.ErrWrongCode)
	})
}

// A passkey that is refused for good says so, in each way in which it can be used, and the event has the reason.
func TestAPasskeyThatIsRefusedForGoodSaysWhy(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for _, test := range []struct {
			reason, detail string
			change         func(*passkeytest.Authenticator)
		}{
			{"passkey-counter", "there may be a copy of it", func(a *passkeytest.Authenticator) { a.Keys[0].Counter = 1 }},
			{"passkey-backup", "can now be synced", func(a *passkeytest.Authenticator) { a.Synced = true }},
		} {
			user, phone := f.WithPasskey(test.reason)
			in, err := byPasskey(f, phone.Get(t, signInOptions(f)))
			f.OK(err)
			f.OK(nodetest.ErrorOf(byPasskey(f, phone.Get(t, signInOptions(f)))))
			refused := func(what string, err error, code string) {
				t.Helper()
				known, ok := errors.AsType[*rolecall.Error](err)
				if !ok || known.Code != code || !strings.Contains(known.Detail+fmt.Sprint(known.FieldErrors), test.detail) {
					t.Errorf("%s, %s: %v", test.reason, what, err)
				}
			}
			test.change(phone)
			refused("alone", nodetest.ErrorOf(byPasskey(f, phone.Get(t, signInOptions(f)))), rolecall.ErrPasskeyRefused.Code)
			test.change(phone)
			asked := f.Challenge(f.Attempt(), test.reason, rolecall.ErrSecondFactorRequired)
			refused("as a second factor", nodetest.ErrorOf(f.Answer(secret.Token(asked.Token), signin.Proof{Passkey: phone.Get(t, asked.PublicKey)})), rolecall.ErrWrongCode.Code)
			test.change(phone)
			own, err := f.SignIn.FactorChallenge(t.Context(), f.CallerOf(in))
			f.OK(err)
			refused("to re-authenticate", reconfirm(f, in, nodetest.Password, signin.Proof{Passkey: phone.Get(t, own.PublicKey)}), rolecall.ErrValidation.Code)

			f.OK(f.Access.Refusals.Flush(t.Context()))
			f.OK(f.Store.View(t.Context(), f.Tenant.ID, func(tx *store.Tx) error {
				events, err := tx.Events(rolecall.EventQuery{Type: rolecall.EventSignInFailed, Subject: rolecall.AnyID(user.ID), Limit: 10})
				for _, e := range events.Items {
					if !strings.HasPrefix(e.Reason, test.reason) {
						t.Errorf("the event has the reason %q, not %q", e.Reason, test.reason)
					}
				}
				if len(events.Items) == 0 {
					t.Errorf("%s: no event", test.reason)
				}
				return err
			}))
		}
	})
}
