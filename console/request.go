package console

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/web"
)

// pageContext is the context of one request to a page.
type pageContext struct {
	console  *console
	page     *page // nil if no page has the path or the method
	request  *http.Request
	response http.ResponseWriter
	web      *web.Request
	ctx      context.Context

	call       access.Caller  // the principal is nil without a session
	zone       *time.Location // of the reader
	tenant     string         // name, of the path or of the form of the sign-in
	tenantID   rolecall.TenantID
	sessions   []secret.Token // of the cookies
	isShared   bool           // the session is the one of the API, not of the console
	parameters                // of the path and the query
	form       url.Values     // nil for GET
	faults     rolecall.FieldErrors
	problem    *web.Problem // why the form or the page was refused; nil if it was not
	status     int          // of the answer
	undo       undo         // of the last action
	isAllowed  bool         // the caller meets the policy of the page, except for step-up
}

// The fields that every form has. The fields for the re-authentication begin with
// fieldsOwn: the password, and the fields that proof reads.
const (
	fieldKey      = "idempotency-key"
	fieldIfMatch  = "if-match"
	fieldTimeZone = "timeZone" // in which the dates of the form are
	fieldsOwn     = "current-"
	fieldPassword = fieldsOwn + "password"
)

// anonymous returns the request context of a caller who need not be signed in.
func (v *pageContext) anonymous() (access.Anonymous, error) {
	tenant, err := v.console.directory.Tenant(v.ctx, v.tenant)
	v.tenantID = tenant.ID
	return access.Anonymous{
		Tenant: tenant, TenantName: v.tenant, Presented: v.sessions, Devices: web.Devices(v.request),
		RequestID: v.web.ID, Source: v.web.Source, Client: web.ClientName(v.request.UserAgent()),
	}, err
}

// setTenant sets the tenant that a form names, and reads its sessions. It reports whether the name is valid.
func (v *pageContext) setTenant(name string) bool {
	if !rolecall.IsTenantName(name) {
		return false
	}
	v.tenant = name
	v.readSessions()
	return true
}

// path returns the address of a page of the tenant. rest begins with a slash.
func (v *pageContext) path(rest string) string { return v.root() + v.tenant + rest }

// root returns the address of the console.
func (v *pageContext) root() string { return v.console.site.Base + Path + "/" }

// public returns the address under which clients reach the service, without a slash at
// the end.
func (v *pageContext) public() string { return v.console.site.Public }

// zoneCookieAttributes returns the attributes of the cookie with the time zone, for console.js.
func (v *pageContext) zoneCookieAttributes() string {
	return v.console.site.ScriptCookie(v.console.site.Base + Path)
}

// asset returns the address of the file.
func (v *pageContext) asset(name string) string { return v.console.assets[name] }

// isFromOwnPage reports whether a page of this origin made the request. It is true for browsers that
// do not send Sec-Fetch-Site.
func (v *pageContext) isFromOwnPage() bool {
	site := v.request.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin"
}

// currentURL returns the address of the page whose part htmx requests.
func (v *pageContext) currentURL() string { return v.request.Header.Get("Hx-Current-Url") }

// replaceURL makes htmx show the address, which is one of the console, for the page.
func (v *pageContext) replaceURL(address string) {
	v.response.Header()["Hx-Replace-Url"] = []string{address}
}

// fragment returns the id of the part of the page that htmx requests, empty for the whole
// page.
func (v *pageContext) fragment() string {
	if v.request.Header.Get("Hx-Request") != "true" {
		return ""
	}
	return v.request.Header.Get("Hx-Target")
}

// proof returns the second factor in the fields whose names begin with the prefix: a
// passkey, else a recovery code, else a code of an app.
func (v *pageContext) proof(prefix string) signin.Proof {
	if passkey := v.form.Get(prefix + "passkey"); passkey != "" {
		return signin.Proof{Passkey: []byte(passkey)}
	}
	if code := strings.TrimSpace(v.form.Get(prefix + "recoveryCode")); code != "" {
		return signin.Proof{RecoveryCode: code}
	}
	return signin.Proof{Code: strings.ReplaceAll(v.form.Get(prefix+"code"), " ", "")}
}

// reasonMax limits a reason, in code points.
const reasonMax = 500

// reason returns the reason that the form gives.
func (v *pageContext) reason() (string, error) {
	var faults rolecall.FieldErrors
	reason := v.form.Get("reason")
	if reason != "" {
		faults.Text("/reason", reason, 1, reasonMax)
	}
	return reason, faults.Err()
}

// key returns the idempotency key of the form with the fingerprint of its content.
func (v *pageContext) key() idempotency.Key {
	content := url.Values{}
	for name, values := range v.form {
		if name != fieldKey && !strings.HasPrefix(name, fieldsOwn) {
			content[name] = values
		}
	}
	return idempotency.Key{
		Text:        v.form.Get(fieldKey),
		Fingerprint: secret.Digest([]byte(v.page.label()), v.userID[:], v.accountID[:], []byte(content.Encode())),
	}
}

// needsReauthentication reports whether the form must ask for the password, because the
// sign-in is older than the operation allows.
func (v *pageContext) needsReauthentication() bool {
	return v.page != nil && v.page.policy.StepsUp() && authz.RequireRecent(v.call.Principal, v.console.access.Now()) != nil
}

// setDevice makes the browser a known one for the account.
func (v *pageContext) setDevice(token string) {
	if token != "" {
		kept := v.console.signin.KeptDevices(v.tenantID, token, web.Devices(v.request))
		v.console.site.SetDevices(v.response, v.request, kept, signin.DeviceLifetime)
	}
}

// buffers are where pages are rendered.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// write answers with the HTML that render writes.
func (v *pageContext) write(render func(io.Writer) error) error {
	buffer, _ := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	defer func() {
		if buffer.Cap() <= web.MaxBody {
			buffers.Put(buffer)
		}
	}()
	if err := render(buffer); err != nil {
		return err
	}
	v.response.Header()["Content-Type"] = htmlType
	web.Respond(v.response, v.request, v.status, web.GzipPage(v.response, v.request, buffer.Bytes()))
	return nil
}

var htmlType = []string{"text/html; charset=utf-8"}

// redirect leads to the address, which is one of the console.
func (v *pageContext) redirect(address string) error {
	if v.fragment() != "" {
		v.response.Header()["Hx-Redirect"] = []string{address}
		web.Respond(v.response, v.request, http.StatusNoContent, nil)
		return nil
	}
	v.response.Header()["Location"] = []string{address}
	web.Respond(v.response, v.request, http.StatusSeeOther, nil)
	return nil
}

// atOwnFields returns the error of a re-authentication with its field errors at the fields
// of the form.
func atOwnFields(known *rolecall.Error) *rolecall.Error {
	if known.FieldErrors == nil {
		return known
	}
	faults := slices.Clone(known.FieldErrors)
	for i := range faults {
		faults[i].Pointer = strings.Replace(faults[i].Pointer, "/", "/"+fieldsOwn, 1)
	}
	return known.WithFieldErrors(faults...)
}
