package signin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// ownChangesLimit is the maximum number of requests per hour with which a user can change
// the user's own address. Each request can send a mail to an address that belongs to
// another person.
const ownChangesLimit = 10

// addressChange is the data that is stored with the token of an email change.
type addressChange struct {
	Email string          `json:"email"`
	By    rolecall.UserID `json:"by,omitzero"` // the user or service account that requested the change; zero: the user themselves or an operator
}

// RequestEmailChange mails a confirmation link to the new address, once for each
// idempotency key. It also notifies the user at the current address. If another user has
// the new address, RequestEmailChange mails no link. It then returns the same result and
// does the same work, so that the caller does not learn that the address is in use.
//
// To change the address of another user, the caller must hold all permissions of this
// user, because the owner of the new address can reset the password. RequestEmailChange
// returns ErrValidation, ErrNotFound, ErrPermissionDenied, ErrBeyondOwnPermissions,
// ErrUserSuspended, ErrTooManyMails, and the errors of idempotency keys. For the caller's
// own address, it can also return ErrSessionRequired and ErrTooManyAttempts.
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
	return access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.EmailChange]{
		Operation: "changeEmail", ID: rolecall.AnyID(id), Value: answer,
		Event: s.access.Event(c, rolecall.EventEmailRequested, rolecall.About(id)),
		Insert: func(tx *store.Tx) error {
			request := s.access.RequestLink
			if own {
				request = s.requestOwnChange
			}
			if err := request(tx, c); err != nil {
				return err
			}
			if err := access.RequireUnmanaged(tx, &user); err != nil {
				return err
			}
			if err := s.mailEmailChange(tx, c, &user, email, string(data), token, answer.ExpiresAt); err != nil {
				return err
			}
			return s.noticeEmailChange(tx, c, &user, email)
		},
		OnlyID: func(id rolecall.AnyID) rolecall.EmailChange {
			return rolecall.EmailChange{UserID: rolecall.UserID(id)}
		},
	})
}

// requestOwnChange counts a request of the caller to change their own address. It is used
// in place of access.Service.RequestLink, which has a limit per tenant. Above the limit
// of the caller, it returns ErrTooManyAttempts.
func (s *Service) requestOwnChange(tx *store.Tx, c access.Caller) error {
	if err := access.LockCredential(tx, c); err != nil {
		return err
	}
	return s.limiter.CountIn(tx, s.limiter.Bucket("email changes", ownChangesLimit, time.Hour, c.User.ID.String()), rolecall.ErrTooManyAttempts)
}

// mailEmailChange stores the email change of the user u and mails the confirmation link
// to the new address. It replaces an earlier request. The mail does not contain the name
// of the user, because the address can belong to another person. If another user has the
// address, mailEmailChange writes the same number of rows, but sends no mail.
func (s *Service) mailEmailChange(tx *store.Tx, c access.Caller, u *rolecall.User, email, data string, token secret.Token, until rolecall.Time) error {
	holder, _, err := tx.UserByEmail(email)
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

// noticeEmailChange notifies the user at the current address that a new address was
// requested. It also sends this notice if another user has the new address. It sends none
// if the two addresses differ only in spelling, because the confirmation link goes to the
// same mailbox. It also sends none to a pending user, whose current address is not
// confirmed yet.
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
	return s.access.SendNotice(tx, c.Tenant.ID, m)
}

// ChangeEmail sets the new address of the user after the user has opened the confirmation
// link. A token works once. ChangeEmail ends the user's other sessions, notifies the old
// address, and creates no session. ChangeEmail can fail with ErrEmailChangeInvalid,
// ErrEmailTaken, ErrUserSuspended or ErrTenantSuspended.
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
		old, email, err := s.changing(tx, a.Tenant, token)
		if err != nil {
			return nil, err
		}
		if err := access.RequireUnmanaged(tx, &old); err != nil {
			return nil, err
		}
		changed := old
		changed.Email = email
		changed.Stamp(s.now())
		if err := store.CheckVersion(tx.UpdateUser(old, changed)); err != nil {
			return nil, err
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
	})
}

// ownSession returns the id of the first session among the presented tokens that belongs
// to the user. It returns the zero id if no token belongs to a session of the user.
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

// changing returns the user and the new address of an email change token. It returns
// ErrEmailChangeInvalid if the token is unknown or expired. It also returns this error if
// another user requested the change and is no longer allowed to change the address of
// this user.
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

// checkEmail returns ErrValidation with a field error at /email if the address is
// invalid.
func checkEmail(email string) error {
	var faults rolecall.FieldErrors
	code, detail := rolecall.CheckEmail(email)
	faults.Add("/email", code, detail)
	return faults.Err()
}
