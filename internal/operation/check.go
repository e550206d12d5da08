package operation

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

// largePrincipal is the size in bytes from which the session of a caller is large. It is that of about 4,000 permissions.
const largePrincipal = 1 << 20

// serve runs the checks in the order of the contract, and then calls the handler. The order is
// framing, credentials, tenant and permission. Next, all errors in the headers, the path, the
// query and the syntax of the body are reported together. Errors in the content of the body come
// last.
func (s *Runner) serve(op *Operation, w http.ResponseWriter, r *http.Request, in reflect.Value, b *buffers) error {
	q, takes := web.RequestOf(r), op.Input()
	if err := s.checkFraming(op, r, in); err != nil {
		return err
	}
	faults := takes.readParameters(in, r)
	sent, err := s.credentialsOf(op, r, b.sessions[:0])
	if err != nil {
		return err
	}
	if !op.Policy.Public && len(sent.sessions) == 0 && sent.bearer == "" { // does not read the store, so it does not wait for a limiter
		return unauthenticated(op)
	}
	limiter := op.Limiter
	if err := q.Enter(limiter); err != nil {
		return err
	}
	if !op.Policy.Public {
		if err := s.admit(op, q, in, sent, true); err != nil {
			return err
		}
		if op.ReturnsPermissions && q.Principal.Size() > largePrincipal {
			q.Leave()
			limiter = web.LargeLimiter
			if err := q.Enter(limiter); err != nil {
				return err
			}
		}
	}
	if takes.Body != nil {
		q.Leave()
		if b.body, err = readBody(op, w, r, b.body, &faults.malformed); err != nil {
			return err
		}
		if err := q.Enter(limiter); err != nil {
			return err
		}
	}
	if takes.cursor != nil {
		s.openCursor(op, r, fieldOf[Cursor](in, takes.cursor), &faults.malformed)
	}
	if faults.malformed != nil {
		return rolecall.ErrMalformed.WithFieldErrors(faults.malformed...)
	}
	if faults.unknown != nil {
		return errUnknownValue.WithFieldErrors(faults.unknown...)
	}
	c := access.Caller{Principal: q.Principal, RequestID: q.ID, Source: q.Source}
	if takes.file != nil {
		*fieldOf[File](in, takes.Body.Index) = File{MediaType: mediaTypeOf(r.Header.Get("Content-Type")), Content: bytes.Clone(b.body)}
	} else if takes.Body != nil {
		err := takes.DecodeBody(in, b.body, c, s.Access.Now())
		if t, ok := in.Addr().Interface().(tokenReturning); ok && !t.ReturnsToken() && dropsSession(op, r) {
			return web.ErrCrossSite
		} else if err != nil {
			return err
		}
	}
	if takes.key != nil {
		fieldOf[idempotency.Key](in, takes.key).Fingerprint = fingerprint(op, r.URL, b.body)
	}
	if takes.sessions != nil {
		*fieldOf[[]secret.Token](in, takes.sessions) = sent.sessions
	}
	// If the operation only needs the presented sessions and the request has none, the tenant is
	// not loaded.
	if takes.anonymous != nil && (len(sent.sessions) > 0 || !takes.onlyPresented) {
		if *fieldOf[access.Anonymous](in, takes.anonymous), err = s.Anonymous(r, sent.sessions); err != nil {
			return err
		}
	}
	if takes.waiting != nil {
		*fieldOf[Waiting](in, takes.waiting) = Waiting{s, op, w, r, in, sent}
	}
	q.ReadsOnly = op.ReadsOnly
	b.answer, err = op.Handler.serve(s, op, w, r, c, in, b.answer)
	return err
}

// checkFraming runs the checks that need only the URL and the headers of the request.
func (s *Runner) checkFraming(op *Operation, r *http.Request, in reflect.Value) error {
	if takes := op.Input(); r.ContentLength > takes.maxBody() {
		return takes.tooLarge()
	}
	if !op.Policy.Operators {
		names := r.Header["X-Tenant-Schema"]
		if len(names) != 1 || !rolecall.IsTenantName(names[0]) {
			return badTenant(len(names))
		}
		web.RequestOf(r).Tenant = names[0]
	}
	if err := s.Site.CheckOrigin(r); err != nil && !isFromProgram(r.Header) {
		return web.ErrCrossOrigin
	}
	if _, chooses := in.Addr().Interface().(tokenReturning); !chooses && dropsSession(op, r) {
		return web.ErrCrossSite
	}
	if answers := op.Handler.mediaTypes; answers != nil && !slices.ContainsFunc(answers, func(answer string) bool { return accepts(r.Header["Accept"], answer) }) {
		return notAcceptable(strings.Join(answers, " or "))
	}
	if r.ContentLength == 0 || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	return checkContent(op.Input(), r)
}

// dropsSession reports whether a browser would drop the session cookie in the response, because the
// page is on another site.
func dropsSession(op *Operation, r *http.Request) bool {
	return op.SetsSession() && r.Header.Get("Sec-Fetch-Site") == "cross-site" && !HasHeaderSession(r)
}

