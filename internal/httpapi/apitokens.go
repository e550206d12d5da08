package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

func listUserTokens(x *exchange) error {
	page, err := x.server.service.UserTokens(x.ctx, x.call, x.in.user, x.in.after, x.in.limit)
	return x.tokenPage(&page, err)
}

func createUserToken(x *exchange) error {
	draft, err := x.tokenDraft()
	if err != nil {
		return err
	}
	created, err := x.server.service.CreateUserToken(x.ctx, x.call, x.key(), x.in.user, draft)
	return x.token(&created, err)
}

func revokeUserToken(x *exchange) error {
	if err := x.server.service.RevokeUserToken(x.ctx, x.call, x.in.user, x.in.token); err != nil {
		return err
	}
	return x.nothing()
}

func listServiceAccountTokens(x *exchange) error {
	page, err := x.server.service.ServiceAccountTokens(x.ctx, x.call, x.in.account, x.in.after, x.in.limit)
	return x.tokenPage(&page, err)
}

func createServiceAccountToken(x *exchange) error {
	draft, err := x.tokenDraft()
	if err != nil {
		return err
	}
	created, err := x.server.service.CreateServiceAccountToken(x.ctx, x.call, x.key(), x.in.account, draft)
	return x.token(&created, err)
}

func revokeServiceAccountToken(x *exchange) error {
	if err := x.server.service.RevokeServiceAccountToken(x.ctx, x.call, x.in.account, x.in.token); err != nil {
		return err
	}
	return x.nothing()
}

func (x *exchange) tokenDraft() (draft rolecall.APITokenDraft, err error) {
	err = x.decode(
		member{"name", true, readString(&draft.Name)},
		member{"permissions", true, readStrings(&draft.Permissions)},
		member{"expiresAt", true, readNonNullTime(&draft.ExpiresAt)},
	).err(func() rolecall.Faults { return draft.Check(x.server.service.Now()) })
	return draft, err
}

// tokenPage answers with a page of tokens, unless there is an error.
func (x *exchange) tokenPage(page *rolecall.Page[rolecall.APIToken], err error) error {
	if err != nil {
		return err
	}
	x.out = append(appendPage(x, x.out, page, func(b []byte, t *rolecall.APIToken) []byte { return append(appendToken(b, t), '}') }), '}')
	return x.json(http.StatusOK)
}

// token answers with a new token and its secret, which is shown once: a replay says
// that it was.
func (x *exchange) token(created *service.Created[service.APIToken], err error) error {
	if err != nil {
		return err
	}
	if created.Replayed {
		x.header["Idempotent-Replayed"] = []string{"true"}
	}
	x.out = appendToken(x.out, &created.Value.APIToken)
	if created.Value.Secret == "" {
		x.out = append(x.out, `,"secretWithheld":true}`...)
		return x.json(http.StatusCreated)
	}
	x.out = append(x.out, `,"token":`...)
	x.out = appendText(x.out, created.Value.Secret)
	x.out = append(x.out, '}')
	return x.json(http.StatusCreated)
}

// appendToken appends the token, all but the brace at its end.
func appendToken(b []byte, t *rolecall.APIToken) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, t.ID)
	b = append(b, `,"name":`...)
	b = appendText(b, t.Name)
	b = append(b, `,"permissions":`...)
	b = appendList(b, t.Permissions, appendPermission)
	b = append(b, `,"createdBy":`...)
	b = appendIDOrNull(b, t.CreatedBy)
	b = append(b, `,"createdAt":`...)
	b = appendTime(b, t.CreatedAt)
	b = append(b, `,"expiresAt":`...)
	b = appendTime(b, t.ExpiresAt)
	b = append(b, `,"lastUsedAt":`...)
	return appendTimeOrNull(b, t.LastUsedAt)
}
