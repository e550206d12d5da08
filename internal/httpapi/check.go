package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/web"
)

// serve runs the checks in the order that the contract fixes, then the
// operation: framing, session, tenant, permission, then everything wrong with
// header, path, query and JSON syntax at once. What the body means is judged by
// the operation.
func (x *exchange) serve() error {
	if x.route.page {
		return x.route.handle(x)
	}
	if err := x.checkFraming(); err != nil {
		return err
	}
	faults := x.readInput()
	x.presented = x.server.site.AppendSessions(x.presented, x.request)
	if err := x.checkBearer(); err != nil {
		return err
	}
	if x.route.need != nil && len(x.presented) == 0 && x.bearer == "" { // nothing is looked up, so nothing need wait for it
		return x.stranger()
	}
	if err := x.web.Enter(x.route.lane); err != nil {
		return err
	}
	if err := x.admit(); err != nil {
		return err
	}
	if x.route.body != nil {
		x.web.Leave()
		if err := x.readBody(&faults); err != nil {
			return err
		}
		if err := x.web.Enter(x.route.lane); err != nil {
			return err
		}
	}
	if x.in.cursor != "" {
		x.openCursor(&faults)
	}
	if faults != nil {
		return rolecall.ErrMalformed.WithFaults(faults...)
	}
	if x.unknown != nil {
		return errUnknownValue.WithFaults(x.unknown...)
	}
	if x.route.endpoint != nil {
		return x.route.endpoint.serve(x)
	}
	return x.route.handle(x)
}

// checkFraming refuses what can be refused by looking at the header alone.
func (x *exchange) checkFraming() error {
	r := x.request
	if r.ContentLength > web.MaxBody {
		return web.ErrContentTooLarge
	}
	if !x.route.operator {
		names := r.Header["X-Tenant-Schema"]
		if len(names) != 1 || !rolecall.IsTenantName(names[0]) {
			return badTenant(len(names))
		}
		x.named = names[0]
	}
	if err := x.server.site.CheckOrigin(r); err != nil && !isFromProgram(r.Header) {
		return web.ErrCrossOrigin
	}
	if x.route.setsSession() && r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return web.ErrCrossSite
	}
	if x.route.answersJSON() && !accepts(r.Header["Accept"]) {
		return web.ErrNotAcceptable
	}
	if r.ContentLength == 0 || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	return x.checkContent(r.Header)
}

var errUnknownValue = rolecall.ErrValidation.With("A filter has a value that is not known. The errors say which values are.")

const tenantNameDetail = "must be a tenant's name: a to z, 0 to 9, _ and -, at most 63"

func badTenant(lines int) error {
	code, detail := "format", tenantNameDetail
	switch lines {
	case 0:
		code, detail = "required", "must name the tenant of the request"
	case 1:
	default:
		code, detail = "repeated", "must be sent once"
	}
	return rolecall.ErrMalformed.WithFaults(rolecall.Fault{Header: "x-tenant-schema", Code: code, Detail: detail})
}

// checkContent refuses a body that is not plain JSON.
func (x *exchange) checkContent(h http.Header) error {
	types := h["Content-Type"]
	if len(types) > 1 {
		return rolecall.ErrMalformed.WithFaults(rolecall.Fault{Header: "content-type", Code: "repeated", Detail: "must be sent once"})
	}
	for _, coding := range h["Content-Encoding"] {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			return web.ErrContentEncoding
		}
	}
	if len(types) == 0 || !isJSON(types[0], x.request.Method == http.MethodPatch) {
		return web.ErrMediaType
	}
	return nil
}

// admit finds out who is asking and whether they may ask this at all.
func (x *exchange) admit() (err error) {
	s := x.server
	if x.route.need == nil {
		return nil
	}
	if x.call.Principal, err = x.principal(); err != nil {
		return err
	}
	if err := x.route.need(x.call.Principal, x.in.user); err != nil {
		return err
	}
	if x.route.interactive && !x.call.Interactive() {
		return rolecall.ErrSessionRequired
	}
	if x.route.stepsUp() {
		return s.service.NeedRecent(x.call.Principal)
	}
	return nil
}

// principal returns who is asking.
func (x *exchange) principal() (p *authz.Principal, err error) {
	s := x.server.service
	if x.route.operator {
		if p, err = s.AuthenticateOperator(x.ctx, x.bearer, x.call.Source); errors.Is(err, rolecall.ErrUnauthenticated) {
			err = x.stranger()
		}
		return p, err
	}
	if x.tenant, err = s.Tenant(x.ctx, x.named); err != nil {
		return nil, err
	}
	if x.bearer != "" {
		return s.AuthenticateBearer(x.ctx, x.tenant, x.bearer, x.call.Source)
	}
	return s.Authenticate(x.ctx, x.tenant, x.presented, !x.in.untouched)
}

// readBody reads the whole body and adds what is wrong with its syntax. The
// error is for a body that cannot be judged: too large.
func (x *exchange) readBody(faults *rolecall.Faults) error {
	var err error
	x.body, err = web.ReadBody(x.request, x.body[:0])
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		return web.ErrContentTooLarge
	case err != nil:
		x.header["Connection"] = []string{"close"}
		faults.Add("", "truncated", "the body ended early or did not come in time")
	case len(x.body) > 0:
		checkSyntax(faults, x.body)
	case x.route.body.required:
		faults.Add("", "required", "a body is required")
	}
	return nil
}
