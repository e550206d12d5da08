package postgres_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// The defaults of a database and of a role do not change how transactions work, also behind a pooler.
func TestDefaultsOfTheServerChangeNothing(t *testing.T) {
	tests := map[string]func(t *testing.T, url string) string{
		"direct": func(_ *testing.T, url string) string { return url },
		"behind PgBouncer": func(t *testing.T, url string) string {
			return pgtest.Bouncer(t)(url) + "?default_query_exec_mode=exec"
		},
	}
	for name, through := range tests {
		t.Run(name, func(t *testing.T) {
			direct := pgtest.Migrated(t)
			conn := connect(t, direct)
			for _, setting := range []string{"default_transaction_isolation = 'serializable'", "client_encoding = 'LATIN1'", "standard_conforming_strings = off"} {
				run(t, conn, "alter database "+pgx.Identifier{conn.Config().Database}.Sanitize()+" set "+setting)
			}
			s := open(t, through(t, direct), postgres.Options{})
			for name, want := range map[string]string{"transaction_isolation": "read committed", "client_encoding": "UTF8", "standard_conforming_strings": "on"} {
				got, err := s.SettingInView(t.Context(), name)
				if err != nil || got != want {
					t.Errorf("in a View, %s is %q (error %v), want %q", name, got, err, want)
				}
				got = ""
				err = s.Update(t.Context(), rolecall.TenantID{}, func(q store.Querier) error {
					_, err := q.Query("select current_setting($1)", []any{name}, func(scan func(dest ...any) error) error { return scan(&got) })
					return err
				})
				if err != nil || got != want {
					t.Errorf("in an Update, %s is %q (error %v), want %q", name, got, err, want)
				}
			}
			run(t, conn, "create table isolation (level text)")
			if err := s.Update(t.Context(), rolecall.TenantID{}, func(q store.Querier) error {
				q.Exec("insert into isolation select current_setting('transaction_isolation')")
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			var level string
			if err := conn.QueryRow(t.Context(), "select level from isolation").Scan(&level); err != nil || level != "read committed" {
				t.Errorf("a transaction that only writes is %q (error %v)", level, err)
			}
		})
	}
}

// With another encoding, the database cannot store all names, and a restored copy has other names.
func TestAnotherEncodingIsRefused(t *testing.T) {
	original := pgtest.URL(t)
	server := pgtest.Admin(t, original)
	admin := connect(t, server)
	name := connect(t, original).Config().Database + "_latin1"
	database := pgx.Identifier{name}.Sanitize()
	run(t, admin, "create database "+database+" encoding 'LATIN1' locale 'C' template template0")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, server)
		if err == nil {
			_, err = conn.Exec(ctx, "drop database "+database+" with (force)")
			err = errors.Join(err, conn.Close(ctx))
		}
		if err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(original)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	for action, try := range map[string]func() error{
		"migrate": func() error { return postgres.Migrate(t.Context(), u.String()) },
		"open": func() error {
			s, err := postgres.Open(t.Context(), u.String(), postgres.Options{})
			if err == nil {
				s.Close()
			}
			return err
		},
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "the encoding of the database is LATIN1") {
			t.Errorf("%s: got %v, want a refusal", action, err)
		}
	}
}

// With synchronous_commit off, a crash undoes changes that were answered. The levels above it are choices of operators.
func TestCommitsThatDoNotWaitForTheDiskAreRefused(t *testing.T) {
	url := pgtest.Migrated(t)
	conn := connect(t, url)
	database := pgx.Identifier{conn.Config().Database}.Sanitize()
	for _, level := range []string{"off", "local", "remote_write", "on", "remote_apply"} {
		run(t, conn, "alter database "+database+" set synchronous_commit = "+level)
		db, openErr := postgres.Open(t.Context(), url, postgres.Options{})
		for action, err := range map[string]error{"migrate": postgres.Migrate(t.Context(), url), "open": openErr} {
			if (err != nil) != (level == "off") || err != nil && !strings.Contains(err.Error(), "synchronous_commit is off") {
				t.Errorf("%s with %s: %v", action, level, err)
			}
		}
		if openErr != nil {
			continue
		}
		if got, err := db.SettingInView(t.Context(), "synchronous_commit"); err != nil || got != level {
			t.Errorf("with %s, transactions have %s (error %v)", level, got, err)
		}
		db.Close()
	}
}

