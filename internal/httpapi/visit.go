package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/openapi"
)

// Console is what people see of the service in a browser: pages and forms below
// /console. They go through the same checks as the operations that they stand for,
// in the same order, and are bounded, observed and refused by the same edge.
type Console struct {
	Pages  []Page
	Assets []Asset
	// Refuse answers with a page that says what Visit.Problem holds, where the
	// page itself cannot be shown.
	Refuse func(*Visit) error
}

// Asset is a file that pages load. It is served under a path that changes with its
// content.
type Asset = openapi.Asset

// Page is one address of the console.
type Page struct {
	// Path is what follows /console, such as /{tenant}/users/{id}.
	Path string
	// Operation is the id of the operation of the contract that the page stands
	// for: it has its need, its lane, and its parameters, of those in the path the
	// ones that Path names. Without one the page works without a session and takes no
	// parameters.
	Operation string
	// Show answers GET, and POST if Act failed: Visit.Problem says then why.
	Show func(*Visit) error
	// Act answers POST: it does what the form on the page says; nil if there is none.
	Act func(*Visit) error
}

// Visit is one request to a page. Nothing of it may be used after Show, Act and
// Refuse have returned.
type Visit struct {
	*exchange
	page    *Page
	stepsUp bool       // the operation needs a recent sign-in
	form    url.Values // what was sent by POST
	let     bool       // in: the need of the operation is met
	faults  rolecall.Faults
	problem *Problem
}

// Problem is why something could not be done, as it may be shown.
type Problem = web.Problem

// The fields that every form has by these names. Those by which somebody confirms to
// be who signed in, where that is not recent, begin with FieldsOwn: the password, and
// what Visit.Proof reads.
const (
	FieldKey      = "idempotency-key"
	FieldIfMatch  = "if-match"
	FieldsOwn     = "current-"
	FieldPassword = FieldsOwn + "password"
)

const (
	consolePath = "/console"
	assetsPath  = "/-/" // below it: no tenant is called so
)

var (
	visitPolicy = []string{"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"}
	// Under no-referrer browsers send forms with the origin null.
	visitReferrer = []string{"same-origin"}
	asHTML        = []string{"text/html; charset=utf-8"}
	errNoForm     = web.ErrMediaType.With("A form must be sent as application/x-www-form-urlencoded.")
)

// console returns the operations that the console consists of.
func (s *Server) console(c *Console) []*operation {
	s.refusal = c.Refuse
	var list []*operation
	for _, a := range c.Assets {
		own := web.NewAsset(consolePath+assetsPath, a.Name, a.Type, web.Gzip(a.Content), true)
		s.assets[a.Name] = s.site.Base + own.Path
		list = append(list, page(own.Path, "console", file(own)))
	}
	for _, p := range c.Pages {
		list = append(list, consolePage(http.MethodGet, &p))
		if p.Act != nil {
			list = append(list, consolePage(http.MethodPost, &p))
		}
	}
	return list
}

// consolePage returns the operation that serves the method on the page.
func consolePage(method string, p *Page) *operation {
	op := &operation{method: method, path: consolePath + p.Path, id: "console", effect: effectNone}
	stepsUp := false
	if p.Operation != "" {
		api := operationNamed(p.Operation)
		op.id, op.need, op.parameters, stepsUp = api.id, api.need, p.parameters(api), api.stepsUp()
		if method == http.MethodPost {
			op.lane, op.effect = api.lane, api.effect
		}
	}
	if strings.HasSuffix(op.path, "/") {
		op.path += "{$}"
	}
	op.label, op.page = "console/"+op.id, true
	op.handle = func(x *exchange) error {
		if x.visit == nil { // below assetsPath, where no file is
			return web.ErrUnknownPath
		}
		x.visit.page, x.visit.stepsUp = p, stepsUp
		return x.visit.serve()
	}
	return op
}

// parameters returns those of the operation that the page takes: of those in a path, the
// ones that its own names, as a page can be about several of what the operation is about.
func (p *Page) parameters(api *operation) []*parameter {
	return slices.DeleteFunc(slices.Clone(api.parameters), func(a *parameter) bool {
		return a.in == inPath && !strings.Contains(p.Path, "{"+a.name+"}")
	})
}

// operationNamed returns the operation of the contract with that id.
func operationNamed(id string) *operation {
	for _, op := range operations {
		if op.id == id {
			return op
		}
	}
	panic("httpapi: no operation is called " + id)
}

// isPage reports whether the request is for a page of the console. What is refused
// before there is a page is said on one too.
func (s *Server) isPage(r *http.Request) bool {
	path, ok := strings.CutPrefix(r.URL.Path, s.site.Base+consolePath)
	return ok && s.refusal != nil && (path == "" || path[0] == '/') && !strings.HasPrefix(path, assetsPath)
}

