package httpapi

import (
	"context"
	"net/http"

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

func (s *Server) authOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodPost, Path: "/auths/login", ID: "AuthsController_login", Summary: "Sign in with a password",
			Description: "Starts a session, and ends the session of the request. If a second factor is needed, the answer is 401 with a challenge, and no session is started.",
			Limiter:     web.PasswordLimiter,
			Policy:      authz.SignIn,
			Answers:     operation.Answers{{http.StatusOK, "The signed-in user and the session. The session cookie is set, or the tokens are in the body.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrWrongCredentials, rolecall.ErrSecondFactorRequired, rolecall.ErrEnrolmentRequired, rolecall.ErrUserSuspended, rolecall.ErrTenantSuspended, rolecall.ErrTooManyAttempts, rolecall.ErrBusy},
			Handler:     operation.JSON(s.login),
		},
		{
			Method: http.MethodPost, Path: "/auths/refresh", ID: "AuthsController_refresh", Summary: "Refresh the session",
			Description: "Replaces the token of the session. The old token works for refreshGraceSeconds after the new one is first used.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.Anyone,
			Answers:     operation.Answers{{http.StatusOK, "The signed-in user and the session. The cookie has the new token.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrUnauthenticated, rolecall.ErrAmbiguousSession, rolecall.ErrTenantSuspended},
			Handler:     operation.JSON(s.refresh),
		},
		{
			Method: http.MethodPost, Path: "/auths/logout", ID: "AuthsController_logout", Summary: "Sign out",
			Description: "Ends the session of the request, if any, and clears the cookie.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.SignOut,
			Answers:     operation.Answers{{http.StatusNoContent, "The request has no session any more.", []string{"Set-Cookie"}}},
			Handler:     operation.JSON(s.logout),
		},
		{
			Method: http.MethodGet, Path: "/auths/session", ID: "AuthsController_getSession", Summary: "Get the caller's session", ReturnsPermissions: true,
			Description: "Returns the caller with the caller's roles and permissions, and the session if the request has one.",
			Limiter:     web.SessionLimiter,
			Policy:      authz.ReadSession,
			Answers:     operation.Answers{{http.StatusOK, "The caller, and the session if the request has one.", nil}},
			Handler:     operation.JSON(s.getSession),
		},
		{
			Method: http.MethodPost, Path: "/auths/confirm", ID: "AuthsController_confirm", Summary: "Re-authenticate",
			Description: "Verifies the password, or the code of a sign-in with an identity provider (connectionCode). It also verifies the second factor if the user has one, unless the identity provider has proved a second factor. After that, the session can use operations that need a recent sign-in. Its token is replaced, as by a refresh.",
			Limiter:     web.PasswordLimiter,
			Policy:      authz.Reauthenticate,
			Answers:     operation.Answers{{http.StatusOK, "The session. The cookie has the new token.", []string{"Set-Cookie"}}},
			Problems:    problems{rolecall.ErrSecondFactorRequired, rolecall.ErrTooManyAttempts, rolecall.ErrBusy},
			Handler:     operation.JSON(s.confirm),
		},
	}
}

type loginBody struct {
	Email    string `json:"email" required:"true" doc:"Email address of the user."`
	Password string `json:"password" required:"true" format:"password" doc:"Password of the user."`
	transportBody
}

var _ = operation.Component[loginBody]("Login", "Email address and password.")

type loginRequest struct {
	Anonymous access.Anonymous
	Body      loginBody
}

// ReturnsToken reports whether the response has the token of the session.
func (in *loginRequest) ReturnsToken() bool { return in.Body.Transport == byBearer }

// transportBody has the members of a request that begins a sign-in.
type transportBody struct {
	Transport transport `json:"transport" enum:"cookie,bearer" default:"cookie" doc:"How the client gets the session. With cookie, the response sets cookies. With bearer, the response has the tokens in the body and sets no cookie. Mobile apps, and pages on another site, use bearer."`
	deviceBody
}

// deviceBody has the known-device token of a client without cookies.
type deviceBody struct {
	DeviceToken string `json:"deviceToken" doc:"The deviceToken of an earlier sign-in of the user on this device. Sign-ins from known devices have separate limits, so that guesses from elsewhere do not lock the user out. Send it only with the transport bearer."`
}

// transport says how the client gets the session.
type transport string

// byBearer is the transport in the Authorization header.
const byBearer transport = "bearer"

// UnmarshalWire accepts cookie and bearer, and adds a field error for other values.
func (t *transport) UnmarshalWire(d *wire.Decoding, pointer string, value jsontext.Value) {
	*t = transport(eitherOf(d, pointer, value, "cookie", string(byBearer)))
}

// eitherOf returns the value as text. If it is neither of the two texts, eitherOf adds a field error.
func eitherOf(d *wire.Decoding, pointer string, value jsontext.Value, one, other string) string {
	text, ok := d.Text(pointer, value)
	if ok && text != one && text != other {
		d.FieldErrors.Add(pointer, "unknown-value", "must be "+one+" or "+other)
	}
	return text
}

// apply sets the transport of the request.
func (b *transportBody) apply(a *access.Anonymous) {
	a.ForHeader = b.Transport == byBearer
	b.deviceBody.apply(a)
}

func (b *deviceBody) apply(a *access.Anonymous) {
	if b.DeviceToken != "" {
		a.Devices = append(a.Devices, b.DeviceToken)
	}
}

func (s *Server) login(ctx context.Context, _ access.Caller, in *loginRequest) (operation.Response[signInBody], error) {
	in.Body.apply(&in.Anonymous)
	signIn, err := s.signin.Login(ctx, in.Anonymous, in.Body.Email, in.Body.Password)
	return s.signedIn(&signIn), err
}

type presentedRequest struct {
	Anonymous access.Anonymous `lookup:"presented"`
}

func (s *Server) refresh(ctx context.Context, _ access.Caller, in *presentedRequest) (operation.Response[signInBody], error) {
	if len(in.Anonymous.Presented) == 0 {
		return operation.Response[signInBody]{}, rolecall.ErrUnauthenticated
	}
	signIn, err := s.signin.Refresh(ctx, in.Anonymous)
	return s.signedIn(&signIn), err
}

func (s *Server) logout(ctx context.Context, _ access.Caller, in *presentedRequest) (operation.Response[operation.NoContent], error) {
	response := operation.Response[operation.NoContent]{Cookies: s.clearSession}
	if len(in.Anonymous.Presented) == 0 {
		return response, nil
	}
	return response, s.signin.Logout(ctx, in.Anonymous)
}

type getSessionRequest struct {
	Touch operation.Touch `query:"touch" doc:"Whether the request counts as a use of the session. With false, it does not extend the idle timeout."`
}

func (*Server) getSession(_ context.Context, c access.Caller, _ *getSessionRequest) (operation.Response[currentSession], error) {
	return operation.Response[currentSession]{Body: newCurrentSession(c.Principal)}, nil
}

// currentSession has the caller, with roles and permissions, and the session. Permissions that
// are limited to some departments are in the separate member scopedPermissions. A client that
// ignores this member assumes too few permissions, and never too many.
type currentSession struct {
	Tenant            currentTenant         `json:"tenant" doc:"The tenant of the request."`
	Principal         currentPrincipal      `json:"principal" doc:"The caller. An API token of a user acts as that user."`
	User              userBody              `json:"user" doc:"The user. A service account and an operator have an ID and a name only."`
	Roles             []roleName            `json:"roles" doc:"The roles of the caller."`
	Groups            []rolecall.GroupName  `json:"groups" doc:"The groups of the user. Decide by permissions, and not by groups."`
	Permissions       []rolecall.Permission `json:"permissions" doc:"The permissions of the caller in the whole tenant. They can have wildcards: users:* covers users:read, and the permissions of an owner cover everything. To check a permission, use GET /auths/check or POST /auths/checks."`
	ScopedPermissions []scopedPermissions   `json:"scopedPermissions" doc:"The permissions of the caller that are limited to some departments, with one entry per reach. A permission can be in several entries, and then applies in the departments of all of them."`
	PermissionsExpire rolecall.Time         `json:"permissionsExpireAt" nullable:"true" doc:"When the first role of the caller or the API token expires. Then the permissions change without an event. Null for never."`
	Session           sessionBody           `json:"session" nullable:"true" doc:"The session. Null without a session, as for an API token."`
}

var _ = operation.Component[currentSession]("CurrentSession", "The caller, with roles and permissions.")

type currentTenant struct {
	ID   rolecall.TenantID `json:"id" doc:"ID of the tenant."`
	Name string            `json:"name" doc:"Name of the tenant."`
}

var _ = operation.Component[currentTenant]("CurrentTenant", "The tenant of the request.")

type currentPrincipal struct {
	Type rolecall.ActorType `json:"type" doc:"Kind of principal: user, service_account or operator. Later versions may add values."`
	ID   rolecall.UserID    `json:"id" doc:"ID of the principal."`
	Name string             `json:"name" doc:"Name of the principal."`
}

var _ = operation.Component[currentPrincipal]("CurrentPrincipal", "The caller.")

// scopedPermissions are the permissions that are limited to the same departments.
type scopedPermissions struct {
	Reach       reachBody             `json:"reach" doc:"The departments for whose users the caller has the permissions."`
	Permissions []rolecall.Permission `json:"permissions" doc:"The permissions. They can have wildcards."`
}

var _ = operation.Component[scopedPermissions]("ScopedPermissions", "Permissions for the users of some departments.")

// newCurrentSession returns the body for the caller. If the caller sent an API token or an
// operator key, the body has no session. If the caller is not a user, the member user has only id
// and name.
func newCurrentSession(p *authz.Principal) currentSession {
	everywhere, scoped := p.Scopes()
	readable, assignments := rolecall.AllUserMembers, p.Assignments
	if p.Kind != authz.PrincipalUser {
		readable = rolecall.SetOf(rolecall.MemberName)
	}
	if p.Kind == authz.PrincipalOperator {
		assignments = nil
	}
	b := currentSession{
		Tenant:      currentTenant{p.Tenant.ID, p.Tenant.Name},
		Principal:   currentPrincipal{p.Actor().Type, p.User.ID, p.User.Name},
		User:        userBody{user: &p.User, readable: readable},
		Roles:       rolesOf(assignments),
		Groups:      operation.Bodies(p.Groups, func(g *rolecall.GroupName) rolecall.GroupName { return *g }),
		Permissions: everywhere,
		ScopedPermissions: operation.Bodies(scoped, func(s *authz.Scope) scopedPermissions {
			return scopedPermissions{reachBody{s.Reach}, s.Permissions}
		}),
		PermissionsExpire: p.ValidUntil,
	}
	if p.Interactive() {
		b.Session = newSessionBody(p)
		b.Session.TokenExpiresAt = p.SessionTokenExpiresAt
	}
	return b
}

// rolesOf returns the roles of the assignments, which are sorted by role. A user can have a role in several ways.
func rolesOf(assignments []rolecall.Assignment) []roleName {
	roles := []roleName{}
	for i := range assignments {
		if i == 0 || assignments[i-1].Role.ID != assignments[i].Role.ID {
			roles = append(roles, newRoleName(&assignments[i].Role))
		}
	}
	return roles
}

// signInBody is the signed-in user and the session.
type signInBody struct {
	User          userBody              `json:"user" doc:"The user who is signed in."`
	Session       sessionBody           `json:"session" doc:"The session."`
	RecoveryCodes []secret.RecoveryCode `json:"recoveryCodes,omitzero" doc:"Ten recovery codes. Each works once. Absent unless the sign-in enrolled a second factor. They are not returned again."`
	ExpiresAt     rolecall.Time         `json:"expiresAt,omitzero" doc:"When the token expires. Only with the transport bearer."`
	headerTokens
}

var _ = operation.Component[signInBody]("SignIn", "The signed-in user and the session.")

// headerTokens are the tokens in the response to a client without cookies.
type headerTokens struct {
	Token       secret.Token `json:"token,omitzero" doc:"The token of the session. Send it as Authorization: Bearer rs_…. Only with the transport bearer."`
	DeviceToken string       `json:"deviceToken,omitzero" doc:"Shows at the next sign-in that the user has signed in on this device before. Only with the transport bearer. Absent after a refresh."`
}

// headerTokensOf returns the tokens of the sign-in. They are empty if the session is in a cookie.
func headerTokensOf(signIn *signin.SignIn) headerTokens {
	if !signIn.Token.IsForHeader() {
		return headerTokens{}
	}
	return headerTokens{signIn.Token, signIn.Device}
}

// signedIn returns the response to a sign-in. A sign-in without a principal needs a second
// factor, or has failed. The response then has the problem with the challenge, if there is a
// challenge.
func (s *Server) signedIn(signIn *signin.SignIn) operation.Response[signInBody] {
	if signIn.Principal == nil {
		return operation.Response[signInBody]{Problem: challengeProblem(signIn.Challenge)}
	}
	body := signInBody{
		User:          userBody{user: &signIn.Principal.User, readable: rolecall.AllUserMembers},
		Session:       newSessionBody(signIn.Principal),
		RecoveryCodes: signIn.RecoveryCodes,
		headerTokens:  headerTokensOf(signIn),
	}
	if body.Token != "" {
		body.ExpiresAt = body.Session.ExpiresAt
	}
	return operation.Response[signInBody]{Cookies: s.sessionCookies(signIn), Body: body}
}

// sessionCookies returns a function that sets the session cookie and the known-device cookie of the
// sign-in. The session cookie is the last one, because some clients keep only the last cookie. If the
// session is not in a cookie, the function sets none.
func (s *Server) sessionCookies(signIn *signin.SignIn) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		p := signIn.Principal
		web.RequestOf(r).Principal = p
		if signIn.Token.IsForHeader() {
			return
		}
		s.setDevice(w, r, p.Tenant.ID, signIn.Device)
		s.site.SetSession(w, signIn.Token, p.Session.EndsAt(p.Settings()).Sub(s.access.Now()))
	}
}

