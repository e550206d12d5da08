package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/web"
)

// operation is one entry of the contract: what is served, what it asks for, and
// what it can answer. The router, the checks and the document are made from it.
type operation struct {
	method, path string
	id           string // operation id; what stands before Controller is the tag
	summary      string
	policy       *authz.Policy
	answers      []answer // on success
	problems     []*rolecall.Error
	limiter      web.Limiter
	endpoint     endpoint
}

// answer is one way to succeed.
type answer struct {
	status  int
	about   string
	headers []string
}

// tag returns the group of the operation: Users, Roles, Auths.
func (o *operation) tag() string {
	tag, _, _ := strings.Cut(o.id, "Controller")
	return tag
}

// answersJSON reports whether the operation answers with a document, so that
// Accept matters.
func (o *operation) answersJSON() bool { return o.endpoint.answer() != nil }

// setsSession reports whether the operation answers with the cookie of a session. A
// browser drops that cookie where the page is on another site.
func (o *operation) setsSession() bool {
	return len(o.answers) > 0 && o.answers[0].status == http.StatusOK && slices.Contains(o.answers[0].headers, "Set-Cookie")
}
