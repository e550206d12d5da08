package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/pgtest"
)

// suite is a group of tests. Each suite creates its own tenants, so that all suites can run in
// parallel against one program.
type suite struct {
	name string
	run  func(*testing.T, *program)
}

// suites are the groups that depend on the SQL statements and transactions of the store. They
// always run on all stores.
var suites = []suite{
	{"users", testUsers},
	{"roles", testRoles},
	{"sessions", testSessions},
	{"idempotency", testIdempotency},
	{"conditional", testConditional},
	{"lists", testLists},
	{"exports", testExports},
	{"jobs", testJobs},
	{"reach", testReach},
	{"tenants", testTenants},
	{"matrix", testMatrix},
	{"cancel storm", testCancelStorm},
	{"events", testEvents},
	{"changes", testChanges},
	{"changes of tenants", testTenantsChanges},
	{"audit log", testAuditLog},
	{"tenant", testTenant},
	{"connections", testConnections},
	{"user sessions", testUserSessions},
	{"races", testRaces},
	{"operators", testOperators},
	{"restore", testRestore},
	{"erase", testErase},
}

// rules are the groups about rules that do not depend on the store. With go test -short, they
// run on SQLite only.
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

// public is the public URL of the program. The tests send their requests to another address.
const public = "http://id.example.com"

// returnURLs are the addresses to which sign-ins with identity providers can return.
const returnURLs = "https://{tenant}.app.example/signed-in,com.example.app:/signed-in"

// stores are the kinds of databases. The function database creates an empty database and
// returns its value for --database.
var stores = []struct {
	name     string
	database func(*testing.T) string
}{
	{"sqlite", func(t *testing.T) string { return filepath.Join(t.TempDir(), "rolecall.db") }},
	{"postgres", func(t *testing.T) string { return pgtest.URL(t) }},
	{"citus", func(t *testing.T) string { return pgtest.CitusURL(t) }},
}

// onBothStores reports whether tests that do not depend on the store also run on PostgreSQL
// and Citus. This takes minutes, so go test -short leaves them out.
func onBothStores() bool { return !testing.Short() }

func TestProgram(t *testing.T) {
	binary := build(t)
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, binary, store.database(t), "--oidc-return-urls", returnURLs)
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
