package signin

import (
	"context"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// RequestPasswordReset mails a link for a new password to the active user with the
// address. The caller does not learn whether such a user exists: the work is the
// same for every address in every tenant, with dummies where no mail is sent. Above
// the limit of the account, no mail is sent, and the newest link still works.
// RequestPasswordReset returns ErrValidation for an invalid address and
// ErrTooManyAttempts above the limit of the source.
func (s *Service) RequestPasswordReset(ctx context.Context, a access.Anonymous, email string) error {
	if err := checkEmail(email); err != nil {
		return err
	}
	account, source := s.resetBuckets(&a, email)
	if _, err := s.limiter.Count(ctx, source); err != nil {
		return err
	}
	tenant := a.Tenant
	if tenant.ID.IsZero() {
		tenant.ID = access.UnknownTenant
	}
	token := secret.NewToken()
	var subject rolecall.UserID
	var outcome string
	err := s.store.Update(ctx, tenant.ID, func(tx *store.Tx) error {
		counted, err := tx.CountAttempt(account, s.now())
		if err != nil {
			return err
		}
		user, _, err := tx.UserByEmail(rolecall.EmailKey(email))
		if _, err := access.Found(err); err != nil {
			return err
		}
		subject, outcome = user.ID, resetOutcome(&tenant, &user, counted[0].Count > account[0].Limit)
		if outcome != resetMailed {
			user = rolecall.User{}
		}
		return s.mailReset(tx, &tenant, &user, token, rolecall.Origin{})
	})
	if err == nil {
		s.refusals.Count(a.Tenant.ID, rolecall.EventResetRequested, audit.Anonymous, subject, outcome, a.Source)
	}
	return err
}

// resetBuckets returns the counters of reset requests. They are separate from those
// of sign-ins, so that an attack on the account does not keep its user from
// resetting the password. The window of the account is at most the lifetime of a
// link. So a user at the limit always has a link that works.
func (s *Service) resetBuckets(a *access.Anonymous, email string) (account, source []rolecall.Bucket) {
	window := min(time.Hour, a.Tenant.Settings.PasswordResetLifetime())
	account = []rolecall.Bucket{s.limiter.Bucket("resets", s.limiter.Limits.AccountResets, window, a.TenantName, rolecall.EmailKey(email))}
	source = []rolecall.Bucket{s.limiter.Bucket("resets", s.limiter.Limits.SourceResets, 10*time.Minute, ratelimit.NetworkOf(a.Source))}
	return account, source
}

// The results of a reset request, for auditors.
const (
	resetMailed          = "mailed"
	resetNoUser          = "not mailed: no user has the address"
	resetInactive        = "not mailed: the user is not active"
	resetTenantSuspended = "not mailed: the tenant is suspended"
	resetTooMany         = "not mailed: too many"
)

func resetOutcome(t *rolecall.Tenant, u *rolecall.User, tooMany bool) string {
	switch {
	case u.ID.IsZero():
		return resetNoUser
	case t.Status == rolecall.TenantSuspended:
		return resetTenantSuspended
	case u.Status != rolecall.UserActive:
		return resetInactive
	case tooMany:
		return resetTooMany
	}
	return resetMailed
}

// mailReset mails the user a link for a new password and replaces earlier links. For
// the zero user it writes the same rows, but no mail is sent. The link is bound to
// the address of the mail and to the credential of the request.
func (s *Service) mailReset(tx *store.Tx, t *rolecall.Tenant, u *rolecall.User, token secret.Token, origin rolecall.Origin) error {
	now := s.now()
	until := now.Add(t.Settings.PasswordResetLifetime())
	tx.DeleteOneTimeTokens(u.ID, rolecall.TokenPasswordReset)
	tx.InsertOneTimeToken(rolecall.OneTimeToken{
		Purpose: rolecall.TokenPasswordReset, UserID: u.ID, Data: u.EmailKey(), CreatedAt: now, ExpiresAt: until, Origin: origin,
	}, token.Hash())
	if u.ID.IsZero() {
		return s.outbox.Enqueue(tx, t.ID, rolecall.Mail{Kind: rolecall.MailNothing, ExpiresAt: until})
	}
	return s.outbox.Enqueue(tx, t.ID, rolecall.Mail{
		Kind: rolecall.MailPasswordReset, To: u.Email, Name: u.Name, UserID: u.ID, Token: string(token), ExpiresAt: until,
	})
}

// SendPasswordReset mails a link for a new password to the user, once for each
// idempotency key. The caller does not see the link, but must hold everything that
// the user holds, as for an invitation. It returns ErrNotFound, ErrPermissionDenied,
// ErrBeyondOwnPermissions, ErrUserSuspended, ErrUserPending for a user without a
// password, ErrTooManyMails, and the errors of idempotency keys.
func (s *Service) SendPasswordReset(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.UserID) (created idempotency.Created[rolecall.PasswordReset], err error) {
	if err := authz.SendPasswordReset.AuthorizeFor(c.Principal, id); err != nil {
		return created, err
	}
	var user rolecall.User
	err = s.access.View(ctx, c, func(tx *store.Tx) (err error) {
		user, _, err = s.access.AuthorizedUser(tx, c, authz.SendPasswordReset, id)
		return err
	})
	if err != nil {
		return created, err
	}
	reset := rolecall.PasswordReset{UserID: id, ExpiresAt: s.now().Add(c.Tenant.Settings.PasswordResetLifetime())}
	token := secret.NewToken()
	first, err := s.access.Create(ctx, c, key, idempotency.Creation{
		Operation: "sendPasswordReset", Location: "/users/" + id.String() + "/password-resets", ID: rolecall.AnyID(id), Value: reset,
		Event: s.access.Event(c, rolecall.EventResetRequested, audit.AboutUser(id)),
		Insert: func(tx *store.Tx) error {
			if err := s.access.RequestLink(tx, c); err != nil {
				return err
			}
			return s.mailReset(tx, &c.Tenant, &user, token, c.Origin())
		},
	})
	if err != nil {
		return created, err
	}
	return idempotency.Recreated(first, reset, func(id rolecall.AnyID) rolecall.PasswordReset {
		return rolecall.PasswordReset{UserID: rolecall.UserID(id)}
	})
}

// ResetPassword sets the password of the user who received the token by mail, and
// ends all their sessions and API tokens. A token works once. ResetPassword creates
// no session, because a second factor can be needed. It clears the failed sign-ins of the account and
// those of the account from this source, because they were guesses at the old
// password. It returns ErrPasswordResetInvalid, ErrValidation for the password,
// ErrUserSuspended, ErrTenantSuspended and ErrBusy.
func (s *Service) ResetPassword(ctx context.Context, a access.Anonymous, token secret.Token, password string) error {
	var user rolecall.User
	err := s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) (err error) {
		user, err = s.resetting(tx, token)
		return err
	})
	switch {
	case err != nil:
		return err
	case a.Tenant.Status == rolecall.TenantSuspended:
		return rolecall.ErrTenantSuspended
	}
	if err := s.access.CheckNewPassword("/password", password, &user, &a.Tenant); err != nil {
		return err
	}
	hash, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return err
	}
	c := a.Caller(&authz.Principal{Tenant: a.Tenant, User: user})
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		active, err := tx.LockActiveUser(user.ID)
		if err != nil {
			return nil, err
		}
		user, err := s.resetting(tx, token)
		if err != nil {
			return nil, err
		}
		if taken, err := tx.DeleteOneTimeToken(token.Hash()); err != nil {
			return nil, err
		} else if !taken {
			return nil, rolecall.ErrPasswordResetInvalid
		}
		if !active { // activated at the same time
			return nil, rolecall.ErrUnavailable
		}
		tx.ClearAttempts(s.buckets(&a, user.Email, nil)[:2]) // without the counter of the source, which other accounts share
		event := s.access.Event(c, rolecall.EventPasswordReset, audit.AboutUser(user.ID))
		return event, s.setPassword(tx, a.Tenant.ID, &user, hash, event, a.Browser())
	})
}

// resetting returns the user of an unexpired reset token. The user must still have
// the address to which it was mailed.
func (s *Service) resetting(tx *store.Tx, token secret.Token) (rolecall.User, error) {
	reset, err := tx.OneTimeToken(token.Hash(), rolecall.TokenPasswordReset)
	if ok, err := access.Found(err); err != nil {
		return rolecall.User{}, err
	} else if !ok || !reset.Live(s.now()) {
		return rolecall.User{}, rolecall.ErrPasswordResetInvalid
	}
	user, err := tx.UserByID(reset.UserID)
	switch ok, err := access.Found(err); {
	case err != nil:
		return user, err
	case !ok || user.EmailKey() != reset.Data || user.Status == rolecall.UserPending:
		return user, rolecall.ErrPasswordResetInvalid
	case user.Status == rolecall.UserSuspended:
		return user, rolecall.ErrUserSuspended
	}
	return user, nil
}
