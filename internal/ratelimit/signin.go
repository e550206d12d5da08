package ratelimit

import (
	"time"

	"github.com/rolecall/rolecall"
)

// SignIn returns the buckets of a sign-in attempt from an unknown device, in this order:
// the bucket of the account with the source, of the account, and of the source. The first
// two contain the name of the tenant, which need not exist. So attempts in an unknown
// tenant are counted in the same way.
func (l *Limiter) SignIn(tenantName, account, source string) []rolecall.Bucket {
	network := NetworkOf(source)
	return []rolecall.Bucket{
		l.Bucket("attempts", l.Limits.AccountAndSource, 15*time.Minute, tenantName, account, network),
		l.Account(tenantName, account),
		l.Bucket("attempts", l.Limits.Source, 10*time.Minute, network),
	}
}

// Account returns the bucket of the account. It counts the sign-in attempts from unknown
// devices of all sources.
func (l *Limiter) Account(tenantName, account string) rolecall.Bucket {
	return l.Bucket("attempts", l.Limits.Account, time.Hour, tenantName, account)
}

// SecondFactor returns the bucket of the user's second factor. It counts the attempts to
// solve a challenge from unknown devices, and allows Limits.AccountAndSource attempts per
// hour.
func (l *Limiter) SecondFactor(user rolecall.UserID) rolecall.Bucket {
	return l.Bucket("second factor", l.Limits.AccountAndSource, time.Hour, user.String())
}
