package store

import "github.com/rolecall/rolecall"

const (
	mailColumns = `id, tenant, user_id, sealed, due_at, attempts, created_at, expires_at`

	insertMail = `insert into outbox (` + mailColumns + `) values ($1, $2, $3, $4, $5, $6, $7, $8)`

	// claimMail has the condition on due_at twice. If two processes select the same mail,
	// the second one checks the condition again after the first has changed the row.
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

// ClaimMail returns the mail of any tenant that has been due for the longest time, and
// counts an attempt to send it. The mail is not due again before until. ClaimMail
// returns ErrNotFound if no unexpired mail is due, or if another process claims the mail
// at the same time.
func (t *Tx) ClaimMail(now, until rolecall.Time) (m rolecall.OutboxMail, err error) {
	err = t.row(claimMail, []any{until, now}, mailDest(&m)...)
	return m, err
}

// PostponeMail sets when the mail is due, unless it was claimed again after the
// attempt.
func (t *Tx) PostponeMail(id rolecall.MailID, attempt int, due rolecall.Time) {
	t.q.Exec(postponeMail, due, id, attempt)
}

// DeleteMail deletes a mail and reports whether it existed.
func (t *Tx) DeleteMail(id rolecall.MailID) (bool, error) {
	return t.changed(deleteMail, id)
}

// ExpiredMail returns up to limit expired mails of all tenants that no process has
// claimed, sorted by expiry.
func (t *Tx) ExpiredMail(now rolecall.Time, limit int) ([]rolecall.OutboxMail, error) {
	var all []rolecall.OutboxMail
	_, err := t.q.Query(selectExpiredMail, []any{now, limit}, into(&all, mailDest))
	return all, err
}

// CountMail returns the number of waiting mails of all tenants, at most limit.
func (t *Tx) CountMail(limit int) (n int, err error) {
	err = t.row(countMail, []any{limit}, &n)
	return n, err
}
