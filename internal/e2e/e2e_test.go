package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rolecall/rolecall/internal/pgtest"
)

// suites are the scenarios. Each makes its own tenants, so that all can run side
// by side on one program.
var suites = []struct {
	name string
	run  func(*testing.T, *program)
}{
	{"users", testUsers},
	{"roles", testRoles},
	{"sessions", testSessions},
	{"framing", testFraming},
	{"json", testJSON},
	{"scripts", testScripts},
	{"order", testOrder},
	{"idempotency", testIdempotency},
	{"conditional", testConditional},
	{"lists", testLists},
	{"fields", testFields},
	{"reach", testReach},
	{"overview", testOverview},
	{"tenants", testTenants},
	{"matrix", testMatrix},
	{"cancel storm", testCancelStorm},
	{"invitations", testInvitations},
	{"mail injection", testMailInjection},
	{"passwords", testPasswords},
	{"password resets", testPasswordResets},
	{"credential changes", testCredentialChanges},
	{"e-mail changes", testEmailChanges},
	{"check", testCheck},
	{"events", testEvents},
	{"tenant", testTenant},
	{"tokens", testTokens},
	{"user sessions", testUserSessions},
	{"confirm", testConfirm},
	{"races", testRaces},
	{"trespass", testTrespass},
	{"operators", testOperators},
	{"factors", testFactors},
	{"machines", testMachines},
	{"restore", testRestore},
	{"erase", testErase},
}

// public is under which URL the program believes to be served, wherever requests
// come in.
const public = "http://id.example.com"

// stores are the databases to serve from, by what --database is told.
var stores = []struct {
	name     string
	database func(*testing.T) string
}{
	{"sqlite", func(t *testing.T) string { return filepath.Join(t.TempDir(), "rolecall.db") }},
	{"postgres", func(t *testing.T) string { return pgtest.URL(t) }},
}

// onBothStores reports whether what does not depend on the store is tested on
// PostgreSQL as thoroughly as on SQLite, which takes minutes. ROLECALL_TEST_FULL asks
// for it.
func onBothStores() bool { return os.Getenv("ROLECALL_TEST_FULL") != "" }

func TestProgram(t *testing.T) {
	binary := build(t)
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, binary, store.database(t))
			p.operator = p.operatorKey(t)
			for _, suite := range suites {
				t.Run(suite.name, func(t *testing.T) {
					t.Parallel()
					suite.run(t, p)
				})
			}
		})
	}
}
