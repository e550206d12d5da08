package web

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
)

// response is the ResponseWriter of the handlers. It notes the status for the log.
type response struct {
	http.ResponseWriter
	request *Request
	method  string
	status  int // 0 until WriteHeader
	bytes   int // length of the body
}

// WriteHeader sends the status and the header. Before that, it frees the request's slot in the
// concurrency limiter, so that slow clients hold no slot. While the process is about to stop,
// WriteHeader also makes the connection close after the response.
func (w *response) WriteHeader(status int) {
	w.request.Leave()
	w.status = status
	if w.request.site.draining.Load() { // checked here, so that requests in progress also close their connections
		w.Header()["Connection"] = closeConnection
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body (io.Writer).
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.send(b)
	w.bytes += n
	return n, err
}

// Unwrap returns the ResponseWriter of net/http (http.ResponseController).
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// chunkedFrom is the size in bytes from which Respond sets Content-Length. If the handler does not
// set Content-Length, net/http sends a body of at least this size in chunks. For a smaller body,
// net/http sets Content-Length. The header map of Respond then has at most eight entries, and a
// larger map is slower.
const chunkedFrom = 2048

// Respond sends the status and the whole body.
func Respond(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	q := RequestOf(r)
	q.response.bytes = len(body)
	hasNoBody := r.Method == http.MethodHead
	if hasNoBody && status != http.StatusNoContent && status != http.StatusNotModified || len(body) >= chunkedFrom {
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	w.WriteHeader(status)
	if len(body) == 0 || hasNoBody {
		return
	}
	if _, err := q.response.send(body); err != nil {
		q.Cause = err
	}
}

// The limits of responses that wait until their clients read them.
const (
	outgoingBytes  = 64 << 20              // of one process, with shares between tenants
	smallResponse  = 64 << 10              // responses below this size are not counted
	outgoingPart   = 16 << 10              // size of one write
	outgoingPrompt = 20 * time.Millisecond // a response that is sent in this time is not counted
)

// outgoing limits the memory of responses that wait until their clients read them. It counts a response from the
// time when the buffer of the socket did not take it, until it is sent. When they have too many bytes, it closes the
// one that has waited longest of the tenant with most bytes. It is safe for concurrent use.
type outgoing struct {
	limit int

	mu      sync.Mutex
	bytes   int
	tenants map[rolecall.TenantID]*outgoingOf
}

// outgoingOf are the responses of one tenant that wait.
type outgoingOf struct {
	bytes     int
	responses map[*sending]bool
}

// sending is a response that is being sent.
type sending struct {
	tenant rolecall.TenantID
	bytes  int
	close  func()    // fails the write that waits; nil if the response must not be closed
	since  time.Time // of the last progress
	counts bool
	ended  bool
}

func newOutgoing(limit int) *outgoing {
	return &outgoing{limit: limit, tenants: map[rolecall.TenantID]*outgoingOf{}}
}

// count counts a response that waits, unless it has ended. Then it closes responses until the limit is kept.
func (o *outgoing) count(s *sending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.ended {
		return
	}
	of := o.tenants[s.tenant]
	if of == nil {
		of = &outgoingOf{responses: map[*sending]bool{}}
		o.tenants[s.tenant] = of
	}
	s.counts, s.since = true, time.Now()
	of.responses[s] = true
	of.bytes += s.bytes
	o.bytes += s.bytes
	for o.bytes > o.limit {
		victim := o.slowest()
		if victim == nil {
			return
		}
		o.remove(victim)
		victim.close()
	}
}

// progress notes that the client has read a part of the response.
func (o *outgoing) progress(s *sending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.since = time.Now()
}

// end notes that the response was sent, or that its client has left.
func (o *outgoing) end(s *sending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.ended = true
	o.remove(s)
}

// remove stops counting the response. The caller must hold o.mu.
func (o *outgoing) remove(s *sending) {
	if !s.counts {
		return
	}
	s.counts = false
	of := o.tenants[s.tenant]
	delete(of.responses, s)
	of.bytes -= s.bytes
	o.bytes -= s.bytes
	if len(of.responses) == 0 {
		delete(o.tenants, s.tenant)
	}
}

// slowest returns the response whose client has read nothing for the longest time, of the tenant with most bytes
// that has a response that can be closed. It returns nil if no response can be closed. The caller must hold o.mu.
func (o *outgoing) slowest() (victim *sending) {
	most := 0
	for _, of := range o.tenants {
		if of.bytes <= most {
			continue
		}
		if slowest := of.slowest(); slowest != nil {
			most, victim = of.bytes, slowest
		}
	}
	return victim
}

func (of *outgoingOf) slowest() (victim *sending) {
	for s := range of.responses {
		if s.close != nil && (victim == nil || s.since.Before(victim.since)) {
			victim = s
		}
	}
	return victim
}

// send writes the body. It can fail because other responses need the memory. It never fails for this reason if the
// body is small, or if the request can have changed something.
func (w *response) send(body []byte) (n int, err error) {
	if len(body) < smallResponse {
		return w.ResponseWriter.Write(body)
	}
	q := w.request
	s := &sending{bytes: len(body)}
	if q.Principal != nil {
		s.tenant = q.Principal.Tenant.ID
	}
	if w.method == http.MethodGet || q.ReadsOnly {
		s.close = func() {
			// The write that waits fails at once, and net/http then closes the connection, or the stream of HTTP/2.
			if err := http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now()); err != nil {
				q.site.logger.WarnContext(q, "cannot close a response that its client does not read", "request_id", q.ID, "error", err)
			}
		}
	}
	outgoing := q.site.outgoing
	timer := time.AfterFunc(outgoingPrompt, func() { outgoing.count(s) })
	defer outgoing.end(s)
	defer timer.Stop()
	for part := range slices.Chunk(body, outgoingPart) {
		written, err := w.ResponseWriter.Write(part)
		n += written
		if err != nil {
			return n, err
		}
		outgoing.progress(s)
	}
	return n, nil
}
