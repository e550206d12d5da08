package store

import "github.com/rolecall/rolecall"

const (
	putInvitation = `insert into invitations (tenant_id, user_id, hash, created_by, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6)
		on conflict (tenant_id, user_id) do update set hash = excluded.hash, created_by = excluded.created_by,
			created_at = excluded.created_at, expires_at = excluded.expires_at`

	selectInvitation = `select user_id, created_by, created_at, expires_at from invitations where tenant_id = $1 and hash = $2`

	deleteInvitation = `delete from invitations where tenant_id = $1 and hash = $2 returning user_id`

	deleteInvitationOf = `delete from invitations where tenant_id = $1 and user_id = $2 returning user_id`
)

// PutInvitation writes the user's invitation and takes the place of an older one.
// Update returns ErrNotFound if the user is gone.
func (t *Tx) PutInvitation(i rolecall.Invitation, hash []byte) {
	t.q.Exec(putInvitation, t.tenant, i.UserID, hash, i.CreatedBy, i.CreatedAt, i.ExpiresAt)
}

// InvitationByToken returns the invitation, or ErrNotFound.
func (t *Tx) InvitationByToken(hash []byte) (i rolecall.Invitation, err error) {
	err = t.row(selectInvitation, []any{t.tenant, hash}, &i.UserID, &i.CreatedBy, &i.CreatedAt, &i.ExpiresAt)
	return i, err
}

// DeleteInvitation removes the invitation and reports whether it was there.
func (t *Tx) DeleteInvitation(hash []byte) (bool, error) {
	return t.changed(deleteInvitation, t.tenant, hash)
}

// DeleteInvitationOf removes the invitation of the user and reports whether there
// was one.
func (t *Tx) DeleteInvitationOf(user rolecall.UserID) (bool, error) {
	return t.changed(deleteInvitationOf, t.tenant, user)
}
