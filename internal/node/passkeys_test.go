package node_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// passkey registers a passkey of the authenticator for the caller.
func (f *fixture) passkey(c access.Caller, a *passkeytest.Authenticator) rolecall.Passkey {
	f.Helper()
	options, err := f.SignIn.PasskeyCreationOptions(f.Context(), c)
	f.ok(err)
	created, err := f.SignIn.AddPasskey(f.Context(), c, newKey(), "Telefon", a.Create(f, options))
	f.ok(err)
	return created.Value.Passkey
}

// withPasskey creates a user with a passkey.
func (f *fixture) withPasskey(name string) (rolecall.User, *passkeytest.Authenticator) {
	f.Helper()
	user, phone := f.member(name), passkeytest.New(origin)
	f.passkey(f.call(f.signIn(name)), phone)
	return user, phone
}

// signInOptions returns the options of a sign-in with any passkey.
func (f *fixture) signInOptions() []byte {
	f.Helper()
	options, err := f.SignIn.PasskeySignInOptions(f.attempt())
	f.ok(err)
	return options
}

func (f *fixture) byPasskey(document []byte) (signin.SignIn, error) {
	return f.SignIn.PasskeySignIn(f.Context(), f.attempt(), document)
}

func TestAPasskeyIsASecondFactor(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, phone := f.withPasskey("ada")
		asked := f.challenge(f.attempt(), "ada", rolecall.ErrSecondFactorRequired)
		if !slices.Contains(asked.Methods, rolecall.FactorPasskey) {
			t.Errorf("asked for %q", asked.Methods)
		}
		phone.Verifies = false // the password has already been proved
		challenge, signed := secret.Token(asked.Token), phone.Get(t, asked.PublicKey)
		forged := bytes.Replace(signed, []byte(`"signature":"ME`), []byte(`"signature":"MF`), 1)
		f.is(errorOf(f.answer(challenge, signin.Proof{Passkey: forged})), rolecall.ErrWrongCode)
		other := f.factorChallenge("ada")
		f.is(errorOf(f.answer(other, signin.Proof{Passkey: signed})), rolecall.ErrWrongCode)
		in, err := f.answer(challenge, signin.Proof{Passkey: signed})
		f.ok(err)
		if in.Principal.User.ID != user.ID || !in.Principal.Session.SecondFactor {
			t.Errorf("signed in as %+v", in.Principal)
		}
		own, err := f.SignIn.Factors(f.Context(), f.call(in))
		f.ok(err)
		if own.Passkeys[0].LastUsedAt != f.clock.Now() || own.Passkeys[0].Name != "Telefon" {
			t.Errorf("%+v", own.Passkeys[0])
		}
	})
}

func TestAPasskeySignsInWithoutAPassword(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, phone := f.withPasskey("ada")
		in, err := f.byPasskey(phone.Get(t, f.signInOptions()))
		f.ok(err)
		if in.Principal.User.ID != user.ID || !in.Principal.Session.SecondFactor || in.Device == "" {
			t.Errorf("signed in as %+v", in.Principal)
		}
		f.ok(errorOf(f.authenticate(f.Node, in.Token)))
	})
}

func TestInvalidPasswordlessSignIns(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, phone := f.withPasskey("ada")
		grace, hers := f.withPasskey("grace")
		get := func() []byte { return phone.Get(t, f.signInOptions()) }
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
				defer func() { phone.Origin = origin }()
				return get()
			}(),
			"of nobody": f.strangersAnswer(),
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
			"for the challenge of a sign-in with a password": phone.Sign(t, phone.Keys[0], f.challenge(f.attempt(), "ada", rolecall.ErrSecondFactorRequired).Token),
			"for a challenge of nobody":                      phone.Sign(t, phone.Keys[0], string(secret.NewToken())),
		} {
			if err := errorOf(f.byPasskey(document)); !rolecall.ErrPasskeyRefused.Is(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		late := get()
		f.clock.advance(5 * time.Minute)
		f.is(errorOf(f.byPasskey(late)), rolecall.ErrPasskeyRefused)
		f.ok(errorOf(f.byPasskey(get())))

		foreign, home := hers.Get(t, f.signInOptions()), f.tenant
		f.tenant = f.newTenant("other")
		f.is(errorOf(f.byPasskey(foreign)), rolecall.ErrPasskeyRefused)
		f.is(errorOf(f.byPasskey(hers.Get(t, f.signInOptions()))), rolecall.ErrPasskeyRefused)
		elsewhere := hers.Get(t, f.signInOptions())
		f.tenant = home
		f.is(errorOf(f.byPasskey(elsewhere)), rolecall.ErrPasskeyRefused) // the challenge belongs to the other tenant
		foreign = hers.Get(t, f.signInOptions())
		f.ok(errorOf(f.byPasskey(foreign)))

		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, grace.ID, "")))
		f.is(errorOf(f.byPasskey(hers.Get(t, f.signInOptions()))), rolecall.ErrUserSuspended)
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, user.ID, nil))
		f.is(errorOf(f.byPasskey(get())), rolecall.ErrPasskeyRefused)
	})
}

