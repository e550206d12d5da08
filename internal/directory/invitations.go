package directory

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// IssuedInvitation is a new invitation.
type IssuedInvitation struct {
	rolecall.Invitation
	Delivery rolecall.Delivery `json:"delivery,omitempty"` // empty: by mail
	Token    secret.Token      `json:"-"`                  // set only by IssueInvitation, and not in a replay
}

// InviteUser creates an invitation of the user and mails it, once for each idempotency key.
// The new invitation replaces an older one. The reader of the mail can sign in as the user.
// Therefore, the caller must be able to assign all roles of the user. InviteUser can fail
// with ErrNotFound, ErrPermissionDenied, ErrBeyondOwnPermissions, ErrUserSuspended,
// ErrTooManyMails, ErrKeyReused, ErrKeyInProgress or ErrTooManyKeys. It returns
// ErrUnauthenticated if the caller's session or token was revoked during the request.
func (s *Service) InviteUser(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.UserID) (idempotency.Created[IssuedInvitation], error) {
	return s.invite(ctx, c, key, id, rolecall.DeliverByMail, authz.InviteUser)
}

// IssueInvitation is like InviteUser, but returns the token of the invitation instead of mailing
// it. The caller must be an operator, or a service account with the permission
// users:issue-links. Only an operator gets the token of an owner.
func (s *Service) IssueInvitation(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.UserID) (idempotency.Created[IssuedInvitation], error) {
	return s.invite(ctx, c, key, id, rolecall.DeliverInResponse, authz.InviteUser, authz.ReturnLink)
}

func (s *Service) invite(ctx context.Context, c access.Caller, key idempotency.Key, id rolecall.UserID, by rolecall.Delivery, policies ...*authz.Policy) (created idempotency.Created[IssuedInvitation], err error) {
	if _, err := s.access.AuthorizeOnUser(ctx, c, id, policies...); err != nil {
		return created, err
	}
	issued, token := IssuedInvitation{Invitation: s.newInvitation(c, id), Delivery: by}, secret.NewToken()
	created, err = access.Create(ctx, s.access, c, key, idempotency.Creation[IssuedInvitation]{
		Operation: "inviteUser", ID: rolecall.AnyID(id), Value: issued,
		Event: s.access.Event(c, rolecall.EventUserInvited, rolecall.About(id)),
		Insert: func(tx *store.Tx) error {
			if err := s.access.RequestDelivery(tx, c, by); err != nil {
				return err
			}
			tx.UpsertInvitation(issued.Invitation, token.Hash())
			user, err := tx.UserByID(id) // if the address changes concurrently, this read sees the new one, or the change deletes the invitation
			if err != nil || by == rolecall.DeliverInResponse {
				return err
			}
			return s.mailInvitation(tx, c.Tenant.ID, &user, token, issued.ExpiresAt)
		},
		OnlyID: func(id rolecall.AnyID) IssuedInvitation {
			return IssuedInvitation{Invitation: rolecall.Invitation{UserID: rolecall.UserID(id)}}
		},
	})
	if err == nil && !created.Replayed && by == rolecall.DeliverInResponse {
		created.Value.Token = token
	}
	return created, err
}

func (s *Service) newInvitation(c access.Caller, user rolecall.UserID) rolecall.Invitation {
	now := s.now()
	return rolecall.Invitation{UserID: user, CreatedBy: c.Grantor(), CreatedAt: now, ExpiresAt: now.Add(c.Tenant.Settings.InvitationLifetime()), Origin: c.Origin()}
}

// mailInvitation stores the mail with the invitation's token in the outbox. The database
// has only the hash of the token, apart from this encrypted mail.
func (s *Service) mailInvitation(tx *store.Tx, tenant rolecall.TenantID, user *rolecall.User, token secret.Token, until rolecall.Time) error {
	return s.outbox.Enqueue(tx, tenant, rolecall.Mail{
		Kind: rolecall.MailInvitation, To: user.Email, Name: user.Name, UserID: user.ID, Token: string(token), ExpiresAt: until,
	})
}

// InvitationListing selects a page of invitations.
type InvitationListing struct {
	After *rolecall.Position
	Limit int
}

// Invitations returns a page of the unexpired invitations of users, in the order in which
// the users were created. It lists only users that the caller may invite. Invitations can
// fail with ErrPermissionDenied.
func (s *Service) Invitations(ctx context.Context, c access.Caller, l InvitationListing) (page rolecall.Page[rolecall.Invited], err error) {
	if err := authz.ListInvitations.Authorize(c.Principal); err != nil {
		return page, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Page[rolecall.Invited], error) {
		return tx.Invitations(rolecall.InvitationQuery{Within: c.Reach(rolecall.UsersInvite), Now: s.now(), After: l.After, Limit: l.Limit})
	})
}

// WithdrawInvitation deletes the user's invitation. If the user has no invitation, it
// changes nothing and returns nil. WithdrawInvitation can fail with ErrNotFound,
// ErrPermissionDenied or ErrBeyondOwnPermissions.
func (s *Service) WithdrawInvitation(ctx context.Context, c access.Caller, id rolecall.UserID) error {
	if err := authz.WithdrawInvitation.AuthorizeFor(c.Principal, id); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if _, _, err := s.access.AuthorizedUser(tx, c, authz.WithdrawInvitation, id); err != nil {
			return nil, err
		}
		if ok, err := tx.DeleteInvitationOf(id); !ok {
			return nil, err
		}
		return s.access.Event(c, rolecall.EventInvitationWithdrawn, rolecall.About(id)), nil
	})
}
