package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/internal/wire"
)

func (s *Server) oidcOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodPost, Path: "/auths/oidc/start", ID: "AuthsController_startOidc", Summary: "Start a sign-in with an identity provider",
			Description: "Returns a URL of Rolecall. Let the browser open it within two minutes. It leads to the identity provider of the connection, and from there back to returnTo, with the parameter code. To start a session, send the code to POST /auths/codes/exchange with the verifier of codeChallenge. Keep the verifier where only this browser or app can use it. With the purpose confirm, send the code to POST /auths/confirm, and with the purpose link, to POST /auths/oidc/link. If the sign-in fails, returnTo gets the parameter error: sign-in-refused, identity-unknown or connection-unavailable.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.Anyone,
			Answers:     operation.Answers{{http.StatusOK, "The URL to open in the browser.", nil}},
			Problems:    problems{rolecall.ErrUnauthenticated, rolecall.ErrAmbiguousSession, rolecall.ErrTenantSuspended, rolecall.ErrNotFound, rolecall.ErrConnectionUnavailable},
			Handler:     operation.JSON(s.startOIDC),
		},
		{
			Method: http.MethodPost, Path: "/auths/codes/exchange", ID: "AuthsController_exchangeCode", Summary: "Start a session with a code",
			Description: "Starts a session with the code that returnTo got after a sign-in with an identity provider. A code works once, for one minute, and only with the verifier of codeChallenge. If a second factor is needed, the answer is 401 with a challenge, and no session is started.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.SignIn,
			Answers:     operation.Answers{{http.StatusOK, "The signed-in user and the session.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrCodeInvalid, rolecall.ErrSecondFactorRequired, rolecall.ErrEnrolmentRequired, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended, rolecall.ErrTooManyAttempts},
			Handler:     operation.JSON(s.exchangeCode),
		},
		{
			Method: http.MethodPost, Path: "/auths/oidc/link", ID: "AuthsController_linkOidc", Summary: "Add an identity to your account",
			Description: "Lets the caller sign in with an account of an identity provider. Start with POST /auths/oidc/start and the purpose link, and send the code that returnTo got. It works in the same session, once, for five minutes. The user is notified by mail.",
			Policy:      authz.LinkOwnIdentity,
			Answers:     operation.Answers{{http.StatusOK, "The identity.", nil}},
			Problems:    problems{rolecall.ErrIdentityTaken, rolecall.ErrTooManyIdentities, rolecall.ErrTooManyAttempts},
			Handler:     operation.JSON(s.linkOIDC),
		},
		{
			Method: http.MethodPost, Path: "/auths/oidc/sign-out", ID: "AuthsController_signOutOidc", Summary: "Sign out, also at the identity provider",
			Description: "Ends the session of the request, if any, and clears the cookie, as POST /auths/logout does. If the session began with an identity provider that supports it, the response has the URL at which the browser signs out there. The identity provider then returns the browser to returnTo, if this address is registered there too. If the identity provider cannot be reached, the session ends all the same, and the URL is null.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.SignOut,
			Answers:     operation.Answers{{http.StatusOK, "The request has no session any more.", []string{"Set-Cookie"}}},
			Handler:     operation.JSON(s.signOutOIDC),
		},
	}
}

// attemptPages are the pages of a sign-in with an identity provider. A browser opens them without
// x-tenant-schema: the ticket and the cookie name the tenant.
func (s *Server) attemptPages(d *docs) []web.Route {
	return []web.Route{
		s.attemptPage(d, beginPath, "oidc_begin", s.beginAttempt),
		s.attemptPage(d, signin.CallbacksPath+"{connectionId}", "oidc_callback", s.completeAttempt),
	}
}

