package web

import (
	"io"
	"net/http"
)

// ReadBody appends the body of the request to b. It returns an *http.MaxBytesError if
// the body is larger than limit bytes.
func ReadBody(r *http.Request, b []byte, limit int64) ([]byte, error) {
	body := LimitedBody(r, limit)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return b, err
		}
	}
}

// LimitedBody returns the body of the request. A read returns an *http.MaxBytesError if the body is
// larger than limit bytes.
func LimitedBody(r *http.Request, limit int64) io.Reader {
	// net/http closes the connection after a body that is too large only if MaxBytesReader gets the
	// original ResponseWriter.
	return http.MaxBytesReader(RequestOf(r).response.ResponseWriter, r.Body, limit)
}
