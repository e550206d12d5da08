package nodetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// Invite invites the user as the owner and returns the token.
func (f *Fixture) Invite(id rolecall.UserID) secret.Token {
	f.Helper()
	f.OK(ErrorOf(f.Directory.InviteUser(f.Context(), f.Owner, NewKey(), id)))
	return secret.Token(f.MailAbout(id, rolecall.MailInvitation).Token)
}

// AcceptInvitation accepts an invitation with the password.
func (f *Fixture) AcceptInvitation(token secret.Token, password string) (signin.SignIn, error) {
	return f.SignIn.AcceptInvitation(f.Context(), f.Attempt(), token, password)
}
