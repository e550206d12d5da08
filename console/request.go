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

// pageContext has the data of one request to a page.
type pageContext struct {
	console  *console
	page     *page // nil if no page has the path and the method
	request  *http.Request
	response http.ResponseWriter
	web      *web.Request
	ctx      context.Context

	call       access.Caller  // its principal is nil without a session
	zone       *time.Location // the reader's time zone
	tenant     string         // the name of the tenant in the path or in the sign-in form
	tenantID   rolecall.TenantID
	sessions   []secret.Token // from the session cookies
	isShared   bool           // the session cookie is the one of the API, not of the console
	parameters                // from the path and the query
	form       url.Values     // nil for GET requests
	file       []byte         // the file in the form; nil: the form has none
	faults     rolecall.FieldErrors
	problem    *web.Problem             // the reason why the request failed; nil if it did not fail
	status     int                      // the HTTP status of the response
	jobs       map[string]*rolecall.Job // the jobs of the events on the page, by the id of the request that started them
	undo       undo                     // reverses the last action
	isAllowed  bool                     // the policy of the page allows the caller, except for step-up

	hasSignedOut bool   // this request has ended the session
	leadsTo      string // where the browser goes at once after the page has loaded; can be empty
}

// The names of the fields that every form has. The names of the fields for
// re-authentication begin with fieldsOwn: the password and the second factor.
const (
	fieldKey      = "idempotency-key"
	fieldIfMatch  = "if-match"
	fieldTimeZone = "timeZone" // the time zone of the dates in the form
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

// setTenant sets the tenant that the sign-in form names, and reads its session cookies. It
// reports whether the name has the form of a tenant name.
func (v *pageContext) setTenant(name string) bool {
	if !rolecall.IsTenantName(name) {
		return false
	}
	v.tenant = name
	v.readSessions()
	return true
}

// path returns the address of a page of the tenant. rest is its path in the tenant and
// begins with a slash.
func (v *pageContext) path(rest string) string { return v.root() + v.tenant + rest }

// root returns the address of the console, which ends with a slash.
func (v *pageContext) root() string { return v.console.site.Base + Path + "/" }

// zoneCookieAttributes returns the attributes of the cookie with the time zone, for console.js.
func (v *pageContext) zoneCookieAttributes() string {
	return v.console.site.ScriptCookie(v.console.site.Base + Path)
}

// themeCookieAttributes returns the attributes of the cookie with the theme, for console.js.
func (v *pageContext) themeCookieAttributes() string {
	return v.console.site.ScriptCookie(v.console.site.Base + "/")
}

// asset returns the address of the asset with the file name.
func (v *pageContext) asset(name string) string { return v.console.assets[name] }

// isFromOwnPage reports whether a page of this origin made the request. It returns true if
// the browser does not send Sec-Fetch-Site.
func (v *pageContext) isFromOwnPage() bool {
	site := v.request.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin"
}

// currentURL returns the address of the page in which htmx requests a fragment.
func (v *pageContext) currentURL() string { return v.request.Header.Get("Hx-Current-Url") }

// setQuery changes a query parameter of the page's address. All links of the page to itself then
// have the new value.
func (v *pageContext) setQuery(name, value string) {
	address, query := *v.request.URL, v.request.URL.Query()
	query.Set(name, value)
	address.RawQuery = query.Encode()
	v.request = v.request.WithContext(v.request.Context()) // a copy
	v.request.URL = &address
}

// replaceURL makes the browser show the address for the current page. The address must be
// an address of the console.
func (v *pageContext) replaceURL(address string) {
	v.response.Header()["Hx-Replace-Url"] = []string{address}
}

// fragment returns the id of the element that htmx requests. It returns an empty text if
// the request is for the whole page.
func (v *pageContext) fragment() string {
	if v.request.Header.Get("Hx-Request") != "true" {
		return ""
	}
	return v.request.Header.Get("Hx-Target")
}

// proof returns the second factor from the fields whose names begin with the prefix. It
// prefers a passkey to a recovery code, and a recovery code to the code from an
// authenticator app.
func (v *pageContext) proof(prefix string) signin.Proof {
	if passkey := v.form.Get(prefix + "passkey"); passkey != "" {
		return signin.Proof{Passkey: []byte(passkey)}
	}
	if code := strings.TrimSpace(v.form.Get(prefix + "recoveryCode")); code != "" {
		return signin.Proof{RecoveryCode: code}
	}
	return signin.Proof{Code: strings.ReplaceAll(v.form.Get(prefix+"code"), " ", "")}
}

// reasonMax is the maximum length of a reason, in code points.
const reasonMax = 500

// reason returns the reason in the form. It returns a field error if the reason is invalid.
func (v *pageContext) reason() (string, error) {
	var faults rolecall.FieldErrors
	reason := v.form.Get("reason")
	if reason != "" {
		faults.Text("/reason", reason, 1, reasonMax)
	}
	return reason, faults.Err()
}

// key returns the idempotency key of the form, with a hash of the other fields.
func (v *pageContext) key() idempotency.Key {
	content := url.Values{}
	for name, values := range v.form {
		if name != fieldKey && !strings.HasPrefix(name, fieldsOwn) {
			content[name] = values
		}
	}
	return idempotency.Key{
		Text:        v.form.Get(fieldKey),
		Fingerprint: secret.Digest([]byte(v.page.label()), v.userID[:], v.accountID[:], v.directoryID[:], []byte(content.Encode())),
	}
}

// needsReauthentication reports whether the form must ask for the password, because the
// operation needs step-up and the sign-in is too old.
func (v *pageContext) needsReauthentication() bool {
	return v.page != nil && v.page.policy.StepsUp() && authz.RequireRecent(v.call.Principal, v.console.access.Now()) != nil
}

// setDevice stores the known-device token in a cookie of the browser.
func (v *pageContext) setDevice(token string) {
	if token != "" {
		kept := v.console.signin.KeptDevices(v.tenantID, token, web.Devices(v.request))
		v.console.site.SetDevices(v.response, v.request, kept, signin.DeviceLifetime)
	}
}

// buffers has buffers in which pages are rendered before they are sent.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// write responds with the HTML that render writes.
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

// redirect redirects the browser to the address, which must be an address of the console.
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

// atOwnFields moves the field errors of a failed re-authentication to the form fields whose
// names begin with fieldsOwn.
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
