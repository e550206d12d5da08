package store

import (
	"cmp"
	"slices"

	"github.com/rolecall/rolecall"
)

const (
	selectFactors = `select t.sealed, t.pending, coalesce(t.confirmed_at, 0), coalesce(t.last_step, 0),
			(select count(*) from recovery_codes where tenant_id = $1 and user_id = $2),
			p.id, coalesce(p.name, ''), coalesce(p.credential, ''), coalesce(p.created_at, 0), coalesce(p.last_used_at, 0)
		from users u
		left join totp t on t.tenant_id = u.tenant_id and t.user_id = u.id
		left join passkeys p on p.tenant_id = u.tenant_id and p.user_id = u.id
		where u.tenant_id = $1 and u.id = $2 order by p.id limit $3`

	upsertPendingTOTP = `insert into totp (tenant_id, user_id, pending, confirmed_at, last_step) values ($1, $2, $3, 0, 0)
		on conflict (tenant_id, user_id) do update set pending = excluded.pending`

	confirmTOTP = `update totp set sealed = pending, pending = null, confirmed_at = $1, last_step = $2
		where tenant_id = $3 and user_id = $4 and pending = $5 returning user_id`

	useTOTP = `update totp set last_step = $1, sealed = $2
		where tenant_id = $3 and user_id = $4 and sealed = $5 and last_step < $1 returning user_id`

	deleteTOTP = `delete from totp where tenant_id = $1 and user_id = $2`

	insertRecoveryCode = `insert into recovery_codes (tenant_id, user_id, hash) values ($1, $2, $3)`

	useRecoveryCode = `delete from recovery_codes where tenant_id = $1 and user_id = $2 and hash = $3 returning hash`

	deleteRecoveryCodes = `delete from recovery_codes where tenant_id = $1 and user_id = $2`

	selectPasskey = `select id, user_id, name, credential, created_at, last_used_at from passkeys where tenant_id = $1 and id = $2`

	insertPasskey = `insert into passkeys (tenant_id, id, user_id, name, credential, created_at, last_used_at)
		values ($1, $2, $3, $4, $5, $6, $7)`

	usePasskey = `update passkeys set credential = $1, last_used_at = $2
		where tenant_id = $3 and id = $4 and user_id = $5 and credential = $6 returning id`

	renamePasskey = `update passkeys set name = $1 where tenant_id = $2 and id = $3 and user_id = $4 returning id`

	deletePasskey = `delete from passkeys where tenant_id = $1 and user_id = $2 and id = $3 returning id`

	deletePasskeys = `delete from passkeys where tenant_id = $1 and user_id = $2`
)

