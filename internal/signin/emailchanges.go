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

// ownChangesLimit bounds how often one can ask for another address of one's own in
// an hour: each time somebody is mailed who may never have heard of us.
const ownChangesLimit = 10

// addressChange is what the token of a change of address stands for.
type addressChange struct {
	Email string          `json:"email"`
	By    rolecall.UserID `json:"by,omitzero"` // who asked for it, unless it was the user or an operator
}

// RequestEmailChange has whoever reads the mail of the address asked whether it is
// to be the user's, once for each idempotency key. If it is another user's, nobody
// is asked; the answer and the work are the same. The user is notified at the current
// address. For others than oneself the caller
// must cover all that the user holds: a password is reset by mail. It returns
// ErrValidation, ErrNotFound, ErrPermissionDenied, ErrBeyondOwnPermissions,
// ErrUserSuspended, ErrTooManyMails, ErrSessionRequired and ErrTooManyAttempts for
// oneself, and the errors of keys.
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

// requestOwnChange is RequestLink for the caller's own address, with a limit of the
// caller: it returns ErrTooManyAttempts past that.
func (s *Service) requestOwnChange(tx *store.Tx, c access.Caller) error {
	if err := access.LockCredential(tx, c); err != nil {
		return err
	}
	return s.limiter.CountIn(tx, s.limiter.Bucket("email changes", ownChangesLimit, time.Hour, c.User.ID.String()), rolecall.ErrTooManyAttempts)
}

// mailEmailChange asks at the new address, in place of what was asked before, and
// names nobody there: it may be a stranger's. If another user has it, it writes as much
// and nothing is mailed.
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
	return s.outbox.Put(tx, c.Tenant.ID, m)
}

// noticeEmailChange mails the user's current address that a new one was requested,
// whether or not another user has it. A request that only changes the spelling of the
// address sends no notice, as its link goes to the same mailbox. A pending user gets
// none either: nobody has shown yet that the current address is theirs.
func (s *Service) noticeEmailChange(tx *store.Tx, c access.Caller, u *rolecall.User, email string) error {
	if rolecall.EmailKey(email) == u.EmailKey() || u.Status == rolecall.UserPending {
		return nil
	}
	m := rolecall.Mail{
		Kind: rolecall.MailEmailChangeRequested, To: u.Email, Name: u.Name, UserID: u.ID,
		NewEmail: rolecall.MaskEmail(email), ByAdministrator: c.User.ID != u.ID,
	}
	if !m.ByAdministrator {
		m.Client = c.Session.Client
	}
	return s.outbox.Put(tx, c.Tenant.ID, m)
}

// ChangeEmail gives the user the address at which the token was read, once, ends
// their other sessions, and tells the old address. It signs nobody in. It returns
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
			return event, s.emailChanged(tx, a.Tenant.ID, &old, &changed, kept, event)
		}
		return nil, rolecall.ErrUnavailable
	})
}

// ownSession returns the session of the user among those of the tokens, zero if
// there is none.
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

// changing returns the user whose unexpired change of address the token is, and the
// address. Whoever else asked for it must still be allowed to.
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
	may, err := s.access.MayStill(tx, tenant, authz.ChangeEmail, change.By, user.ID)
	if err == nil && !may {
		err = rolecall.ErrEmailChangeInvalid
	}
	return user, change.Email, err
}

// checkEmail returns ErrValidation at /email for what is no address.
func checkEmail(email string) error {
	var faults rolecall.Faults
	code, detail := rolecall.CheckEmail(email)
	faults.Add("/email", code, detail)
	return faults.Err()
}
