package signin

import (
	"context"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// RequestPasswordReset mails a link for a new password if an active user has the email
// address. The caller does not learn whether such a user exists, because the work is the
// same for every address in every tenant. If the account has reached its limit of
// requests, no mail is sent, and the newest link still works. RequestPasswordReset
// returns ErrValidation if the address is invalid, and ErrTooManyAttempts if the source
// has reached its limit.
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
		user, _, err := tx.UserByEmail(email)
		if _, err := access.Found(err); err != nil {
			return err
		}
		allowed, err := s.allowsPassword(tx, &tenant, user.ID)
		if err != nil {
			return err
		}
		subject, outcome = user.ID, resetOutcome(&tenant, &user, allowed, counted[0].Count > account[0].Limit)
		if outcome != resetMailed {
			user = rolecall.User{}
		}
		return s.mailReset(tx, &tenant, &user, token, rolecall.Origin{})
	})
	if err == nil {
		s.refusals.Count(a.Tenant.ID, rolecall.EventResetRequested, access.AnonymousActor, subject, outcome, a.Source)
	}
	return err
}

// resetBuckets returns the counters of requests for a password reset, by account and by
// source. They are separate from the counters of sign-ins, so that an attack on the
// account does not keep its user from resetting the password. The window of the account's
// counter is at most as long as the lifetime of a link. So a user who has reached the
// limit always has a link that works.
func (s *Service) resetBuckets(a *access.Anonymous, email string) (account, source []rolecall.Bucket) {
	window := min(time.Hour, a.Tenant.Settings.PasswordResetLifetime())
	account = []rolecall.Bucket{s.limiter.Bucket("resets", s.limiter.Limits.AccountResets, window, a.TenantName, rolecall.EmailKey(email))}
	source = []rolecall.Bucket{s.limiter.Bucket("resets", s.limiter.Limits.SourceResets, 10*time.Minute, ratelimit.NetworkOf(a.Source))}
	return account, source
}

// The outcomes of a request for a password reset, as events show them to auditors.
const (
	resetMailed          = "mailed"
	resetNoUser          = "not mailed: no user has the address"
	resetInactive        = "not mailed: the user is not active"
	resetTenantSuspended = "not mailed: the tenant is suspended"
	resetPasswordsOff    = "not mailed: only owners sign in with a password"
	resetTooMany         = "not mailed: too many"
)

func resetOutcome(t *rolecall.Tenant, u *rolecall.User, allowed, tooMany bool) string {
	switch {
	case u.ID.IsZero():
		return resetNoUser
	case t.Status == rolecall.TenantSuspended:
		return resetTenantSuspended
	case u.Status != rolecall.UserActive:
		return resetInactive
	case !allowed:
		return resetPasswordsOff
	case tooMany:
		return resetTooMany
	}
	return resetMailed
}

// mailReset mails the user a link for a new password and makes earlier links invalid. For
// the zero user, it writes the same number of rows, but sends no mail. The link becomes
// invalid if the user's address changes, or if the credential that origin names is
// revoked.
func (s *Service) mailReset(tx *store.Tx, t *rolecall.Tenant, u *rolecall.User, token secret.Token, origin rolecall.Origin) error {
	until := s.insertReset(tx, t, u, rolecall.UserID{}, token, origin)
	if u.ID.IsZero() {
		return s.outbox.Enqueue(tx, t.ID, rolecall.Mail{Kind: rolecall.MailNothing, ExpiresAt: until})
	}
	return s.outbox.Enqueue(tx, t.ID, rolecall.Mail{
		Kind: rolecall.MailPasswordReset, To: u.Email, Name: u.Name, UserID: u.ID, Token: string(token), ExpiresAt: until,
	})
}

// insertReset stores the token of a link for a new password, and makes earlier links invalid. It
// returns the time at which the token expires. by is the service account that gets the link. It is
// zero if the link is mailed, or if an operator gets it.
func (s *Service) insertReset(tx *store.Tx, t *rolecall.Tenant, u *rolecall.User, by rolecall.UserID, token secret.Token, origin rolecall.Origin) (until rolecall.Time) {
	now := s.now()
	until = now.Add(t.Settings.PasswordResetLifetime())
	tx.DeleteOneTimeTokens(u.ID, rolecall.TokenPasswordReset)
	tx.InsertOneTimeToken(rolecall.OneTimeToken{
		Purpose: rolecall.TokenPasswordReset, UserID: u.ID, Data: resetData(u, by), CreatedAt: now, ExpiresAt: until, Origin: origin,
	}, token.Hash())
	return until
}

// resetData returns the data of a token: the address of the user, and the service account that gets
// the link. No address has a line break.
func resetData(u *rolecall.User, by rolecall.UserID) string {
	if by.IsZero() {
		return u.EmailKey()
	}
	return u.EmailKey() + "\n" + by.String()
}

// IssuedReset is a new link for a new password.
type IssuedReset struct {
	rolecall.PasswordReset
	Delivery rolecall.Delivery `json:"delivery,omitempty"` // empty: by mail
	Token    secret.Token      `json:"-"`                  // set only by IssuePasswordReset, and not in a replay
}