// Factors returns the second factors of the user. The result is empty if the user has none
// or does not exist.
func (t *Tx) Factors(user rolecall.UserID) (f rolecall.Factors, err error) {
	_, err = t.q.Query(selectFactors, []any{t.tenant, user, rolecall.PasskeysMax}, func(scan func(dest ...any) error) error {
		key := rolecall.Passkey{UserID: user}
		err := scan(&f.TOTP.Sealed, &f.TOTP.Pending, &f.TOTP.ConfirmedAt, &f.TOTP.LastStep, &f.RecoveryCodes,
			&key.ID, &key.Name, &key.Credential, &key.CreatedAt, &key.LastUsedAt)
		if key.ID != nil {
			f.Passkeys = append(f.Passkeys, key)
		}
		return err
	})
	slices.SortStableFunc(f.Passkeys, func(a, b rolecall.Passkey) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return f, err
}

// UpsertPendingTOTP stores a sealed TOTP secret that the user has not confirmed yet. It
// replaces an earlier unconfirmed secret. Update returns ErrNotFound if the user does not
// exist.
func (t *Tx) UpsertPendingTOTP(user rolecall.UserID, sealed []byte) {
	t.q.Exec(upsertPendingTOTP, t.tenant, user, sealed)
}

// ConfirmTOTP makes the pending secret the active one, and stores step, the time step of
// the code that confirmed the secret. It returns false if pending is not the stored
// pending secret any more.
func (t *Tx) ConfirmTOTP(user rolecall.UserID, pending []byte, step int64, at rolecall.Time) (bool, error) {
	ok, err := t.changed(confirmTOTP, at, step, t.tenant, user, pending)
	return t.invalidateIf(ok, err, user)
}

// UseTOTP records that the user has used the code of a time step, and replaces the active
// secret old with sealed. It returns false if old is not the stored secret any more, or if
// a code of this time step or a later one was already used.
func (t *Tx) UseTOTP(user rolecall.UserID, old, sealed []byte, step int64) (bool, error) {
	return t.changed(useTOTP, step, sealed, t.tenant, user, old)
}

// DeleteTOTP deletes the active and the pending TOTP secret of the user.
func (t *Tx) DeleteTOTP(user rolecall.UserID) {
	t.q.Exec(deleteTOTP, t.tenant, user)
	t.invalidate(user)
}

// ReplaceRecoveryCodes replaces all recovery codes of the user. Update returns
// ErrNotFound if the user does not exist.
func (t *Tx) ReplaceRecoveryCodes(user rolecall.UserID, hashes [][]byte) {
	t.q.Exec(deleteRecoveryCodes, t.tenant, user)
	for _, hash := range hashes {
		t.q.Exec(insertRecoveryCode, t.tenant, user, hash)
	}
}

// UseRecoveryCode deletes the recovery code of the user with this hash, and reports
// whether the code existed.
func (t *Tx) UseRecoveryCode(user rolecall.UserID, hash []byte) (bool, error) {
	return t.changed(useRecoveryCode, t.tenant, user, hash)
}

// PasskeyByID returns the passkey with this id, or ErrNotFound.
func (t *Tx) PasskeyByID(id []byte) (key rolecall.Passkey, err error) {
	err = t.row(selectPasskey, []any{t.tenant, id}, &key.ID, &key.UserID, &key.Name, &key.Credential, &key.CreatedAt, &key.LastUsedAt)
	return key, err
}

// InsertPasskey inserts a passkey. Update returns ErrPasskeyTaken if the tenant already
// has a passkey with this id, and ErrNotFound if the user does not exist.
func (t *Tx) InsertPasskey(key rolecall.Passkey) {
	t.q.Exec(insertPasskey, t.tenant, key.ID, key.UserID, key.Name, textOf(key.Credential), key.CreatedAt, key.LastUsedAt)
	t.invalidate(key.UserID)
}

// UsePasskey stores the credential and the time of the last use from used. It returns
// false if the stored credential is not old.Credential any more.
func (t *Tx) UsePasskey(old, used rolecall.Passkey) (bool, error) {
	return t.changed(usePasskey, textOf(used.Credential), used.LastUsedAt, t.tenant, old.ID, old.UserID, textOf(old.Credential))
}

// RenamePasskey stores key.Name as the name of the passkey. It returns false if the
// passkey does not exist or belongs to another user.
func (t *Tx) RenamePasskey(key rolecall.Passkey) (bool, error) {
	return t.changed(renamePasskey, key.Name, t.tenant, key.ID, key.UserID)
}

// DeletePasskey deletes the passkey with this id. It returns false if the passkey does not
// exist or belongs to another user.
func (t *Tx) DeletePasskey(user rolecall.UserID, id []byte) (bool, error) {
	ok, err := t.changed(deletePasskey, t.tenant, user, id)
	return t.invalidateIf(ok, err, user)
}

// DeleteFactors deletes the TOTP secrets, the recovery codes and the passkeys of the user.
func (t *Tx) DeleteFactors(user rolecall.UserID) {
	t.q.Exec(deleteTOTP, t.tenant, user)
	t.q.Exec(deleteRecoveryCodes, t.tenant, user)
	t.q.Exec(deletePasskeys, t.tenant, user)
	t.invalidate(user)
}
