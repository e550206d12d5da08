package store

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

// TestEveryStatementNamesTheTenant checks the statements in constants, and each form of
// the statements that the package builds. Without a condition on tenant_id, a statement
// could read rows of other tenants.
func TestEveryStatementNamesTheTenant(t *testing.T) {
	for sql := range allStatements(t) {
		tables := 0
		for _, found := range tableOf.FindAllStringSubmatch(sql, -1) {
			if !ofInstance[found[1]] && !strings.Contains(sql, "with recursive "+found[1]+" ") {
				tables++
			}
		}
		if named := strings.Count(sql, "tenant_id"); named < tables {
			t.Errorf("names tenant_id %d times for %d tables: %s", named, tables, sql)
		}
	}
}

var tableOf = regexp.MustCompile(`(?:^update|from|into|join) ([a-z_]+)`)

// ofInstance are the tables that belong to no tenant.
var ofInstance = map[string]bool{"compatibility": true, "tenants": true, "instance_keys": true, "instance_key_fingerprints": true, "attempts": true, "outbox": true, "job_queue": true, "webhook_cursors": true, "webhook_queues": true, "feed_news": true, "feed_places": true, "feed_of_tenants": true, "operator_keys": true, "operator_requests": true}

// TestPlaceholdersAreInOrder checks that the placeholders of each statement first appear
// in the order of their numbers. Some SQLite drivers bind arguments by number, and others
// by the order of appearance.
func TestPlaceholdersAreInOrder(t *testing.T) {
	for sql := range allStatements(t) {
		highest := 0
		for _, found := range placeholder.FindAllStringSubmatch(sql, -1) {
			n, err := strconv.Atoi(found[1])
			if err != nil || n > highest+1 {
				t.Errorf("%s is out of order: %s", found[0], sql)
			}
			highest = max(highest, n)
		}
	}
}

var placeholder = regexp.MustCompile(`\$(\d+)`)

// allStatements returns every statement of the package.
func allStatements(t *testing.T) map[string]bool {
	t.Helper()
	statements := constantStatements(t)
	if len(statements) < 60 {
		t.Fatalf("found only %d constant statements", len(statements))
	}
	built := builtStatements(t)
	if len(built) < 100 {
		t.Fatalf("found only %d built statements", len(built))
	}
	maps.Copy(statements, built)
	return statements
}

// constantStatements returns the constants of the package that are statements.
func constantStatements(t *testing.T) map[string]bool {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]ast.Expr{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				values[spec.Names[0].Name] = spec.Values[0]
			}
			return true
		})
	}
	statements := map[string]bool{}
	for _, value := range values {
		if sql := textOfExpr(values, value); isStatement.MatchString(sql) {
			statements[sql] = true
		}
	}
	return statements
}

var isStatement = regexp.MustCompile(`^(select|insert|update|delete|with) `)

// textOfExpr returns the value of a constant string expression, or "" for other
// expressions.
func textOfExpr(values map[string]ast.Expr, expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(expr.Value)
		if err != nil {
			return ""
		}
		return text
	case *ast.Ident:
		return textOfExpr(values, values[expr.Name])
	case *ast.BinaryExpr:
		return textOfExpr(values, expr.X) + textOfExpr(values, expr.Y)
	}
	return ""
}

// recorder is a Querier that records statements. Each statement returns one row, in which
// all counts are n.
type recorder struct {
	n          int
	statements []string
}

func (r *recorder) Exec(query string, _ ...any) { r.statements = append(r.statements, query) }

// Announce records nothing, because its statement is not in this package.
func (r *recorder) Announce(rolecall.AnyID) {}

// AnnounceChanges records nothing, like Announce.
func (r *recorder) AnnounceChanges(rolecall.TenantID) {}

// SetTenant does nothing: no statement that is tested follows it.
func (r *recorder) SetTenant(rolecall.TenantID) {}

// AllowAddressInAllTenants records nothing, like Announce.
func (r *recorder) AllowAddressInAllTenants(string) {}

func (r *recorder) Query(query string, _ []any, each func(func(...any) error) error) (int, error) {
	r.statements = append(r.statements, query)
	return 1, each(func(dest ...any) error {
		for _, d := range dest {
			switch d := d.(type) {
			case *int:
				*d = r.n
			case **string: // for example the only word with a prefix
				*d = new("ada")
			}
		}
		return nil
	})
}