// attemptPage returns the route of a page of a sign-in. If the handler fails, a browser gets a page with a link, and
// other clients get a problem. The handler also returns the address of the application, if it knows it.
func (s *Server) attemptPage(d *docs, path, label string, handle func(w http.ResponseWriter, r *http.Request) (back string, err error)) web.Route {
	return web.Route{Method: http.MethodGet, Path: path, Label: label, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		back, err := handle(w, r)
		if err == nil {
			return
		}
		w.Header()["Vary"] = append(w.Header()["Vary"], "Accept")
		if !acceptsHTML(r) {
			s.site.RespondProblem(w, r, err)
		} else if err := d.showFailure(w, r, err, back); err != nil {
			s.site.RespondProblem(w, r, err)
		}
	})}
}

// acceptsHTML reports whether the request is from a browser that shows the response as a page.
func acceptsHTML(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

const beginPath = "/auths/oidc/begin"

type startOIDCBody struct {
	ConnectionID  rolecall.ConnectionID `json:"connectionId" required:"true" doc:"ID of the connection."`
	ReturnTo      string                `json:"returnTo" required:"true" doc:"Where the browser returns: exactly one of the addresses of --oidc-return-urls."`
	CodeChallenge string                `json:"codeChallenge" pattern:"^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$" doc:"SHA-256 of a random text, in base64url without padding (PKCE S256). Required with the purpose sign-in."`
	Purpose       purpose               `json:"purpose" enum:"sign-in,confirm,link" default:"sign-in" doc:"sign-in: to start a session. confirm: to re-authenticate without a password. link: to add the identity to the signed-in user."`
	Email         string                `json:"email" minLength:"3" maxLength:"254" doc:"Address that the user has typed. The page of the identity provider can fill it in."`
	Invitation    string                `json:"invitation" doc:"Token of the invitation whose link the user has opened. The identity is linked to the invited user if the identity provider states the same address."`
}

var _ = operation.Component[startOIDCBody]("StartOidc", "The connection, and where the browser returns.")

// purpose is the purpose of a sign-in through a connection.
type purpose string

// UnmarshalWire reads the purpose.
func (p *purpose) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	text, ok := d.Text(pointer, value)
	switch *p = purpose(text); signin.Purpose(text) {
	case signin.PurposeSignIn, signin.PurposeConfirm, signin.PurposeLink:
	default:
		if ok {
			d.FieldErrors.Add(pointer, "unknown-value", "must be sign-in, confirm or link")
		}
	}
}

type startOIDCRequest struct {
	Anonymous access.Anonymous
	Body      startOIDCBody
}

// startedOIDC is a started sign-in.
type startedOIDC struct {
	URL string `json:"url" doc:"URL of Rolecall, to open in the browser by navigation within two minutes."`
}

var _ = operation.Component[startedOIDC]("StartedOidc", "A started sign-in with an identity provider.")

func unregisteredReturn() rolecall.FieldErrors {
	return rolecall.FieldErrors{{Pointer: "/returnTo", Code: "unregistered", Detail: "must be exactly one of the addresses that the operator has registered with --oidc-return-urls"}}
}

func (s *Server) startOIDC(ctx context.Context, _ access.Caller, in *startOIDCRequest) (operation.Response[startedOIDC], error) {
	body, none := &in.Body, operation.Response[startedOIDC]{}
	q := web.FromContext(ctx)
	var faults rolecall.FieldErrors
	if !s.site.ReturnsTo(in.Anonymous.TenantName, body.ReturnTo) {
		faults = unregisteredReturn()
	}
	start := signin.ConnectionStart{
		Connection: body.ConnectionID, ReturnTo: body.ReturnTo, Purpose: signin.PurposeSignIn, CodeChallenge: body.CodeChallenge, LoginHint: body.Email,
	}
	if body.Purpose != "" {
		start.Purpose = signin.Purpose(body.Purpose)
	}
	if body.CodeChallenge == "" {
		if start.Purpose == signin.PurposeSignIn {
			faults.Add("/codeChallenge", "required", "is required with the purpose sign-in")
		}
	} else if _, ok := secret.ParseToken(body.CodeChallenge); !ok {
		faults.Add("/codeChallenge", "format", "must be the SHA-256 of the verifier in base64url without padding")
	}
	if body.Email != "" {
		code, detail := rolecall.CheckEmail(body.Email)
		faults.Add("/email", code, detail)
	}
	if body.Invitation != "" {
		var ok bool
		if start.Invitation, ok = secret.ParseToken(body.Invitation); !ok || start.Purpose != signin.PurposeSignIn {
			faults.Add("/invitation", "format", "must be the token of an invitation, with the purpose sign-in")
		}
	}
	if err := faults.Err(); err != nil {
		return none, err
	}
	ticket, err := s.signin.StartConnection(ctx, in.Anonymous, start, q.Leave)
	return operation.Response[startedOIDC]{Body: startedOIDC{q.Address() + beginPath + "?ticket=" + ticket}}, err
}

