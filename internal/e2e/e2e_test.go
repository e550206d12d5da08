package e2e

import (
	"path/filepath"
	"testing"

	"github.com/rolecall/rolecall/internal/pgtest"
)

// The tests below share one program per store. Each creates its own tenants, so that all can run in
// parallel, and each also passes alone.

// These tests depend on the SQL statements and transactions of the store. They always run on all
// stores.

func TestUsers(t *testing.T)          { onEachStore(t, testUsers) }
func TestRoles(t *testing.T)          { onEachStore(t, testRoles) }
func TestGroups(t *testing.T)         { onEachStore(t, testGroups) }
func TestSessions(t *testing.T)       { onEachStore(t, testSessions) }
func TestIdempotency(t *testing.T)    { onEachStore(t, testIdempotency) }
func TestConditional(t *testing.T)    { onEachStore(t, testConditional) }
func TestLists(t *testing.T)          { onEachStore(t, testLists) }
func TestExports(t *testing.T)        { onEachStore(t, testExports) }
func TestJobs(t *testing.T)           { onEachStore(t, testJobs) }
func TestReach(t *testing.T)          { onEachStore(t, testReach) }
func TestTenants(t *testing.T)        { onEachStore(t, testTenants) }
func TestMatrix(t *testing.T)         { onEachStore(t, testMatrix) }
func TestCancelStorm(t *testing.T)    { onEachStore(t, testCancelStorm) }
func TestEvents(t *testing.T)         { onEachStore(t, testEvents) }
func TestChanges(t *testing.T)        { onEachStore(t, testChanges) }
func TestTenantsChanges(t *testing.T) { onEachStore(t, testTenantsChanges) }
func TestAuditLog(t *testing.T)       { onEachStore(t, testAuditLog) }
func TestTenant(t *testing.T)         { onEachStore(t, testTenant) }
func TestConnections(t *testing.T)    { onEachStore(t, testConnections) }
func TestDirectories(t *testing.T)    { onEachStore(t, testDirectories) }
func TestUserSessions(t *testing.T)   { onEachStore(t, testUserSessions) }
func TestRaces(t *testing.T)          { onEachStore(t, testRaces) }
func TestOperators(t *testing.T)      { onEachStore(t, testOperators) }
func TestRestore(t *testing.T)        { onEachStore(t, testRestore) }
func TestErase(t *testing.T)          { onEachStore(t, testErase) }

// These tests are about rules that do not depend on the store, so they run on SQLite only.

func TestFraming(t *testing.T)           { onSQLite(t, testFraming) }
func TestJSON(t *testing.T)              { onSQLite(t, testJSON) }
func TestScripts(t *testing.T)           { onSQLite(t, testScripts) }
func TestOrder(t *testing.T)             { onSQLite(t, testOrder) }
func TestFields(t *testing.T)            { onSQLite(t, testFields) }
func TestOverview(t *testing.T)          { onSQLite(t, testOverview) }
func TestInvitations(t *testing.T)       { onSQLite(t, testInvitations) }
func TestMailInjection(t *testing.T)     { onSQLite(t, testMailInjection) }
func TestPasswords(t *testing.T)         { onSQLite(t, testPasswords) }
func TestPasswordResets(t *testing.T)    { onSQLite(t, testPasswordResets) }
func TestCredentialChanges(t *testing.T) { onSQLite(t, testCredentialChanges) }
func TestEmailChanges(t *testing.T)      { onSQLite(t, testEmailChanges) }
func TestCheck(t *testing.T)             { onSQLite(t, testCheck) }
func TestTokens(t *testing.T)            { onSQLite(t, testTokens) }
func TestConfirm(t *testing.T)           { onSQLite(t, testConfirm) }
func TestTrespass(t *testing.T)          { onSQLite(t, testTrespass) }
func TestFactors(t *testing.T)           { onSQLite(t, testFactors) }
func TestMachines(t *testing.T)          { onSQLite(t, testMachines) }

// public is the public URL of the program. The tests send their requests to another address.
const public = "http://id.example.com"

// returnURLs are the addresses to which sign-ins with identity providers can return.
const returnURLs = "https://{tenant}.app.example/signed-in,com.example.app:/signed-in"

// stores are the kinds of databases. The function database creates an empty database and
// returns its value for --database.
var stores = []store{
	{"sqlite", func(t testing.TB) string { return filepath.Join(t.TempDir(), "rolecall.db") }},
	{"postgres", pgtest.URL},
	{"citus", pgtest.CitusURL},
}

type store struct {
	name     string
	database func(testing.TB) string
}

// onEachStore runs the test with the shared program of each store.
func onEachStore(t *testing.T, test func(*testing.T, *program)) {
	t.Helper()
	on(t, stores, test)
}

// onSQLite is like onEachStore, but on SQLite only.
func onSQLite(t *testing.T, test func(*testing.T, *program)) {
	t.Helper()
	on(t, stores[:1], test)
}

func on(t *testing.T, stores []store, test func(*testing.T, *program)) {
	t.Helper()
	t.Parallel()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			test(t, store.sharedProgram(t))
		})
	}
}