// builtStatements returns the statements that the package builds. It calls the methods
// with all arguments that change the text of a statement.
func builtStatements(t *testing.T) map[string]bool {
	t.Helper()
	now := rolecall.Time(1_800_000_000_000_000)
	statements := map[string]bool{}
	for _, n := range []int{1, rolecall.MaxScan + 1} {
		r := &recorder{n: n}
		tx := NewTx(r, rolecall.NewID[rolecall.Tenant](now))
		for _, q := range userQueries(now) {
			if _, err := tx.Users(q); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range roleQueries(now) {
			if _, err := tx.Roles(q); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range roleQueries(now) {
			if _, err := tx.ServiceAccounts(rolecall.ServiceAccountQuery{Words: q.Words, ByName: q.ByName, Desc: q.Desc, After: q.After, Limit: q.Limit, Count: q.Count}); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range accessQueries(now) {
			if _, err := tx.UsersWithAccess(q); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ServiceAccountsWithAccess(q); err != nil {
				t.Fatal(err)
			}
			if _, _, err := tx.AccessAssignments(q, []rolecall.UserID{rolecall.NewID[rolecall.User](now)}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := tx.AccountAccessAssignments(q, []rolecall.ServiceAccountID{rolecall.NewID[rolecall.ServiceAccount](now)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range []rolecall.APITokenQuery{{Holder: rolecall.HolderOf(rolecall.NewID[rolecall.User](now))}, {Holder: rolecall.HolderOf(rolecall.NewID[rolecall.ServiceAccount](now)), After: &rolecall.Position{ID: rolecall.NewID[any](now)}}} {
			if _, err := tx.APITokens(q); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range eventQueries(now) {
			if _, err := tx.Events(q); err != nil {
				t.Fatal(err)
			}
		}
		for _, kind := range []rolecall.EventType{"", rolecall.EventSignedIn} {
			if _, _, err := tx.Changes(rolecall.ChangeQuery{After: 1, To: 2, Type: kind, Limit: 50}); err != nil {
				t.Fatal(err)
			}
		}
		for _, after := range []*rolecall.Position{nil, {ID: rolecall.NewID[any](now)}} {
			if _, err := tx.Sessions(rolecall.SessionQuery{User: rolecall.NewID[rolecall.User](now), Now: now, After: after, Limit: 50}); err != nil {
				t.Fatal(err)
			}
		}
		for _, within := range []rolecall.Reach{rolecall.Everywhere(), rolecall.Within("Sales", "Ops")} {
			if _, err := tx.Invitations(rolecall.InvitationQuery{Within: within, Now: now, After: &rolecall.Position{ID: rolecall.NewID[any](now)}, Limit: 50}); err != nil {
				t.Fatal(err)
			}
		}
		buildJobStatements(t, tx, now)
		for _, q := range tombstoneQueries(now) {
			if _, err := tx.Tombstones(q); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tx.RolesByID([]rolecall.RoleID{rolecall.NewID[rolecall.Role](now), rolecall.NewID[rolecall.Role](now)}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.UsersByID([]rolecall.UserID{rolecall.NewID[rolecall.User](now), rolecall.NewID[rolecall.User](now)}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Deletions([]rolecall.AnyID{rolecall.NewID[any](now), rolecall.NewID[any](now)}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.SignInDetails([]rolecall.UserID{rolecall.NewID[rolecall.User](now), rolecall.NewID[rolecall.User](now)}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.EventsOfDays([]rolecall.Day{{From: now, To: now}, {From: now, To: now}}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.RoleNames([]rolecall.UserID{rolecall.NewID[rolecall.User](now), rolecall.NewID[rolecall.User](now)}, now); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ServiceAccountsByID([]rolecall.ServiceAccountID{rolecall.NewID[rolecall.ServiceAccount](now)}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.TombstonesByUser([]rolecall.UserID{rolecall.NewID[rolecall.User](now)}, now); err != nil {
			t.Fatal(err)
		}
		old := rolecall.User{ID: rolecall.NewID[rolecall.User](now), Name: "Ada Lovelace", Email: "ada@example.com"}
		changed := old
		changed.Name, changed.Email = "Ada King", "king@example.org"
		tx.InsertUser(old)
		tx.InsertUsers([]rolecall.User{old, changed})
		tx.InsertAssignments([]rolecall.Assignment{{Holder: rolecall.HolderOf(old.ID)}, {Holder: rolecall.HolderOf(changed.ID)}})
		if _, err := tx.UpdateUser(old, changed); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.DeleteUser(old, now); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.PurgeExpired(now, now, 10); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.PurgeTenant(now, len(emptyings)+1); err != nil {
			t.Fatal(err)
		}
		for _, status := range []rolecall.TenantStatus{"", rolecall.TenantActive, rolecall.TenantDeleted} {
			for _, among := range [][]string{nil, {"a", "b"}} {
				if _, err := tx.Tenants(rolecall.TenantQuery{Among: among, Status: status, Now: now, Limit: 10}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := tx.CountAttempt([]rolecall.Bucket{{Key: []byte{2}}, {Key: []byte{1}}}, now); err != nil {
			t.Fatal(err)
		}
		for _, sql := range r.statements {
			statements[sql] = true
		}
	}
	return statements
}

// userQueries returns queries with every combination of filter, order and position.
func userQueries(now rolecall.Time) []rolecall.UserQuery {
	sales := "sales"
	filters := []func(*rolecall.UserQuery){
		func(q *rolecall.UserQuery) {},
		func(q *rolecall.UserQuery) { q.Within = rolecall.Within("Sales") },
		func(q *rolecall.UserQuery) { q.Within = rolecall.Within("Sales", "Support") },
		func(q *rolecall.UserQuery) { q.EmailKey = "ada@example.com" },
		func(q *rolecall.UserQuery) { q.ExternalID = "7" },
		func(q *rolecall.UserQuery) { q.Department = &sales },
		func(q *rolecall.UserQuery) { q.Status = rolecall.UserActive },
		func(q *rolecall.UserQuery) { q.Role = rolecall.NewID[rolecall.Role](now) },
		func(q *rolecall.UserQuery) { q.Words = []string{"ada", "lov"} },
		func(q *rolecall.UserQuery) { q.Words, q.NameWords = []string{"ada"}, rolecall.Within("Sales") },
		func(q *rolecall.UserQuery) { q.Words, q.EmailWords = []string{"ada"}, rolecall.Nowhere() },
		func(q *rolecall.UserQuery) {
			q.Words, q.Role, q.Department = []string{"ada"}, rolecall.NewID[rolecall.Role](now), &sales
		},
	}
	var queries []rolecall.UserQuery
	for _, filter := range filters {
		for _, sort := range []rolecall.UserSort{rolecall.SortByID, rolecall.SortByName, rolecall.SortByEmail} {
			for _, after := range []*rolecall.Position{nil, {Key: "m", ID: rolecall.NewID[any](now)}} {
				for _, desc := range []bool{false, true} {
					q := rolecall.UserQuery{Within: rolecall.Everywhere(), NameWords: rolecall.Everywhere(), EmailWords: rolecall.Everywhere(),
						Now: now, Sort: sort, After: after, Desc: desc, Limit: 50, Count: true}
					filter(&q)
					queries = append(queries, q)
				}
			}
		}
	}
	return queries
}

// eventQueries returns queries with every combination of filters and position.
func eventQueries(now rolecall.Time) []rolecall.EventQuery {
	id := rolecall.NewID[any](now)
	var queries []rolecall.EventQuery
	for filters := range 1 << 6 {
		q := rolecall.EventQuery{Limit: 50}
		for i, set := range []func(){
			func() { q.Type = rolecall.EventSignedIn },
			func() { q.Actor = id },
			func() { q.Subject = id },
			func() { q.From = now },
			func() { q.To = now },
			func() { q.After = &rolecall.Position{ID: id} },
		} {
			if filters&(1<<i) != 0 {
				set()
			}
		}
		queries = append(queries, q)
	}
	return queries
}

func roleQueries(now rolecall.Time) []rolecall.RoleQuery {
	place := &rolecall.Position{Key: "m", ID: rolecall.NewID[any](now)}
	return []rolecall.RoleQuery{
		{Limit: 50, Count: true},
		{Limit: 50, ByName: true, Desc: true, After: place},
		{Limit: 50, Words: []string{"agent"}, After: place},
		{Limit: 50, Key: "owner", Count: true},
		{Limit: 50, Permission: &rolecall.UsersErase, After: place},
	}
}

func accessQueries(now rolecall.Time) []rolecall.AccessQuery {
	place := &rolecall.Position{ID: rolecall.NewID[any](now)}
	return []rolecall.AccessQuery{
		{Limit: 50, Permission: rolecall.TenantUpdate, Within: rolecall.Everywhere(), Now: now},
		{Limit: 50, Permission: rolecall.UsersErase, Within: rolecall.Within("Sales", "Support"), Now: now, After: place},
	}
}

func tombstoneQueries(now rolecall.Time) []rolecall.TombstoneQuery {
	place := &rolecall.Position{ID: rolecall.NewID[any](now)}
	return []rolecall.TombstoneQuery{
		{Limit: 50, Within: rolecall.Everywhere(), Since: now},
		{Limit: 50, Within: rolecall.Within("Sales", "Support"), Since: now, After: place},
	}
}

// buildJobStatements calls the methods that build statements about jobs.
func buildJobStatements(t *testing.T, tx *Tx, now rolecall.Time) {
	t.Helper()
	id := rolecall.NewID[any](now)
	for _, after := range []*rolecall.Position{nil, {ID: id}} {
		if _, err := tx.Jobs(rolecall.JobQuery{After: after, Limit: 50}); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Jobs(rolecall.JobQuery{Starter: rolecall.UserID(id), After: after, Limit: 50}); err != nil {
			t.Fatal(err)
		}
		for _, outcome := range []rolecall.JobOutcome{"", rolecall.JobUserChanged, rolecall.JobUserRefused} {
			if _, err := tx.JobResults(rolecall.JobResultQuery{Job: rolecall.JobID(id), Outcome: outcome, After: after, Limit: 50}); err != nil {
				t.Fatal(err)
			}
		}
	}
	tx.InsertJobResults(rolecall.JobID(id), []rolecall.JobResult{{UserID: rolecall.UserID(id)}}, now)
}