// beginAttempt sets the cookie of an attempt and sends the browser to the identity provider.
func (s *Server) beginAttempt(w http.ResponseWriter, r *http.Request) (back string, err error) {
	q := web.RequestOf(r)
	if r.Method != http.MethodGet {
		return "", web.ErrMethodNotAllowed
	}
	ticket := r.URL.Query().Get("ticket")
	tenant, back, err := s.signin.Ticket(ticket)
	if err != nil {
		return back, err
	}
	a, err := s.attemptOf(r, tenant)
	if err != nil {
		return back, err
	}
	begun, err := s.signin.BeginAttempt(q, a, ticket, q.Address(), q.Leave)
	if err != nil {
		return back, err
	}
	s.site.SetAttempt(w, r, begun.ID, begun.Cookie, signin.AttemptLifetime)
	redirect(w, r, begun.URL)
	return back, nil
}

// attemptOf returns the data of a request of the tenant, and takes a slot of the concurrency limiter.
func (s *Server) attemptOf(r *http.Request, tenant string) (access.Anonymous, error) {
	q := web.RequestOf(r)
	q.Tenant = tenant
	if err := q.Enter(web.SessionLimiter); err != nil {
		return access.Anonymous{}, err
	}
	return s.runner.Anonymous(r, s.site.AppendSessions(nil, r))
}

// completeAttempt completes the attempt when the identity provider has sent the browser back. If the
// attempt did not begin in this browser, it fails and does not redirect.
func (s *Server) completeAttempt(w http.ResponseWriter, r *http.Request) (back string, err error) {
	q := web.RequestOf(r)
	if r.Method != http.MethodGet {
		return "", web.ErrMethodNotAllowed
	}
	connection, err := rolecall.ParseID[rolecall.Connection](r.PathValue("connectionId"))
	if err != nil {
		return "", rolecall.ErrAttemptInvalid
	}
	query := r.URL.Query()
	state := query.Get("state")
	id, ok := signin.AttemptID(state)
	if !ok || len(query["state"]) != 1 {
		return "", rolecall.ErrAttemptInvalid
	}
	attempt, err := s.signin.OpenAttempt(s.site.Attempt(r, id), state, connection)
	if attempt != nil {
		back = attempt.ReturnTo
	}
	if err != nil {
		return back, err
	}
	a, err := s.attemptOf(r, attempt.Tenant)
	if err != nil {
		return back, err
	}
	code, err := s.signin.CompleteAttempt(q, a, attempt, q.Address(), query, q.Leave, func() error { return q.Enter(web.SessionLimiter) })
	refusal, isRefused := errors.AsType[*signin.Refusal](err)
	isUnavailable := rolecall.KindOf(err) == rolecall.Unavailable // the provider, the store, or no free slot
	if err == nil || isRefused || isUnavailable || errors.Is(err, rolecall.ErrAttemptInvalid) {
		s.site.SetAttempt(w, r, id, "", 0)
	}
	switch {
	case isRefused:
		redirect(w, r, withParameter(attempt.ReturnTo, "error", refusal.Code))
	case isUnavailable:
		redirect(w, r, withParameter(attempt.ReturnTo, "error", rolecall.ErrConnectionUnavailable.Code))
	case err != nil:
		return back, err
	default:
		redirect(w, r, withParameter(attempt.ReturnTo, "code", string(code)))
	}
	return back, nil
}

