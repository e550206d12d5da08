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
func TestUserSessions(t *testing.T)   { onEachStore(t, testUserSessions) }
func TestRaces(t *testing.T)          { onEachStore(t, testRaces) }
func TestOperators(t *testing.T)      { onEachStore(t, testOperators) }
func TestRestore(t *testing.T)        { onEachStore(t, testRestore) }
func TestErase(t *testing.T)          { onEachStore(t, testErase) }

// These tests are about rules that do not depend on the store. With go test -short, they run on
// SQLite only.

func TestFraming(t *testing.T)           { byRules(t, testFraming) }
func TestJSON(t *testing.T)              { byRules(t, testJSON) }
func TestScripts(t *testing.T)           { byRules(t, testScripts) }
func TestOrder(t *testing.T)             { byRules(t, testOrder) }
func TestFields(t *testing.T)            { byRules(t, testFields) }
func TestOverview(t *testing.T)          { byRules(t, testOverview) }
func TestInvitations(t *testing.T)       { byRules(t, testInvitations) }
func TestMailInjection(t *testing.T)     { byRules(t, testMailInjection) }
func TestPasswords(t *testing.T)         { byRules(t, testPasswords) }
func TestPasswordResets(t *testing.T)    { byRules(t, testPasswordResets) }
func TestCredentialChanges(t *testing.T) { byRules(t, testCredentialChanges) }
func TestEmailChanges(t *testing.T)      { byRules(t, testEmailChanges) }
func TestCheck(t *testing.T)             { byRules(t, testCheck) }
func TestTokens(t *testing.T)            { byRules(t, testTokens) }
func TestConfirm(t *testing.T)           { byRules(t, testConfirm) }
func TestTrespass(t *testing.T)          { byRules(t, testTrespass) }
func TestFactors(t *testing.T)           { byRules(t, testFactors) }
func TestMachines(t *testing.T)          { byRules(t, testMachines) }

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

// onBothStores reports whether tests that do not depend on the store also run on PostgreSQL
// and Citus. This takes minutes, so go test -short leaves them out.
func onBothStores() bool { return !testing.Short() }

// onEachStore runs the test with the shared program of each store.
func onEachStore(t *testing.T, test func(*testing.T, *program)) {
	t.Helper()
	on(t, stores, test)
}

// byRules is like onEachStore, but go test -short runs the test on SQLite only.
func byRules(t *testing.T, test func(*testing.T, *program)) {
	t.Helper()
	if onBothStores() {
		on(t, stores, test)
	} else {
		on(t, stores[:1], test)
	}
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
