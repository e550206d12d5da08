package httpapi

import (
	"net/http"
	"strconv"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/web"
)

func login(x *exchange) error {
	email, password, err := x.credentials()
	if err != nil {
		return err
	}
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	signIn, err := x.server.service.Login(x.ctx, attempt, email, password)
	if err != nil {
		return err
	}
	return x.signedIn(&signIn)
}

func refresh(x *exchange) error {
	if len(x.presented) == 0 {
		return rolecall.ErrUnauthenticated
	}
	attempt, err := x.attempt()
	if err != nil {
		return err
	}
	signIn, err := x.server.service.Refresh(x.ctx, attempt)
	if err != nil {
		return err
	}
	return x.signedIn(&signIn)
}

func logout(x *exchange) error {
	if len(x.presented) > 0 {
		attempt, err := x.attempt()
		if err != nil {
			return err
		}
		if err := x.server.service.Logout(x.ctx, attempt); err != nil {
			return err
		}
	}
	x.server.site.ClearSession(x.writer)
	return x.nothing()
}

func getSession(x *exchange) error {
	x.out = appendCurrent(x.out, x.call.Principal)
	return x.json(http.StatusOK)
}

func (x *exchange) credentials() (email, password string, err error) {
	err = x.decode(
		member{"email", true, readString(&email)},
		member{"password", true, readString(&password)},
	).err(noFaults)
	return email, password, err
}

// attempt is what the verbs that work without a session are told.
func (x *exchange) attempt() (service.Attempt, error) {
	tenant, err := x.server.service.Tenant(x.ctx, x.named)
	x.tenant = tenant
	return service.Attempt{
		Tenant: tenant, TenantName: x.named, Presented: x.presented, Devices: web.Devices(x.request),
		RequestID: x.web.ID, Source: x.call.Source, Client: web.ClientName(x.request.UserAgent()),
	}, err
}

// signedIn answers with who is signed in, and hands out the token.
func (x *exchange) signedIn(signIn *service.SignIn) error {
	p := signIn.Principal
	x.setCookies(signIn)
	x.out = append(x.out, `{"user":`...)
	x.out = appendUser(x.out, &p.User, rolecall.AllUserMembers)
	x.out = append(x.out, `,"session":`...)
	x.out = appendSession(x.out, p)
	if signIn.RecoveryCodes != nil {
		x.out = appendRecoveryCodes(append(x.out, ','), signIn.RecoveryCodes)
	}
	x.out = append(x.out, '}')
	return x.json(http.StatusOK)
}

// appendCurrent appends who is asking, and what they hold: what holds only in
// some departments stands apart, so that a test that ignores reach fails closed. A
// program has no session, and of a user no more than a name unless it speaks for one.
func appendCurrent(b []byte, p *rolecall.Principal) []byte {
	everywhere, scoped := p.Grants()
	sight, assignments := rolecall.AllUserMembers, p.Assignments
	if p.Kind != rolecall.PrincipalUser {
		sight = rolecall.SetOf(rolecall.MemberName)
	}
	if p.Kind == rolecall.PrincipalOperator {
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
	b = appendUser(b, &p.User, sight)
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

func appendScoped(b []byte, g *rolecall.Grant) []byte {
	b = append(b, `{"permission":`...)
	b = appendPermission(b, &g.Permission)
	b = append(b, `,"reach":`...)
	b = appendReach(b, g.Reach)
	return append(b, '}')
}

func appendSession(b []byte, p *rolecall.Principal) []byte {
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
