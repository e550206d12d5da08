package store

import "github.com/rolecall/rolecall"

const (
	mailColumns = `id, tenant, user_id, sealed, due_at, attempts, created_at, expires_at`

	insertMail = `insert into outbox (` + mailColumns + `) values ($1, $2, $3, $4, $5, $6, $7, $8)`

	// claimMail has the condition on due_at twice, because two processes can select the
	// same mail. After the first process has changed the row, the second one checks the
	// outer condition again and does not claim the mail.
	claimMail = `update outbox set due_at = $1, attempts = attempts + 1
		where id in (select id from outbox where due_at <= $2 and expires_at > $2 order by due_at limit 1) and due_at <= $2
		returning ` + mailColumns

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

// ClaimMail claims one mail for sending and returns it: of all unexpired mails of all
// tenants that are due, the one that has been due for the longest time. ClaimMail counts
// an attempt. It postpones the mail until the given time, so that no other process sends
// it before then. ClaimMail returns ErrNotFound if no mail is due, or if another process
// has just claimed the same mail.
func (t *Tx) ClaimMail(now, until rolecall.Time) (m rolecall.OutboxMail, err error) {
	err = t.row(claimMail, []any{until, now}, mailDest(&m)...)
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
