package operation

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

// Runner serves operations: it checks requests, calls the handlers and writes the responses.
type Runner struct {
	Access  *access.Service
	Site    *web.Site
	Tenants Tenants
	Callers Callers
	// ServesOperators reports whether the listener of the request serves operators.
	ServesOperators func(*http.Request) bool

	buffers sync.Pool // of *buffers
}

// Tenants loads the tenant of a request.
type Tenants interface {
	// Tenant returns the tenant with the name.
	Tenant(ctx context.Context, name string) (rolecall.Tenant, error)
}

// Callers authenticates the callers of requests.
type Callers interface {
	// Authenticate returns the principal of the one session among the tokens that is live. If
	// touch is true, the request counts as a use of the session.
	Authenticate(ctx context.Context, tenant rolecall.Tenant, sessions []secret.Token, touch bool) (*authz.Principal, error)
	// AuthenticateBearer returns the principal of the API token or operator key.
	AuthenticateBearer(ctx context.Context, tenant rolecall.Tenant, token, source string) (*authz.Principal, error)
	// AuthenticateOperator returns the principal of the operator key, without a tenant.
	AuthenticateOperator(ctx context.Context, key, source string) (*authz.Principal, error)
}

// buffers are the reusable memory of one request. They return to a pool when the request ends, so
// nothing may refer to them after the response is written.
type buffers struct {
	body     []byte // the request body
	answer   []byte
	sessions [4]secret.Token // session cookies
}

// get returns buffers for one request.
func (s *Runner) get() *buffers {
	if b, ok := s.buffers.Get().(*buffers); ok {
		return b
	}
	return &buffers{}
}

// release returns the buffers to the pool, so the caller must not use them again.
func (s *Runner) release(b *buffers) {
	clear(b.body) // the body may contain a password
	*b = buffers{body: keep(b.body), answer: keep(b.answer)}
	s.buffers.Put(b)
}

// keep returns the emptied buffer, or nil if it is too large for the pool.
func keep(buffer []byte) []byte {
	if cap(buffer) > web.MaxBody {
		return nil
	}
	return buffer[:0]
}

// Handler returns the handler of the operation.
func (s *Runner) Handler(op *Operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := s.get()
		defer s.release(b)
		in := op.Input().New()
		if err := s.serve(op, w, r, in, b); err != nil {
			s.fail(op, w, r, in, err)
		}
	})
}

// fail responds with the problem for err. If the problem is a 403 for an authenticated
// caller, fail also records the refusal, unless op.AnswersByDenial is true.
func (s *Runner) fail(op *Operation, w http.ResponseWriter, r *http.Request, in reflect.Value, err error) {
	q := web.RequestOf(r)
	p := q.ProblemOf(err)
	if p.Kind == rolecall.Forbidden && q.Principal != nil && !op.AnswersByDenial {
		c := access.Caller{Principal: q.Principal, RequestID: q.ID, Source: q.Source}
		s.Access.Refused(c, op.Input().user(in), op.ID, p.Code)
	}
	s.respondProblem(op, w, r, p)
}

// respondProblem responds with the problem and with the headers that belong to it.
func (s *Runner) respondProblem(op *Operation, w http.ResponseWriter, r *http.Request, p *web.Problem) {
	p.SetHeaders(w, r)
	if file := op.Input().file; file != nil && p.Status == http.StatusUnsupportedMediaType && p.Error != web.ErrContentEncoding {
		w.Header()["Accept"] = []string{strings.Join(file.MediaTypes, ", ")}
	}
	if challenge := wwwAuthenticate(op, r, p.Status, p.Error); challenge != "" {
		w.Header()["Www-Authenticate"] = []string{challenge}
	}
	s.Site.WriteProblem(w, r, p)
}
