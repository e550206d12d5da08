package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// net/http sets the length of responses that are shorter than chunkedFrom.
func TestEveryResponseHasALength(t *testing.T) {
	for _, size := range []int{0, 1, chunkedFrom - 1, chunkedFrom, chunkedFrom + 1, 3 * chunkedFrom} {
		site := New(Options{Logger: slog.New(slog.DiscardHandler)})
		server := httptest.NewServer(site.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			Respond(w, r, http.StatusOK, bytes.Repeat([]byte("x"), size))
		}), site.RespondProblem))
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
