package store

import (
	"strconv"

	"github.com/rolecall/rolecall"
)

// These statements read the parts of the summary of a tenant. Each reads a bounded number
// of rows.
const (
	countInvitations = `select count(*) from (
			select 1 from invitations where tenant_id = $1 and expires_at > $2 and ` + keyNotRevoked + ` limit 1001) i`

	countFactors = `select count(*), count(case when status = 'active' then 1 end), count(case when status = 'active' and guarded = 1 then 1 end)
		from (select r.status, ` + guarded + ` as guarded from users r where r.tenant_id = $1 order by r.id limit 5000) u`

	// For an event of another type, both columns are null.
	selectFailedSignIns = `select case when type = $1 then reason end, case when type = $1 then source end from events
		where tenant_id = $2 and id >= $3 order by id desc limit 5000`

	countEvents = `(select count(*) from (select 1 from events where tenant_id = $1 and id >= ? and id < ? limit 1000) d)`

	// The assignments of a deleted role that are still to be removed are read, but not returned.
	selectExpiringRoles = `select a.user_id, o.id, o.name, a.expires_at
		from (select user_id, role_id, expires_at from assignments
			where tenant_id = $1 and expires_at > $2 and expires_at <= $3 and expires_at < 9223372036854775807
			order by expires_at limit 5000) a
		join roles o on o.tenant_id = $1 and o.id = a.role_id and o.deletion is null
		order by a.expires_at, a.user_id, o.id limit 11`

	selectExpiringAccountRoles = `select a.service_account_id, o.id, o.name, a.expires_at
		from (select service_account_id, role_id, expires_at from service_account_roles
			where tenant_id = $1 and expires_at > $2 and expires_at <= $3 and expires_at < 9223372036854775807
			order by expires_at limit 5000) a
		join roles o on o.tenant_id = $1 and o.id = a.role_id and o.deletion is null
		order by a.expires_at, a.service_account_id, o.id limit 11`

	selectExpiringTokens = `select ` + apiTokenColumns + ` from api_tokens r
		where r.tenant_id = $1 and r.expires_at > $2 and r.expires_at <= $3
			and ($4 = 1 and r.user_id is not null or $5 = 1 and r.service_account_id is not null) order by r.expires_at limit 100`
)

// CountInvitations counts the invitations of the tenant that can be accepted at now. It
// counts up to SummaryCountMax.
func (t *Tx) CountInvitations(now rolecall.Time) (total rolecall.Total, err error) {
	err = t.row(countInvitations, []any{t.tenant, now}, &total.Count)
	total.Exact = total.Count <= rolecall.SummaryCountMax
	total.Count = min(total.Count, rolecall.SummaryCountMax)
	return total, err
}

// FactorCoverage counts the active users of the tenant, and those of them who have a
// second factor. It reads the first MaxScan users by id. The result is not exact if the
// tenant has that many users.
func (t *Tx) FactorCoverage() (c rolecall.FactorCoverage, err error) {
	read := 0
	err = t.row(countFactors, []any{t.tenant}, &read, &c.Users, &c.Protected)
	c.Exact = read < rolecall.MaxScan
	return c, err
}

// FailedSignIns returns the failed sign-ins since a time, newest first. It reads at most
// the newest MaxScan events of all types. It returns exact = false if it may not have read
// all events since that time.
func (t *Tx) FailedSignIns(since rolecall.Time) (failed []rolecall.FailedSignIn, exact bool, err error) {
	read, err := t.q.Query(selectFailedSignIns, []any{string(rolecall.EventSignInFailed), t.tenant, rolecall.FirstID[rolecall.Event](since)}, func(scan func(dest ...any) error) error {
		var reason, source *string
		err := scan(&reason, &source)
		if err == nil && reason != nil {
			failed = append(failed, rolecall.FailedSignIn{Reason: *reason, Source: *source})
		}
		return err
	})
	return failed, read < rolecall.MaxScan, err
}

// EventsOfDays returns the number of events of each day, in the order of days. It counts
// up to SummaryDayMax events of a day.
func (t *Tx) EventsOfDays(days []rolecall.Day) ([]int, error) {
	found := map[int]int{}
	b := newBuilder(t.tenant)
	for i, day := range days {
		if i > 0 {
			b.write(" union all ")
		}
		b.write("select "+strconv.Itoa(i)+", "+countEvents, rolecall.FirstID[rolecall.Event](day.From), rolecall.FirstID[rolecall.Event](day.To))
	}
	_, err := b.query(t.q, func(scan func(dest ...any) error) error {
		var i, n int
		err := scan(&i, &n)
		found[i] = n
		return err
	})
	counts := make([]int, len(days))
	for i := range counts {
		counts[i] = found[i]
	}
	return counts, err
}

// ExpiringRoles returns assignments that expire after the time after and not later than
// until, the earliest expiry first. If accounts is true, they are assignments to service
// accounts, otherwise to users. It returns at most SummaryItems+1 assignments.
func (t *Tx) ExpiringRoles(accounts bool, after, until rolecall.Time) (list []rolecall.ExpiringRole, err error) {
	statement := selectExpiringRoles
	if accounts {
		statement = selectExpiringAccountRoles
	}
	_, err = t.q.Query(statement, []any{t.tenant, after, until}, into(&list, func(r *rolecall.ExpiringRole) []any {
		if accounts {
			r.Holder.Kind = rolecall.HolderAccount
		}
		return []any{&r.Holder.ID, &r.RoleID, &r.RoleName, &r.ExpiresAt}
	}))
	return list, err
}

// ExpiringTokens returns the API tokens of users, of service accounts or of both that expire after the time
// after and not later than until, the earliest expiry first. It returns at most 100 tokens.
func (t *Tx) ExpiringTokens(users, accounts bool, after, until rolecall.Time) (list []rolecall.APIToken, err error) {
	_, err = t.q.Query(selectExpiringTokens, []any{t.tenant, after, until, flag(users), flag(accounts)}, into(&list, apiTokenDest))
	return list, err
}
