package nodetest

import (
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
)

// EmailLink requests a new address for a user and returns the token that is mailed to it.
// It expects a notification to the old address, unless the user is pending or the two
// addresses differ only in the case of letters.
func (f *Fixture) EmailLink(c access.Caller, id rolecall.UserID, name string) secret.Token {
	f.Helper()
	user, err := f.Directory.User(f.Context(), f.Owner, id)
	f.OK(err)
	want := []string{"email-change " + name}
	if old := strings.TrimSuffix(user.Email, "@example.com"); user.Status != rolecall.UserPending && !strings.EqualFold(old, name) {
		want = append(want, "email-change-requested "+old)
	}
	f.ExpectMailed(func() { f.OK(f.RequestEmailChange(c, id, name)) }, want...)
	return f.LastToken(rolecall.MailEmailChange, name)
}

// RequestEmailChange requests the address name@example.com for a user.
func (f *Fixture) RequestEmailChange(c access.Caller, id rolecall.UserID, name string) error {
	return ErrorOf(f.SignIn.RequestEmailChange(f.Context(), c, NewKey(), id, Address(name)))
}

// ConfirmEmailChange uses the link that was mailed to the new address. The browser sends the session
// tokens.
func (f *Fixture) ConfirmEmailChange(token secret.Token, sessions ...secret.Token) error {
	return f.SignIn.ChangeEmail(f.Context(), f.Attempt(sessions...), token)
}
