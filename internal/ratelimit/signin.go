package ratelimit

import (
	"time"

	"github.com/rolecall/rolecall"
)

// SignIn returns the counters of sign-in attempts from unknown devices: of the account
// and the source, of the account, and of the source. Attempts in an unknown tenant are
// counted by the name of the tenant, so that they cost the same.
func (l *Limiter) SignIn(tenantName, account, source string) []rolecall.Bucket {
	network := NetworkOf(source)
	return []rolecall.Bucket{
		l.Bucket("attempts", l.Limits.AccountAndSource, 15*time.Minute, tenantName, account, network),
		l.Account(tenantName, account),
		l.Bucket("attempts", l.Limits.Source, 10*time.Minute, network),
	}
}

// Account returns the counter of attempts on an account from unknown devices and all
// sources.
func (l *Limiter) Account(tenantName, account string) rolecall.Bucket {
	return l.Bucket("attempts", l.Limits.Account, time.Hour, tenantName, account)
}

// SecondFactor returns the counter of the user's answers to challenges from unknown
// devices.
func (l *Limiter) SecondFactor(user rolecall.UserID) rolecall.Bucket {
	return l.Bucket("second factor", l.Limits.AccountAndSource, time.Hour, user.String())
}