// pageHeaders sets the headers of pages.
func (s *Server) pageHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.isPage(r) {
			h := w.Header()
			h["Content-Security-Policy"] = visitPolicy
			h["Referrer-Policy"] = visitReferrer
			h["Permissions-Policy"] = web.NoFeatures
			h["Cross-Origin-Opener-Policy"] = web.SameOrigin
			web.OwnPagesOnly(h)
		}
		next.ServeHTTP(w, r)
	})
}

// visit returns the exchange as one with a page, nil if its path is of none.
func (s *Server) visit(x *exchange) *Visit {
	if !s.isPage(x.request) {
		return nil
	}
	v := &Visit{exchange: x}
	if tenant := x.request.PathValue("tenant"); rolecall.IsTenantName(tenant) {
		v.named = tenant
	}
	return v
}

// serve is exchange.serve for a page: the same checks in the same order, but that
// what is wrong with the query is for the page to say.
func (v *Visit) serve() error {
	if err := v.checkFraming(); err != nil {
		return err
	}
	if v.presented = v.server.site.AppendSessions(v.presented, v.request); v.route.need != nil && len(v.presented) == 0 {
		return rolecall.ErrUnauthenticated
	}
	acts := v.request.Method == http.MethodPost
	if acts {
		if err := v.readForm(); err != nil {
			return err
		}
	}
	nowhere := v.readAddress() // said after who may not be here is told so
	if err := v.web.Enter(v.route.lane); err != nil {
		return err
	}
	if err := v.admit(); err != nil {
		return err
	}
	if nowhere != nil {
		return nowhere
	}
	if v.in.cursor != "" {
		v.openCursor(&v.faults)
	}
	if !acts {
		return v.page.Show(v)
	}
	if v.readFields(); v.faults != nil {
		return rolecall.ErrMalformed.WithFaults(v.faults...)
	}
	return v.page.Act(v)
}

// refuse answers with why it failed: of a form on the page that it is on, else on a
// page of its own. It returns an error if neither can be shown.
func (v *Visit) refuse(p *Problem) error {
	v.problem = p
	if v.form != nil && (v.let || v.route.need == nil) && v.page.Show(v) == nil {
		return nil
	}
	return v.server.refusal(v)
}

// checkFraming refuses what can be refused by looking at the address and the
// header alone. Other origins' forms are refused whatever their origin may do with
// the operations.
func (v *Visit) checkFraming() error {
	r := v.request
	if v.named != r.PathValue("tenant") { // which cannot be one's name
		return web.ErrUnknownPath
	}
	if r.ContentLength > web.MaxBody {
		return web.ErrContentTooLarge
	}
	if v.server.site.CheckOwnOrigin(r) != nil {
		return web.ErrCrossOrigin
	}
	return nil
}

// readForm reads the form that was sent.
func (v *Visit) readForm() error {
	mediaType, _, _ := strings.Cut(v.request.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/x-www-form-urlencoded") {
		return errNoForm
	}
	var err error
	v.body, err = web.ReadBody(v.request, v.body[:0])
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return web.ErrContentTooLarge
	}
	form, syntaxErr := url.ParseQuery(string(v.body))
	if err != nil || syntaxErr != nil || !isText(form) {
		return rolecall.ErrMalformed.With("The form did not come whole, or is not UTF-8. Send it again.")
	}
	v.form = form
	return nil
}

// isText reports whether all names and values of the form are UTF-8.
func isText(form url.Values) bool {
	for name, values := range form {
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(value string) bool { return !utf8.ValidString(value) }) {
			return false
		}
	}
	return true
}

// readAddress reads path and query. A path that cannot be one of the page's is not
// there.
func (v *Visit) readAddress() error {
	v.in.limit, v.in.days = rolecall.DefaultLimit, true
	for _, p := range v.route.inPath {
		if code, _ := p.read(&v.in, v.request.PathValue(p.name)); code != "" {
			return rolecall.ErrNotFound
		}
	}
	v.readQuery(&v.faults, v.request.URL.RawQuery)
	v.faults = append(v.faults, v.unknown...)
	return nil
}

// readFields reads from the form what comes to the operation in the header.
func (v *Visit) readFields() {
	for _, p := range v.route.inHeader {
		if text := v.form.Get(p.name); text != "" || p.required {
			v.readParameter(&v.faults, p, text)
		}
	}
}

