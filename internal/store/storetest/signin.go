package storetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

var signInCases = []testCase{
	{"How a user signs in is counted in one reading", func(f *fixture) {
		u, other := f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		bucket := rolecall.Bucket{Key: aHash(), Limit: 10, Window: 3600}
		same(f, f.signInSummary(u, bucket.Key, start), rolecall.SignInSummary{})
		f.signIn(u, start)
		f.invite(anInvitation(u))
		for _, token := range []rolecall.APIToken{
			{UserID: u.ID, ExpiresAt: start + 2*day}, {UserID: u.ID, ExpiresAt: start + day}, {UserID: other.ID, ExpiresAt: start + 2*day},
		} {
			made := anAPIToken()
			made.UserID, made.ServiceAccountID, made.ExpiresAt = token.UserID, rolecall.ServiceAccountID{}, token.ExpiresAt
			f.newAPIToken(made)
		}
		f.write(func(tx service.Tx) {
			tx.SetPassword(u.ID, "hash", start)
			tx.PutPendingTOTP(u.ID, []byte("secret"))
			tx.ReplaceRecoveryCodes(u.ID, [][]byte{aHash(), aHash(), aHash()})
			tx.InsertPasskey(aPasskey(u))
			tx.InsertPasskey(aPasskey(u))
		})
		for range 3 {
			f.in(rolecall.TenantID{}).update(func(tx service.Tx) error {
				_, err := tx.CountAttempt([]rolecall.Bucket{bucket}, start)
				return err
			})
		}
		want := rolecall.SignInSummary{
			LastLoginAt: start, Sessions: 1, NewestAt: start, HasPassword: true, Passkeys: 2, RecoveryCodes: 3, Tokens: 2, Attempts: 3,
			Invited: rolecall.Invitation{CreatedAt: start, ExpiresAt: start + 72*hour},
		}
		same(f, f.signInSummary(u, bucket.Key, start), want)
		same(f, change(f, func(tx service.Tx) (bool, error) { return tx.ConfirmTOTP(u.ID, []byte("secret"), 1, start) }), true)
		want.HasTOTP, want.Tokens, want.Attempts = true, 1, 0
		want.Sessions, want.NewestAt = 0, 0
		same(f, f.signInSummary(u, bucket.Key, start+day), want) // a token, the session and the window are over
		same(f, f.signInSummary(other, aHash(), start), rolecall.SignInSummary{Tokens: 1})
	}},
}

// signInSummary returns the summary of the user.
func (f *fixture) signInSummary(u rolecall.User, bucket []byte, now rolecall.Time) rolecall.SignInSummary {
	f.Helper()
	return read(f, func(tx service.Tx) (rolecall.SignInSummary, error) {
		return tx.SignInSummary(u.ID, bucket, rolecall.TenantSettings{}, now)
	})
}
