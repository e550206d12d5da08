package httpapi

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
)

// exchange is one request and its answer. It is pooled: nothing of it may be
// used after the answer was written.
type exchange struct {
	server  *Server
	route   *route
	request *http.Request
	writer  http.ResponseWriter
	header  http.Header
	ctx     *deadline
	started time.Time

	requestID string
	tenant    rolecall.Tenant
	named     string         // what x-tenant-schema said
	presented []secret.Token // well-formed session cookies
	bearer    string         // the token or key of the Authorization header
	call      service.Call   // the principal, nil without a session
	in        input
	unknown   rolecall.Faults // values of filters that are not known
	body      []byte          // what was sent
	out       []byte          // the body of the answer
	status    int             // of the answer, once it is written
	cause     error           // why it failed, if the answer does not say it
	inLane    bool            // holds a place in the lane of the operation
	visit     *Visit          // to a page of the console; nil if it is none
}

// begin takes an exchange from the pool and sets what every answer carries.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x, _ := s.exchanges.Get().(*exchange)
	now := time.Now()
	x.request, x.writer, x.header, x.started = r, w, w.Header(), now
	x.identify()
	x.ctx = &deadline{Context: r.Context(), at: now.Add(s.deadline)}
	s.meters.inFlight.Inc()

	x.header["X-Request-Id"] = []string{x.requestID}
	x.header["X-Content-Type-Options"] = noSniff
	x.header["Referrer-Policy"] = noReferrer
	x.header["Cross-Origin-Resource-Policy"] = sameOrigin
	x.header["Content-Security-Policy"] = noContent
	x.header["Cache-Control"] = noStore
	if s.hsts != nil {
		x.header["Strict-Transport-Security"] = s.hsts
	}
	if isAmbiguous(r) {
		x.header["Connection"] = closing
	}
	x.share()
	return x
}

// isAmbiguous reports whether who stands before this program may have seen the
// request end elsewhere; its connection must end with it (RFC 9112, 6.1). net/http
// does not say whether a length came beside chunks, and passes over chunks in
// HTTP/1.0.
func isAmbiguous(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}

// identify notes where the request comes from and what it is called in the log.
func (x *exchange) identify() {
	source, passed := x.server.proxies.source(x.request)
	if passed {
		x.requestID = passedRequestID(x.request.Header)
	}
	if x.requestID == "" {
		x.requestID = rolecall.NewID[any](rolecall.TimeOf(x.started)).String()
	}
	x.call.RequestID, x.call.Source = x.requestID, source
}

// The header values that never change, shared by all answers.
var (
	noSniff    = []string{"nosniff"}
	noReferrer = []string{"no-referrer"}
	sameOrigin = []string{"same-origin"}
	noContent  = []string{"default-src 'none'; base-uri 'none'; frame-ancestors 'none'"}
	noStore    = []string{"no-store"}
	closing    = []string{"close"}
	asJSON     = []string{"application/json"}
	asProblem  = []string{"application/problem+json"}
)

// hstsHeader returns the Strict-Transport-Security of a year. Only the operator knows
// whether every host under the public one serves https.
func hstsHeader(includeSubdomains bool) []string {
	header := "max-age=31536000"
	if includeSubdomains {
		header += "; includeSubDomains"
	}
	return []string{header}
}

// run checks the request, lets the operation handle it, and answers; a panic
// anywhere in that is answered as an internal error.
func (x *exchange) run() {
	defer func() {
		switch recovered := recover(); {
		case recovered == nil:
		case recovered == http.ErrAbortHandler:
			panic(recovered)
		default:
			x.server.logger.ErrorContext(x.ctx, "panic", "request_id", x.requestID, "panic", recovered, "stack", string(debug.Stack()))
			if x.status == 0 {
				x.fail(rolecall.ErrInternal)
			}
		}
	}()
	if err := x.serve(); err != nil {
		x.fail(err)
	}
}

// end observes the exchange and gives it back.
func (x *exchange) end() {
	x.leave()
	x.ctx.end()
	x.server.observe(x)
	clear(x.body) // it may hold a password
	*x = exchange{server: x.server, body: keep(x.body), out: keep(x.out), presented: x.presented[:0]}
	x.server.exchanges.Put(x)
}

// keep returns the buffer emptied, or nothing if it has grown too large to keep.
func keep(buffer []byte) []byte {
	if cap(buffer) > maxBody {
		return nil
	}
	return buffer[:0]
}

// chunkedFrom is the size from which net/http sends an answer in chunks, unless it
// is told the length. The length of a smaller one it finds itself, and the header
// map stays within eight entries, past which it grows expensive.
const chunkedFrom = 2048

// write sends the answer: the status, and what is in out with its length.
func (x *exchange) write(status int) {
	x.leave()
	x.status = status
	if x.server.draining.Load() { // asked last: what was under way ends its connection too
		x.header["Connection"] = closing
	}
	bare := x.request.Method == http.MethodHead && status != http.StatusNoContent && status != http.StatusNotModified
	if bare || len(x.out) >= chunkedFrom {
		x.header["Content-Length"] = []string{strconv.Itoa(len(x.out))}
	}
	x.writer.WriteHeader(status)
	if len(x.out) == 0 || x.request.Method == http.MethodHead {
		return
	}
	if _, err := x.writer.Write(x.out); err != nil {
		x.cause = err
	}
}

// json answers with the document in out.
func (x *exchange) json(status int) error {
	x.header["Content-Type"] = asJSON
	x.write(status)
	return nil
}

// nothing answers 204.
func (x *exchange) nothing() error {
	x.write(http.StatusNoContent)
	return nil
}

// fail answers with the problem that err means. Nothing of an error that is not
// one of ours gets out. Of a client who has left the connection is cut: half of
// it may still be open, and net/http would answer 200 there.
func (x *exchange) fail(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		x.cause, err = err, rolecall.ErrUnavailable
	}
	status, known := statusOf(err)
	if known.Kind == rolecall.Forbidden && x.call.Principal != nil && x.route.id != checkID {
		x.server.service.Refused(x.call, x.in.user, x.route.id, known.Code)
	}
	if status >= http.StatusInternalServerError && errors.Is(x.request.Context().Err(), context.Canceled) {
		x.status = statusClientClosed
		panic(http.ErrAbortHandler)
	}
	if status >= http.StatusInternalServerError && x.cause == nil && err != error(known) {
		x.cause = err
	}
	x.problemHeaders(status, known)
	if x.visit != nil {
		failed := x.visit.refuse(status, known)
		if failed == nil {
			return
		}
		x.cause = errors.Join(x.cause, failed)
	}
	x.out = appendProblem(x.out[:0], x.server.base, status, known, x.request.URL.Path, x.requestID)
	x.header["Content-Type"] = asProblem
	x.write(status)
}

// statusClientClosed is what is logged for an exchange whose client has left.
const statusClientClosed = 499
