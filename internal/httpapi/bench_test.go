package httpapi

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/web"
)

// sink is a ResponseWriter that discards the response, so that a benchmark does not measure a
// recorder.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

func benchmarkGet(b *testing.B, path func(*testServer) string) {
	s := newTestServerWith(b, web.Options{Logger: slog.New(slog.NewJSONHandler(io.Discard, nil))})
	r := httptest.NewRequest(http.MethodGet, path(s), nil)
	r.Header.Set("X-Tenant-Schema", tenantName)
	r.Header.Set("Cookie", s.owner)
	w := &sink{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		s.edge.ServeHTTP(w, r)
	}
}

// BenchmarkSession measures GET /auths/session with a cached session. The result is the time that
// Rolecall adds to net/http for the smallest authenticated request.
func BenchmarkSession(b *testing.B) {
	benchmarkGet(b, func(*testServer) string { return "/auths/session" })
}

// BenchmarkUser measures reading one user, including the read of the store.
func BenchmarkUser(b *testing.B) {
	benchmarkGet(b, func(s *testServer) string { return "/users/" + s.ownerID })
}

// BenchmarkUserPage measures the encoding of a page of 50 users.
func BenchmarkUserPage(b *testing.B) {
	department, now := "Sales", rolecall.Time(1_700_000_000_123_456)
	users := make([]rolecall.User, rolecall.DefaultLimit)
	for i := range users {
		users[i] = rolecall.User{
			ID: rolecall.NewID[rolecall.User](now), Email: "ada.lovelace@example.com", Name: "Ada Lovelace", Department: &department,
			Status: rolecall.UserActive, CreatedAt: now, UpdatedAt: now,
		}
	}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = out[:0]
		for i := range users {
			out = userBody{user: &users[i], readable: rolecall.AllUserMembers}.AppendJSON(out)
		}
	}
	b.SetBytes(int64(len(out)))
}

// BenchmarkUserList measures a page of users, including the read of the store.
func BenchmarkUserList(b *testing.B) {
	benchmarkGet(b, func(*testServer) string { return "/users?limit=50" })
}

// BenchmarkChangesPage measures a page of 100 changes, including the read of the store.
func BenchmarkChangesPage(b *testing.B) {
	benchmarkGet(b, func(s *testServer) string {
		for i := range 100 {
			s.as(s.owner, http.MethodPost, "/users", fmt.Sprintf(`{"email":"user.%d@example.com","name":"User"}`, i), "Idempotency-Key", strconv.Itoa(i)).id(b)
		}
		return "/changes?limit=100"
	})
}