// setDevice sets the cookie that makes the browser a known device of the account.
func (s *Server) setDevice(w http.ResponseWriter, r *http.Request, tenant rolecall.TenantID, token string) {
	if token != "" && !operation.HasHeaderSession(r) {
		s.site.SetDevices(w, r, s.signin.KeptDevices(tenant, token, web.Devices(r)), signin.DeviceLifetime)
	}
}

// clearSession tells the browser to delete the session cookie, unless the session of the request is
// not in a cookie.
func (s *Server) clearSession(w http.ResponseWriter, r *http.Request) {
	if !operation.HasHeaderSession(r) {
		s.site.ClearSession(w)
	}
}

// challengeProblem returns the problem with the challenge. It returns nil if the challenge is nil.
func challengeProblem(c *signin.Challenge) *operation.Problem {
	if c == nil {
		return nil
	}
	return &operation.Problem{Error: c.Problem, Extension: appendChallenge(nil, c)}
}

// appendChallenge appends the members of the problem that describe the challenge.
func appendChallenge(b []byte, c *signin.Challenge) []byte {
	b = append(b, `,"challenge":`...)
	b = wire.AppendText(b, c.Token)
	b = append(b, `,"methods":[`...)
	for i, method := range c.Methods {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendText(b, method)
	}
	b = append(b, ']')
	if c.PublicKey != nil {
		b = append(b, `,"publicKey":`...)
		b = append(b, c.PublicKey...)
	}
	return b
}

