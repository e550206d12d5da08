package nodetest

import (
	"encoding/base32"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// Passkey registers a passkey of the authenticator for the caller.
func (f *Fixture) Passkey(c access.Caller, a *passkeytest.Authenticator) rolecall.Passkey {
	f.Helper()
	options, err := f.SignIn.PasskeyCreationOptions(f.Context(), c)
	f.OK(err)
	created, err := f.SignIn.AddPasskey(f.Context(), c, NewKey(), "Telefon", a.Create(f, options))
	f.OK(err)
	return created.Value.Passkey
}

// WithPasskey creates a user with a passkey.
func (f *Fixture) WithPasskey(name string) (rolecall.User, *passkeytest.Authenticator) {
	f.Helper()
	user, phone := f.NewMember(name), passkeytest.New(Origin)
	f.Passkey(f.CallerOf(f.LogIn(name)), phone)
	return user, phone
}

// app is a user's authenticator app.
type app struct {
	f      *Fixture
	secret secret.TOTP
}

// Code returns the current code.
func (a *app) Code() string { return a.secret.Code(a.f.Clock.Now().Std().Unix() / 30) }

// Next advances the clock to an unused code, and returns it.
func (a *app) Next() string {
	a.f.Clock.Advance(30 * time.Second)
	return a.Code()
}

// AppOf returns an app with the secret.
func (f *Fixture) AppOf(s signin.TOTPSecret) *app {
	f.Helper()
	raw, err := base32.StdEncoding.DecodeString(s.Secret)
	f.OK(err)
	return &app{f, raw}
}

// Enrol registers an authenticator app for the caller, and returns the app with the
// recovery codes.
func (f *Fixture) Enrol(c access.Caller) (*app, []secret.RecoveryCode) {
	f.Helper()
	begun, err := f.SignIn.BeginTOTP(f.Context(), c)
	f.OK(err)
	a := f.AppOf(begun)
	codes, err := f.SignIn.ConfirmTOTP(f.Context(), c, a.Code())
	f.OK(err)
	return a, codes
}

// Protected creates a user with an authenticator app.
func (f *Fixture) Protected(name string) (rolecall.User, *app, []secret.RecoveryCode) {
	f.Helper()
	user := f.NewMember(name)
	a, codes := f.Enrol(f.CallerOf(f.LogIn(name)))
	return user, a, codes
}

// Challenge signs in with the correct password and returns the challenge of the second
// factor.
func (f *Fixture) Challenge(a access.Anonymous, name string, wanted error) signin.Challenge {
	f.Helper()
	in, err := f.SignIn.Login(f.Context(), a, Address(name), Password)
	f.Is(ErrorOf(in, err), wanted)
	if in.Challenge == nil || in.Principal != nil || in.Token != "" {
		f.Fatalf("%+v is no challenge alone", in)
	}
	return *in.Challenge
}

// FactorChallenge signs in a user who has a second factor, and returns the token of the challenge.
func (f *Fixture) FactorChallenge(name string) secret.Token {
	f.Helper()
	return secret.Token(f.Challenge(f.Attempt(), name, rolecall.ErrSecondFactorRequired).Token)
}

// Answer answers a challenge of a sign-in with the proof.
func (f *Fixture) Answer(challenge secret.Token, p signin.Proof) (signin.SignIn, error) {
	return f.SignIn.CompleteSignIn(f.Context(), f.Attempt(), challenge, p)
}