// The default can change while a node runs, and a pooler can have another role.
func TestTransactionsWaitForTheDisk(t *testing.T) {
	url := pgtest.Migrated(t)
	s := open(t, url, postgres.Options{})
	conn := connect(t, url)
	run(t, conn, "alter database "+pgx.Identifier{conn.Config().Database}.Sanitize()+" set synchronous_commit = off")
	s.Renew()
	isSet(t, s, "synchronous_commit", "on", "on")

	pooled := connect(t, url)
	run(t, pooled, "begin")
	var level string
	if _, err := pooled.Exec(t.Context(), postgres.Settings, "", true); err != nil {
		t.Fatal(err)
	}
	if err := pooled.QueryRow(t.Context(), "select current_setting('synchronous_commit')").Scan(&level); err != nil || level != "on" {
		t.Errorf("in a transaction with the settings, synchronous_commit is %q (error %v)", level, err)
	}
}

func TestAServerWithoutSyncsIsWarnedOf(t *testing.T) {
	url := pgtest.Migrated(t)
	var fsync string
	if err := connect(t, url).QueryRow(t.Context(), "select current_setting('fsync')").Scan(&fsync); err != nil {
		t.Fatal(err)
	}
	warnings := strings.Join(open(t, url, postgres.Options{}).Warnings(), "\n")
	if strings.Contains(warnings, "fsync off") != (fsync == "off") {
		t.Errorf("with fsync %s, the warnings are %q", fsync, warnings)
	}
}

func TestUnverifiedHosts(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u@db.example.com/x":                                                "db.example.com",
		"postgres://u@db.example.com/x?sslmode=disable":                                "db.example.com",
		"postgres://u@db.example.com/x?sslmode=prefer":                                 "db.example.com",
		"postgres://u@db.example.com/x?sslmode=require":                                "db.example.com",
		"postgres://u@db.example.com/x?sslmode=verify-ca":                              "db.example.com",
		"postgres://u@db.example.com/x?sslmode=verify-full":                            "",
		"postgres://u@10.0.0.1,db2.example.com:5433/x?target_session_attrs=read-write": "10.0.0.1 db2.example.com",
		"postgres://u@localhost/x":                                                     "",
		"postgres://u@127.0.0.1:6432/x":                                                "",
		"postgres://u@[::1]/x":                                                         "",
		"postgres:///x?host=/run/postgresql":                                           "",
		"postgres://u@localhost,db.example.com/x":                                      "db.example.com",
		"postgres://u@db.example.com:port/x":                                           "",
	} {
		if got := strings.Join(postgres.Unverified(url), " "); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
	t.Setenv("PGSSLMODE", "verify-full")
	if got := postgres.Unverified("postgres://u@db.example.com/x"); got != nil {
		t.Errorf("with PGSSLMODE=verify-full: got %q", got)
	}
	t.Setenv("PGSSLMODE", "require")
	if got := postgres.Unverified("postgres://u@db.example.com/x"); len(got) != 1 {
		t.Errorf("with PGSSLMODE=require: got %q", got)
	}
}

// PgBouncer gives the sessions of the server to other clients after each transaction, so a prepared statement
// can be in another session.
func TestALostStatementNamesTheModeForPoolers(t *testing.T) {
	s := open(t, pgtest.Migrated(t), postgres.Options{})
	err := s.Update(t.Context(), rolecall.TenantID{}, func(q store.Querier) error {
		q.Exec("execute lost")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "default_query_exec_mode=exec") {
		t.Errorf("got %v, want the name of the mode", err)
	}
}

func TestARefusedPasswordIsNamed(t *testing.T) {
	server := refusing(t, "28P01")
	for want, user := range map[string]string{
		"PostgreSQL at " + server + " refused the password of role rolecall":     "rolecall:secret",
		"PostgreSQL at " + server + " requires a password of role rolecall: add": "rolecall",
	} {
		refused(t, "postgres://"+user+"@"+server+"/rolecall", want)
	}
	refused(t, "postgres://rolecall@"+refusing(t, "3D000")+"/rolecall", "refused the connection of role rolecall to database rolecall: FATAL: refused (SQLSTATE 3D000)")
}

// refused fails the test unless the programs that migrate and that serve report the refusal plainly.
func refused(t *testing.T, url, want string) {
	t.Helper()
	for action, try := range map[string]func() error{
		"migrate": func() error { return postgres.Migrate(t.Context(), url) },
		"open": func() error {
			_, err := postgres.Open(t.Context(), url, postgres.Options{})
			return err
		},
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "TLS") {
			t.Errorf("%s: got %v, want %q", action, err, want)
		}
	}
}

// refusing starts a server that has no TLS and refuses each connection with the code.
func refusing(t *testing.T, code string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			backend := pgproto3.NewBackend(conn, conn)
			message, err := backend.ReceiveStartupMessage()
			if _, asks := message.(*pgproto3.SSLRequest); err == nil && asks {
				_, err = conn.Write([]byte("N")) // the client connects again without TLS
			} else if err == nil {
				backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: "refused"})
				err = backend.Flush()
			}
			if err := errors.Join(err, conn.Close()); err != nil {
				t.Error(err)
			}
		}
	})
	return listener.Addr().String()
}