// sessionBody is a session of a user.
type sessionBody struct {
	ID              rolecall.SessionID `json:"id" doc:"ID of the session."`
	AuthenticatedAt rolecall.Time      `json:"authenticatedAt" doc:"When the user signed in. Re-authentication does not change it."`
	ConfirmedAt     rolecall.Time      `json:"confirmedAt" nullable:"true" doc:"When the user last re-authenticated. Null for never."`
	SecondFactor    bool               `json:"secondFactor" doc:"Whether the user signed in with a second factor."`
	IdleExpiresAt   rolecall.Time      `json:"idleExpiresAt" doc:"When the session expires if it is not used (idle timeout)."`
	ExpiresAt       rolecall.Time      `json:"expiresAt" doc:"When the session expires even if it is used (maximum session length)."`
	TokenExpiresAt  rolecall.Time      `json:"tokenExpiresAt,omitzero" doc:"When the token of the request expires. Only in GET /auths/session, and only after a newer token of the session was used. A later use of the old token ends the session, so keep the response no longer than this."`
}

var _ = operation.Component[sessionBody]("Session", "A session.")

func newSessionBody(p *authz.Principal) sessionBody {
	s, settings := &p.Session, p.Settings()
	return sessionBody{
		ID: s.ID, AuthenticatedAt: s.AuthenticatedAt, ConfirmedAt: s.ConfirmedAt, SecondFactor: s.SecondFactor,
		IdleExpiresAt: s.IdleExpiresAt(settings), ExpiresAt: s.EndsAt(settings),
	}
}

