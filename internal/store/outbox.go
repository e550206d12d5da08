package store

import "github.com/rolecall/rolecall"

const (
	mailColumns = `id, tenant, user_id, sealed, due_at, attempts, created_at, expires_at`

	insertMail = `insert into outbox (` + mailColumns + `) values ($1, $2, $3, $4, $5, $6, $7, $8)`

	// claimMail says twice what is due: of two who claim the same, the second looks
	// again at what the first has left.
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

// InsertMail puts a mail of the transaction's tenant into the outbox.
func (t *Tx) InsertMail(m rolecall.OutboxMail) {
	t.q.Exec(insertMail, m.ID, t.tenant, m.UserID, m.Sealed, m.DueAt, m.Attempts, m.CreatedAt, m.ExpiresAt)
}

// ClaimMail returns the mail of all tenants that has been due longest and is not
// expired, and keeps it from being claimed again before until. That counts as one
// more attempt. It returns ErrNotFound if there is none, or if somebody else was
// faster.
func (t *Tx) ClaimMail(now, until rolecall.Time) (m rolecall.OutboxMail, err error) {
	err = t.row(claimMail, []any{until, now}, mailDest(&m)...)
	return m, err
}

// PostponeMail makes a mail due at another moment, unless it was claimed again
// since the attempt.
func (t *Tx) PostponeMail(id rolecall.MailID, attempt int, due rolecall.Time) {
	t.q.Exec(postponeMail, due, id, attempt)
}

// DeleteMail removes a mail and reports whether it was there.
func (t *Tx) DeleteMail(id rolecall.MailID) (bool, error) {
	return t.changed(deleteMail, id)
}

// ExpiredMail returns up to limit mails of all tenants that are expired and that
// nobody has claimed, those first that expired first.
func (t *Tx) ExpiredMail(now rolecall.Time, limit int) ([]rolecall.OutboxMail, error) {
	var all []rolecall.OutboxMail
	err := t.q.Query(selectExpiredMail, []any{now, limit}, into(&all, mailDest))
	return all, err
}

// CountMail returns how many mails wait in all tenants, counting no further than
// the limit.
func (t *Tx) CountMail(limit int) (n int, err error) {
	err = t.row(countMail, []any{limit}, &n)
	return n, err
}
