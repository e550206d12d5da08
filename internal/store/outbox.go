package store

import "github.com/rolecall/rolecall"

const (
	insertMail = `insert into outbox (id, tenant, user_id, sealed, due_at, attempts, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`

	deleteMailsOfUser = `delete from outbox where tenant = $1 and user_id = $2`
)

// InsertMail puts a mail into the outbox.
func (t *Tx) InsertMail(m rolecall.OutboxMail) {
	t.q.Exec(insertMail, m.ID, t.tenant, m.UserID, m.Sealed, m.DueAt, m.Attempts, m.CreatedAt, m.ExpiresAt)
}
