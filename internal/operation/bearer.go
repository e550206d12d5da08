package operation

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// bearerOf returns the token in the lines of the Authorization header. It returns false unless
// there is exactly one line, its scheme is Bearer (RFC 6750), and the token has a prefix of Rolecall.
// The name of the scheme is case-insensitive (RFC 9110, 11.1).
func bearerOf(lines []string) (token string, ok bool) {
	if len(lines) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	token = strings.Trim(token, " ")
	return token, secret.HasTokenPrefix(token)
}

// isFromProgram reports whether the request has a token of Rolecall. Such a request needs no check of
// its origin: before a browser sends this header for a page of another origin, it must get
// permission with a CORS preflight request. A proxy can add another token to each request of a browser.
func isFromProgram(h http.Header) bool {
	_, ok := bearerOf(h["Authorization"])
	return ok
}

// HasHeaderSession reports whether the request has the token of a session in the Authorization header.
// The response to such a request sets and removes no cookie.
func HasHeaderSession(r *http.Request) bool {
	_, ok := headerSession(r.Header["Authorization"])
	return ok
}

func headerSession(lines []string) (secret.Token, bool) {
	token, ok := bearerOf(lines)
	if !ok {
		return "", false
	}
	return secret.ParseHeaderSession(token)
}

// credentials are the credentials of a request.
type credentials struct {
	sessions []secret.Token // tokens of well-formed session cookies, or the session token in the Authorization header
	bearer   string         // API token or operator key; empty if the request has none
}

// credentialsOf returns the credentials of the request. It appends the session tokens to buffer.
// It ignores an Authorization header of a public operation unless it has a session, and one
// without a token of Rolecall. If the request has several Authorization headers, or a bearer token together with a
// session cookie, the caller is ambiguous and credentialsOf returns ErrMalformed. It returns
// ErrUnauthenticated for an operator key if the listener does not serve operators.
func (s *Runner) credentialsOf(op *Operation, r *http.Request, buffer []secret.Token) (credentials, error) {
	sent := credentials{sessions: s.Site.AppendSessions(buffer, r)}
	lines := r.Header["Authorization"]
	if session, ok := headerSession(lines); ok {
		if len(sent.sessions) > 0 {
			return sent, badAuthorization("ambiguous", ambiguousDetail)
		}
		sent.sessions = append(sent.sessions, session)
		return sent, nil
	}
	if len(lines) == 0 || op.Policy.Public {
		return sent, nil
	}
	if len(lines) > 1 {
		return sent, badAuthorization("repeated", "must be sent once")
	}
	token, ok := bearerOf(lines)
	if ok && len(sent.sessions) > 0 {
		return sent, badAuthorization("ambiguous", ambiguousDetail)
	}
	if !ok {
		return sent, nil
	}
	sent.bearer = token
	if _, ok := secret.ParseOperatorKey(token); ok && !s.ServesOperators(r) {
		return sent, rolecall.ErrUnauthenticated.With(ElsewhereDetail)
	}
	return sent, nil
}

// ElsewhereDetail is the detail of the response to an operator key at an address that accepts none.
const ElsewhereDetail = "This address accepts no operator keys. Send them to the address of --operator-listen."

const ambiguousDetail = "must not be sent together with a session cookie"

// unauthenticated returns the error (401) for a request without valid credentials.
func unauthenticated(op *Operation) error {
	if op.Policy.Operators {
		return rolecall.ErrUnauthenticated.With("The request has no valid operator key. Send one as Authorization: Bearer rco_….")
	}
	return rolecall.ErrUnauthenticated
}

// wwwAuthenticate returns the value of the WWW-Authenticate header: the schemes that the
// operation accepts (RFC 9110, 11.6.1), and why a bearer token was rejected (RFC 6750, 3.1). The
// value is empty for errors that do not concern credentials.
func wwwAuthenticate(op *Operation, r *http.Request, status int, err *rolecall.Error) string {
	_, ours := bearerOf(r.Header["Authorization"])
	hasBearer := ours && !op.Policy.Public
	bearer := "Bearer"
	switch {
	case slices.ContainsFunc(err.FieldErrors, func(f rolecall.FieldError) bool { return f.Header == "authorization" }):
		return `Bearer error="invalid_request"`
	case status == http.StatusForbidden && hasBearer && slices.Contains(beyondToken, err.Code):
		return `Bearer error="insufficient_scope"`
	case status != http.StatusUnauthorized:
		return ""
	case hasBearer:
		bearer = `Bearer error="invalid_token"`
	case op.Policy.Public || op.Policy.SessionOnly:
		return "Session"
	}
	if op.Policy.Operators {
		return bearer
	}
	return "Session, " + bearer
}

// beyondToken has the codes of the problems that mean that a token lacks permissions. For these
// problems, the WWW-Authenticate header has the error insufficient_scope (RFC 6750, 3.1).
var beyondToken = []string{
	rolecall.ErrPermissionDenied.Code, rolecall.ErrScopeMissing.Code, rolecall.ErrFieldNotReadable.Code, rolecall.ErrOutsideReach.Code, rolecall.ErrBeyondOwnPermissions.Code,
}

func badAuthorization(code, detail string) error {
	return rolecall.ErrMalformed.WithFieldErrors(rolecall.FieldError{Header: "authorization", Code: code, Detail: detail})
}
