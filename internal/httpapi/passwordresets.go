package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
)

// resetRequested is the answer to every request for a new password, whoever it is
// about.
const resetRequested = `{"detail":"If somebody of this tenant signs in with this address, a link to choose a new password is on its way to it."}`

func requestPasswordReset(x *exchange) error {
	email, err := x.email()
	if err != nil {
		return err
	}
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	if err := x.server.service.RequestPasswordReset(x.ctx, attempt, email); err != nil {
		return err
	}
	x.out = append(x.out, resetRequested...)
	return x.json(http.StatusAccepted)
}

// email reads the one member of a body that names an address.
func (x *exchange) email() (email string, err error) {
	err = x.decode(member{"email", true, readString(&email)}).err(noFaults)
	return email, err
}

func resetPassword(x *exchange) error {
	token, password, err := x.acceptance(rolecall.ErrPasswordResetInvalid)
	if err != nil {
		return err
	}
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	if err := x.server.service.ResetPassword(x.ctx, attempt, token, password); err != nil {
		return err
	}
	return x.nothing()
}

func sendPasswordReset(x *exchange) error {
	created, err := x.server.service.SendPasswordReset(x.ctx, x.call, x.key(), x.in.user)
	if err != nil {
		return err
	}
	return x.linkMailed(http.StatusCreated, created.Value.UserID, created.Value.ExpiresAt, created.Replayed)
}

// linkMailed answers that somebody was mailed a link, of which a replay for an
// erased user knows no more than whom it was about.
func (x *exchange) linkMailed(status int, user rolecall.UserID, expiresAt rolecall.Time, replayed bool) error {
	if replayed {
		x.header["Idempotent-Replayed"] = []string{"true"}
	}
	x.out = append(x.out, `{"userId":`...)
	x.out = appendID(x.out, user)
	if expiresAt != 0 {
		x.out = append(x.out, `,"expiresAt":`...)
		x.out = appendTime(x.out, expiresAt)
	}
	x.out = append(x.out, '}')
	return x.json(status)
}
