package store

import (
	"slices"

	"github.com/rolecall/rolecall"
)

const (
	apiTokenColumns = `r.id, r.user_id, r.service_account_id, r.name, r.permissions, r.created_by, r.created_at, r.expires_at, r.last_used_at`

	// The columns of a token t in a query that also returns the holder r, in a row for each assignment. Only the
	// first row has the permissions of the token.
	userStateColumns    = firstStateColumns + `case when ` + followsAssignment + ` then null else t.permissions end, ` + lastStateColumns
	accountStateColumns = firstStateColumns + `case when ` + followsAccountRole + ` then null else t.permissions end, ` + lastStateColumns
	memberStateColumns  = firstStateColumns + `null, ` + lastStateColumns
	firstStateColumns   = `t.id, t.user_id, t.service_account_id, t.name, `
	lastStateColumns    = `t.created_by, t.created_at, t.expires_at, t.last_used_at`

	// guarded is an SQL expression: 1 if the user r has a confirmed authenticator app or a
	// passkey, otherwise 0.
	guarded = `case when exists (select 1 from totp where tenant_id = $1 and user_id = r.id and sealed is not null)
			or exists (select 1 from passkeys where tenant_id = $1 and user_id = r.id) then 1 else 0 end`

	selectAPIToken = `select ` + apiTokenColumns + ` from api_tokens r where r.tenant_id = $1 and r.id = $2`

	insertAPIToken = `insert into api_tokens (tenant_id, id, user_id, service_account_id, hash, name, permissions, created_by,
			created_at, expires_at, last_used_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

	lockAPIToken = `update api_tokens set last_used_at = last_used_at where tenant_id = $1 and id = $2 returning id`

	touchAPIToken = `update api_tokens set last_used_at = $1 where tenant_id = $2 and id = $3 and last_used_at <= $4`

	deleteAPIToken = `delete from api_tokens where tenant_id = $1 and id = $2 returning id`

	deleteAPITokensOfUser = `delete from api_tokens where tenant_id = $1 and user_id = $2 and expires_at > $3
		returning id, user_id, service_account_id, name, permissions, created_by, created_at, expires_at, last_used_at`
)

// The holder is a user or a service account. The first part of the union finds tokens
// of users, and the second one the roles of their groups. The third part finds tokens of service accounts, and returns
// the service account in the columns of a user.
var selectAPITokenState = `select ` + userStateColumns + `, ` + guarded + `, ` + holderColumns + `, ` + assignmentColumns + `
		from api_tokens t
		join users r on r.tenant_id = t.tenant_id and r.id = t.user_id
		left join assignments a on a.tenant_id = t.tenant_id and a.user_id = t.user_id
		left join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where t.tenant_id = $1 and t.hash = $2
		union all
		select ` + memberStateColumns + `, ` + guarded + `, ` + memberUserColumns + `, ` + throughColumns + `
		from api_tokens t
		join users r on r.tenant_id = t.tenant_id and r.id = t.user_id
		join group_members m on m.tenant_id = t.tenant_id and m.user_id = t.user_id
		` + rolesThrough + `
		where t.tenant_id = $1 and t.hash = $2
		union all
		select ` + accountStateColumns + `, 0, ` + accountColumns + `,
			a.service_account_id, ` + heldColumns + `, null, ''
		from api_tokens t
		join service_accounts r on r.tenant_id = t.tenant_id and r.id = t.service_account_id
		left join service_account_roles a on a.tenant_id = t.tenant_id and a.service_account_id = t.service_account_id
		left join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where t.tenant_id = $1 and t.hash = $2`

func apiTokenDest(token *rolecall.APIToken) []any {
	return []any{&token.ID, &token.UserID, &token.ServiceAccountID, &token.Name, asJSON(&token.Permissions),
		&token.CreatedBy, &token.CreatedAt, &token.ExpiresAt, &token.LastUsedAt}
}

func apiTokenStateDest(token *rolecall.APIToken) []any {
	dest := apiTokenDest(token)
	dest[slices.Index(dest, any(asJSON(&token.Permissions)))] = once{asJSON(&token.Permissions)}
	return dest
}

// APITokenByHash returns the token with this hash, its holder, and the groups and all assignments of the
// holder, as Assignments returns them. It returns ErrNotFound if the token does not exist, and
// ErrManyPermissions if the roles of the holder have more permissions than the limit. The
// result can contain an expired token and expired assignments, so the caller must check
// when they expire.
func (t *Tx) APITokenByHash(hash []byte, limit int) (state rolecall.APITokenState, err error) {
	held := heldRoles{limit: limit}
	n, err := t.q.Query(selectAPITokenState, []any{t.tenant, hash}, func(scan func(dest ...any) error) error {
		var a rolecall.Assignment
		err := scan(slices.Concat(apiTokenStateDest(&state.Token), []any{(*flag)(&state.Guarded)}, holderDest(&state.Holder), assignmentDest(&a))...)
		if err != nil {
			return err
		}
		if !state.Token.ServiceAccountID.IsZero() {
			a.Holder.Kind = rolecall.HolderAccount
		}
		return held.add(&a)
	})
	if err == nil && n == 0 {
		err = rolecall.ErrNotFound
	}
	held.sort()
	state.Assignments, state.Groups = held.all, held.groups
	return state, err
}

// APIToken returns the token with this id, or ErrNotFound.
func (t *Tx) APIToken(id rolecall.APITokenID) (token rolecall.APIToken, err error) {
	err = t.row(selectAPIToken, []any{t.tenant, id}, apiTokenDest(&token)...)
	return token, err
}

// APITokens returns a page of the holder's tokens, sorted by id. The page includes expired
// tokens that have not been purged yet. APITokens reads a bounded number of rows.
func (t *Tx) APITokens(q rolecall.APITokenQuery) (rolecall.Page[rolecall.APIToken], error) {
	holder := where("user_id = ?", q.Holder.ID)
	if q.Holder.Kind == rolecall.HolderAccount {
		holder = where("service_account_id = ?", q.Holder.ID)
	}
	l := &listing[rolecall.APIToken]{
		tx: t, table: "api_tokens", columns: apiTokenColumns, dest: apiTokenDest,
		id:    func(token *rolecall.APIToken) rolecall.AnyID { return rolecall.AnyID(token.ID) },
		after: q.After, limit: q.Limit,
		indexScan: source{table: "api_tokens", id: "id", conditions: []condition{holder}},
	}
	return l.page(nil)
}

// InsertAPIToken inserts a token with the hash of its secret. Update returns ErrNotFound
// if the holder of the token does not exist.
func (t *Tx) InsertAPIToken(token rolecall.APIToken, hash []byte) {
	t.q.Exec(insertAPIToken, t.tenant, token.ID, token.UserID, token.ServiceAccountID, hash, token.Name, asJSON(&token.Permissions),
		token.CreatedBy, token.CreatedAt, token.ExpiresAt, token.LastUsedAt)
}

// TouchAPIToken stores at as the time of the token's last use. It writes nothing if the
// stored time is less than TouchInterval before at.
func (t *Tx) TouchAPIToken(id rolecall.APITokenID, at rolecall.Time) {
	t.q.Exec(touchAPIToken, at, t.tenant, id, at.Add(-rolecall.TouchInterval))
	t.invalidateHere(id)
}

// LockAPIToken reports whether the token exists, and prevents its deletion until the
// end of this Update.
func (t *Tx) LockAPIToken(id rolecall.APITokenID) (bool, error) {
	return t.changed(lockAPIToken, t.tenant, id)
}

// DeleteAPIToken deletes the token and reports whether it existed.
func (t *Tx) DeleteAPIToken(id rolecall.APITokenID) (bool, error) {
	ok, err := t.changed(deleteAPIToken, t.tenant, id)
	return t.invalidateIf(ok, err, id)
}

// DeleteUserAPITokens deletes all API tokens of the user that have not expired at now, and
// returns the deleted tokens.
func (t *Tx) DeleteUserAPITokens(user rolecall.UserID, now rolecall.Time) ([]rolecall.APIToken, error) {
	var revoked []rolecall.APIToken
	_, err := t.q.Query(deleteAPITokensOfUser, []any{t.tenant, user, now}, into(&revoked, apiTokenDest))
	if len(revoked) > 0 {
		t.invalidate(user)
	}
	return revoked, err
}
