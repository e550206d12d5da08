package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/wire"
)

// The errors for requests that the middleware refuses.
var (
	ErrUnknownPath      = rolecall.Declare(rolecall.Error{Kind: rolecall.NotFound, Code: "unknown-path", Detail: "This path does not exist. Paths have no trailing, double or encoded slashes. /docs lists all operations with their paths."})
	ErrMethodNotAllowed = rolecall.Declare(rolecall.Error{Kind: rolecall.Malformed, Code: "method-not-allowed", Detail: "This path does not support this method. Use one that the header Allow lists."})
	ErrNotAcceptable    = rolecall.Declare(rolecall.Error{Kind: rolecall.Malformed, Code: "not-acceptable", Detail: "The header Accept does not allow the media type of the response. Accept application/json (text/csv for exports), or omit the header."})
	ErrContentTooLarge  = rolecall.Declare(rolecall.Error{Kind: rolecall.Malformed, Code: "content-too-large", Detail: "The body is larger than 64 KiB. Send a smaller one."})
	ErrURLTooLong       = rolecall.Declare(rolecall.Error{Kind: rolecall.Malformed, Code: "uri-too-long", Detail: "The path and the query together are longer than 8 KiB. Shorten them."})
	ErrTooManyLines     = rolecall.Declare(rolecall.Error{Kind: rolecall.Malformed, Code: "too-many-headers", Detail: "The request has more than 100 header lines. Send fewer."})
	ErrMediaType        = rolecall.Declare(rolecall.Error{Kind: rolecall.Malformed, Code: "unsupported-media-type", Detail: "The body must be application/json in UTF-8. PATCH also accepts application/merge-patch+json."})
	ErrContentEncoding  = ErrMediaType.With("The body must not be compressed. Send it without Content-Encoding.")
	ErrCrossOrigin      = rolecall.Declare(rolecall.Error{Kind: rolecall.Forbidden, Code: "cross-origin", Detail: "A browser sent this request from an origin that is not trusted. The operator can trust it with --allow-origin."})
	ErrCrossSite        = rolecall.Declare(rolecall.Error{Kind: rolecall.Forbidden, Code: "cross-site", Detail: "The browser would drop the session cookie, because the page and this service are on different sites. Serve both under one site, such as https://app.example.com and https://id.example.com, let your back end hold the session, or sign in with the transport bearer."})
)

// statuses maps each kind of error to its HTTP status.
var statuses = [...]int{
	rolecall.Internal:             http.StatusInternalServerError,
	rolecall.Malformed:            http.StatusBadRequest,
	rolecall.Invalid:              http.StatusUnprocessableEntity,
	rolecall.Unauthenticated:      http.StatusUnauthorized,
	rolecall.Forbidden:            http.StatusForbidden,
	rolecall.NotFound:             http.StatusNotFound,
	rolecall.Conflict:             http.StatusConflict,
	rolecall.Gone:                 http.StatusGone,
	rolecall.PreconditionFailed:   http.StatusPreconditionFailed,
	rolecall.TooMany:              http.StatusTooManyRequests,
	rolecall.PreconditionRequired: http.StatusPreconditionRequired,
	rolecall.Unavailable:          http.StatusServiceUnavailable,
}

// framingStatuses maps the codes of errors that have a specific HTTP status to this status.
var framingStatuses = map[string]int{
	ErrMethodNotAllowed.Code: http.StatusMethodNotAllowed,
	ErrNotAcceptable.Code:    http.StatusNotAcceptable,
	ErrContentTooLarge.Code:  http.StatusRequestEntityTooLarge,
	ErrURLTooLong.Code:       http.StatusRequestURITooLong,
	ErrTooManyLines.Code:     http.StatusRequestHeaderFieldsTooLarge,
	ErrMediaType.Code:        http.StatusUnsupportedMediaType,
}

// StatusOf returns the HTTP status for err, and the error that clients may read. An error that is
// not a *rolecall.Error becomes an internal error, because clients must not read its text.
func StatusOf(err error) (int, *rolecall.Error) {
	known, ok := errors.AsType[*rolecall.Error](err)
	if !ok || known.Kind == rolecall.Internal {
		return http.StatusInternalServerError, rolecall.ErrInternal
	}
	if status, ok := framingStatuses[known.Code]; ok {
		return status, known
	}
	return statuses[known.Kind], known
}

// TitleOf returns the title of a problem. The title depends only on the code.
func TitleOf(code string) string {
	return strings.ToUpper(code[:1]) + strings.ReplaceAll(code[1:], "-", " ")
}

// statusClientClosed is the status that the log has for a request whose client disconnected before
// the response.
const statusClientClosed = 499

// Problem is an error in the form in which the response reports it.
type Problem struct {
	*rolecall.Error
	Status    int
	Title     string
	RequestID string
	Extension []byte // further members in JSON, each after a comma; nil for none
}

