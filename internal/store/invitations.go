package store

import "github.com/rolecall/rolecall"

const (
	putInvitation = `insert into invitations (tenant_id, user_id, hash, created_by, created_at, expires_at, credential, operator_key)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (tenant_id, user_id) do update set hash = excluded.hash, created_by = excluded.created_by,
			created_at = excluded.created_at, expires_at = excluded.expires_at, credential = excluded.credential, operator_key = excluded.operator_key`

	selectInvitation = `select user_id, created_by, created_at, expires_at, credential, operator_key from invitations
		where tenant_id = $1 and hash = $2 and ` + keyNotRevoked

	deleteInvitation = `delete from invitations where tenant_id = $1 and hash = $2 returning user_id`

	deleteInvitationOf = `delete from invitations where tenant_id = $1 and user_id = $2 returning user_id`
)

// PutInvitation inserts or replaces the user's invitation. Update returns
// ErrNotFound if the user does not exist.
func (t *Tx) PutInvitation(i rolecall.Invitation, hash []byte) {
	t.q.Exec(putInvitation, t.tenant, i.UserID, hash, i.CreatedBy, i.CreatedAt, i.ExpiresAt, i.Credential, i.OperatorKey)
}

// InvitationByToken returns the invitation, or ErrNotFound.
func (t *Tx) InvitationByToken(hash []byte) (i rolecall.Invitation, err error) {
	err = t.row(selectInvitation, []any{t.tenant, hash}, &i.UserID, &i.CreatedBy, &i.CreatedAt, &i.ExpiresAt, &i.Credential, &i.OperatorKey)
	return i, err
}

// Invitations returns a page of the invitations that q selects, in bounded work.
func (t *Tx) Invitations(q rolecall.InvitationQuery) (rolecall.Page[rolecall.Invited], error) {
	l := &listing[rolecall.Invited]{
		tx: t, table: "users", columns: userColumns + invitationOf("created_by") + invitationOf("created_at") + invitationOf("expires_at"),
		id: func(i *rolecall.Invited) rolecall.AnyID { return rolecall.AnyID(i.User.ID) },
		dest: func(i *rolecall.Invited) []any {
			return append(userDest(&i.User), &i.CreatedBy, &i.CreatedAt, &i.ExpiresAt)
		},
		after: q.After, limit: q.Limit,
		walk: source{"invitations", "user_id", []condition{where("expires_at > ?", q.Now), where(keyNotRevoked)}},
	}
	if !q.Within.IsEverywhere() {
		l.conditions = append(l.conditions, inReach(q.Within))
	}
	page, err := l.serve(nil, false)
	for i := range page.Items {
		page.Items[i].UserID = page.Items[i].User.ID
	}
	return page, err
}

// invitationOf returns a column of the invitation of the user r.
func invitationOf(column string) string {
	return ", (select i." + column + " from invitations i where i.tenant_id = $1 and i.user_id = r.id)"
}

// DeleteInvitation deletes the invitation and reports whether it existed.
func (t *Tx) DeleteInvitation(hash []byte) (bool, error) {
	return t.changed(deleteInvitation, t.tenant, hash)
}

// DeleteInvitationOf deletes the user's invitation and reports whether it existed.
func (t *Tx) DeleteInvitationOf(user rolecall.UserID) (bool, error) {
	return t.changed(deleteInvitationOf, t.tenant, user)
}