// strangersAnswer returns an assertion of a passkey that is not stored.
func (f *fixture) strangersAnswer() []byte {
	f.Helper()
	stranger := passkeytest.New(origin)
	options, err := f.SignIn.PasskeyCreationOptions(f.Context(), f.owner)
	f.ok(err)
	stranger.Create(f, options)
	return stranger.Get(f, f.signInOptions())
}

func TestAPasskeyResponseSignsInOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, phone := f.withPasskey("ada")
		phone.Synced = false
		signed := phone.Get(t, f.signInOptions())
		results := f.inParallel(50, func(int) error { return errorOf(f.byPasskey(signed)) })
		if results[nil] != 1 || results[rolecall.ErrPasskeyRefused] != 49 {
			t.Errorf("%v", results)
		}
		_, synced := f.member("grace"), passkeytest.New(origin)
		synced.Synced = true
		f.passkey(f.call(f.signIn("grace")), synced)
		signed = synced.Get(t, f.signInOptions())
		results = f.inParallel(50, func(int) error { return errorOf(f.byPasskey(signed)) })
		if results[nil] != 1 || results[rolecall.ErrPasskeyRefused] != 49 {
			t.Errorf("without a counter: %v", results)
		}
	})
}

// TestAUsedPasskeyResponseStaysUsed changes the password after the assertion was used.
func TestAUsedPasskeyResponseStaysUsed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, phone := f.member("ada"), passkeytest.New(origin)
		phone.Synced = true // a synced passkey has no signature counter
		f.passkey(f.call(f.signIn("ada")), phone)
		signed := phone.Get(t, f.signInOptions())
		f.ok(errorOf(f.byPasskey(signed)))
		f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, address("ada"), anotherPassword))
		f.is(errorOf(f.byPasskey(signed)), rolecall.ErrPasskeyRefused)
	})
}

func TestAPasskeyWhoseCounterWentBackIsRefused(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, phone := f.withPasskey("ada")
		for range 3 {
			f.ok(errorOf(f.byPasskey(phone.Get(t, f.signInOptions()))))
		}
		phone.Keys[0].Counter = 1
		f.is(errorOf(f.byPasskey(phone.Get(t, f.signInOptions()))), rolecall.ErrPasskeyRefused)
	})
}

func TestAddingPasskeys(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		c, phone := f.call(f.signIn("ada")), passkeytest.New(origin)
		other := f.signIn("ada")
		options, err := f.SignIn.PasskeyCreationOptions(f.Context(), c)
		f.ok(err)
		key, document := newKey(), phone.Create(t, options)
		first, err := f.SignIn.AddPasskey(f.Context(), c, key, "Telefon", document)
		f.ok(err)
		if len(first.Value.RecoveryCodes) != secret.RecoveryCodes || first.Replayed {
			t.Errorf("%+v", first)
		}
		f.is(errorOf(f.authenticate(f.Node, other.Token)), rolecall.ErrUnauthenticated)
		f.clock.advance(time.Hour)
		again, err := f.SignIn.AddPasskey(f.Context(), c, key, "Telefon", document)
		f.ok(err)
		if !again.Replayed || again.Value.RecoveryCodes != nil || string(again.Value.ID) != string(first.Value.ID) {
			t.Errorf("%+v", again)
		}
		f.is(errorOf(f.SignIn.AddPasskey(f.Context(), c, newKey(), "Telefon", document)), rolecall.ErrValidation) // expired
		f.is(errorOf(f.SignIn.AddPasskey(f.Context(), c, newKey(), "", []byte("{}"))), rolecall.ErrValidation)

		options, err = f.SignIn.PasskeyCreationOptions(f.Context(), f.owner)
		f.ok(err)
		f.is(errorOf(f.SignIn.AddPasskey(f.Context(), c, newKey(), "Hers", passkeytest.New(origin).Create(t, options))), rolecall.ErrValidation)

		for range rolecall.PasskeysMax - 1 {
			f.passkey(c, phone)
		}
		f.is(errorOf(f.SignIn.PasskeyCreationOptions(f.Context(), c)), rolecall.ErrTooManyPasskeys)
		f.ok(f.SignIn.RemovePasskey(f.Context(), c, first.Value.ID))
		f.is(f.SignIn.RemovePasskey(f.Context(), c, first.Value.ID), rolecall.ErrNotFound)
		f.is(f.SignIn.RemovePasskey(f.Context(), f.owner, phone.Keys[3].ID), rolecall.ErrNotFound)
		f.passkey(c, phone)
	})
}

