package store

import (
	"slices"

	"github.com/rolecall/rolecall"
)

const (
	insertOneTimeToken = `insert into one_time_tokens (tenant_id, hash, purpose, user_id, data, created_at, expires_at, credential, operator_key)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	consumeOneTimeToken = insertOneTimeToken + ` on conflict (tenant_id, hash) do nothing returning hash`

	selectOneTimeToken = `select purpose, user_id, data, created_at, expires_at, credential, operator_key from one_time_tokens
		where tenant_id = $1 and hash = $2 and purpose = $3 and ` + keyNotRevoked

	// keyNotRevoked excludes links that were requested with a revoked operator key. A
	// revocation does not delete these links, because nothing records which tenants have
	// them. The links stay in the table until they expire.
	keyNotRevoked = `(operator_key is null or exists (select 1 from operator_keys k where k.id = operator_key))`

	deleteOneTimeToken = `delete from one_time_tokens where tenant_id = $1 and hash = $2 returning hash`

	deleteTokensOfUser = `delete from one_time_tokens where tenant_id = $1 and user_id = $2`

	deleteOneTimeTokens = `delete from one_time_tokens where tenant_id = $1 and user_id = $2 and purpose = $3`
)

// InsertOneTimeToken inserts a one-time token with the hash of its secret.
func (t *Tx) InsertOneTimeToken(token rolecall.OneTimeToken, hash []byte) {
	t.q.Exec(insertOneTimeToken, t.tokenArgs(token, hash)...)
}

// ConsumeOneTimeToken marks a token as used that is valid without being stored. It inserts
// the token, and returns false if the token was already inserted.
func (t *Tx) ConsumeOneTimeToken(token rolecall.OneTimeToken, hash []byte) (bool, error) {
	return t.changed(consumeOneTimeToken, t.tokenArgs(token, hash)...)
}

func (t *Tx) tokenArgs(token rolecall.OneTimeToken, hash []byte) []any {
	return []any{t.tenant, hash, string(token.Purpose), token.UserID, token.Data, token.CreatedAt, token.ExpiresAt, token.Credential, token.OperatorKey}
}

// OneTimeToken returns the token with this hash and purpose, or ErrNotFound. The token can
// be expired.
func (t *Tx) OneTimeToken(hash []byte, purpose rolecall.TokenPurpose) (token rolecall.OneTimeToken, err error) {
	err = t.row(selectOneTimeToken, []any{t.tenant, hash, string(purpose)},
		&token.Purpose, &token.UserID, &token.Data, &token.CreatedAt, &token.ExpiresAt, &token.Credential, &token.OperatorKey)
	return token, err
}

// DeleteOneTimeToken deletes the token with this hash and reports whether the token
// existed.
func (t *Tx) DeleteOneTimeToken(hash []byte) (bool, error) {
	return t.changed(deleteOneTimeToken, t.tenant, hash)
}

// DeleteOneTimeTokens deletes all tokens of the user with this purpose.
func (t *Tx) DeleteOneTimeTokens(user rolecall.UserID, purpose rolecall.TokenPurpose) {
	t.q.Exec(deleteOneTimeTokens, t.tenant, user, string(purpose))
}

// DeleteLinks deletes all invitations and one-time tokens that were requested with one of
// the credentials. A credential is the id of a session or an API token.
func (t *Tx) DeleteLinks(credentials ...rolecall.AnyID) {
	for chunk := range slices.Chunk(credentials, rowsAtOnce) {
		for _, table := range []string{"invitations", "one_time_tokens"} {
			b := newBuilder(t.tenant)
			b.write("delete from " + table + " where tenant_id = $1")
			b.all([]condition{oneOf("credential", chunk)})
			b.exec(t.q)
		}
	}
}

// DeleteOwnEmailChanges deletes the links with which the user can confirm a new address,
// if the user requested them in one of the sessions.
func (t *Tx) DeleteOwnEmailChanges(user rolecall.UserID, sessions ...rolecall.SessionID) {
	for chunk := range slices.Chunk(sessions, rowsAtOnce) {
		b := newBuilder(t.tenant)
		b.write("delete from one_time_tokens where tenant_id = $1")
		b.all([]condition{where("purpose = ?", string(rolecall.TokenEmailChange)), where("user_id = ?", user), oneOf("credential", chunk)})
		b.exec(t.q)
	}
}

// DeleteAllOneTimeTokens deletes all one-time tokens of the user.
func (t *Tx) DeleteAllOneTimeTokens(user rolecall.UserID) {
	t.q.Exec(deleteTokensOfUser, t.tenant, user)
}

const (
	upsertInvitation = `insert into invitations (tenant_id, user_id, hash, created_by, created_at, expires_at, credential, operator_key)
		values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict (tenant_id, user_id) do update set hash = excluded.hash, created_by = excluded.created_by,
			created_at = excluded.created_at, expires_at = excluded.expires_at, credential = excluded.credential, operator_key = excluded.operator_key`

	selectInvitation = `select user_id, created_by, created_at, expires_at, credential, operator_key from invitations
		where tenant_id = $1 and hash = $2 and ` + keyNotRevoked

	selectInvitationOf = `select user_id, created_by, created_at, expires_at, credential, operator_key from invitations
		where tenant_id = $1 and user_id = $2 and ` + keyNotRevoked

	deleteInvitation = `delete from invitations where tenant_id = $1 and hash = $2 returning user_id`

	deleteInvitationOf = `delete from invitations where tenant_id = $1 and user_id = $2 returning user_id`
)

// UpsertInvitation stores the invitation of the user with the hash of its token. It
// replaces an earlier invitation. Update returns ErrNotFound if the user does not exist.
func (t *Tx) UpsertInvitation(i rolecall.Invitation, hash []byte) {
	t.q.Exec(upsertInvitation, t.tenant, i.UserID, hash, i.CreatedBy, i.CreatedAt, i.ExpiresAt, i.Credential, i.OperatorKey)
}

// InvitationByToken returns the invitation whose token has this hash, or ErrNotFound. The
// invitation can be expired.
func (t *Tx) InvitationByToken(hash []byte) (i rolecall.Invitation, err error) {
	err = t.row(selectInvitation, []any{t.tenant, hash}, &i.UserID, &i.CreatedBy, &i.CreatedAt, &i.ExpiresAt, &i.Credential, &i.OperatorKey)
	return i, err
}

// InvitationOf returns the invitation of the user, or ErrNotFound. The invitation can be expired.
func (t *Tx) InvitationOf(user rolecall.UserID) (i rolecall.Invitation, err error) {
	err = t.row(selectInvitationOf, []any{t.tenant, user}, &i.UserID, &i.CreatedBy, &i.CreatedAt, &i.ExpiresAt, &i.Credential, &i.OperatorKey)
	return i, err
}

// Invitations returns a page of the invitations that q selects. It reads a bounded number
// of rows.
func (t *Tx) Invitations(q rolecall.InvitationQuery) (rolecall.Page[rolecall.Invited], error) {
	l := &listing[rolecall.Invited]{
		tx: t, table: "users", columns: userColumns + invitationOf("created_by") + invitationOf("created_at") + invitationOf("expires_at"),
		id: func(i *rolecall.Invited) rolecall.AnyID { return rolecall.AnyID(i.User.ID) },
		dest: func(i *rolecall.Invited) []any {
			return append(userDest(&i.User), &i.CreatedBy, &i.CreatedAt, &i.ExpiresAt)
		},
		after: q.After, limit: q.Limit,
		indexScan: source{table: "invitations", id: "user_id", conditions: []condition{where("expires_at > ?", q.Now), where(keyNotRevoked)}},
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

// invitationOf returns an SQL expression for a column of the invitation of the user r.
func invitationOf(column string) string {
	return ", (select i." + column + " from invitations i where i.tenant_id = $1 and i.user_id = r.id)"
}

// DeleteInvitation deletes the invitation whose token has this hash, and reports whether
// the invitation existed.
func (t *Tx) DeleteInvitation(hash []byte) (bool, error) {
	return t.changed(deleteInvitation, t.tenant, hash)
}

// DeleteInvitationOf deletes the user's invitation and reports whether it existed.
func (t *Tx) DeleteInvitationOf(user rolecall.UserID) (bool, error) {
	return t.changed(deleteInvitationOf, t.tenant, user)
}
