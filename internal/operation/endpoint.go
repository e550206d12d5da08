package operation

import (
	"context"
	"net/http"
	"reflect"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/internal/wire"
)

// Handler is the handler of one operation. Its first argument is Runner.API, so a method of the
// type API can be a handler.
type Handler[API, In, Out any] func(api API, ctx context.Context, c access.Caller, in *In) (Response[Out], error)

// Response is what a handler returns: the status, the body and the headers of the response.
type Response[T any] struct {
	Status     int // 0 for the status in Operation.Answers[0]
	Body       T
	Location   string                                       // path of the resource that was created
	Replayed   bool                                         // the result is that of an earlier request with the same idempotency key
	Tag        string                                       // the ETag header; empty: the response has no ETag, or that of its body
	Next       *rolecall.Position                           // position at which the next page begins; nil on the last page
	Problem    *Problem                                     // replaces the rest of the response; nil for a success
	Cookies    func(w http.ResponseWriter, r *http.Request) // sets cookies; nil for none
	NameCaller bool                                         // sends X-Auth-User and X-Auth-Tenant with the caller
}

// Problem lets a handler respond with a problem although the handler did not fail.
type Problem struct {
	*rolecall.Error
	Extension []byte // further members of the problem in JSON, each after a comma; nil for none
}

// NoContent is the body of a response without a body.
type NoContent struct{}

// redacted is a body without the members that the caller may not read. HiddenMembers returns the
// names of these members for the Withheld-Fields header, or an empty string if nothing is hidden.
type redacted interface{ HiddenMembers() string }

// taggedBody is a body that can have an ETag. If HasTag returns false, the response has no ETag,
// because the caller may read only the id.
type taggedBody interface{ HasTag() bool }

// cursorBody is the body of a page of a list.
type cursorBody interface{ setNextCursor(cursor string) }

// Endpoint is a handler with its input and output types erased.
type Endpoint interface {
	// takes returns the parameters and the body that the handler takes.
	takes() *Input
	// answer returns the type of the response body, or nil if the response has no body.
	answer() reflect.Type
	// mediaTypes returns the media types that the response body can have, or nil if the response
	// has no body.
	mediaTypes() []string
	// serve calls the handler with the input in and writes the response. It encodes the body into
	// buffer, and returns the buffer for reuse.
	serve(s *Runner, op *Operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, buffer []byte) ([]byte, error)
}

// typedEndpoint is the endpoint of a handler with the input type In and the body type Out.
type typedEndpoint[API, In, Out any] struct {
	handler Handler[API, In, Out]
	input   *Input
	encoder *wire.Encoder[Out] // nil for NoContent
}

// Typed returns the endpoint of a handler whose response body is sent as JSON.
func Typed[API, In, Out any](h Handler[API, In, Out]) Endpoint {
	e := &typedEndpoint[API, In, Out]{handler: h, input: inputOf(reflect.TypeFor[In]())}
	if reflect.TypeFor[Out]() != reflect.TypeFor[NoContent]() {
		e.encoder = wire.NewEncoder[Out]()
	}
	return e
}

func (e *typedEndpoint[API, In, Out]) takes() *Input { return e.input }

func (e *typedEndpoint[API, In, Out]) answer() reflect.Type {
	if e.encoder == nil {
		return nil
	}
	return reflect.TypeFor[Out]()
}

func (e *typedEndpoint[API, In, Out]) mediaTypes() []string {
	if e.encoder == nil {
		return nil
	}
	return asJSON
}

func (e *typedEndpoint[API, In, Out]) serve(s *Runner, op *Operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, buffer []byte) ([]byte, error) {
	response, err := e.handler(s.API.(API), r.Context(), c, in.Addr().Interface().(*In))
	if err != nil {
		return buffer, err
	}
	if response.Problem != nil {
		p := web.RequestOf(r).ProblemOf(response.Problem.Error)
		p.Extension = response.Problem.Extension
		s.respondProblem(op, w, r, p)
		return buffer, nil
	}
	h := w.Header()
	status := response.Status
	if status == 0 {
		status = op.Answers[0].Status
	}
	if response.Location != "" {
		h["Location"] = []string{s.Site.Base + response.Location}
	}
	if response.Tag != "" {
		h["Etag"] = []string{response.Tag}
	}
	if response.Replayed {
		h["Idempotent-Replayed"] = []string{"true"}
	}
	if response.Cookies != nil {
		response.Cookies(w, r)
	}
	if response.NameCaller {
		h["X-Auth-User"] = []string{c.User.ID.String()}
		h["X-Auth-Tenant"] = []string{c.Tenant.Name}
	}
	if e.encoder == nil {
		web.Respond(w, r, status, nil)
		return buffer, nil
	}
	body := any(&response.Body)
	if page, ok := body.(cursorBody); ok && response.Next != nil {
		next := web.SealCursor(s.Access.Keys, response.Next, listDigest(op, r.URL, c.Principal))
		page.setNextCursor(next)
		h["Link"] = []string{nextLink(r.URL, next)}
	}
	buffer = e.encoder.Append(buffer, &response.Body)
	if body, ok := body.(redacted); ok {
		if hidden := body.HiddenMembers(); hidden != "" {
			h["Withheld-Fields"] = []string{hidden}
		}
	}
	if body, ok := body.(taggedBody); ok && body.HasTag() {
		tag := secret.ETag(buffer)
		h["Etag"] = []string{tag}
		if index := e.input.ifNoneMatch; index != nil && fieldOf[IfNoneMatch](in, index).matchesWeakly(tag) {
			web.Respond(w, r, http.StatusNotModified, nil)
			return buffer, nil
		}
	}
	RespondJSON(w, r, status, buffer)
	return buffer, nil
}

var asJSON = []string{jsonType}

// RespondJSON writes a response with the JSON document.
func RespondJSON(w http.ResponseWriter, r *http.Request, status int, document []byte) {
	w.Header()["Content-Type"] = asJSON
	web.Respond(w, r, status, document)
}
