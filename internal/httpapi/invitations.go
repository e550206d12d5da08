package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

func inviteUser(x *exchange) error {
	created, err := x.server.service.InviteUser(x.ctx, x.call, x.key(), x.in.user)
	if err != nil {
		return err
	}
	if created.Replayed {
		x.header["Idempotent-Replayed"] = []string{"true"}
	}
	x.out = appendInvitation(x.out, &created.Value)
	return x.json(http.StatusCreated)
}

func listInvitations(x *exchange) error {
	page, err := x.server.service.Invitations(x.ctx, x.call, service.InvitationListing{After: x.in.after, Limit: x.in.limit})
	if err != nil {
		return err
	}
	var withheld rolecall.UserMembers
	x.out = appendPage(x, x.out, &page, func(b []byte, i *rolecall.Invited) []byte {
		sight := x.call.ListSight(&i.User)
		withheld |= rolecall.AllUserMembers &^ sight
		b = appendInvitation(b, &i.Invitation)
		b = append(b[:len(b)-1], `,"createdBy":`...)
		b = appendIDOrNull(b, i.CreatedBy)
		b = append(b, `,"user":`...)
		return append(appendUser(b, &i.User, sight), '}')
	})
	x.out = append(x.out, '}')
	x.withhold(withheld)
	return x.json(http.StatusOK)
}

func withdrawInvitation(x *exchange) error {
	if err := x.server.service.WithdrawInvitation(x.ctx, x.call, x.in.user); err != nil {
		return err
	}
	return x.nothing()
}

// appendInvitation appends the invitation; of one whose user is gone there is the
// id alone.
func appendInvitation(b []byte, i *rolecall.Invitation) []byte {
	b = append(b, `{"userId":`...)
	b = appendID(b, i.UserID)
	if i.CreatedAt != 0 {
		b = append(b, `,"createdAt":`...)
		b = appendTime(b, i.CreatedAt)
	}
	if i.ExpiresAt != 0 {
		b = append(b, `,"expiresAt":`...)
		b = appendTime(b, i.ExpiresAt)
	}
	return append(b, '}')
}

func acceptInvitation(x *exchange) error {
	token, password, err := x.acceptance(rolecall.ErrInvitationInvalid)
	if err != nil {
		return err
	}
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	signIn, err := x.server.service.AcceptInvitation(x.ctx, attempt, token, password)
	if err != nil {
		return err
	}
	return x.signedIn(&signIn)
}

// acceptance reads a token and the new password that it is good for. A text that
// cannot be a token is one that is not known, which is the error invalid.
func (x *exchange) acceptance(invalid error) (token secret.Token, password string, err error) {
	var text string
	err = x.decode(
		member{"token", true, readString(&text)},
		member{"password", true, readString(&password)},
	).err(noFaults)
	if err != nil {
		return "", "", err
	}
	token, ok := secret.ParseToken(text)
	if !ok {
		err = invalid
	}
	return token, password, err
}

func changePassword(x *exchange) error {
	current, password, err := x.passwords()
	if err != nil {
		return err
	}
	device, err := x.server.service.ChangePassword(x.ctx, x.call, current, password)
	if err != nil {
		return err
	}
	x.server.site.SetDevice(x.writer, x.request, x.tenant.ID, device)
	return x.nothing()
}

func (x *exchange) passwords() (current, password string, err error) {
	err = x.decode(
		member{"currentPassword", true, readString(&current)},
		member{"newPassword", true, readString(&password)},
	).err(noFaults)
	return current, password, err
}
