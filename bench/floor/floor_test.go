package floor_test

import (
	"database/sql"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/bench/floor"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

func TestMain(m *testing.M) {
	floor.Serve()
	os.Exit(m.Run())
}

const (
	tenantID = "01a1fc10-ea84-7001-a69a-ad84f9bf0fca"
	userID   = "01a1fc10-ea84-7001-a69a-ad84f9bf0fcb"
	ada      = `{"id":"` + userID + `","email":"Ada@example.com","name":"Ada","department":null,"externalId":null,"metadata":{"a":"b"},` +
		`"status":"active","createdAt":"2026-11-21T05:06:40.000010Z","updatedAt":"2026-11-21T05:06:40.000010Z"}`
	password = "correct horse battery"
)

// insertTenant and insertUser insert the rows that Copy copies. @TENANT and @USER stand for ids in
// the syntax of the database.
const (
	insertTenant = `insert into tenants (id, name, display_name, status, settings, created_at, updated_at, version)
		values (@TENANT, 'a', 'A', 'active', '{}', 0, 0, 1)`
	insertUser = `insert into users (tenant_id, id, email, email_key, name, name_key, metadata, status, words, last_login_at, created_at, updated_at, version)
		values (@TENANT, @USER, 'Ada@example.com', 'ada@example.com', 'Ada', 'ada', '{"a":"b"}', 'active', ' nada', 0, 1795237600000010, 1795237600000010, 1)`
)

func inSQLite(t *testing.T) (database string) {
	t.Helper()
	source := filepath.Join(t.TempDir(), "rolecall.db")
	store, err := sqlite.Open(t.Context(), source, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", source)
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.NewReplacer("@TENANT", "x'"+strings.ReplaceAll(tenantID, "-", "")+"'", "@USER", "x'"+strings.ReplaceAll(userID, "-", "")+"'")
	for _, statement := range []string{insertTenant, insertUser} {
		if _, err := db.ExecContext(t.Context(), ids.Replace(statement)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return copied(t, source)
}

func inPostgres(t *testing.T) (database string) {
	t.Helper()
	source := pgtest.Admin(t, pgtest.Migrated(t))
	conn, err := pgx.Connect(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.NewReplacer("@TENANT", "'"+tenantID+"'", "@USER", "'"+userID+"'")
	for _, statement := range []string{insertTenant, insertUser} {
		if _, err := conn.Exec(t.Context(), ids.Replace(statement)); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return copied(t, source)
}

func copied(t *testing.T, source string) string {
	t.Helper()
	database, err := floor.Copy(t.Context(), source, filepath.Join(t.TempDir(), "floor.db"))
	if err != nil {
		t.Fatal(err)
	}
	return database
}

func TestTheFloorRespondsLikeRolecall(t *testing.T) {
	for name, open := range map[string]func(*testing.T) string{"SQLite": inSQLite, "PostgreSQL": inPostgres} {
		t.Run(name, func(t *testing.T) {
			p, err := floor.Start(floor.Options{Database: open(t), Tenant: tenantID, Session: `{"who":1}`, Login: `{"in":1}`, Cursor: "next", Password: password})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := p.Stop(); err != nil {
					t.Error(err)
				}
			}()
			const hedy = `{"email":"Hedy@example.com","name":"Hedy","department":"Films"}`
			made := `\{"id":"[0-9a-f-]{36}","email":"Hedy@example.com","name":"Hedy","department":"Films","externalId":null,"metadata":\{\},` +
				`"status":"pending","createdAt":"[0-9T:.-]+Z","updatedAt":"[0-9T:.-]+Z"\}`
			for _, c := range []struct {
				method, path, body string
				status             int
				answer             string
			}{
				{"GET", "/auths/session", "", 200, regexp.QuoteMeta(`{"who":1}`)},
				{"GET", "/users/" + userID, "", 200, regexp.QuoteMeta(ada)},
				{"GET", "/users/" + tenantID, "", 500, ".*no rows.*"},
				{"GET", "/users/x", "", 500, ".*not an id.*"},
				{"POST", "/users", hedy, 201, made},
				{"POST", "/users", hedy, 500, "(?is).*unique.*"},
				{"GET", "/users?limit=50", "", 200, regexp.QuoteMeta(`{"items":[`+ada) + "," + made + regexp.QuoteMeta(`],"nextCursor":"next"}`)},
				{"GET", "/users?limit=1", "", 200, regexp.QuoteMeta(`{"items":[` + ada + `],"nextCursor":"next"}`)},
				{"POST", "/auths/login", `{"email":"x","password":"` + password + `"}`, 200, regexp.QuoteMeta(`{"in":1}`)},
				{"POST", "/auths/login", `{"email":"x","password":"wrong"}`, 500, ".*password.*"},
			} {
				status, answer := ask(t, c.method, "http://"+p.Address+c.path, c.body)
				if status != c.status || !regexp.MustCompile("^"+c.answer+"\n?$").MatchString(answer) {
					t.Errorf("%s %s: got %d %s, want %d %s", c.method, c.path, status, answer, c.status, c.answer)
				}
			}
		})
	}
}

func TestAFailedStartOfTheFloorReportsTheReason(t *testing.T) {
	_, err := floor.Start(floor.Options{Database: filepath.Join(t.TempDir(), "none.db"), Tenant: tenantID})
	if err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("got %v, want that there is no table", err)
	}
}

func ask(t *testing.T, method, url, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}