type confirmBody struct {
	proofBody
	Password string `json:"password" format:"password" doc:"Password of the user. Required without connectionCode."`

	ConnectionCode string `json:"connectionCode" doc:"The code that returnTo got after POST /auths/oidc/start with the purpose confirm. It replaces the password."`
	CodeVerifier   string `json:"codeVerifier" doc:"The text of codeChallenge. Required if that sign-in began with a codeChallenge."`
}

var _ = operation.Component[confirmBody]("Confirm", "The password, or the code of a sign-in with an identity provider. Users with a second factor also send one of code, recoveryCode and passkey.")

// Check returns the field errors of members that exclude or require each other.
func (b *confirmBody) Check() (faults rolecall.FieldErrors) {
	switch {
	case b.Password == "" && b.ConnectionCode == "":
		faults.Add("/password", "required", "is required without connectionCode")
	case b.Password != "" && b.ConnectionCode != "":
		faults.Add("/connectionCode", "unexpected", "must be absent with a password")
	}
	if b.count() > 1 {
		faults.Add("", "one-of", "must have at most one of code, recoveryCode and passkey")
	}
	return faults
}

type confirmRequest struct {
	Sessions []secret.Token // the tokens of the request's sessions
	Body     confirmBody
}

// confirmedSession is the session after a re-authentication.
type confirmedSession struct {
	sessionBody
	Token secret.Token `json:"token,omitzero" doc:"The new token of the session. Only if the request has the token in the Authorization header."`
}

var _ = operation.Component[confirmedSession]("ConfirmedSession", "A session after a re-authentication.")

func (s *Server) confirm(ctx context.Context, c access.Caller, in *confirmRequest) (operation.Response[confirmedSession], error) {
	if err := in.Body.Check().Err(); err != nil {
		return operation.Response[confirmedSession]{}, err
	}
	var signIn signin.SignIn
	var err error
	if code := in.Body.ConnectionCode; code != "" {
		signIn, err = s.signin.ReauthenticateByCode(ctx, c, in.Sessions, secret.Token(code), in.Body.CodeVerifier, in.Body.proof())
	} else {
		signIn, err = s.signin.Reauthenticate(ctx, c, in.Sessions, in.Body.Password, in.Body.proof())
	}
	if err != nil || signIn.Challenge != nil {
		return operation.Response[confirmedSession]{Problem: challengeProblem(signIn.Challenge)}, err
	}
	body := confirmedSession{newSessionBody(signIn.Principal), headerTokensOf(&signIn).Token}
	return operation.Response[confirmedSession]{Body: body, Cookies: s.sessionCookies(&signIn)}, nil
}
