package nodetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// RequestReset requests a password reset for an address, from a source address.
func (f *Fixture) RequestReset(source, email string) error {
	a := f.Attempt()
	a.Source = source
	return f.SignIn.RequestPasswordReset(f.Context(), a, email)
}

// ResetLink requests a password reset for a user and returns the token that is mailed.
func (f *Fixture) ResetLink(name string) secret.Token {
	f.Helper()
	f.ExpectMailed(func() { f.OK(f.RequestReset("192.0.2.7", Address(name))) }, "password-reset "+name)
	return f.LastToken(rolecall.MailPasswordReset, name)
}

// ResetPassword sets the password with the token of a reset link.
func (f *Fixture) ResetPassword(token secret.Token, password string) error {
	return f.SignIn.ResetPassword(f.Context(), f.Attempt(), token, password)
}
