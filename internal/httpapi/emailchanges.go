package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

func requestEmailChange(x *exchange) error {
	email, err := x.email()
	if err != nil {
		return err
	}
	created, err := x.server.service.RequestEmailChange(x.ctx, x.call, x.key(), x.in.user, email)
	if err != nil {
		return err
	}
	return x.linkMailed(http.StatusAccepted, created.Value.UserID, created.Value.ExpiresAt, created.Replayed)
}

func changeEmail(x *exchange) error {
	token, err := x.linkToken()
	if err != nil {
		return err
	}
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	if err := x.server.service.ChangeEmail(x.ctx, attempt, token); err != nil {
		return err
	}
	return x.nothing()
}

// linkToken reads the token of a change of address. A text that cannot be one is
// one that is not known.
func (x *exchange) linkToken() (token secret.Token, err error) {
	var text string
	if err := x.decode(member{"token", true, readString(&text)}).err(noFaults); err != nil {
		return "", err
	}
	token, ok := secret.ParseToken(text)
	if !ok {
		err = rolecall.ErrEmailChangeInvalid
	}
	return token, err
}
