package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// bearerOf returns the token of the Authorization header, and whether it is one of
// the scheme Bearer (RFC 6750), whose name is in any case (RFC 9110, 11.1).
func bearerOf(lines []string) (token string, ok bool) {
	if len(lines) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	return strings.Trim(token, " "), strings.EqualFold(scheme, "Bearer")
}

// isFromProgram reports whether the request is one that a program sends: for no page
// of another origin does a browser send such a header without asking first, so its
// origin needs no check.
func isFromProgram(h http.Header) bool {
	_, ok := bearerOf(h["Authorization"])
	return ok
}

// checkBearer notes the token of the Authorization header, for an operation that
// asks who calls. Other schemes mean nothing here. It returns ErrMalformed where
// there is more than one credential: nobody could say which of them acts.
func (x *exchange) checkBearer() error {
	lines := x.request.Header["Authorization"]
	if len(lines) == 0 || x.route.need == nil {
		return nil
	}
	if len(lines) > 1 {
		return badAuthorization("repeated", "must be sent once")
	}
	token, ok := bearerOf(lines)
	if ok && len(x.presented) > 0 {
		return badAuthorization("ambiguous", "must not come together with a session cookie")
	}
	if !ok {
		return nil
	}
	x.bearer = token
	if _, ok := secret.ParseOperatorKey(x.bearer); ok && !x.server.servesOperators(x.request) {
		return rolecall.ErrUnauthenticated
	}
	return nil
}

// wwwAuthenticate returns by what the operation opens (RFC 9110, 11.6.1), and of a bearer
// that came why it did not do (RFC 6750, 3.1); nothing where that is not the matter.
func (x *exchange) wwwAuthenticate(status int, err *rolecall.Error) string {
	bearer := "Bearer"
	switch {
	case slices.ContainsFunc(err.Faults, func(f rolecall.Fault) bool { return f.Header == "authorization" }):
		return `Bearer error="invalid_request"`
	case status == http.StatusForbidden && x.bearer != "" && slices.Contains(beyondToken, err.Code):
		return `Bearer error="insufficient_scope"`
	case status != http.StatusUnauthorized:
		return ""
	case x.bearer != "":
		bearer = `Bearer error="invalid_token"`
	case x.route.need == nil || x.route.interactive:
		return "Session"
	}
	if x.route.operator {
		return bearer
	}
	return "Session, " + bearer
}

// beyondToken are the problems that another token might not have met.
var beyondToken = []string{
	rolecall.ErrPermissionDenied.Code, rolecall.ErrFieldNotReadable.Code, rolecall.ErrOutsideReach.Code, rolecall.ErrBeyondOwnPermissions.Code,
}

func badAuthorization(code, detail string) error {
	return rolecall.ErrMalformed.WithFaults(rolecall.Fault{Header: "authorization", Code: code, Detail: detail})
}