// admit is exchange.admit, and lets who is asked for it confirm to be who signed
// in by the same form.
func (v *Visit) admit() error {
	err := v.exchange.admit()
	stale := errors.Is(err, rolecall.ErrNotRecent)
	v.let = err == nil || stale
	password := v.Form(FieldPassword)
	if password == "" || !stale {
		return err
	}
	in, err := v.server.service.Confirm(v.ctx, v.call, v.presented, password, v.Proof(FieldsOwn))
	if err != nil {
		return atOwnFields(err)
	}
	v.setCookies(&in)
	return nil
}

// atOwnFields returns the error of a confirmation with its faults at the fields of
// the form.
func atOwnFields(err error) error {
	known, ok := errors.AsType[*rolecall.Error](err)
	if !ok || known.Faults == nil {
		return err
	}
	faults := slices.Clone(known.Faults)
	for i := range faults {
		faults[i].Pointer = strings.Replace(faults[i].Pointer, "/", "/"+FieldsOwn, 1)
	}
	return known.WithFaults(faults...)
}

// Context returns the context of the visit, which ends with its deadline.
func (v *Visit) Context() context.Context { return v.ctx }

// Call returns who is asking; its principal is nil without a session.
func (v *Visit) Call() service.Call { return v.call }

// Attempt is what the verbs that work without a session are told.
func (v *Visit) Attempt() (service.Attempt, error) { return v.attempt() }

// Problem returns why Act failed or the page is refused, nil if neither is so.
func (v *Visit) Problem() *Problem { return v.problem }

// Faults returns what is wrong with the parameters.
func (v *Visit) Faults() rolecall.Faults { return v.faults }

// Tenant returns the name of the tenant in the path.
func (v *Visit) Tenant() string { return v.named }

// SetTenant takes the tenant from a form instead of the path. It reports whether it
// can be a tenant's name.
func (v *Visit) SetTenant(name string) bool {
	if !rolecall.IsTenantName(name) {
		return false
	}
	v.named = name
	return true
}

// Path returns the address of a page of the tenant; rest begins with a slash.
func (v *Visit) Path(rest string) string { return v.Root() + v.named + rest }

// Root returns the address of the console.
func (v *Visit) Root() string { return v.server.site.Base + consolePath + "/" }

// Public returns the address under which clients reach the service, without a slash at
// the end.
func (v *Visit) Public() string { return v.server.site.Public }

// Asset returns the address of the asset.
func (v *Visit) Asset(name string) string { return v.server.assets[name] }

// URL returns the address that was asked for. It must not be changed.
func (v *Visit) URL() *url.URL { return v.request.URL }

// IsLed reports whether a page of ours leads here, and no link elsewhere.
func (v *Visit) IsLed() bool {
	site := v.request.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "same-origin"
}

// Current returns the address of the page that asks for a part of itself, as the
// browser says.
func (v *Visit) Current() string { return v.request.Header.Get("Hx-Current-Url") }

// Rename makes the browser show the address, one of ours, for the page that got a
// part of itself.
func (v *Visit) Rename(address string) { v.header["Hx-Replace-Url"] = []string{address} }

// Form returns what was sent in the field, empty if nothing was.
func (v *Visit) Form(name string) string { return v.form.Get(name) }

// Forms returns all that was sent in the field.
func (v *Visit) Forms(name string) []string { return v.form[name] }

// Proof returns the second factor that the fields show whose names begin with prefix:
// a passkey before a recovery code before a code of an app.
func (v *Visit) Proof(prefix string) service.Proof {
	if passkey := v.Form(prefix + "passkey"); passkey != "" {
		return service.Proof{Passkey: []byte(passkey)}
	}
	if code := strings.TrimSpace(v.Form(prefix + "recoveryCode")); code != "" {
		return service.Proof{RecoveryCode: code}
	}
	return service.Proof{Code: strings.ReplaceAll(v.Form(prefix+"code"), " ", "")}
}

// Reason returns what the form gives as the reason of an act.
func (v *Visit) Reason() (string, error) {
	var faults rolecall.Faults
	reason := v.Form("reason")
	if reason != "" {
		faults.Text("/reason", reason, 1, reasonMax)
	}
	return reason, faults.Err()
}

// User returns the user of the path.
func (v *Visit) User() rolecall.UserID { return v.in.user }

// Role returns the role of the path.
func (v *Visit) Role() rolecall.RoleID { return v.in.role }

// ServiceAccount returns the service account of the path.
func (v *Visit) ServiceAccount() rolecall.ServiceAccountID { return v.in.account }

// APIToken returns the API token of the path.
func (v *Visit) APIToken() rolecall.APITokenID { return v.in.token }

// Session returns the session of the path.
func (v *Visit) Session() rolecall.SessionID { return v.in.session }

// Passkey returns the id of the passkey of the path.
func (v *Visit) Passkey() []byte { return v.in.passkey }

