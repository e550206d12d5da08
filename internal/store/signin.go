package store

import "github.com/rolecall/rolecall"

const summarizeSignIn = `select u.last_login_at, count(s.id), coalesce(max(s.authenticated_at), 0),
		(select count(*) from passwords where tenant_id = $1 and user_id = $2),
		(select created_by from invitations where tenant_id = $1 and user_id = $2 and ` + keyNotRevoked + `),
		coalesce((select created_at from invitations where tenant_id = $1 and user_id = $2 and ` + keyNotRevoked + `), 0),
		coalesce((select expires_at from invitations where tenant_id = $1 and user_id = $2 and ` + keyNotRevoked + `), 0),
		(select count(*) from totp where tenant_id = $1 and user_id = $2 and sealed is not null),
		(select count(*) from (select 1 from passkeys where tenant_id = $1 and user_id = $2 limit 5000) k),
		(select count(*) from (select 1 from recovery_codes where tenant_id = $1 and user_id = $2 limit 5000) c),
		(select count(*) from (select expires_at from api_tokens where tenant_id = $1 and user_id = $2 limit 5000) t where t.expires_at > $3),
		coalesce((select n from attempts where bucket = $4 and ends_at > $3), 0),
		coalesce((select n from attempts where bucket = $5 and ends_at > $3), 0)
	from users u
	left join (
		select id, authenticated_at, expires_at, last_used_at from sessions
		where tenant_id = $1 and user_id = $2 order by id desc limit 5000) s on s.expires_at > $3 and s.last_used_at > $6 and s.authenticated_at > $7
	where u.tenant_id = $1 and u.id = $2 group by u.last_login_at`

// SignInSummary returns what is stored about how the user signs in, in one
// statement, or ErrNotFound. The keys are of the buckets that count the attempts
// with passwords and with second factors.
func (t *Tx) SignInSummary(user rolecall.UserID, passwords, factors []byte, settings rolecall.TenantSettings, now rolecall.Time) (s rolecall.SignInSummary, err error) {
	var hashes, totp int
	used, began := settings.SessionsSince(now)
	err = t.row(summarizeSignIn, []any{t.tenant, user, now, passwords, factors, used, began}, &s.LastLoginAt, &s.Sessions, &s.NewestAt,
		&hashes, &s.Invited.CreatedBy, &s.Invited.CreatedAt, &s.Invited.ExpiresAt, &totp, &s.Passkeys, &s.RecoveryCodes, &s.Tokens,
		&s.PasswordAttempts, &s.FactorAttempts)
	s.HasPassword, s.HasTOTP = hashes > 0, totp > 0
	return s, err
}