// ProblemOf returns the problem for err. It stores the cause of a 5xx for the log. If the status
// would be 5xx and the client has disconnected, ProblemOf aborts the connection. Otherwise net/http
// could respond with 200 to a client that has closed only its sending side.
func (q *Request) ProblemOf(err error) *Problem {
	if errors.Is(err, context.DeadlineExceeded) {
		q.Cause, err = err, rolecall.ErrUnavailable
	}
	status, known := StatusOf(err)
	if status >= http.StatusInternalServerError && q.hasClientLeft() {
		q.response.status = statusClientClosed
		panic(http.ErrAbortHandler)
	}
	if status >= http.StatusInternalServerError && q.Cause == nil && err != error(known) {
		q.Cause = err
	}
	return &Problem{Error: known, Status: status, Title: TitleOf(known.Code), RequestID: q.ID}
}

// successHeaders are the headers that a handler may have set before it failed. A problem must not
// have them.
var successHeaders = []string{"Etag", "Location", "Link", "Withheld-Fields", "Set-Cookie", "Idempotent-Replayed"}

// SetHeaders removes the headers that belong only to a success, and sets the headers that belong to
// the problem's status.
func (p *Problem) SetHeaders(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for _, name := range successHeaders {
		delete(h, name)
	}
	switch p.Status {
	case http.StatusRequestEntityTooLarge:
		h["Connection"] = closeConnection
	case http.StatusUnsupportedMediaType:
		if p.Error == ErrContentEncoding {
			h["Accept-Encoding"] = []string{"identity"}
		} else if r.Method == http.MethodPatch {
			h["Accept-Patch"] = []string{"application/json, application/merge-patch+json"}
		} else {
			h["Accept"] = []string{"application/json"}
		}
	}
	if p.RetryAfter > 0 || p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		seconds := int64((p.RetryAfter + time.Second - 1) / time.Second)
		h["Retry-After"] = []string{strconv.FormatInt(max(seconds, 1), 10)}
	}
}

var problemType = []string{"application/problem+json"}

// RespondProblem sends the problem document for err.
func (s *Site) RespondProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := RequestOf(r).ProblemOf(err)
	p.SetHeaders(w, r)
	s.WriteProblem(w, r, p)
}

// WriteProblem sends the problem document. It does not call SetHeaders.
func (s *Site) WriteProblem(w http.ResponseWriter, r *http.Request, p *Problem) {
	w.Header()["Content-Type"] = problemType
	Respond(w, r, p.Status, s.appendProblem(nil, p, r.URL.Path))
}

// furtherFieldErrors is appended to the detail of a problem that does not list all field errors.
var furtherFieldErrors = fmt.Sprintf(" Only the first %d errors are listed.", rolecall.MaxFieldErrors)

// appendProblem appends the problem document (RFC 9457) to b.
func (s *Site) appendProblem(b []byte, p *Problem, instance string) []byte {
	hasMore := len(p.FieldErrors) > rolecall.MaxFieldErrors
	detail := p.Detail
	if hasMore {
		detail += furtherFieldErrors
	}
	b = append(b, `{"type":`...)
	b = wire.AppendText(b, s.Base+"/problems/"+p.Code)
	b = append(b, `,"code":`...)
	b = wire.AppendText(b, p.Code)
	b = append(b, `,"title":`...)
	b = wire.AppendText(b, p.Title)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(p.Status), 10)
	b = append(b, `,"detail":`...)
	b = wire.AppendText(b, detail)
	b = append(b, `,"instance":`...)
	b = wire.AppendText(b, instance)
	b = append(b, `,"requestId":`...)
	b = wire.AppendText(b, p.RequestID)
	if len(p.FieldErrors) > 0 {
		b = append(b, `,"errors":[`...)
		for i := range p.FieldErrors[:min(len(p.FieldErrors), rolecall.MaxFieldErrors)] {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendFieldError(b, &p.FieldErrors[i])
		}
		b = append(b, ']')
		if hasMore {
			b = append(b, `,"moreErrors":true`...)
		}
	}
	b = append(b, p.Extension...)
	return append(b, '}')
}

func appendFieldError(b []byte, f *rolecall.FieldError) []byte {
	switch {
	case f.Header != "":
		b = append(b, `{"header":`...)
		b = wire.AppendText(b, f.Header)
	case f.Parameter != "":
		b = append(b, `{"parameter":`...)
		b = wire.AppendText(b, f.Parameter)
	default:
		b = append(b, `{"pointer":`...)
		b = wire.AppendText(b, shortened(f.Pointer))
	}
	b = append(b, `,"code":`...)
	b = wire.AppendText(b, f.Code)
	b = append(b, `,"detail":`...)
	b = wire.AppendText(b, f.Detail)
	return append(b, '}')
}

// shortened returns at most 200 bytes of a JSON pointer. The pointer contains names that a client
// chose, so it can be long.
func shortened(pointer string) string {
	if len(pointer) <= 200 {
		return pointer
	}
	return pointer[:strings.LastIndexByte(pointer[:200], '/')+1] + "…"
}