// UserListing returns what the parameters say of a list of users.
func (v *Visit) UserListing() service.UserListing { return v.userListing() }

// RoleListing returns what the parameters say of a list of roles.
func (v *Visit) RoleListing() service.RoleListing { return v.roleListing() }

// ServiceAccountQuery returns what the parameters say of a list of service accounts.
func (v *Visit) ServiceAccountQuery() rolecall.ServiceAccountQuery { return v.serviceAccountQuery() }

// EventListing returns what the parameters say of a list of events.
func (v *Visit) EventListing() service.EventListing { return v.eventListing() }

// Page returns where the page of a list begins, and how long it may be.
func (v *Visit) Page() (after *rolecall.Position, limit int) { return v.in.after, v.in.limit }

// Cursor returns what the address of the next page carries.
func (v *Visit) Cursor(at *rolecall.Position) string { return v.sealCursor(at) }

// MatchUser is the condition that the user is still as the form shows them.
func (v *Visit) MatchUser() service.Match[rolecall.User] { return v.matchUser() }

// UserTag returns what the form of a user carries in FieldIfMatch.
func (v *Visit) UserTag(u *rolecall.User) string {
	return secret.ETag(appendUser(nil, u, v.call.Sight(u)))
}

// MatchRole is the condition that the role is still as the form shows it.
func (v *Visit) MatchRole() service.Match[rolecall.Role] { return v.matchRole() }

// RoleTag returns what the form of a role carries in FieldIfMatch.
func (v *Visit) RoleTag(r *rolecall.Role) string {
	return secret.ETag(appendRole(nil, r, v.readsRoles()))
}

// MatchServiceAccount is the condition that the service account is still as the form
// shows it.
func (v *Visit) MatchServiceAccount() service.Match[rolecall.ServiceAccount] {
	return v.matchServiceAccount()
}

// ServiceAccountTag returns what the form of a service account carries in FieldIfMatch.
func (v *Visit) ServiceAccountTag(a *rolecall.ServiceAccount) string {
	return secret.ETag(appendServiceAccount(nil, a, v.readsServiceAccounts()))
}

// MatchTenant is the condition that the tenant is still as the form shows it.
func (v *Visit) MatchTenant() service.Match[rolecall.Tenant] { return v.matchTenant() }

// TenantTag returns what the form of the tenant carries in FieldIfMatch.
func (v *Visit) TenantTag(t *rolecall.Tenant) string { return secret.ETag(appendTenant(nil, t)) }

// Key returns the idempotency key of the form with its fingerprint.
func (v *Visit) Key() service.Key {
	said := url.Values{}
	for name, values := range v.form {
		if name != FieldKey && !strings.HasPrefix(name, FieldsOwn) {
			said[name] = values
		}
	}
	return service.Key{Text: v.in.key, Fingerprint: secret.Digest([]byte(v.route.id), v.holder(), []byte(said.Encode()))}
}

// NeedsConfirmation reports whether the form must ask for the password, since the
// sign-in is older than the operation allows.
func (v *Visit) NeedsConfirmation() bool {
	return v.stepsUp && v.server.service.NeedRecent(v.call.Principal) != nil
}

// SignedIn hands out the token of the session.
func (v *Visit) SignedIn(signIn *service.SignIn) { v.setCookies(signIn) }

// Known makes the browser a known one for the account whose mark this is.
func (v *Visit) Known(device string) {
	v.server.site.SetDevice(v.writer, v.request, v.tenant.ID, device)
}

// SignedOut takes the cookie of the session back.
func (v *Visit) SignedOut() { v.server.site.ClearSession(v.writer) }

// Fragment returns the id of the part that alone is to be answered; empty for the
// whole page.
func (v *Visit) Fragment() string {
	if v.request.Header.Get("Hx-Request") != "true" {
		return ""
	}
	return v.request.Header.Get("Hx-Target")
}

// Write answers with what render writes, under the status of the problem if there
// is one.
func (v *Visit) Write(render func(io.Writer) error) error {
	status := http.StatusOK
	if v.problem != nil {
		status = v.problem.Status
	}
	rendered := bytes.NewBuffer(v.out[:0])
	if err := render(rendered); err != nil {
		return err
	}
	v.out = rendered.Bytes()
	v.header["Content-Type"] = asHTML
	v.out = web.GzipPage(v.writer, v.request, v.out)
	v.write(status)
	return nil
}

// Redirect leads to the address, which is one of ours.
func (v *Visit) Redirect(address string) error {
	if v.Fragment() != "" {
		v.header["Hx-Redirect"] = []string{address}
		v.write(http.StatusNoContent)
		return nil
	}
	v.header["Location"] = []string{address}
	v.write(http.StatusSeeOther)
	return nil
}
