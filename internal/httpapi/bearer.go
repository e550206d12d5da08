package httpapi

import (
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// isBearer reports whether the Authorization header is one that only a program
// sends: no page of another origin can, so such a request needs no check of its
// origin.
func isBearer(lines []string) bool {
	return len(lines) == 1 && strings.HasPrefix(lines[0], "Bearer ")
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
	if !isBearer(lines) {
		return nil
	}
	if len(x.presented) > 0 {
		return badAuthorization("ambiguous", "must not come together with a session cookie")
	}
	x.bearer = strings.TrimPrefix(lines[0], "Bearer ")
	if _, ok := secret.ParseOperatorKey(x.bearer); ok && !x.atOperatorDoor() {
		return rolecall.ErrUnauthenticated
	}
	return nil
}

func badAuthorization(code, detail string) error {
	return rolecall.ErrMalformed.WithFaults(rolecall.Fault{Header: "authorization", Code: code, Detail: detail})
}