// withParameter adds the parameter to the query of the address.
func withParameter(address, name, value string) string {
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + url.Values{name: {value}}.Encode()
}

func redirect(w http.ResponseWriter, r *http.Request, address string) {
	w.Header()["Location"] = []string{address}
	web.Respond(w, r, http.StatusSeeOther, nil)
}

// oidcCodeBody has the code of a sign-in through a connection.
type oidcCodeBody struct {
	Code         string `json:"code" required:"true" doc:"The code that returnTo got."`
	CodeVerifier string `json:"codeVerifier" doc:"The text of codeChallenge. Required if the sign-in began with a codeChallenge."`
}

var _ = operation.Component[oidcCodeBody]("OidcCode", "The code of the sign-in, and its verifier.")

type exchangeCodeBody struct {
	Code         string `json:"code" required:"true" doc:"The code that returnTo got."`
	CodeVerifier string `json:"codeVerifier" required:"true" doc:"The text of codeChallenge."`
	transportBody
}

var _ = operation.Component[exchangeCodeBody]("ExchangeCode", "The code of the sign-in, and its verifier.")

type exchangeCodeRequest struct {
	Anonymous access.Anonymous
	Body      exchangeCodeBody
}

// ReturnsToken reports whether the response has the token of the session.
func (in *exchangeCodeRequest) ReturnsToken() bool { return in.Body.Transport == byBearer }

func (s *Server) exchangeCode(ctx context.Context, _ access.Caller, in *exchangeCodeRequest) (operation.Response[signInBody], error) {
	code, err := parseToken(in.Body.Code, rolecall.ErrCodeInvalid)
	if err != nil {
		return operation.Response[signInBody]{}, err
	}
	in.Body.transportBody.apply(&in.Anonymous)
	signIn, err := s.signin.ExchangeCode(ctx, in.Anonymous, code, in.Body.CodeVerifier)
	return s.signedIn(&signIn), err
}

type linkOIDCRequest struct{ Body oidcCodeBody }

func (s *Server) linkOIDC(ctx context.Context, c access.Caller, in *linkOIDCRequest) (operation.Response[identityBody], error) {
	identity, err := s.signin.LinkIdentity(ctx, c, secret.Token(in.Body.Code), in.Body.CodeVerifier)
	return operation.Response[identityBody]{Body: newIdentityBody(&identity)}, err
}

type signOutOIDCRequest struct {
	Anonymous access.Anonymous `lookup:"presented"`
	Body      signOutOIDCBody
}

type signOutOIDCBody struct {
	ReturnTo string `json:"returnTo" required:"true" doc:"Where the identity provider returns the browser: exactly one of the addresses of --oidc-return-urls."`
}

var _ = operation.Component[signOutOIDCBody]("SignOutOidc", "The request body of a sign-out, also at the identity provider.")

// signedOutOIDC is the result of a sign-out.
type signedOutOIDC struct {
	URL optionalText `json:"url" nullable:"true" doc:"URL of the identity provider, to open in the browser by navigation. It has the ID token of the sign-in, so do not log it. Null if the browser cannot sign out there."`
}

var _ = operation.Component[signedOutOIDC]("SignedOutOidc", "The result of a sign-out.")

func (s *Server) signOutOIDC(ctx context.Context, _ access.Caller, in *signOutOIDCRequest) (operation.Response[signedOutOIDC], error) {
	q := web.FromContext(ctx)
	if !s.site.ReturnsTo(q.Tenant, in.Body.ReturnTo) {
		return operation.Response[signedOutOIDC]{}, unregisteredReturn().Err()
	}
	address, err := s.signin.LogoutAtProvider(ctx, in.Anonymous, in.Body.ReturnTo, q.Leave)
	return operation.Response[signedOutOIDC]{Body: signedOutOIDC{optionalText(address)}, Cookies: s.clearSession}, err
}
