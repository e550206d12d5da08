package app

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

func TestADatabaseIsAFileOrAURL(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, database := range []string{"host=localhost dbname=rolecall", "dbname=rolecall", "user=ada dbname=rolecall", "service=rolecall", "mysql://localhost/rolecall"} {
		s, err := (&globals{Database: database}).open(t.Context(), true)
		if err == nil {
			if err := s.close(); err != nil {
				t.Error(err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), "a SQLite file or a postgres:// URL") {
			t.Errorf("%q: %v", database, err)
		}
	}
	if made, err := filepath.Glob("*"); err != nil || len(made) != 0 {
		t.Errorf("files were made: %q, %v", made, err)
	}
}

// openDemo returns an empty store, and what the demo makes its people with.
func openDemo(t *testing.T) (*sqlite.Database, service.Options) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "rolecall.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, service.Options{
		Passwords: secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 8, Threads: 1}, 1, 0), Keys: secret.NewKeys(secret.NewKey()),
	}
}

func TestTheDemoRefusesADatabaseOfOthers(t *testing.T) {
	s, options := openDemo(t)
	if _, _, err := service.New(s, options).CreateTenant(t.Context(), rolecall.TenantDraft{Name: "acme", Owner: rolecall.UserDraft{Email: "ada@example.com", Name: "Ada Lovelace"}}, "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	if _, err := prepareDemo(t.Context(), s, options, settings{}, &net.TCPAddr{}); err == nil || !strings.Contains(err.Error(), "other tenants") {
		t.Errorf("got %v, want a refusal", err)
	}
	tenants, err := service.New(s, options).Tenants(t.Context(), "", "", 10)
	if err != nil || len(tenants) != 1 {
		t.Errorf("the tenants are %v, %v", tenants, err)
	}
}

func TestTheDemoMailsNothingBeforeSomebodyActs(t *testing.T) {
	s, options := openDemo(t)
	for range 2 { // the second start finds the people, and gives a new password
		if _, err := prepareDemo(t.Context(), s, options, settings{}, &net.TCPAddr{}); err != nil {
			t.Fatal(err)
		}
		if n, err := service.New(s, options).WaitingMail(t.Context()); err != nil || n != 0 {
			t.Errorf("%d mails wait, %v", n, err)
		}
	}
}
