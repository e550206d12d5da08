// Package httpapi is the HTTP API: it turns requests into calls of the service and
// answers into JSON. Every operation is one entry of one table. Checking, reading and
// encoding are done once for all of them. Package web has the middleware around it.
package httpapi

import (
	"net/http"
	"sync"

	"github.com/rolecall/rolecall/internal/service"
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
	service   *service.Service
	site      *web.Site
	handler   http.Handler
	router    *web.Router
	apart     bool // operators are served on their own listener alone
	exchanges sync.Pool
	readiness *readiness

	securityContact string // URI; empty: none
}

// New returns a server of all operations.
func New(s *service.Service, site *web.Site, o Options) *Server {
	server := &Server{
		service:   s,
		site:      site,
		apart:     o.OperatorsApart,
		readiness: newReadiness(s.Ready),

		securityContact: o.SecurityContact,
	}
	server.exchanges.New = func() any { return &exchange{server: server} }
	server.router = site.NewRouter(site.RespondProblem)
	server.route(operations)
	server.route(operatorOperations)
	server.route(server.pages())
	server.handler = site.Handler(server.router, site.RespondProblem)
	return server
}

// route adds the operations to the router.
func (s *Server) route(operations []*operation) {
	var tenants, operators []web.Route
	for _, op := range operations {
		r := web.Route{Method: op.method, Path: op.path, Label: op.id, Handler: s.handlerOf(newRoute(op))}
		if op.operator {
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

// handlerOf returns the handler of the operation.
func (s *Server) handlerOf(route *route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := s.begin(route, w, r)
		defer x.end()
		if err := x.serve(); err != nil {
			x.fail(err)
		}
	})
}

// Policies returns the policies of the operations for tenants, by their ids.
func Policies() map[string]web.Policy {
	policies := map[string]web.Policy{}
	for _, op := range operations {
		policies[op.id] = web.Policy{Need: op.need, StepsUp: op.stepsUp(), Limiter: op.lane}
	}
	return policies
}
