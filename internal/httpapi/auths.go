package httpapi

import (
	"context"
	"strconv"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/service"
)

type loginRequest struct {
	Attempt service.Attempt
	Body    struct {
		Email    string `json:"email" required:"true"`
		Password string `json:"password" required:"true"`
	}
}

func (s *Server) login(ctx context.Context, _ service.Call, in *loginRequest) (Response[signInBody], error) {
	signIn, err := s.service.Login(ctx, in.Attempt, in.Body.Email, in.Body.Password)
	return signedIn(&signIn), err
}

type presentedRequest struct {
	Attempt service.Attempt `lookup:"presented"`
}

func (s *Server) refresh(ctx context.Context, _ service.Call, in *presentedRequest) (Response[signInBody], error) {
	if len(in.Attempt.Presented) == 0 {
		return Response[signInBody]{}, rolecall.ErrUnauthenticated
	}
	signIn, err := s.service.Refresh(ctx, in.Attempt)
	return signedIn(&signIn), err
}

func (s *Server) logout(ctx context.Context, _ service.Call, in *presentedRequest) (Response[NoContent], error) {
	response := Response[NoContent]{SignedOut: true}
	if len(in.Attempt.Presented) == 0 {
		return response, nil
	}
	return response, s.service.Logout(ctx, in.Attempt)
}

type getSessionRequest struct {
	Touch touchValue `query:"touch" doc:"Whether the request counts as a use of the session."`
}

func (*Server) getSession(_ context.Context, c service.Call, _ *getSessionRequest) (Response[currentSession], error) {
	return Response[currentSession]{Body: currentSession{c.Principal}}, nil
}

// currentSession is who sent the request, and what they hold.
type currentSession struct{ principal *authz.Principal }

// AppendJSON appends the caller.
func (b currentSession) AppendJSON(out []byte) []byte { return appendCurrent(out, b.principal) }

// signInBody is who is signed in, and the session.
type signInBody struct{ signIn *service.SignIn }

// signedIn returns the response of a sign-in.
func signedIn(signIn *service.SignIn) Response[signInBody] {
	return Response[signInBody]{Body: signInBody{signIn}, SignIn: signIn}
}

// AppendJSON appends the user with all members, and the session.
func (b signInBody) AppendJSON(out []byte) []byte {
	p := b.signIn.Principal
	out = append(out, `{"user":`...)
	out = userEncoder.Append(out, &p.User)
	out = append(out, `,"session":`...)
	out = appendSession(out, p)
	if b.signIn.RecoveryCodes != nil {
		out = appendRecoveryCodes(append(out, ','), b.signIn.RecoveryCodes)
	}
	return append(out, '}')
}

// appendCurrent appends who is asking, and what they hold: what holds only in
// some departments stands apart, so that a test that ignores reach fails closed. A
// program has no session, and of a user no more than a name unless it speaks for one.
func appendCurrent(b []byte, p *authz.Principal) []byte {
	everywhere, scoped := p.Grants()
	sight, assignments := rolecall.AllUserMembers, p.Assignments
	if p.Kind != authz.PrincipalUser {
		sight = rolecall.SetOf(rolecall.MemberName)
	}
	if p.Kind == authz.PrincipalOperator {
		assignments = nil
	}
	b = append(b, `{"tenant":{"id":`...)
	b = appendID(b, p.Tenant.ID)
	b = append(b, `,"name":`...)
	b = appendText(b, p.Tenant.Name)
	b = append(b, `},"principal":{"type":`...)
	b = appendText(b, p.Actor().Type)
	b = append(b, `,"id":`...)
	b = appendID(b, p.User.ID)
	b = append(b, `,"name":`...)
	b = appendText(b, p.User.Name)
	b = append(b, `},"user":`...)
	b = userBody{user: &p.User, readable: sight}.AppendJSON(b)
	b = append(b, `,"roles":`...)
	b = appendList(b, assignments, func(b []byte, a *rolecall.Assignment) []byte { return appendRoleName(b, &a.Role) })
	b = append(b, `,"permissions":`...)
	b = appendList(b, everywhere, appendPermission)
	b = append(b, `,"scopedPermissions":`...)
	b = appendList(b, scoped, appendScoped)
	b = append(b, `,"session":`...)
	if p.Interactive() {
		b = appendSession(b, p)
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

func appendScoped(b []byte, g *authz.Grant) []byte {
	b = append(b, `{"permission":`...)
	b = appendPermission(b, &g.Permission)
	b = append(b, `,"reach":`...)
	b = appendReach(b, g.Reach)
	return append(b, '}')
}

func appendSession(b []byte, p *authz.Principal) []byte {
	s, settings := &p.Session, p.Settings()
	b = append(b, `{"id":`...)
	b = appendID(b, s.ID)
	b = append(b, `,"authenticatedAt":`...)
	b = appendTime(b, s.AuthenticatedAt)
	b = append(b, `,"confirmedAt":`...)
	b = appendTimeOrNull(b, s.ConfirmedAt)
	b = append(b, `,"secondFactor":`...)
	b = strconv.AppendBool(b, s.SecondFactor)
	b = append(b, `,"idleExpiresAt":`...)
	b = appendTime(b, s.IdleExpiresAt(settings))
	b = append(b, `,"expiresAt":`...)
	b = appendTime(b, s.EndsAt(settings))
	return append(b, '}')
}
