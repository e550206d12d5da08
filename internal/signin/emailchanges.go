package signin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// ownChangesLimit is how many changes of the own address a user can request per
// hour. Each request can send a mail to a stranger.
const ownChangesLimit = 10

// addressChange is the stored data of an email change token.
type addressChange struct {
	Email string          `json:"email"`
	By    rolecall.UserID `json:"by,omitzero"` // the user who requested it, if it was another user
}

// RequestEmailChange mails a confirmation link to the new address, once for each
// idempotency key. If another user has this address, no link is mailed; the response
// and the work are the same. The user is notified at the current address.
//
// To change the address of another user, the caller must hold everything that this
// user holds, because the owner of the address can reset the password.
// RequestEmailChange returns ErrValidation, ErrNotFound, ErrPermissionDenied,
// ErrBeyondOwnPermissions, ErrUserSuspended, ErrTooManyMails, the errors of
// idempotency keys, and for the caller's own address ErrSessionRequired and
// ErrTooManyAttempts.
func (s *Service) RequestEmailChange(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.UserID, email string) (created idempotency.Created[rolecall.EmailChange], err error) {
	if err := authz.ChangeEmail.AuthorizeFor(c.Principal, id); err != nil {
		return created, err
	}
	own := id == c.User.ID
	if own {
		if err := authz.ChangeEmail.AuthorizeUser(c.Principal, &c.User, nil, s.now()); err != nil {
			return created, err
		}
	}
	if err := checkEmail(email); err != nil {
		return created, err
	}
	user, change := c.User, addressChange{Email: email}
	if !own {
		change.By = c.Grantor()
		err = s.access.View(ctx, c, func(tx *store.Tx) (err error) {
			user, _, err = s.access.AuthorizedUser(tx, c, authz.ChangeEmail, id)
			return err
		})
	}
	if err != nil {
		return created, err
	}
	data, err := json.Marshal(change)
	if err != nil {
		return created, err
	}
	answer := rolecall.EmailChange{UserID: id, ExpiresAt: s.now().Add(rolecall.EmailChangeLifetime)}
	token := secret.NewToken()
	first, err := s.access.Create(ctx, c, key, idempotency.Creation{
		Operation: "changeEmail", Location: "/users/" + id.String() + "/email-changes", ID: rolecall.AnyID(id), Value: answer,
		Event: s.access.Event(c, rolecall.EventEmailRequested, audit.AboutUser(id)),
		Insert: func(tx *store.Tx) error {
			request := s.access.RequestLink
			if own {
				request = s.requestOwnChange
			}
			if err := request(tx, c); err != nil {
				return err
			}
			if err := s.mailEmailChange(tx, c, &user, email, string(data), token, answer.ExpiresAt); err != nil {
				return err
			}
			return s.noticeEmailChange(tx, c, &user, email)
		},
	})
	if err != nil {
		return created, err
	}
	return idempotency.Recreated(first, answer, func(id rolecall.AnyID) rolecall.EmailChange {
		return rolecall.EmailChange{UserID: rolecall.UserID(id)}
	})
}

// requestOwnChange is RequestLink for the caller's own address. It has a limit per
// caller and returns ErrTooManyAttempts above it.
func (s *Service) requestOwnChange(tx *store.Tx, c access.Caller) error {
	if err := access.LockCredential(tx, c); err != nil {
		return err
	}
	return s.limiter.CountIn(tx, s.limiter.Bucket("email changes", ownChangesLimit, time.Hour, c.User.ID.String()), rolecall.ErrTooManyAttempts)
}

// mailEmailChange mails a confirmation link to the new address and replaces an
// earlier request. The mail does not contain the name of the user, because the
// address can belong to a stranger. If another user has the address, mailEmailChange
// writes the same rows, but no mail is sent.
func (s *Service) mailEmailChange(tx *store.Tx, c access.Caller, u *rolecall.User, email, data string, token secret.Token, until rolecall.Time) error {
	holder, _, err := tx.UserByEmail(rolecall.EmailKey(email))
	taken, err := access.Found(err)
	if err != nil {
		return err
	}
	change := rolecall.OneTimeToken{Purpose: rolecall.TokenEmailChange, UserID: u.ID, Data: data, CreatedAt: s.now(), ExpiresAt: until, Origin: c.Origin()}
	m := rolecall.Mail{Kind: rolecall.MailEmailChange, To: email, UserID: u.ID, Token: string(token), ExpiresAt: until}
	if taken && holder.ID != u.ID {
		change.UserID, change.Data = rolecall.UserID{}, ""
		m = rolecall.Mail{Kind: rolecall.MailNothing, ExpiresAt: until}
	}
	tx.DeleteOneTimeTokens(u.ID, rolecall.TokenEmailChange)
	tx.InsertOneTimeToken(change, token.Hash())
	return s.outbox.Enqueue(tx, c.Tenant.ID, m)
}

