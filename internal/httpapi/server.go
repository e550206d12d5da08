// Package httpapi is the HTTP API. It translates requests into calls of the packages directory
// and signin, and results into JSON. Server.operations lists the operations.
// Each kind of object, such as users or roles, has one file with its inputs, handlers and bodies.
// Package operation checks requests, decodes inputs and encodes bodies. Package web has the
// middleware.
package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/internal/webhooks"
)

// Options configure a Server.
type Options struct {
	// OperatorsApart serves the operator operations only on the separate listener for operators.
	OperatorsApart bool
	// SecurityContact is the URI for reports of vulnerabilities: mailto:, https: or tel:. If it is
	// empty, there is no security.txt.
	SecurityContact string
}

// Server is the HTTP handler of the API.
type Server struct {
	access    *access.Service
	directory *directory.Service
	signin    *signin.Service
	webhooks  *webhooks.Service
	site      *web.Site
	handler   http.Handler
	router    *web.Router
	apart     bool // serve operators on their separate listener only
	runner    *operation.Runner
	readiness *readiness
	writes    *readiness        // whether the store accepts writes
	remedies  map[string]string // method and path of each operation, by its ID

	securityContact string // URI; empty if not configured
}

// New returns a server for all operations and pages.
func New(a *access.Service, d *directory.Service, in *signin.Service, w *webhooks.Service, site *web.Site, o Options) *Server {
	server := &Server{
		access:    a,
		directory: d,
		signin:    in,
		webhooks:  w,
		site:      site,
		apart:     o.OperatorsApart,
		readiness: newReadiness(a.Ready),
		writes:    newReadiness(a.Writable),
		remedies:  map[string]string{},

		securityContact: o.SecurityContact,
	}
	server.runner = &operation.Runner{Access: a, Site: site, Tenants: d, Callers: in, ServesOperators: server.servesOperators}
	server.router = site.NewRouter(server.fail)
	server.route()
	server.router.Handle(server.pages(), nil)
	server.handler = site.Handler(server.router, site.RespondProblem)
	return server
}

// operations returns the operations for tenants, and then those for operators. Until an operator key
// exists, requests to the paths of the latter get 404.
func (s *Server) operations() []*operation.Operation {
	return slices.Concat(
		s.userOperations(), s.overviewOperations(), s.assignmentOperations(), s.sessionOperations(), s.tokenOperations(), s.jobOperations(), s.roleOperations(), s.groupOperations(), s.accessOperations(),
		s.webhookOperations(), s.connectionOperations(), s.directoryOperations(), s.oidcOperations(), s.serviceAccountOperations(), s.eventOperations(), s.changeOperations(),
		s.tenantOperations(), s.summaryOperations(), s.authOperations(), s.checkOperations(), s.factorOperations(), s.invitationOperations(), s.passwordOperations(), s.emailChangeOperations(),
		s.logoOperations(), s.exportOperations(), s.operatorOperations(), s.tenantsChangeOperations(), s.operatorEventOperations(), s.operatorWebhookOperations(),
	)
}

// declared are the operations for the document, the pages and the policies. Their handlers cannot be called.
var declared = new(Server).operations()

// problems are the errors that an operation can return in addition to those that follow from its declaration.
type problems = []*rolecall.Error

// route adds the operations to the router.
func (s *Server) route() {
	var tenants, operators []web.Route
	for _, op := range s.operations() {
		s.remedies[op.ID] = op.Method + " " + op.Path
		r := web.Route{Method: op.Method, Path: op.Path, Label: op.ID, Handler: s.runner.Handler(op)}
		if op.Policy.Operators {
			operators = append(operators, r)
		} else {
			tenants = append(tenants, r)
		}
	}
	s.router.Handle(tenants, nil)
	s.router.Handle(operators, s.isOperated)
}

// fail writes the problem for an error of the router. If a browser requests the root path, fail
// redirects it to the console instead.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	atRoot := r.URL.Path == "/" || strings.TrimSuffix(r.URL.Path, "/") == s.site.Base
	if err == web.ErrUnknownPath && atRoot && r.Method == http.MethodGet && acceptsHTML(r) {
		w.Header()["Location"] = []string{s.site.Base + "/console/"}
		w.Header()["Vary"] = append(w.Header()["Vary"], "Accept")
		web.Respond(w, r, http.StatusSeeOther, nil)
		return
	}
	if bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); err == web.ErrUnknownPath && !s.servesOperators(r) {
		if _, ok := secret.ParseOperatorKey(bearer); ok {
			err = web.ErrUnknownPath.With(operation.ElsewhereDetail)
		}
	}
	s.site.RespondProblem(w, r, err)
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Policies returns the policies of the operations for tenants, by operation ID. The console uses
// them to authorize its pages and to show API requests.
func Policies() map[string]web.Policy {
	policies := map[string]web.Policy{}
	for _, op := range declared {
		if op.Policy.Operators {
			continue
		}
		policies[op.ID] = web.Policy{Policy: op.Policy, Limiter: op.Limiter, Summary: op.Summary, Path: op.Path, Curl: func(address string, given url.Values) string { return curl(address, op, given) }}
	}
	return policies
}

// Input types that several operations share.
type (
	// noRequest has no parameters and no body.
	noRequest struct{}
	// anonymousRequest has only the anonymous caller.
	anonymousRequest struct{ Anonymous access.Anonymous }
	// idPath is the path parameter with the id of an object.
	idPath[T any] struct {
		ID rolecall.ID[T] `path:"id"`
	}
	userPath  = idPath[rolecall.User]
	rolePath  = idPath[rolecall.Role]
	groupPath = idPath[rolecall.Group]
	// userRequest has only the id of a user.
	userRequest struct{ userPath }
	// getRequest reads one object.
	getRequest[T any] struct {
		idPath[T]
		operation.IfNoneMatchHeader
	}
	// deleteRequest deletes an object.
	deleteRequest[T any] struct {
		idPath[T]
		operation.IfMatchHeader
	}
	// statusRequest suspends, resumes or erases a user, or suspends or resumes a service account.
	statusRequest[T holder] struct {
		idPath[T]
		Body reasonBody `optional:"true"`
	}
)

// holder is what can have roles. All holders share the handlers for these, and users and service accounts those for API
// tokens.
type holder interface {
	rolecall.User | rolecall.ServiceAccount | rolecall.Group
}

// holders has the handlers of operations on the holders of one kind.
type holders[T holder] struct{ *Server }

// match returns a precondition for a service method, or nil if the request has no If-Match header.
// The precondition is true if the header contains the ETag of the stored value. This ETag is
// computed from the members that the caller may read.
func match[T any](m operation.IfMatch, tag func(*T) string) directory.Match[T] {
	if !m.Given {
		return nil
	}
	return func(value *T) bool { return m.Matches(tag(value)) }
}