// notAcceptable returns the error for an Accept header that does not allow the media type of
// the response.
func notAcceptable(mediaType string) error {
	return web.ErrNotAcceptable.With("The response is " + mediaType + ", which the header Accept does not allow. Accept " + mediaType + ", or omit the header.")
}

var errUnknownValue = rolecall.ErrValidation.With("At least one filter has an unknown value. See errors in this response for each of them.")

const tenantNameDetail = "must be a tenant name: 1 to 63 characters of a to z, 0 to 9, - and _, beginning with a letter or digit"

func badTenant(lines int) error {
	code, detail := "format", tenantNameDetail
	switch lines {
	case 0:
		code, detail = "required", "must name the tenant of the request"
	case 1:
	default:
		code, detail = "repeated", "must be sent once"
	}
	return rolecall.ErrMalformed.WithFieldErrors(rolecall.FieldError{Header: "x-tenant-schema", Code: code, Detail: detail})
}

// checkContent returns an error if the headers say that the body is compressed, or that its
// media type is not one that the operation takes.
func checkContent(takes *Input, r *http.Request) error {
	types := r.Header["Content-Type"]
	if len(types) > 1 {
		return rolecall.ErrMalformed.WithFieldErrors(rolecall.FieldError{Header: "content-type", Code: "repeated", Detail: "must be sent once"})
	}
	for _, coding := range r.Header["Content-Encoding"] {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			return web.ErrContentEncoding
		}
	}
	if takes.file != nil {
		if len(types) == 0 || !slices.Contains(takes.file.MediaTypes, mediaTypeOf(types[0])) {
			return web.ErrMediaType.With("The body must be " + strings.Join(takes.file.MediaTypes, " or ") + ".")
		}
		return nil
	}
	if len(types) == 0 || !isJSON(types[0], r.Method == http.MethodPatch) {
		return web.ErrMediaType
	}
	return nil
}

// admit authenticates the caller, and stores the principal in q. It returns an error if the
// caller may not call the operation, or must re-authenticate first. If use is false, the request does
// not count as a use of the session.
func (s *Runner) admit(op *Operation, q *web.Request, in reflect.Value, sent credentials, use bool) (err error) {
	if q.Principal, err = s.principal(op, q, in, sent, use); err != nil {
		return err
	}
	if err := op.Policy.AuthorizeFor(q.Principal, op.Input().user(in)); err != nil {
		return err
	}
	if op.Policy.StepsUp() {
		return authz.RequireRecent(q.Principal, s.Access.Now())
	}
	return nil
}

// principal returns the caller that the credentials authenticate.
func (s *Runner) principal(op *Operation, q *web.Request, in reflect.Value, sent credentials, use bool) (*authz.Principal, error) {
	if op.Policy.Operators {
		p, err := s.Callers.AuthenticateOperator(q, sent.bearer, q.Source)
		if errors.Is(err, rolecall.ErrUnauthenticated) {
			err = unauthenticated(op)
		}
		return p, err
	}
	tenant, err := s.Tenants.Tenant(q, q.Tenant)
	if err != nil {
		return nil, err
	}
	if sent.bearer != "" {
		return s.Callers.AuthenticateBearer(q, tenant, sent.bearer, q.Source)
	}
	touch := op.Input().touch
	return s.Callers.Authenticate(q, tenant, sent.sessions, use && (touch == nil || !fieldOf[Touch](in, touch).isOff))
}

// Anonymous returns the data of an unauthenticated request of the tenant in the request context: tenant, cookies, and the address and
// name of the client.
func (s *Runner) Anonymous(r *http.Request, sessions []secret.Token) (access.Anonymous, error) {
	q := web.RequestOf(r)
	tenant, err := s.Tenants.Tenant(q, q.Tenant)
	return access.Anonymous{
		Tenant: tenant, TenantName: q.Tenant, Presented: sessions, Devices: web.Devices(r),
		RequestID: q.ID, Source: q.Source, Client: web.ClientName(r.UserAgent()),
	}, err
}

// readBody reads the whole body into buffer. It adds a field error to faults if the syntax is
// invalid or a required body is missing. It returns an error only if the body is too large.
func readBody(op *Operation, w http.ResponseWriter, r *http.Request, buffer []byte, faults *rolecall.FieldErrors) ([]byte, error) {
	takes := op.Input()
	body, err := web.ReadBody(r, buffer, takes.maxBody())
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		return body, takes.tooLarge()
	case err != nil:
		w.Header()["Connection"] = []string{"close"}
		faults.Add("", "truncated", "the body is incomplete or did not arrive in time")
	case len(body) > 0 && takes.file == nil:
		checkSyntax(faults, body)
	case len(body) == 0 && takes.RequiresBody():
		faults.Add("", "required", "a body is required")
	}
	return body, nil
}

// fingerprint returns a hash that distinguishes requests with the same idempotency key. It covers the
// operation, the ids in the path and the canonical JSON of the body.
func fingerprint(op *Operation, u *url.URL, body []byte) []byte {
	ids := strings.ToLower(u.Path) // upper-case and lower-case spellings of a UUID are equal
	return secret.Digest([]byte(op.Method+" "+op.Path), []byte(ids), canonicalJSON(body))
}
