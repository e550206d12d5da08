package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/pgtest"
)

// suite is a group of scenarios. Each suite creates its own tenants, so that all can run in
// parallel on one program.
type suite struct {
	name string
	run  func(*testing.T, *program)
}

// suites are the groups that depend on the store: on its statements and transactions.
var suites = []suite{
	{"users", testUsers},
	{"roles", testRoles},
	{"sessions", testSessions},
	{"idempotency", testIdempotency},
	{"conditional", testConditional},
	{"lists", testLists},
	{"exports", testExports},
	{"reach", testReach},
	{"tenants", testTenants},
	{"matrix", testMatrix},
	{"cancel storm", testCancelStorm},
	{"events", testEvents},
	{"tenant", testTenant},
	{"user sessions", testUserSessions},
	{"races", testRaces},
	{"operators", testOperators},
	{"restore", testRestore},
	{"erase", testErase},
}

// rules are the groups about rules that are the same on each store. With -short, they run
// on SQLite only.
var rules = []suite{
	{"framing", testFraming},
	{"json", testJSON},
	{"scripts", testScripts},
	{"order", testOrder},
	{"fields", testFields},
	{"overview", testOverview},
	{"invitations", testInvitations},
	{"mail injection", testMailInjection},
	{"passwords", testPasswords},
	{"password resets", testPasswordResets},
	{"credential changes", testCredentialChanges},
	{"e-mail changes", testEmailChanges},
	{"check", testCheck},
	{"tokens", testTokens},
	{"confirm", testConfirm},
	{"trespass", testTrespass},
	{"factors", testFactors},
	{"machines", testMachines},
}

// public is the public URL of the program. Requests arrive at another address.
const public = "http://id.example.com"

// stores are the databases to serve from, in the form of --database.
var stores = []struct {
	name     string
	database func(*testing.T) string
}{
	{"sqlite", func(t *testing.T) string { return filepath.Join(t.TempDir(), "rolecall.db") }},
	{"postgres", func(t *testing.T) string { return pgtest.URL(t) }},
	{"citus", func(t *testing.T) string { return pgtest.CitusURL(t) }},
}

// onBothStores reports whether rules that do not depend on the store are tested as
// thoroughly on PostgreSQL as on SQLite. This takes minutes.
func onBothStores() bool { return !testing.Short() }

func TestProgram(t *testing.T) {
	binary := build(t)
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, binary, store.database(t))
			p.operator = p.operatorKey(t)
			played := suites
			if store.name == "sqlite" || onBothStores() {
				played = slices.Concat(suites, rules)
			}
			for _, suite := range played {
				t.Run(suite.name, func(t *testing.T) {
					t.Parallel()
					suite.run(t, p)
				})
			}
		})
	}
}
