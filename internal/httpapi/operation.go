package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

// operation is one entry of the contract: what is served, what it asks for, and
// what it can answer. The router, the checks and the document are made from it.
type operation struct {
	method, path string
	id           string // operation id; what stands before Controller is the tag
	summary      string
	need         service.Need // nil: works without a session
	effect       effect       // on access; step-up follows from it
	parameters   []*parameter // beside x-tenant-schema
	body         *body        // nil: none is read
	answers      []answer     // on success
	problems     []*rolecall.Error
	lane         lane
	operator     bool   // about tenants, by the key of an operator, and in no tenant
	interactive  bool   // only by a person's session, not by a token or key
	page         bool   // for people, and not part of the document
	label        string // in the metrics; "" for the id
	handle       func(*exchange) error
}

// body says what an operation reads.
type body struct {
	schema   string
	required bool
}

// answer is one way to succeed.
type answer struct {
	status  int
	schema  string // "" for no content
	about   string
	headers []string
}

// tag returns the group of the operation: Users, Roles, Auths.
func (o *operation) tag() string {
	tag, _, _ := strings.Cut(o.id, "Controller")
	return tag
}

// takes reports whether the operation has the parameter.
func (o *operation) takes(p *parameter) bool { return slices.Contains(o.parameters, p) }

// answersJSON reports whether the operation answers with a document, so that
// Accept matters.
func (o *operation) answersJSON() bool { return len(o.answers) > 0 && o.answers[0].schema != "" }

// setsSession reports whether the operation answers with the cookie of a session. A
// browser drops that cookie where the page is on another site.
func (o *operation) setsSession() bool {
	return len(o.answers) > 0 && o.answers[0].status == http.StatusOK && slices.Contains(o.answers[0].headers, "Set-Cookie")
}

// route is an operation with what is worked out once when the server is made.
type route struct {
	*operation
	inPath, inQuery, inHeader []*parameter
	meter                     *meter
}

func newRoute(op *operation, m *meters) *route {
	r := &route{operation: op, meter: m.of(cmp.Or(op.label, op.id))}
	for _, p := range op.parameters {
		switch p.in {
		case inPath:
			r.inPath = append(r.inPath, p)
		case inQuery:
			r.inQuery = append(r.inQuery, p)
		case inHeader:
			r.inHeader = append(r.inHeader, p)
		}
	}
	return r
}

// resource is one path with the operations on it.
type resource struct {
	server     *Server
	operations []*route
	allow      []string // the Allow header
	unserved   *route   // stands for the operation of a method that is not served
	unknown    bool     // the path is not served at all
	operator   bool     // the path is for operators alone
}

// ServeHTTP answers one request on the path.
func (res *resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := res.server.begin(w, r)
	defer x.end()
	x.route = res.operation(r.Method)
	x.visit = res.server.visit(x)
	switch {
	case x.isPreflight():
		x.permit()
	case len(r.RequestURI) > maxURL:
		x.fail(errURLTooLong)
	case linesOf(r.Header) > maxLines:
		x.fail(errTooManyLines)
	case res.unknown || res.operator && !x.isOperated():
		x.fail(errUnknownPath)
	case r.Method == http.MethodOptions:
		x.header["Allow"] = res.allow
		x.write(http.StatusNoContent)
	case x.route.handle == nil:
		x.header["Allow"] = res.allow
		x.fail(errMethodNotAllowed)
	default:
		x.run()
	}
}

// linesOf returns how many lines the header has.
func linesOf(h http.Header) int {
	n := 0
	for _, lines := range h {
		n += len(lines)
	}
	return n
}

// operation returns the operation of the method; HEAD is GET without a body. For
// a method that is not served it returns one that does nothing.
func (res *resource) operation(method string) *route {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, op := range res.operations {
		if op.method == method {
			return op
		}
	}
	return res.unserved
}

// methods returns the Allow header.
func (res *resource) methods() []string {
	var methods []string
	for _, op := range res.operations {
		methods = append(methods, op.method)
		if op.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	return []string{strings.Join(append(methods, http.MethodOptions), ", ")}
}