// noticeEmailChange notifies the user's current address that a new one was requested,
// whether or not another user has it. If the addresses differ only in spelling, no notice
// is sent, because the link goes to the same mailbox. A pending user gets no notice
// either, because the current address is not confirmed yet.
func (s *Service) noticeEmailChange(tx *store.Tx, c access.Caller, u *rolecall.User, email string) error {
	if rolecall.EmailKey(email) == u.EmailKey() || u.Status == rolecall.UserPending {
		return nil
	}
	m := rolecall.Mail{
		Kind: rolecall.MailEmailChangeRequested, To: u.Email, Name: u.Name, UserID: u.ID,
		NewEmail: rolecall.MaskEmail(email), ByAdministrator: c.User.ID != u.ID,
	}
	if !m.ByAdministrator {
		m.Client, m.Source = c.Session.Client, c.Source
	}
	return s.outbox.Enqueue(tx, c.Tenant.ID, m)
}

// ChangeEmail sets the address that the token confirms, once. It ends the user's
// other sessions and notifies the old address. It creates no session. It returns
// ErrEmailChangeInvalid, ErrEmailTaken, ErrUserSuspended and ErrTenantSuspended.
func (s *Service) ChangeEmail(ctx context.Context, a access.Anonymous, token secret.Token) error {
	err := s.store.View(ctx, a.Tenant.ID, func(tx *store.Tx) error {
		_, _, err := s.changing(tx, a.Tenant, token)
		return err
	})
	switch {
	case err != nil:
		return err
	case a.Tenant.Status == rolecall.TenantSuspended:
		return rolecall.ErrTenantSuspended
	}
	return s.access.Mutate(ctx, a.Caller(&authz.Principal{Tenant: a.Tenant}), func(tx *store.Tx) (*rolecall.Event, error) {
		for range access.MaxRetries {
			old, email, err := s.changing(tx, a.Tenant, token)
			if err != nil {
				return nil, err
			}
			changed := old
			changed.Email = email
			changed.Stamp(s.now())
			if ok, err := tx.UpdateUser(old, changed); err != nil {
				return nil, err
			} else if !ok {
				continue
			}
			if taken, err := tx.DeleteOneTimeToken(token.Hash()); err != nil {
				return nil, err
			} else if !taken {
				return nil, rolecall.ErrEmailChangeInvalid
			}
			kept, err := ownSession(tx, a.Presented, old.ID)
			if err != nil {
				return nil, err
			}
			event, err := s.access.UserEvent(a.Caller(&authz.Principal{Tenant: a.Tenant, User: old}), rolecall.EventUserUpdated, &old, &changed)
			if err != nil {
				return nil, err
			}
			return event, s.emailChanged(tx, a.Tenant.ID, &old, &changed, kept, event, a.Browser())
		}
		return nil, rolecall.ErrUnavailable
	})
}

// ownSession returns the id of the user's session among the tokens, or zero.
func ownSession(tx *store.Tx, presented []secret.Token, user rolecall.UserID) (rolecall.SessionID, error) {
	for _, token := range presented {
		state, err := tx.SessionByToken(token.Hash())
		if ok, err := access.Found(err); err != nil {
			return rolecall.SessionID{}, err
		} else if ok && state.User.ID == user {
			return state.Session.ID, nil
		}
	}
	return rolecall.SessionID{}, nil
}

// changing returns the user and the new address of an unexpired email change token. If
// another user requested the change, the other user must still be allowed to change the
// address.
func (s *Service) changing(tx *store.Tx, tenant rolecall.Tenant, token secret.Token) (user rolecall.User, email string, err error) {
	pending, err := tx.OneTimeToken(token.Hash(), rolecall.TokenEmailChange)
	if ok, err := access.Found(err); err != nil {
		return user, "", err
	} else if !ok || !pending.Live(s.now()) {
		return user, "", rolecall.ErrEmailChangeInvalid
	}
	user, err = tx.UserByID(pending.UserID)
	switch ok, err := access.Found(err); {
	case err != nil:
		return user, "", err
	case !ok:
		return user, "", rolecall.ErrEmailChangeInvalid
	case user.Status == rolecall.UserSuspended:
		return user, "", rolecall.ErrUserSuspended
	}
	var change addressChange
	if err := json.Unmarshal([]byte(pending.Data), &change); err != nil {
		return user, "", err
	}
	may, err := s.access.IsStillAuthorized(tx, tenant, authz.ChangeEmail, change.By, user.ID)
	if err == nil && !may {
		err = rolecall.ErrEmailChangeInvalid
	}
	return user, change.Email, err
}

// checkEmail returns ErrValidation at /email for an invalid address.
func checkEmail(email string) error {
	var faults rolecall.FieldErrors
	code, detail := rolecall.CheckEmail(email)
	faults.Add("/email", code, detail)
	return faults.Err()
}
