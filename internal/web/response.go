package web

import (
	"net/http"
	"strconv"
)

// response is the ResponseWriter of the handlers. It notes the status for the log.
type response struct {
	http.ResponseWriter
	request *Request
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
	n, err := w.ResponseWriter.Write(b)
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
	if _, err := q.response.ResponseWriter.Write(body); err != nil {
		q.Cause = err
	}
}
