// Package httpapi is the HTTP API: it turns requests into calls of directory and signin, and
// answers into JSON. Every operation is one entry of one table. Checking, reading and
// encoding are done once for all of them. Package web has the middleware around it.
package httpapi

import (
	"net/http"
	"reflect"
	"sync"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/web"
)

// maxDepth limits how deeply JSON may be nested.
const maxDepth = 32

// Options configure the API.
type Options struct {
	// OperatorsApart serves operators only on the listener of operators.
	OperatorsApart bool
	// SecurityContact is the URI where weaknesses are reported: mailto:, https: or tel:.
	// Empty: there is no security.txt.
	SecurityContact string
}

// Server is the handler of the API.
type Server struct {
	access    *access.Service
	directory *directory.Service
	signin    *signin.Service
	site      *web.Site
	handler   http.Handler
	router    *web.Router
	apart     bool // operators are served on their own listener alone
	buffers   sync.Pool
	readiness *readiness

	securityContact string // URI; empty: none
}

// New returns a server of all operations.
func New(a *access.Service, d *directory.Service, in *signin.Service, site *web.Site, o Options) *Server {
	server := &Server{
		access:    a,
		directory: d,
		signin:    in,
		site:      site,
		apart:     o.OperatorsApart,
		readiness: newReadiness(a.Ready),

		securityContact: o.SecurityContact,
	}
	server.buffers.New = func() any { return &buffers{} }
	server.router = site.NewRouter(site.RespondProblem)
	server.route(operations)
	server.route(operatorOperations)
	server.router.Handle(server.pages(), nil)
	server.handler = site.Handler(server.router, site.RespondProblem)
	return server
}

// route adds the operations to the router.
func (s *Server) route(operations []*operation) {
	var tenants, operators []web.Route
	for _, op := range operations {
		r := web.Route{Method: op.method, Path: op.path, Label: op.id, Handler: s.handlerOf(op)}
		if op.policy.Operators {
			operators = append(operators, r)
		} else {
			tenants = append(tenants, r)
		}
	}
	s.router.Handle(tenants, nil)
	s.router.Handle(operators, s.isOperated)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// buffers are the memory of one request. They are pooled: nothing of them may be used
// after the answer was written.
type buffers struct {
	body     []byte // what was sent
	answer   []byte
	sessions [4]secret.Token // session cookies
}

// release gives the buffers back.
func (s *Server) release(b *buffers) {
	clear(b.body) // it may hold a password
	*b = buffers{body: keep(b.body), answer: keep(b.answer)}
	s.buffers.Put(b)
}

// keep returns the buffer emptied, or nothing if it has grown too large to keep.
func keep(buffer []byte) []byte {
	if cap(buffer) > web.MaxBody {
		return nil
	}
	return buffer[:0]
}

// handlerOf returns the handler of the operation.
func (s *Server) handlerOf(op *operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := s.buffers.Get().(*buffers)
		defer s.release(b)
		in := op.endpoint.takes().new()
		if err := s.serve(op, w, r, in, b); err != nil {
			s.fail(op, w, r, in, err)
		}
	})
}

// fail answers with the problem that err means, and counts refused callers.
func (s *Server) fail(op *operation, w http.ResponseWriter, r *http.Request, in reflect.Value, err error) {
	q := web.RequestOf(r)
	p := q.ProblemOf(err)
	if p.Kind == rolecall.Forbidden && q.Principal != nil && op.id != checkID {
		c := access.Caller{Principal: q.Principal, RequestID: q.ID, Source: q.Source}
		s.access.Refused(c, op.endpoint.takes().user(in), op.id, p.Code)
	}
	s.respondProblem(op, w, r, p)
}

// respondProblem answers with the problem, and with the headers that go with it.
func (s *Server) respondProblem(op *operation, w http.ResponseWriter, r *http.Request, p *web.Problem) {
	p.SetHeaders(w, r)
	if challenge := wwwAuthenticate(op, r, p.Status, p.Error); challenge != "" {
		w.Header()["Www-Authenticate"] = []string{challenge}
	}
	s.site.WriteProblem(w, r, p)
}

// Policies returns the policies of the operations for tenants, by their ids.
func Policies() map[string]web.Policy {
	policies := map[string]web.Policy{}
	for _, op := range operations {
		policies[op.id] = web.Policy{Policy: op.policy, Limiter: op.limiter}
	}
	return policies
}
