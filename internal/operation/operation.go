// Package operation has the code that all operations of the HTTP API share. It defines what a
// declaration of an operation contains. For each request, it runs the checks in the order of the
// contract, decodes parameters and body by struct tags, calls the handler and writes the
// response. It also creates the OpenAPI document. Package httpapi declares the operations.
// Package operation may import access, authz, web, wire, idempotency and secret, but not signin
// or directory.
package operation

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/web"
)

// Operation declares one operation of the API: method, path, policy and possible responses. The
// router, the checks before the handler and the OpenAPI document use this declaration.
type Operation struct {
	Method, Path string
	ID           string // operationId in OpenAPI: UsersController_createUser. The tag is the part before Controller.
	Summary      string // imperative and short: Create a user
	Description  string // effects and limits
	Policy       *authz.Policy
	Answers      Answers
	Problems     []*rolecall.Error
	Limiter      web.Limiter
	Handler      Handler
	// AnswersByDenial is true for an operation that checks a permission on behalf of its caller.
	// Its 403 is a normal result, and is not recorded as a refusal.
	AnswersByDenial bool
	ReadsOnly       bool // for a POST that changes nothing
	// ReturnsPermissions is true if the response has all permissions of the caller, so that it can have megabytes.
	ReturnsPermissions bool
}

// Answers are the successful responses that an operation can send.
type Answers []struct {
	Status  int
	About   string
	Headers []string
}

// Tag returns the OpenAPI tag of the operation, such as Users or Roles. The document groups the
// operations by tag.
func (o *Operation) Tag() string {
	tag, _, _ := strings.Cut(o.ID, "Controller")
	return tag
}

// Input returns the parameters and the body of the operation.
func (o *Operation) Input() *Input { return o.Handler.input }

// AnswersJSON reports whether successful responses of the operation have a JSON body.
func (o *Operation) AnswersJSON() bool { return slices.Equal(o.Handler.mediaTypes, asJSON) }

// SetsSession reports whether a successful response sets a session cookie. A browser drops this
// cookie if the page that sent the request is on another site.
func (o *Operation) SetsSession() bool {
	return len(o.Answers) > 0 && o.Answers[0].Status == http.StatusOK && slices.Contains(o.Answers[0].Headers, "Set-Cookie")
}
