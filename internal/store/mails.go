package store

import (
	"cmp"
	"errors"

	"github.com/rolecall/rolecall"
)

const (
	mailColumns = `id, tenant, user_id, sealed, due_at, attempts, created_at, expires_at`

	insertMail = `insert into outbox (` + mailColumns + `) values ($1, $2, $3, $4, $5, $6, $7, $8)`

	// claimMail has the condition on due_at twice, because two processes can select the
	// same mail. After the first process has changed the row, the second one checks the
	// outer condition again and does not claim the mail.
	claimMail = `update outbox set due_at = $1, attempts = attempts + 1
		where id in (
			select id from outbox where tenant > $2 and due_at <= $3 and expires_at > $3 order by tenant, due_at limit 1) and due_at <= $3
		returning ` + mailColumns

	selectDueMail = `select 1 from outbox where due_at <= $1 limit 1`

	postponeMail = `update outbox set due_at = $1 where id = $2 and attempts = $3`

	deleteMailsOfUser = `delete from outbox where tenant = $1 and user_id = $2`

	deleteMail = `delete from outbox where id = $1 returning id`

	selectExpiredMail = `select ` + mailColumns + ` from outbox where expires_at <= $1 and due_at <= $1 order by expires_at limit $2`

	countMail = `select count(*) from (select 1 from outbox where due_at >= 0 limit $1) c`
)

func mailDest(m *rolecall.OutboxMail) []any {
	return []any{&m.ID, &m.TenantID, &m.UserID, &m.Sealed, &m.DueAt, &m.Attempts, &m.CreatedAt, &m.ExpiresAt}
}

// InsertMail adds a mail of the tenant to the outbox.
func (t *Tx) InsertMail(m rolecall.OutboxMail) {
	t.q.Exec(insertMail, m.ID, t.tenant, m.UserID, m.Sealed, m.DueAt, m.Attempts, m.CreatedAt, m.ExpiresAt)
	t.mailed()
}

// beforeTenants is smaller than the ids of all tenants. It is not zero, because a zero id is stored as null.
var beforeTenants = rolecall.TenantID{15: 1}

// ClaimMail claims one mail for sending and returns it. It takes the next tenant after the given one, in the order
// of their ids, that has unexpired mail that is due. After the last tenant, the first one follows. Of the mails of
// this tenant, ClaimMail claims the one that has been due for the longest time, and counts an attempt. It postpones
// the mail until the given time, so that no other process sends it before then. ClaimMail returns ErrNotFound if no
// mail is due, or if another process has just claimed the same mail.
func (t *Tx) ClaimMail(after rolecall.TenantID, now, until rolecall.Time) (m rolecall.OutboxMail, err error) {
	var due int
	if err := t.row(selectDueMail, []any{now}, &due); err != nil {
		return m, err
	}
	for _, after := range []rolecall.TenantID{cmp.Or(after, beforeTenants), beforeTenants} {
		err = t.row(claimMail, []any{until, after, now}, mailDest(&m)...)
		if !errors.Is(err, rolecall.ErrNotFound) {
			break
		}
	}
	return m, err
}

// PostponeMail sets the time at which the mail is due again after the given attempt. It
// does nothing if the mail was claimed again since that attempt.
func (t *Tx) PostponeMail(id rolecall.MailID, attempt int, due rolecall.Time) {
	t.q.Exec(postponeMail, due, id, attempt)
}

// DeleteMail deletes a mail and reports whether it existed.
func (t *Tx) DeleteMail(id rolecall.MailID) (bool, error) {
	return t.changed(deleteMail, id)
}

// ExpiredMail returns up to limit mails of all tenants that have expired at now, sorted by
// expiry. It skips mails that a process has claimed.
func (t *Tx) ExpiredMail(now rolecall.Time, limit int) ([]rolecall.OutboxMail, error) {
	var all []rolecall.OutboxMail
	_, err := t.q.Query(selectExpiredMail, []any{now, limit}, into(&all, mailDest))
	return all, err
}

// CountMail returns the number of mails of all tenants in the outbox. It stops counting at
// limit.
func (t *Tx) CountMail(limit int) (n int, err error) {
	err = t.row(countMail, []any{limit}, &n)
	return n, err
}
