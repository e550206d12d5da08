package console

import (
	"errors"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// maxTenants is the maximum number of tenants in which one browser has a console session.
const maxTenants = 8

// readSessions reads the session tokens that the page can use from the cookies. The console
// has a separate session for each tenant. Without such a session, the console accepts the
// session of the API, so that administrators who come from an application on this host need
// not sign in again.
func (v *pageContext) readSessions() {
	site := v.console.site
	if v.tenant != "" {
		v.sessions = site.ConsoleSessions(v.request, v.tenant)
	}
	if isLink := v.page.isShared; isLink || len(v.sessions) == 0 && !v.page.policy.Public {
		v.sessions, v.isShared = site.AppendSessions(v.sessions, v.request), true
	}
}

// authenticate identifies the caller by the session tokens, and sets the principal. If the
// console session has ended, it tries the session of the API.
func (v *pageContext) authenticate(tenant rolecall.Tenant) (err error) {
	v.call.Principal, err = v.console.signin.Authenticate(v.ctx, tenant, v.sessions, true)
	if v.isShared || !errors.Is(err, rolecall.ErrUnauthenticated) {
		return err
	}
	if shared := v.console.site.AppendSessions(nil, v.request); len(shared) > 0 {
		v.sessions, v.isShared = shared, true
		v.call.Principal, err = v.console.signin.Authenticate(v.ctx, tenant, shared, true)
	}
	return err
}

// setSession sets the cookies with the session and the known-device token of the sign-in.
func (v *pageContext) setSession(signIn *signin.SignIn) error {
	p, site := signIn.Principal, v.console.site
	v.call.Principal = p
	v.setDevice(signIn.Device)
	lifetime := p.Session.EndsAt(p.Settings()).Sub(v.console.access.Now())
	if v.isShared {
		site.SetSession(v.response, signIn.Token, lifetime)
		return nil
	}
	site.SetConsoleSession(v.response, v.tenant, signIn.Token, lifetime)
	return v.endOldest()
}

// endOldest ends the oldest console sessions of the browser if there would be more than
// maxTenants with the new one.
func (v *pageContext) endOldest() error {
	others := slices.DeleteFunc(v.console.site.ConsoleTenants(v.request), func(name string) bool { return name == v.tenant })
	for _, name := range others[:max(0, len(others)+1-maxTenants)] {
		v.console.site.SetConsoleSession(v.response, name, "", 0)
		tenant, err := v.console.directory.Tenant(v.ctx, name)
		if err != nil {
			return err
		}
		if err := v.logout(tenant, v.console.site.ConsoleSessions(v.request, name)); err != nil {
			return err
		}
	}
	return nil
}

// logout ends those sessions of the tenant that the tokens belong to.
func (v *pageContext) logout(tenant rolecall.Tenant, tokens []secret.Token) error {
	return v.console.signin.Logout(v.ctx, v.anonymousOf(tenant, tokens))
}

// anonymousOf returns the data of a request that presents the tokens of sessions of the tenant.
func (v *pageContext) anonymousOf(tenant rolecall.Tenant, tokens []secret.Token) access.Anonymous {
	return access.Anonymous{Tenant: tenant, TenantName: tenant.Name, Presented: tokens, RequestID: v.web.ID, Source: v.web.Source}
}

// signedOut redirects a caller whose own session has ended to the sign-in page, and removes
// the session cookie. word selects the message on the sign-in page.
func signedOut(v *pageContext, word string) error {
	v.forgetSession()
	return v.redirect(v.path("/sign-in") + "?done=" + word)
}

// forgetSession removes the session cookie.
func (v *pageContext) forgetSession() {
	v.console.site.SetConsoleSession(v.response, v.tenant, "", 0)
	if v.isShared {
		v.console.site.ClearSession(v.response)
	}
}

// tenantName returns the display name of the tenant in the address. If the tenant does not
// exist, it returns the name from the address.
func (f frame) tenantName() string {
	tenant, err := f.console.directory.Tenant(f.ctx, f.tenant)
	if err != nil || tenant.ID.IsZero() {
		return f.tenant
	}
	return tenant.DisplayName
}

// brandColor returns the brand color of the tenant in the address. It returns an empty text
// if the tenant has no color or does not exist.
func (f frame) brandColor() string {
	if f.tenant == "" {
		return ""
	}
	tenant, err := f.console.directory.Tenant(f.ctx, f.tenant)
	if err != nil {
		return ""
	}
	return orEmpty(tenant.Settings.BrandColor)
}

// openTenant is a tenant in which the browser may have a console session.
type openTenant struct{ name, displayName string }

// openTenants returns the tenants for which the browser has a session cookie, except the
// tenant of the page. If such a session has ended, the pages of that tenant ask the user to
// sign in.
func (f frame) openTenants() (list []openTenant) {
	names := f.console.site.ConsoleTenants(f.request)
	for _, name := range names[:min(len(names), maxTenants)] {
		tenant, err := f.console.directory.Tenant(f.ctx, name)
		if err == nil && !tenant.ID.IsZero() && name != f.tenant {
			list = append(list, openTenant{name, tenant.DisplayName})
		}
	}
	return list
}
