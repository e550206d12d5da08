package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/internal/pgtest"
)

// testSecretsInStore checks that the store contains no session token, invitation token or
// password in plain text.
func testSecretsInStore(t *testing.T, s *siege) {
	c := s.guest(t, "dumped", "")
	successor := c.refreshed(t)
	invitation := s.invite(t, s.owner, s.user(t, "dumped-guest", ""))
	dump := s.program.dump(t)
	if !bytes.Contains(dump, []byte(c.email)) {
		t.Fatal("the store does not hold what it should, so nothing can be said")
	}
	for name, text := range map[string]string{"a token": c.token, "a successor": successor.token, "an invitation": invitation, "a password": password} {
		if bytes.Contains(dump, []byte(text)) || bytes.Contains(dump, []byte(hex.EncodeToString([]byte(text)))) {
			t.Errorf("the store holds %s as it is", name)
		}
		if bits, err := base64.RawURLEncoding.DecodeString(text); err == nil && (bytes.Contains(dump, bits) || bytes.Contains(dump, []byte(hex.EncodeToString(bits)))) {
			t.Errorf("the store holds the bits of %s", name)
		}
	}
}

// dump returns the content of the store: the rows of all PostgreSQL tables, or the bytes of
// the SQLite files.
func (p *program) dump(t *testing.T) []byte {
	t.Helper()
	if strings.HasPrefix(p.Database, "postgres") {
		return dumpTables(t, pgtest.Admin(t, p.Database))
	}
	files, err := filepath.Glob(p.Database + "*")
	if err != nil {
		t.Fatal(err)
	}
	var dump []byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dump = append(dump, content...)
	}
	return dump
}

// executePostgres runs a statement as the administrator of the database.
func executePostgres(t *testing.T, database, statement string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, pgtest.Admin(t, database))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Error(err)
	}
	if err := conn.Close(ctx); err != nil {
		t.Error(err)
	}
}

func dumpTables(t *testing.T, database string) []byte {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	strs := func(query string) []string {
		rows, err := conn.Query(ctx, query)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	var dump []byte
	for _, table := range strs("select quote_ident(table_name) from information_schema.tables where table_schema = 'public'") {
		for _, row := range strs("select whole::text from " + table + " whole") {
			dump = append(append(dump, row...), '\n')
		}
	}
	return dump
}

// testLossOfProcess kills and restarts the process. Sessions, invitations and the counters of
// failed sign-ins must survive. A client that did not get the response to a refresh can repeat
// the request.
func testLossOfProcess(t *testing.T, s *siege) {
	c := s.guest(t, "survivor", "")
	home := s.guess(t, c.email, password, "203.0.113.20").device(t)
	lost := c.refreshed(t)
	token := s.invite(t, s.owner, s.user(t, "invited-before", ""))
	for range 10 {
		s.guess(t, c.email, "wrong", "198.51.100.30").refused(t, 401, "wrong-credentials")
	}
	s.program.kill(t)
	s.program.start(t)

	before := s.hashes(t)
	s.guess(t, c.email, password, "198.51.100.30").refused(t, 429, "too-many-attempts")
	if spent := s.hashes(t) - before; spent != 0 {
		t.Errorf("refused guesses cost %d hashes", spent)
	}
	s.guess(t, c.email, password, "203.0.113.20", home).expect(t, 200)
	c.do(t, "GET /auths/session", "").expect(t, 200)
	if again := c.refreshed(t); again.token != lost.token {
		t.Error("another successor was answered than before")
	}
	lost.do(t, "GET /auths/session", "").expect(t, 200)
	s.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, password)).expect(t, 200)
}

// testLossAmidWrites kills the process while many clients create and change users. Every
// acknowledged creation must exist, and each existing change must have exactly one event. If a
// client repeats an unacknowledged request with the same idempotency key, the user must be
// created once.
func testLossAmidWrites(t *testing.T, s *siege) {
	for round := range 2 {
		w := newWorld(t, s.program)
		acknowledged := make(chan string, 10_000)
		var mu sync.Mutex
		var unanswered []string
		var writers sync.WaitGroup
		for writer := range 16 {
			writers.Go(func() {
				for i := 0; ; i++ {
					name := fmt.Sprintf("lost-%d-%d-%d", round, writer, i)
					a, err := w.owner.try(t, "POST /users", userBody(name), "idempotency-key: "+name)
					if err != nil || a.status != http.StatusCreated {
						mu.Lock()
						unanswered = append(unanswered, name)
						mu.Unlock()
						return
					}
					acknowledged <- a.text("/id")
					if _, err := w.owner.try(t, "PATCH /users/"+a.text("/id"), `{"metadata":{"changed":"yes"}}`); err != nil {
						return
					}
				}
			})
		}
		there := []string{w.owner.id}
		for range 150 {
			there = append(there, <-acknowledged)
		}
		s.program.kill(t)
		writers.Wait()
		close(acknowledged)
		for id := range acknowledged {
			there = append(there, id)
		}
		s.program.start(t)
		users := w.compareEvents(t)
		for _, id := range there {
			if !slices.Contains(users, id) {
				t.Errorf("round %d: %s was acknowledged and is lost", round, id)
			}
		}
		for _, name := range unanswered {
			w.owner.do(t, "POST /users", userBody(name), "idempotency-key: "+name).expect(t, 201)
		}
		if users = w.compareEvents(t); len(users) != len(there)+len(unanswered) {
			t.Errorf("round %d: %d users, of %d acknowledged and %d repeated", round, len(users), len(there), len(unanswered))
		}
	}
}

func userBody(name string) string {
	return fmt.Sprintf(`{"email":%s,"name":"Lost and found"}`, quoted(address(name)))
}

// compareEvents returns the ids of the tenant's users. It checks that each user has exactly
// one event about the creation and one event for each change.
func (w *world) compareEvents(t *testing.T) (users []string) {
	t.Helper()
	created, updated := w.eventCounts(t, "user.created"), w.eventCounts(t, "user.updated")
	w.owner.pages(t, "/users?limit=200", func(page *answer) {
		for i, id := range page.texts("id") {
			users = append(users, id)
			changes := len(page.members(fmt.Sprintf("/items/%d/metadata", i)))
			if created[id] != 1 || updated[id] != changes {
				t.Errorf("of the creation of %s tell %d events, and of %d changes %d", id, created[id], changes, updated[id])
			}
			delete(created, id)
			delete(updated, id)
		}
	})
	if len(created)+len(updated) > 0 {
		t.Errorf("events tell of users that are not there: %v, %v", created, updated)
	}
	return users
}

// eventCounts returns the number of events of the type kind for each subject id.
func (w *world) eventCounts(t *testing.T, kind string) map[string]int {
	t.Helper()
	told := map[string]int{}
	w.owner.pages(t, "/events?limit=200&type="+kind, func(page *answer) {
		for _, id := range page.texts("subject/id") {
			told[id]++
		}
	})
	return told
}

// pages calls see for each page of a list. path must contain a query.
func (c *caller) pages(t *testing.T, path string, see func(*answer)) {
	t.Helper()
	for next := ""; ; {
		page := c.do(t, "GET "+path+next, "").expect(t, 200)
		see(page)
		if page.value("/nextCursor") == nil {
			return
		}
		next = "&cursor=" + url.QueryEscape(page.text("/nextCursor"))
	}
}
