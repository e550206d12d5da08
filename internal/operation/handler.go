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

// Handler serves the requests of one operation.
type Handler struct {
	input      *Input
	answer     reflect.Type // of the response body; nil if the response has none
	mediaTypes []string     // that the response body can have; nil if the response has none
	// serve calls the method of the API and writes its response. It encodes the body into buffer, and returns
	// the buffer for reuse.
	serve func(run *Runner, op *Operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, buffer []byte) ([]byte, error)
}

// JSON returns the handler that calls the method do. The body of its response is sent as JSON, unless it is NoContent.
func JSON[In, Out any](do func(ctx context.Context, c access.Caller, in *In) (Response[Out], error)) Handler {
	h := Handler{input: inputOf(reflect.TypeFor[In]())}
	var encoder *wire.Encoder[Out]
	if answer := reflect.TypeFor[Out](); answer != reflect.TypeFor[NoContent]() {
		h.answer, h.mediaTypes, encoder = answer, asJSON, wire.NewEncoder[Out]()
	}
	h.serve = func(run *Runner, op *Operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, buffer []byte) ([]byte, error) {
		response, err := do(r.Context(), c, in.Addr().Interface().(*In))
		if err != nil {
			return buffer, err
		}
		if response.Problem != nil {
			p := web.RequestOf(r).ProblemOf(response.Problem.Error)
			p.Extension = response.Problem.Extension
			run.respondProblem(op, w, r, p)
			return buffer, nil
		}
		return respond(run, op, w, r, c, in, &response, encoder, buffer)
	}
	return h
}

// respond writes the response. It encodes the body into buffer, and returns the buffer. A response without an
// encoder has no body.
func respond[Out any](run *Runner, op *Operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, response *Response[Out], encoder *wire.Encoder[Out], buffer []byte) ([]byte, error) {
	h := w.Header()
	status := response.Status
	if status == 0 {
		status = op.Answers[0].Status
	}
	if response.Location != "" {
		h["Location"] = []string{run.Site.Base + response.Location}
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
	if encoder == nil {
		web.Respond(w, r, status, nil)
		return buffer, nil
	}
	body := any(&response.Body)
	if page, ok := body.(cursorBody); ok && response.Next != nil {
		next := web.SealCursor(run.Access.Keys, response.Next, listDigest(op, r.URL, c.Principal))
		page.setNextCursor(next)
		h["Link"] = []string{nextLink(r.URL, next)}
	}
	buffer = encoder.Append(buffer, &response.Body)
	if body, ok := body.(redacted); ok {
		if hidden := body.HiddenMembers(); hidden != "" {
			h["Withheld-Fields"] = []string{hidden}
		}
	}
	if body, ok := body.(taggedBody); ok && body.HasTag() {
		tag := secret.ETag(buffer)
		h["Etag"] = []string{tag}
		if index := op.Handler.input.ifNoneMatch; index != nil && fieldOf[IfNoneMatch](in, index).matchesWeakly(tag) {
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