// SendPasswordReset mails the user a link for a new password, once for each idempotency
// key. The caller does not see the link. Even so, the caller must hold all permissions of
// this user, as for an invitation. SendPasswordReset returns ErrNotFound,
// ErrPermissionDenied, ErrBeyondOwnPermissions, ErrUserSuspended, ErrTooManyMails, and
// the errors of idempotency keys. It returns ErrUserPending if the user has not set a
// password yet, and ErrPasswordsOff if the tenant allows this user only connections to
// identity providers.
func (s *Service) SendPasswordReset(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.UserID) (idempotency.Created[IssuedReset], error) {
	return s.issueReset(ctx, c, key, id, rolecall.DeliverByMail, authz.SendPasswordReset)
}

// IssuePasswordReset is like SendPasswordReset, but returns the token instead of mailing it. The
// caller must be an operator, or a service account with the permission users:issue-links. Only
// an operator gets the token of an owner.
func (s *Service) IssuePasswordReset(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.UserID) (idempotency.Created[IssuedReset], error) {
	return s.issueReset(ctx, c, key, id, rolecall.DeliverInResponse, authz.SendPasswordReset, authz.ReturnLink)
}

func (s *Service) issueReset(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.UserID, by rolecall.Delivery, policies ...*authz.Policy) (created idempotency.Created[IssuedReset], err error) {
	user, err := s.access.AuthorizeOnUser(ctx, c, id, policies...)
	if err != nil {
		return created, err
	}
	reset := rolecall.PasswordReset{UserID: id, ExpiresAt: s.now().Add(c.Tenant.Settings.PasswordResetLifetime())}
	issued, token := IssuedReset{PasswordReset: reset, Delivery: by}, secret.NewToken()
	created, err = access.Create(ctx, s.access, c, key, idempotency.Creation[IssuedReset]{
		Operation: "sendPasswordReset", ID: rolecall.AnyID(id), Value: issued,
		Event: s.access.Event(c, rolecall.EventResetRequested, rolecall.About(id)),
		Insert: func(tx *store.Tx) error {
			if err := s.access.RequestDelivery(tx, c, by); err != nil {
				return err
			}
			if by == rolecall.DeliverInResponse {
				s.insertReset(tx, &c.Tenant, &user, c.Grantor(), token, c.Origin())
				return nil
			}
			return s.mailReset(tx, &c.Tenant, &user, token, c.Origin())
		},
		OnlyID: func(id rolecall.AnyID) IssuedReset {
			return IssuedReset{PasswordReset: rolecall.PasswordReset{UserID: rolecall.UserID(id)}}
		},
	})
	if err == nil && !created.Replayed && by == rolecall.DeliverInResponse {
		created.Value.Token = token
	}
	return created, err
}

// ResetPassword sets the password of the user who received the token by mail, ends all
// sessions of the user, and revokes the user's API tokens. A token works once.
// ResetPassword creates no session, because the user may need a second factor. It clears
// the counters of failed sign-ins to the account, because the counted attempts tried the
// old password. It does not clear the counter of the source. ResetPassword returns
// ErrPasswordResetInvalid, ErrUserSuspended, ErrTenantSuspended, ErrBusy, and
// ErrValidation if the password is not acceptable.
func (s *Service) ResetPassword(ctx context.Context, a access.Anonymous, token secret.Token, password string) error {
	user, err := store.Read(ctx, s.store, a.Tenant.ID, func(tx *store.Tx) (rolecall.User, error) { return s.resetting(tx, a.Tenant, token) })
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
		user, err := s.resetting(tx, a.Tenant, token)
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
		tx.ClearAttempts(s.buckets(&a, user.Email, nil)[:2]) // without the third counter, which counts all accounts of the source
		event := s.access.Event(c, rolecall.EventPasswordReset, rolecall.About(user.ID))
		return event, s.setPassword(tx, a.Tenant.ID, &user, hash, event, a.Browser())
	})
}

// resetting returns the user whose password the token can reset. It returns
// ErrPasswordResetInvalid if the token is unknown or expired, or if the address to which
// it was mailed is no longer the user's address. It also returns ErrPasswordResetInvalid if
// the tenant allows this user only connections to identity providers. It returns
// ErrUserSuspended if the user is suspended.
func (s *Service) resetting(tx *store.Tx, tenant rolecall.Tenant, token secret.Token) (rolecall.User, error) {
	reset, err := tx.OneTimeToken(token.Hash(), rolecall.TokenPasswordReset)
	if ok, err := access.Found(err); err != nil {
		return rolecall.User{}, err
	} else if !ok || !reset.Live(s.now()) {
		return rolecall.User{}, rolecall.ErrPasswordResetInvalid
	}
	email, maker, returned := strings.Cut(reset.Data, "\n")
	user, err := tx.UserByID(reset.UserID)
	switch ok, err := access.Found(err); {
	case err != nil:
		return user, err
	case !ok || user.EmailKey() != email || user.Status == rolecall.UserPending:
		return user, rolecall.ErrPasswordResetInvalid
	case user.Status == rolecall.UserSuspended:
		return user, rolecall.ErrUserSuspended
	}
	if allowed, err := s.allowsPassword(tx, &tenant, user.ID); err != nil {
		return user, err
	} else if !allowed {
		return user, rolecall.ErrPasswordResetInvalid
	}
	if !returned {
		return user, nil
	}
	by, err := rolecall.ParseID[rolecall.User](maker)
	if err != nil {
		return user, err
	}
	may, err := s.access.IsStillAuthorized(tx, tenant, authz.ReturnLink, by, user.ID)
	if err == nil && !may {
		err = rolecall.ErrPasswordResetInvalid
	}
	return user, err
}