func TestPasskeysNeedADomain(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, phone := f.withPasskey("ada")
		signed, c := phone.Get(t, f.signInOptions()), f.owner
		f.passkeys = nil
		f.Node = f.node()
		f.is(errorOf(f.SignIn.PasskeySignInOptions(f.attempt())), rolecall.ErrPasskeysUnavailable)
		f.is(errorOf(f.SignIn.PasskeyCreationOptions(f.Context(), c)), rolecall.ErrPasskeysUnavailable)
		f.is(errorOf(f.byPasskey(signed)), rolecall.ErrPasskeyRefused)
		asked := f.challenge(f.attempt(), "ada", rolecall.ErrSecondFactorRequired)
		if !slices.Equal(asked.Methods, []rolecall.FactorMethod{rolecall.FactorRecoveryCode}) {
			t.Errorf("asked for %q", asked.Methods)
		}
		f.is(errorOf(f.answer(secret.Token(asked.Token), signin.Proof{Passkey: signed})), rolecall.ErrWrongCode)
	})
}

// A passkey that is refused for good says so, in each way in which it can be used, and the event has the reason.
func TestAPasskeyThatIsRefusedForGoodSaysWhy(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for _, test := range []struct {
			reason, detail string
			change         func(*passkeytest.Authenticator)
		}{
			{"passkey-counter", "there may be a copy of it", func(a *passkeytest.Authenticator) { a.Keys[0].Counter = 1 }},
			{"passkey-backup", "can now be synced", func(a *passkeytest.Authenticator) { a.Synced = true }},
		} {
			user, phone := f.withPasskey(test.reason)
			in, err := f.byPasskey(phone.Get(t, f.signInOptions()))
			f.ok(err)
			f.ok(errorOf(f.byPasskey(phone.Get(t, f.signInOptions()))))
			refused := func(what string, err error, code string) {
				t.Helper()
				known, ok := errors.AsType[*rolecall.Error](err)
				if !ok || known.Code != code || !strings.Contains(known.Detail+fmt.Sprint(known.FieldErrors), test.detail) {
					t.Errorf("%s, %s: %v", test.reason, what, err)
				}
			}
			test.change(phone)
			refused("alone", errorOf(f.byPasskey(phone.Get(t, f.signInOptions()))), rolecall.ErrPasskeyRefused.Code)
			test.change(phone)
			asked := f.challenge(f.attempt(), test.reason, rolecall.ErrSecondFactorRequired)
			refused("as a second factor", errorOf(f.answer(secret.Token(asked.Token), signin.Proof{Passkey: phone.Get(t, asked.PublicKey)})), rolecall.ErrWrongCode.Code)
			test.change(phone)
			own, err := f.SignIn.FactorChallenge(t.Context(), f.call(in))
			f.ok(err)
			refused("to re-authenticate", f.reconfirm(in, password, signin.Proof{Passkey: phone.Get(t, own.PublicKey)}), rolecall.ErrValidation.Code)

			f.ok(f.Access.Refusals.Flush(t.Context()))
			f.ok(f.store.View(t.Context(), f.tenant.ID, func(tx *store.Tx) error {
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
