package storetest

import (
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var signInCases = []testCase{
	{"The sign-in summary counts factors, sessions and tokens of a user", func(f *fixture) {
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
			tx.UpsertPendingTOTP(u.ID, []byte("secret"))
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
		same(f, summary(start+day), want) // a token, the session and the window have ended
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

var attemptCases = []testCase{
	{"An attempt is counted in every bucket, and the states are in the order of the buckets", func(f *fixture) {
		one, other := aBucket(60), aBucket(3600)
		same(f, f.attempt(start, one), []rolecall.Attempts{{Count: 1, EndsAt: start + minute}})
		same(f, f.attempt(start+second, other, one), []rolecall.Attempts{
			{Count: 1, EndsAt: start + second + hour}, {Count: 2, EndsAt: start + minute},
		})
	}},
	{"An attempt after the end of a window starts a new window", func(f *fixture) {
		b := aBucket(60)
		f.attempt(start, b)
		same(f, f.attempt(start+minute-1, b)[0].Count, 2)
		same(f, f.attempt(start+minute, b), []rolecall.Attempts{{Count: 1, EndsAt: start + 2*minute}})
	}},
	{"Concurrent attempts are counted exactly in every order of buckets", func(f *fixture) {
		buckets := []rolecall.Bucket{aBucket(60), aBucket(60), aBucket(60)}
		const attempts = 40
		for _, err := range parallel(attempts, func(i int) error {
			turned := slices.Clone(buckets)
			if i%2 == 0 {
				slices.Reverse(turned)
			}
			return f.tryUpdate(func(tx *store.Tx) error {
				_, err := tx.CountAttempt(turned, start)
				return err
			})
		}) {
			f.is(err, nil)
		}
		for _, state := range f.attempt(start, buckets...) {
			same(f, state.Count, attempts+1)
		}
	}},
	{"Forgiving an attempt clears the first bucket and subtracts one from the others", func(f *fixture) {
		source, account, own := aBucket(60), aBucket(60), aBucket(60) // the first bucket has the last key
		var counted []rolecall.Counted
		for range 3 {
			counted = f.counted(start, own, account, source)
		}
		f.write(func(tx *store.Tx) { tx.ForgiveAttempt(counted) })
		got := f.attempt(start, own, account, source)
		same(f, []int{got[0].Count, got[1].Count, got[2].Count}, []int{1, 3, 3})
	}},
	{"Uncounting an attempt subtracts one from each bucket", func(f *fixture) {
		own, account := aBucket(60), aBucket(60)
		var counted []rolecall.Counted
		for range 3 {
			counted = f.counted(start, own, account)
		}
		f.write(func(tx *store.Tx) { tx.UncountAttempt(counted) })
		got := f.attempt(start, own, account)
		same(f, []int{got[0].Count, got[1].Count}, []int{3, 3})
	}},
	{"Forgiving attempts never makes a counter negative", func(f *fixture) {
		own, account := aBucket(60), aBucket(60)
		never := []rolecall.Counted{{Key: own.Key, EndsAt: start + minute}, {Key: account.Key, EndsAt: start + minute}}
		f.write(func(tx *store.Tx) { tx.ForgiveAttempt(never) })
		f.attempt(start, account)
		f.write(func(tx *store.Tx) { tx.ForgiveAttempt(never) })
		f.write(func(tx *store.Tx) { tx.ForgiveAttempt(never) })
		same(f, f.attempt(start, account)[0].Count, 1)
	}},
	{"The states of buckets are read without counting, and are empty after the end of the window", func(f *fixture) {
		own, other := aBucket(60), aBucket(60)
		f.attempt(start, own)
		f.attempt(start, own)
		for at, want := range map[rolecall.Time]int{start: 2, start + minute: 0} {
			states := read(f, func(tx *store.Tx) ([]rolecall.Attempts, error) {
				return tx.Attempts([]rolecall.Bucket{other, own}, at)
			})
			same(f, []int{states[0].Count, states[1].Count}, []int{0, want})
		}
	}},
	{"An attempt of an earlier window is not refunded in a later one", func(f *fixture) {
		own, account := aBucket(60), aBucket(60)
		counted := f.counted(start, own, account)
		f.attempt(start+minute, own, account)
		f.write(func(tx *store.Tx) { tx.ForgiveAttempt(counted) })
		f.write(func(tx *store.Tx) { tx.UncountAttempt(counted) })
		got := f.attempt(start+minute, own, account)
		same(f, []int{got[0].Count, got[1].Count}, []int{2, 2})
	}},
	{"Clearing deletes the counters of the buckets in every window, and no others", func(f *fixture) {
		own, account, source := aBucket(60), aBucket(60), aBucket(60)
		f.attempt(start, own, account, source)
		f.attempt(start+minute, own)
		f.write(func(tx *store.Tx) { tx.ClearAttempts([]rolecall.Bucket{account, own, aBucket(60)}) })
		got := f.attempt(start+minute-1, own, account, source)
		same(f, []int{got[0].Count, got[1].Count, got[2].Count}, []int{1, 1, 2})
	}},
	{"Buckets are purged after the end of their window, up to the limit", func(f *fixture) {
		for range 5 {
			f.attempt(start, aBucket(60))
		}
		lasting := aBucket(3600)
		f.attempt(start, lasting)
		purge := func(limit int) int {
			return change(f, func(tx *store.Tx) (int, error) { return tx.PurgeAttempts(start+2*minute, limit) })
		}
		for _, want := range []int{3, 2, 0} {
			same(f, purge(3), want)
		}
		same(f, f.attempt(start, lasting)[0].Count, 2)
	}},
	{"Attempts belong to no tenant", func(f *fixture) {
		b := aBucket(60)
		f.attempt(start, b)
		same(f, f.in(rolecall.TenantID{}).attempt(start, b)[0].Count, 2)
		same(f, f.in(f.newTenant("other")).attempt(start, b)[0].Count, 3)
	}},
}

func aBucket(window rolecall.Seconds) rolecall.Bucket {
	return rolecall.Bucket{Key: aHash(), Limit: 10, Window: window}
}

// counted counts an attempt and returns the counted buckets, for a refund.
func (f *fixture) counted(now rolecall.Time, buckets ...rolecall.Bucket) (counted []rolecall.Counted) {
	f.Helper()
	for i, state := range f.attempt(now, buckets...) {
		counted = append(counted, rolecall.Counted{Key: buckets[i].Key, EndsAt: state.EndsAt})
	}
	return counted
}

func (f *fixture) attempt(now rolecall.Time, buckets ...rolecall.Bucket) []rolecall.Attempts {
	f.Helper()
	return change(f, func(tx *store.Tx) ([]rolecall.Attempts, error) { return tx.CountAttempt(buckets, now) })
}
