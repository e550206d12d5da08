package httpapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The length of what is shorter than chunkedFrom is left to net/http.
func TestEveryAnswerHasALength(t *testing.T) {
	for _, size := range []int{0, 1, chunkedFrom - 1, chunkedFrom, chunkedFrom + 1, 3 * chunkedFrom} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x := &exchange{server: &Server{}, request: r, writer: w, header: w.Header(), out: bytes.Repeat([]byte("x"), size)}
			x.write(http.StatusOK)
		}))
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			request, err := http.NewRequest(method, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if err := answer.Body.Close(); err != nil {
				t.Error(err)
			}
			if answer.ContentLength != int64(size) || answer.TransferEncoding != nil {
				t.Errorf("%s of %d bytes: length %d, sent as %v", method, size, answer.ContentLength, answer.TransferEncoding)
			}
		}
		server.Close()
	}
}
