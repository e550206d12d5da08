package store

import (
	"slices"
	"time"

	"github.com/rolecall/rolecall"
)

// generationsKept is how many of the last token generations of a session are kept. If a
// client sends one of them again, the reuse is detected.
const generationsKept = 100

const (
	sessionColumns = `s.id, s.user_id, s.authenticated_at, s.last_used_at, s.expires_at, s.source, s.client, s.confirmed_at, s.second_factor, s.identity_id, s.connection_id`

	listedSessionColumns = `r.id, r.user_id, r.authenticated_at, r.last_used_at, r.expires_at, r.source, r.client, r.confirmed_at, r.second_factor, r.identity_id, r.connection_id`

	tokenColumns = `t.hash, t.generation, t.retired_at, t.sealed, ` + sessionColumns + `, s.generation, `

	selectSessionByID = `select ` + sessionColumns + ` from sessions s where s.tenant_id = $1 and s.id = $2`

	insertSession = `insert into sessions (tenant_id, id, user_id, generation, authenticated_at, last_used_at, expires_at, source, client, confirmed_at, second_factor,
			identity_id, connection_id)
		values ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

	insertIDToken = `insert into id_tokens (tenant_id, session_id, sealed) values ($1, $2, $3)`

	selectIDToken = `select sealed from id_tokens where tenant_id = $1 and session_id = $2`

	insertToken = `insert into session_tokens (tenant_id, hash, session_id, generation, retired_at) values ($1, $2, $3, $4, $5)`

	updateLastLogin = `update users set last_login_at = $1 where tenant_id = $2 and id = $3`

	touchSession = `update sessions set last_used_at = $1 where tenant_id = $2 and id = $3 and last_used_at <= $4`

	sealToken = `update session_tokens set sealed = $1 where tenant_id = $2 and hash = $3 and sealed is null returning generation`

	updateGeneration = `update sessions set generation = $1 where tenant_id = $2 and id = $3 and generation < $1`

	retireToken = `update session_tokens set retired_at = $1
		where tenant_id = $2 and session_id = $3 and generation = $4 and retired_at > $1`

	forgetTokens = `delete from session_tokens where tenant_id = $1 and session_id = $2 and generation < $3`

	lockSession = `update sessions set generation = generation where tenant_id = $1 and id = $2 returning id`

	confirmSession = `update sessions set confirmed_at = $1 where tenant_id = $2 and id = $3 returning id`

	deleteSession = `delete from sessions where tenant_id = $1 and id = $2 returning id`

	deleteSessions = `delete from sessions where tenant_id = $1 and user_id = $2 and id is distinct from $3 returning id`

	// The second column of countWithoutFactor is the number of sessions that the statement
	// has read.
	countWithoutFactor = `select count(distinct case when second_factor = 0 and expires_at > $1 and last_used_at > $2 and authenticated_at > $3 then user_id end), count(*)
		from (
			select user_id, second_factor, expires_at, last_used_at, authenticated_at from sessions
			where tenant_id = $4 order by id desc limit 5000) newest`

	deleteUserSession = `delete from sessions
		where tenant_id = $1 and user_id = $2 and id = $3 and expires_at > $4 and last_used_at > $5 and authenticated_at > $6 returning id`

	// deleteOldestSessions sorts expired sessions after all other sessions.
	deleteOldestSessions = `delete from sessions where tenant_id = $1 and id in (
			select id from (
				select id, row_number() over (order by case when expires_at > $2 and last_used_at > $3 and authenticated_at > $4 then 0 else 1 end, id desc) as place
				from (
					select id, expires_at, last_used_at, authenticated_at from sessions
					where tenant_id = $1 and user_id = $5 order by id desc limit 5000) newest) placed
			where place > $6)
		returning id, expires_at, last_used_at, authenticated_at`
)

var (
	selectSession = `select ` + tokenColumns + userColumns + `
		from session_tokens t
		join sessions s on s.tenant_id = t.tenant_id and s.id = t.session_id
		join users r on r.tenant_id = s.tenant_id and r.id = s.user_id
		where t.tenant_id = $1 and t.hash = $2`

	selectSessionRoles = `select ` + tokenColumns + holderColumns + `, ` + assignmentColumns + `
		from session_tokens t
		join sessions s on s.tenant_id = t.tenant_id and s.id = t.session_id
		join users r on r.tenant_id = s.tenant_id and r.id = s.user_id
		left join assignments a on a.tenant_id = s.tenant_id and a.user_id = s.user_id
		left join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where t.tenant_id = $1 and t.hash = $2
		union all
		select ` + tokenColumns + memberUserColumns + `, ` + throughColumns + `
		from session_tokens t
		join sessions s on s.tenant_id = t.tenant_id and s.id = t.session_id
		join users r on r.tenant_id = s.tenant_id and r.id = s.user_id
		join group_members m on m.tenant_id = s.tenant_id and m.user_id = s.user_id
		` + rolesThrough + `
		where t.tenant_id = $1 and t.hash = $2`
)

func sessionDest(s *rolecall.Session) []any {
	return []any{&s.ID, &s.UserID, &s.AuthenticatedAt, &s.LastUsedAt, &s.ExpiresAt, &s.Source,
		&s.Client, &s.ConfirmedAt, (*flag)(&s.SecondFactor), &s.Identity, &s.Connection}
}

func tokenDest(state *rolecall.SessionState) []any {
	token := &state.Token
	return append(append([]any{&token.Hash, &token.Generation, &token.RetiredAt, &token.Sealed}, sessionDest(&state.Session)...), &state.Generation)
}

// SessionByToken returns the session whose token has this hash, with its user and without assignments. It
// returns ErrNotFound if the token does not exist. The session can be expired.
func (t *Tx) SessionByToken(hash []byte) (state rolecall.SessionState, err error) {
	err = t.row(selectSession, []any{t.tenant, hash}, append(tokenDest(&state), userDest(&state.User)...)...)
	return state, err
}

// SessionWithRoles is SessionByToken with the groups of the user and all assignments, as Assignments returns them, in
// one statement. They can be expired.
// It returns ErrManyPermissions if their roles have more permissions than the limit.
func (t *Tx) SessionWithRoles(hash []byte, limit int) (state rolecall.SessionState, err error) {
	held := heldRoles{limit: limit}
	n, err := t.q.Query(selectSessionRoles, []any{t.tenant, hash}, func(scan func(dest ...any) error) error {
		var a rolecall.Assignment
		if err := scan(slices.Concat(tokenDest(&state), holderDest(&state.User), assignmentDest(&a))...); err != nil {
			return err
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

// SessionByID returns the session, or ErrNotFound. The session can be expired.
func (t *Tx) SessionByID(id rolecall.SessionID) (s rolecall.Session, err error) {
	err = t.row(selectSessionByID, []any{t.tenant, id}, sessionDest(&s)...)
	return s, err
}

// InsertSession inserts a session and the hash of its first token, which has the
// generation 1. It also stores the time of the user's last sign-in. Update returns
// ErrNotFound if the user does not exist.
func (t *Tx) InsertSession(s rolecall.Session, hash []byte) {
	t.q.Exec(insertSession, t.tenant, s.ID, s.UserID, s.AuthenticatedAt, s.LastUsedAt, s.ExpiresAt, s.Source,
		s.Client, s.ConfirmedAt, flag(s.SecondFactor), s.Identity, s.Connection)
	t.q.Exec(insertToken, t.tenant, hash, s.ID, 1, rolecall.Never)
	t.q.Exec(updateLastLogin, s.AuthenticatedAt, t.tenant, s.UserID)
}

// InsertIDToken inserts the encrypted ID token with which the session began. It is deleted with the session.
func (t *Tx) InsertIDToken(id rolecall.SessionID, sealed string) {
	t.q.Exec(insertIDToken, t.tenant, id, sealed)
}

// IDToken returns the encrypted ID token of the session, or ErrNotFound.
func (t *Tx) IDToken(id rolecall.SessionID) (sealed string, err error) {
	err = t.row(selectIDToken, []any{t.tenant, id}, &sealed)
	return sealed, err
}

// TouchSession stores at as the time of the session's last use. It writes nothing if the
// stored time is less than interval before at.
func (t *Tx) TouchSession(id rolecall.SessionID, at rolecall.Time, interval time.Duration) {
	t.q.Exec(touchSession, at, t.tenant, id, at.Add(-interval))
	t.invalidateHere(id)
}

// SealSuccessor stores the token of the next generation: its hash in successor, and the
// sealed token in sealed. It returns false if the next generation already exists, or if
// the session does not exist any more.
func (t *Tx) SealSuccessor(id rolecall.SessionID, token rolecall.SessionToken, successor, sealed []byte) (bool, error) {
	// A sign-out locks the session before its tokens. If SealSuccessor locked them in the
	// other order, a refresh and a concurrent sign-out could deadlock.
	if ok, err := t.LockSession(id); !ok {
		return false, err
	}
	ok, err := t.changed(sealToken, sealed, t.tenant, token.Hash)
	if ok {
		t.q.Exec(insertToken, t.tenant, successor, id, token.Generation+1, rolecall.Never)
	}
	return ok, err
}

// ConfirmGeneration records that a client has sent the session token of this generation.
// It marks the previous generation as retired, and deletes the generations that are more
// than generationsKept older.
func (t *Tx) ConfirmGeneration(id rolecall.SessionID, generation int64, at rolecall.Time) {
	t.q.Exec(updateGeneration, generation, t.tenant, id)
	t.q.Exec(retireToken, at, t.tenant, id, generation-1)
	t.q.Exec(forgetTokens, t.tenant, id, generation-generationsKept)
	t.invalidate(id)
}

// ConfirmSession stores the time of a re-authentication in the session, and reports
// whether the session exists.
func (t *Tx) ConfirmSession(id rolecall.SessionID, at rolecall.Time) (bool, error) {
	ok, err := t.changed(confirmSession, at, t.tenant, id)
	return t.invalidateIf(ok, err, id)
}

// LockSession reports whether the session exists, and prevents its deletion until
// the end of this Update.
func (t *Tx) LockSession(id rolecall.SessionID) (bool, error) {
	return t.changed(lockSession, t.tenant, id)
}

// DeleteSession deletes the session and reports whether it existed.
func (t *Tx) DeleteSession(id rolecall.SessionID) (bool, error) {
	ok, err := t.changed(deleteSession, t.tenant, id)
	return t.invalidateIf(ok, err, id)
}

// DeleteUserSession deletes the session if it belongs to the user. It returns false if the
// user has no such session, or if the session has expired.
func (t *Tx) DeleteUserSession(user rolecall.UserID, id rolecall.SessionID, settings rolecall.TenantSettings, now rolecall.Time) (bool, error) {
	used, began := settings.SessionsSince(now)
	ok, err := t.changed(deleteUserSession, t.tenant, user, id, now, used, began)
	return t.invalidateIf(ok, err, id)
}

// DeleteOldestSessions deletes all sessions of the user except keep of them. It keeps
// newer sessions rather than older ones, and unexpired sessions rather than expired ones.
// It returns the ids of the deleted sessions that had not expired. It reads the newest
// MaxScan sessions of the user.
func (t *Tx) DeleteOldestSessions(user rolecall.UserID, keep int, settings rolecall.TenantSettings, now rolecall.Time) ([]rolecall.SessionID, error) {
	var ended []rolecall.SessionID
	used, began := settings.SessionsSince(now)
	args := []any{t.tenant, now, used, began, user, keep}
	_, err := t.q.Query(deleteOldestSessions, args, func(scan func(dest ...any) error) error {
		var s rolecall.Session
		err := scan(&s.ID, &s.ExpiresAt, &s.LastUsedAt, &s.AuthenticatedAt)
		if s.Live(now, settings) {
			ended = append(ended, s.ID)
		}
		return err
	})
	if len(ended) > 0 {
		t.invalidate(user)
	}
	return ended, err
}

// Sessions returns a page of the sessions that q selects. It reads a bounded number of
// rows.
func (t *Tx) Sessions(q rolecall.SessionQuery) (rolecall.Page[rolecall.Session], error) {
	used, began := q.Settings.SessionsSince(q.Now)
	l := &listing[rolecall.Session]{
		tx: t, table: "sessions", columns: listedSessionColumns, dest: sessionDest,
		id:   func(s *rolecall.Session) rolecall.AnyID { return rolecall.AnyID(s.ID) },
		desc: true, after: q.After, limit: q.Limit,
		indexScan:  source{table: "sessions", id: "id", conditions: []condition{where("user_id = ?", q.User)}},
		conditions: []condition{where("r.expires_at > ?", q.Now), where("r.last_used_at > ?", used), where("r.authenticated_at > ?", began)},
	}
	return l.serve(nil, false)
}

// UsersWithoutFactor counts the users who have an unexpired session that was started
// without a second factor. It reads the newest MaxScan sessions of the tenant. The total
// is not exact if the tenant has that many sessions.
func (t *Tx) UsersWithoutFactor(settings rolecall.TenantSettings, now rolecall.Time) (total rolecall.Total, err error) {
	used, began := settings.SessionsSince(now)
	read := 0
	err = t.row(countWithoutFactor, []any{now, used, began, t.tenant}, &total.Count, &read)
	total.Exact = read < rolecall.MaxScan
	return total, err
}

// DeleteSessions deletes all sessions of the user except the session with the id except,
// and returns the ids of the deleted sessions. If except is zero, it deletes all of them.
func (t *Tx) DeleteSessions(user rolecall.UserID, except rolecall.SessionID) ([]rolecall.SessionID, error) {
	var ended []rolecall.SessionID
	_, err := t.q.Query(deleteSessions, []any{t.tenant, user, except}, into(&ended, oneColumn))
	if len(ended) > 0 {
		t.invalidate(user)
	}
	return ended, err
}

const summarizeSignIn = `select u.last_login_at, count(s.id), coalesce(max(s.authenticated_at), 0),
		(select count(*) from passwords where tenant_id = $1 and user_id = $2),
		(select created_by from invitations where tenant_id = $1 and user_id = $2 and ` + keyNotRevoked + `),
		coalesce((select created_at from invitations where tenant_id = $1 and user_id = $2 and ` + keyNotRevoked + `), 0),
		coalesce((select expires_at from invitations where tenant_id = $1 and user_id = $2 and ` + keyNotRevoked + `), 0),
		(select count(*) from totp where tenant_id = $1 and user_id = $2 and sealed is not null),
		(select count(*) from (select 1 from passkeys where tenant_id = $1 and user_id = $2 limit 5000) k),
		(select count(*) from (select 1 from recovery_codes where tenant_id = $1 and user_id = $2 limit 5000) c),
		(select count(*) from (select expires_at from api_tokens where tenant_id = $1 and user_id = $2 limit 5000) t where t.expires_at > $3)
	from users u
	left join (
		select id, authenticated_at, expires_at, last_used_at from sessions
		where tenant_id = $1 and user_id = $2 order by id desc limit 5000) s on s.expires_at > $3 and s.last_used_at > $4 and s.authenticated_at > $5
	where u.tenant_id = $1 and u.id = $2 group by u.last_login_at`

// SignInSummary returns a summary of the user's credentials and sessions, or ErrNotFound.
// The argument passwords is the key of the bucket that counts failed attempts with the
// user's password, and factors that of the bucket for second factors. These counters
// belong to no tenant and can be on another server, so a separate statement reads them.
func (t *Tx) SignInSummary(user rolecall.UserID, passwords, factors []byte, settings rolecall.TenantSettings, now rolecall.Time) (s rolecall.SignInSummary, err error) {
	var hashes, totp int
	used, began := settings.SessionsSince(now)
	err = t.row(summarizeSignIn, []any{t.tenant, user, now, used, began}, &s.LastLoginAt, &s.Sessions, &s.NewestAt,
		&hashes, &s.Invited.CreatedBy, &s.Invited.CreatedAt, &s.Invited.ExpiresAt, &totp, &s.Passkeys, &s.RecoveryCodes, &s.Tokens)
	s.HasPassword, s.HasTOTP = hashes > 0, totp > 0
	if err != nil {
		return s, err
	}
	attempts, err := t.Attempts([]rolecall.Bucket{{Key: passwords}, {Key: factors}}, now)
	s.PasswordAttempts, s.FactorAttempts = attempts[0].Count, attempts[1].Count
	return s, err
}
