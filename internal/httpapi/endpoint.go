package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/internal/wire"
)

// handler is the handler of one operation.
type handler[In, Out any] func(s *Server, ctx context.Context, c access.Caller, in *In) (Response[Out], error)

// Response is what a handler returns: the body, and what the answer says beside it.
type Response[T any] struct {
	Status     int // 0 for the first status of the operation
	Body       T
	Location   string             // path of the resource that was created
	Replayed   bool               // the answer to an earlier request with the same idempotency key
	Next       *rolecall.Position // where the next page begins; nil on the last page
	SignIn     *signin.SignIn     // the session whose cookies the browser gets
	Challenge  *signin.Challenge  // answered as a problem, instead of all else
	SignedOut  bool               // the browser loses its session cookie
	NameCaller bool               // X-Auth-User and X-Auth-Tenant name the caller
	Device     string             // the known-device token that the browser gets; empty for none
}

// NoContent is the body of a response without a body.
type NoContent struct{}

// redacted is a body of which permission hides some members.
type redacted interface{ hiddenMembers() string }

// taggedBody is a body that has an ETag. A body of which the caller may read nothing has none.
type taggedBody interface{ hasTag() bool }

// cursorBody is the body of a page of a list.
type cursorBody interface{ setNextCursor(cursor string) }

// endpoint is a handler of any types.
type endpoint interface {
	// takes returns what the input type of the handler says.
	takes() *input
	// answer returns the type of the body of the response, nil if it has none.
	answer() reflect.Type
	// serve calls the handler and answers with its response. It returns the buffer of the
	// body.
	serve(s *Server, op *operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, buffer []byte) ([]byte, error)
}

// typedEndpoint is the endpoint of a handler from In to Out.
type typedEndpoint[In, Out any] struct {
	handler handler[In, Out]
	input   *input
	encoder *wire.Encoder[Out] // nil for NoContent
}

// typed returns the endpoint of the handler.
func typed[In, Out any](h handler[In, Out]) endpoint {
	e := &typedEndpoint[In, Out]{handler: h, input: inputOf(reflect.TypeFor[In]())}
	if reflect.TypeFor[Out]() != reflect.TypeFor[NoContent]() {
		e.encoder = wire.NewEncoder[Out]()
	}
	return e
}

func (e *typedEndpoint[In, Out]) takes() *input { return e.input }

func (e *typedEndpoint[In, Out]) answer() reflect.Type {
	if e.encoder == nil {
		return nil
	}
	return reflect.TypeFor[Out]()
}

func (e *typedEndpoint[In, Out]) serve(s *Server, op *operation, w http.ResponseWriter, r *http.Request, c access.Caller, in reflect.Value, buffer []byte) ([]byte, error) {
	response, err := e.handler(s, r.Context(), c, in.Addr().Interface().(*In))
	if err != nil {
		return buffer, err
	}
	if c := response.Challenge; c != nil {
		p := web.RequestOf(r).ProblemOf(c.Problem)
		p.Extension = appendChallenge(nil, c)
		s.respondProblem(op, w, r, p)
		return buffer, nil
	}
	h := w.Header()
	status := response.Status
	if status == 0 {
		status = op.answers[0].status
	}
	if response.Location != "" {
		h["Location"] = []string{s.site.Base + response.Location}
	}
	if response.Replayed {
		h["Idempotent-Replayed"] = []string{"true"}
	}
	switch {
	case response.SignIn != nil:
		s.setSession(w, r, response.SignIn)
	case response.SignedOut:
		s.site.ClearSession(w)
	case response.Device != "":
		s.setDevice(w, r, c.Tenant.ID, response.Device)
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
		next := web.SealCursor(s.access.Keys, response.Next, listDigest(op, r.URL, c.Principal))
		page.setNextCursor(next)
		h["Link"] = []string{nextLink(r.URL, next)}
	}
	buffer = e.encoder.Append(buffer, &response.Body)
	if body, ok := body.(redacted); ok {
		if hidden := body.hiddenMembers(); hidden != "" {
			h["Withheld-Fields"] = []string{hidden}
		}
	}
	if body, ok := body.(taggedBody); ok && body.hasTag() {
		tag := secret.ETag(buffer)
		h["Etag"] = []string{tag}
		if index := e.input.ifNoneMatch; index != nil && fieldOf[ifNoneMatchValue](in, index).matchesWeakly(tag) {
			web.Respond(w, r, http.StatusNotModified, nil)
			return buffer, nil
		}
	}
	respondJSON(w, r, status, buffer)
	return buffer, nil
}

var asJSON = []string{"application/json"}

// respondJSON answers with the document.
func respondJSON(w http.ResponseWriter, r *http.Request, status int, document []byte) {
	w.Header()["Content-Type"] = asJSON
	web.Respond(w, r, status, document)
}

// match returns the precondition of a service method: the ETag of what the caller sees of the
// value is one of the header. It is nil without the header.
func match[T any](m ifMatchValue, tag func(*T) string) directory.Match[T] {
	if !m.given {
		return nil
	}
	return func(value *T) bool { return m.matches(tag(value)) }
}
