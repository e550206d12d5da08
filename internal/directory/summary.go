package directory

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/timezone"
)

// sourcesChecked is the maximum number of networks with recent failed sign-ins that a
// summary checks for a reached limit.
const sourcesChecked = 20

// Summary describes the state of a tenant for its administrators. A part is nil if the
// caller may not read it.
type Summary struct {
	Invitations *rolecall.Total
	Factors     *rolecall.FactorCoverage
	SignIns     *FailedSignIns
	Roles       *Expiring[rolecall.ExpiringRole]
	Tokens      *Expiring[rolecall.APIToken]
	Activity    []DayActivity // of the last SummaryDays days, oldest first
}

// FailedSignIns are the failed sign-ins of the last 24 hours.
type FailedSignIns struct {
	rolecall.Total
	Blocked []BlockedSource
}

// BlockedSource is a network from which sign-ins with unknown devices are refused, because
// too many sign-ins from there failed.
type BlockedSource struct {
	Source string // an IPv4 address, or the /64 of an IPv6 address
	Until  rolecall.Time
}

// Expiring has the roles or tokens that expire within rolecall.SummarySoon, the earliest
// expiry first and at most rolecall.SummaryItems.
type Expiring[T any] struct {
	Items []T
	More  bool // more roles or tokens expire in this time than Items has
}

// DayActivity is the number of events of one day.
type DayActivity struct {
	Date   string // 2026-11-24
	Events int
	Exact  bool // false: the day may have more events, because counting stops at rolecall.SummaryDayMax
}

// Summary returns the parts of the tenant's summary that the caller may read. Days begin at
// midnight in the zone. Each part reads a bounded number of rows. Summary returns
// ErrPermissionDenied if the caller may read no part.
func (s *Service) Summary(ctx context.Context, c access.Caller, zone *time.Location) (sum Summary, err error) {
	if err := authz.ReadSummary.Authorize(c.Principal); err != nil {
		return sum, err
	}
	parts, now := c.SummaryParts(), s.now()
	err = s.access.View(ctx, c, func(tx *store.Tx) error {
		sum = Summary{}
		if parts.Invitations {
			total, err := tx.CountInvitations(now)
			if err != nil {
				return err
			}
			sum.Invitations = &total
		}
		if parts.Factors {
			coverage, err := tx.FactorCoverage()
			if err != nil {
				return err
			}
			sum.Factors = &coverage
		}
		if parts.Events {
			if sum.SignIns, err = s.failedSignIns(tx, c, now); err != nil {
				return err
			}
			if sum.Activity, err = activity(tx, now, zone); err != nil {
				return err
			}
		}
		if sum.Roles, err = expiringRoles(tx, parts, now); err != nil {
			return err
		}
		sum.Tokens, err = expiringTokens(tx, parts, now)
		return err
	})
	return sum, err
}

// failedSignIns counts the failed sign-ins of the last 24 hours, and returns the networks
// that have reached the limit of failures. The key of a counter is a hash of the network,
// which does not reveal the network. Therefore, failedSignIns computes the keys from the
// networks of the newest failed sign-ins.
func (s *Service) failedSignIns(tx *store.Tx, c access.Caller, now rolecall.Time) (*FailedSignIns, error) {
	failed, exact, err := tx.FailedSignIns(now.Add(-rolecall.SummaryRecent))
	if err != nil {
		return nil, err
	}
	signIns := &FailedSignIns{Total: rolecall.Total{Exact: exact}}
	var sources []string
	var buckets []rolecall.Bucket
	for _, f := range failed {
		signIns.Count += timesOf(f.Reason)
		network := ratelimit.NetworkOf(f.Source)
		if f.Source == "" || len(sources) == sourcesChecked || slices.Contains(sources, network) {
			continue
		}
		sources = append(sources, network)
		buckets = append(buckets, s.limiter.SignIn(c.Tenant.Name, "", f.Source)[2])
	}
	if len(buckets) == 0 {
		return signIns, nil
	}
	states, err := tx.Attempts(buckets, now)
	for i, state := range states {
		if state.Count >= buckets[i].Limit {
			signIns.Blocked = append(signIns.Blocked, BlockedSource{sources[i], state.EndsAt})
		}
	}
	return signIns, err
}

// timesOf returns the number of failed sign-ins that one event records. If an event records
// several, its reason ends with this number, such as ", 3 times".
func timesOf(reason string) int {
	_, counted, _ := strings.Cut(strings.TrimSuffix(reason, " times"), ", ")
	if n, err := strconv.Atoi(counted); err == nil {
		return n
	}
	return 1
}

// activity returns the number of events on each of the last SummaryDays days in the zone,
// the oldest day first.
func activity(tx *store.Tx, now rolecall.Time, zone *time.Location) ([]DayActivity, error) {
	year, month, day := now.Std().In(zone).Date()
	days, list := make([]rolecall.Day, rolecall.SummaryDays), make([]DayActivity, rolecall.SummaryDays)
	for i := range days {
		midnight := time.Date(year, month, day-(rolecall.SummaryDays-1)+i, 0, 0, 0, 0, time.UTC)
		list[i].Date = midnight.Format(time.DateOnly)
		days[i] = rolecall.Day{From: rolecall.TimeOf(timezone.StartOfDay(zone, midnight)), To: rolecall.TimeOf(timezone.StartOfDay(zone, midnight.AddDate(0, 0, 1)))}
	}
	counts, err := tx.EventsOfDays(days)
	for i, n := range counts {
		list[i].Events, list[i].Exact = n, n < rolecall.SummaryDayMax
	}
	return list, err
}

// expiringRoles returns the assignments that expire within SummarySoon. It returns nil if
// the caller may read neither those of users nor those of service accounts.
func expiringRoles(tx *store.Tx, parts authz.SummaryParts, now rolecall.Time) (*Expiring[rolecall.ExpiringRole], error) {
	if !parts.UserRoles && !parts.AccountRoles {
		return nil, nil
	}
	var all []rolecall.ExpiringRole
	for accounts, may := range map[bool]bool{false: parts.UserRoles, true: parts.AccountRoles} {
		if !may {
			continue
		}
		list, err := tx.ExpiringRoles(accounts, now, now.Add(rolecall.SummarySoon))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b rolecall.ExpiringRole) int {
		return cmp.Or(cmp.Compare(a.ExpiresAt, b.ExpiresAt), slices.Compare(a.Holder.ID[:], b.Holder.ID[:]), slices.Compare(a.RoleID[:], b.RoleID[:]))
	})
	return firstOf(all), nil
}

// expiringTokens returns the API tokens that expire within SummarySoon. It returns nil if
// the caller may read neither those of users nor those of service accounts.
func expiringTokens(tx *store.Tx, parts authz.SummaryParts, now rolecall.Time) (*Expiring[rolecall.APIToken], error) {
	if !parts.UserTokens && !parts.AccountTokens {
		return nil, nil
	}
	list, err := tx.ExpiringTokens(parts.UserTokens, parts.AccountTokens, now, now.Add(rolecall.SummarySoon))
	return firstOf(list), err
}

func firstOf[T any](all []T) *Expiring[T] {
	shown := min(len(all), rolecall.SummaryItems)
	return &Expiring[T]{all[:shown:shown], len(all) > shown}
}
