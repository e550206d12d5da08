package storetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var signInCases = []testCase{
	{"How a user signs in is counted in one reading", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		passwords, factors := rolecall.Bucket{Key: aHash(), Limit: 10, Window: 3600}, rolecall.Bucket{Key: aHash(), Limit: 10, Window: 3600}
		summary := func(now rolecall.Time) rolecall.SignInSummary {
			return f.signInSummary(u, passwords.Key, factors.Key, now)
		}
		same(f, summary(start), rolecall.SignInSummary{})
		f.signIn(u, start)
		invitation := anInvitation(u)
		invitation.CreatedBy = other.ID
		f.invite(invitation)
		for _, token := range []rolecall.APIToken{
			{UserID: u.ID, ExpiresAt: start + 2*day}, {UserID: u.ID, ExpiresAt: start + day}, {UserID: other.ID, ExpiresAt: start + 2*day},
		} {
			made := anAPIToken()
			made.UserID, made.ServiceAccountID, made.ExpiresAt = token.UserID, rolecall.ServiceAccountID{}, token.ExpiresAt
			f.newAPIToken(made)
		}
		f.write(func(tx *store.Tx) {
			tx.SetPassword(u.ID, "hash", start)
			tx.PutPendingTOTP(u.ID, []byte("secret"))
			tx.ReplaceRecoveryCodes(u.ID, [][]byte{aHash(), aHash(), aHash()})
			tx.InsertPasskey(aPasskey(u))
			tx.InsertPasskey(aPasskey(u))
		})
		for _, bucket := range []rolecall.Bucket{passwords, passwords, passwords, factors} {
			f.in(rolecall.TenantID{}).update(func(tx *store.Tx) error {
				_, err := tx.CountAttempt([]rolecall.Bucket{bucket}, start)
				return err
			})
		}
		want := rolecall.SignInSummary{
			LastLoginAt: start, Sessions: 1, NewestAt: start, HasPassword: true, Passkeys: 2, RecoveryCodes: 3, Tokens: 2, PasswordAttempts: 3, FactorAttempts: 1,
			Invited: rolecall.Invitation{CreatedBy: other.ID, CreatedAt: start, ExpiresAt: start + 72*hour},
		}
		same(f, summary(start), want)
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.ConfirmTOTP(u.ID, []byte("secret"), 1, start) }), true)
		want.HasTOTP, want.Tokens, want.PasswordAttempts, want.FactorAttempts = true, 1, 0, 0
		want.Sessions, want.NewestAt = 0, 0
		same(f, summary(start+day), want) // a token, the session and the window are over
		same(f, f.signInSummary(other, aHash(), aHash(), start), rolecall.SignInSummary{Tokens: 1})
	}},
}

// signInSummary returns the summary of the user.
func (f *fixture) signInSummary(u rolecall.User, passwords, factors []byte, now rolecall.Time) rolecall.SignInSummary {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.SignInSummary, error) {
		return tx.SignInSummary(u.ID, passwords, factors, rolecall.TenantSettings{}, now)
	})
}
