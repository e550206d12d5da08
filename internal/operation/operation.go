// Package operation owns what every operation of the HTTP API needs: the declaration of an
// operation, the checks before its handler in the order of the contract, the reading of
// parameters and bodies by struct tags, the response, and its entry in the OpenAPI document.
// Package httpapi declares the operations. This package may import access, authz, web, wire,
// idempotency and secret, and neither signin nor directory.
package operation

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/web"
)

// Operation is one entry of the contract: method, path, policy and possible responses. The router,
// the checks and the OpenAPI document are made from it.
type Operation struct {
	Method, Path string
	ID           string // operation id; the part before Controller is the tag
	Summary      string // imperative and short
	Description  string // effects and limits; if it is empty, the description of the first answer is used
	Policy       *authz.Policy
	Answers      Answers
	Problems     []*rolecall.Error
	Limiter      web.Limiter
	Endpoint     Endpoint
	// AnswersByDenial is true for an operation that checks a permission on behalf of its caller.
	// Its 403 is a normal result, and is not recorded as a refusal.
	AnswersByDenial bool
}

// Answers are the responses of a success.
type Answers []struct {
	Status  int
	About   string
	Headers []string
}

// Tag returns the group of the operation: Users, Roles, Auths.
func (o *Operation) Tag() string {
	tag, _, _ := strings.Cut(o.ID, "Controller")
	return tag
}

// Input returns the compiled input of the operation.
func (o *Operation) Input() *Input { return o.Endpoint.takes() }

// AnswersJSON reports whether the operation answers with a JSON document.
func (o *Operation) AnswersJSON() bool { return o.Endpoint.mediaType() == jsonType }

// SetsSession reports whether the response sets a session cookie. A browser drops this cookie if
// the page that sent the request is on another site.
func (o *Operation) SetsSession() bool {
	return len(o.Answers) > 0 && o.Answers[0].Status == http.StatusOK && slices.Contains(o.Answers[0].Headers, "Set-Cookie")
}
