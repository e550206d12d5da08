// Package floor is a minimal HTTP server, the reference for the benchmarks of Rolecall.
// It serves five operations with the least work that any service needs: a constant
// response, one prepared statement and the encoding of its rows, one durable insert,
// one password hash. It has one tenant and no authentication. The additional time of a
// real service is the price of its features.
package floor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"
)

// Options are the database and the responses of the minimal server.
type Options struct {
	Database string // a SQLite file or a postgres:// URL, as returned by Copy
	Tenant   string // the id of the tenant
	Session  string // the response to a request for the session
	Login    string // the response to the correct password
	Cursor   string // the next cursor in the response of a page
	Password string // the correct password
}

// table is a table of users.
type table interface {
	user(ctx context.Context, id id) (user, error)
	page(ctx context.Context, size int) ([]user, error)
	insert(ctx context.Context, u user) error
	close() error
}

// server is the minimal server on a table of users.
type server struct {
	Options
	table table
	slots chan struct{} // limits the number of concurrent hashes
	hash  []byte        // of the correct password
}

// serve serves on an unused loopback address until ctx ends. It calls ready with the address.
func serve(ctx context.Context, o Options, ready func(address string)) (err error) {
	tenant, err := parseID(o.Tenant)
	if err != nil {
		return err
	}
	t, err := openTable(ctx, o.Database, tenant)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ready(listener.Addr().String())
	s := &server{Options: o, table: t, slots: make(chan struct{}, runtime.GOMAXPROCS(0)), hash: hash(o.Password)}
	web := &http.Server{Handler: s.routes(), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return web.Close()
	}
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auths/session", s.session)
	mux.HandleFunc("GET /users/{id}", s.read)
	mux.HandleFunc("GET /users", s.page)
	mux.HandleFunc("POST /users", s.create)
	mux.HandleFunc("POST /auths/login", s.login)
	return mux
}

func openTable(ctx context.Context, database string, tenant id) (table, error) {
	if isPostgres(database) {
		return openPostgres(ctx, database, tenant)
	}
	return openSQLite(ctx, database, tenant)
}

func isPostgres(database string) bool { return strings.HasPrefix(database, "postgres://") }

func (s *server) session(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusOK, []byte(s.Session))
}

func (s *server) read(w http.ResponseWriter, r *http.Request) {
	key, err := parseID(r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	u, err := s.table.user(r.Context(), key)
	if err != nil {
		fail(w, err)
		return
	}
	encode(w, http.StatusOK, u)
}

func (s *server) page(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		fail(w, err)
		return
	}
	users, err := s.table.page(r.Context(), size)
	if err != nil {
		fail(w, err)
		return
	}
	encode(w, http.StatusOK, struct {
		Items      []user `json:"items"`
		NextCursor string `json:"nextCursor"`
	}{users, s.Cursor})
}

func (s *server) create(w http.ResponseWriter, r *http.Request) {
	u := newUser()
	if err := json.NewDecoder(r.Body).Decode(&u); err != nil {
		fail(w, err)
		return
	}
	if err := s.table.insert(r.Context(), u); err != nil {
		fail(w, err)
		return
	}
	encode(w, http.StatusCreated, u)
}

func (s *server) login(w http.ResponseWriter, r *http.Request) {
	var in struct{ Email, Password string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		fail(w, err)
		return
	}
	s.slots <- struct{}{}
	got := hash(in.Password)
	<-s.slots
	if !bytes.Equal(got, s.hash) {
		fail(w, errors.New("not the right password"))
		return
	}
	send(w, http.StatusOK, []byte(s.Login))
}

// hash hashes a password at the usual cost: argon2id with two passes over 19 MiB.
func hash(password string) []byte {
	return argon2.IDKey([]byte(password), []byte("sixteen bytes ok"), 2, 19<<10, 1, 32)
}

func encode(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		fail(w, err)
		return
	}
	send(w, status, body)
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client detects a failure
}

func fail(w http.ResponseWriter, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
