package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/web"
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
	lane         web.Limiter
	operator     bool // about tenants, by the key of an operator, and in no tenant
	interactive  bool // only by a person's session, not by a token or key
	page         bool // for people, and not part of the document
	handle       func(*exchange) error
	endpoint     endpoint // instead of handle
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
}

func newRoute(op *operation) *route {
	r := &route{operation: op}
	parameters := op.parameters
	if op.endpoint != nil {
		parameters = op.endpoint.inputs()
	}
	for _, p := range parameters {
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
