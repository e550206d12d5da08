package web

import (
	"io"
	"net/http"
)

// ReadBody appends the body of the request to b. It returns an *http.MaxBytesError if
// the body is larger than MaxBody.
func ReadBody(r *http.Request, b []byte) ([]byte, error) {
	// net/http closes the connection after a body that is too large only if MaxBytesReader gets the
	// original ResponseWriter.
	body := http.MaxBytesReader(RequestOf(r).response.ResponseWriter, r.Body, MaxBody)
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
