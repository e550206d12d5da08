package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// planner is a store.Querier that records the plan of each statement.
type planner struct {
	*testing.T
	tx    pgx.Tx
	plans []string
}

// Exec fails the test, because a list must only read.
func (p *planner) Exec(query string, _ ...any) { p.Errorf("a list writes: %s", query) }

// Announce fails the test, because a list must only read.
func (p *planner) Announce(rolecall.AnyID) { p.Error("a list announces something") }

// AnnounceChanges fails the test, like Announce.
func (p *planner) AnnounceChanges(rolecall.TenantID) { p.Error("a list announces changes") }

// SetTenant does nothing: no statement that is tested follows it.
func (p *planner) SetTenant(rolecall.TenantID) {}

// AllowAddressInAllTenants sets the setting as a view does.
func (p *planner) AllowAddressInAllTenants(emailKey string) {
	if _, err := p.tx.Exec(p.Context(), "select set_config('rolecall.address', $1, true)", emailKey); err != nil {
		p.Error(err)
	}
}

// Query records the plan, and then runs the statement.
func (p *planner) Query(query string, args []any, each func(scan func(dest ...any) error) error) (n int, err error) {
	rows, err := p.tx.Query(p.Context(), "explain (analyze, timing off, costs off, buffers off, summary off) "+query, args...)
	if err != nil {
		return 0, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, err
	}
	p.plans = append(p.plans, query+"\n"+strings.Join(lines, "\n"))
	if rows, err = p.tx.Query(p.Context(), query, args...); err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
		if err := each(rows.Scan); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// crowd inserts twice as many users as one page of a list may read. Every tenth user is in
// the department Support, and the others are in Sales. All of them have the role. All but
// one are called Ada.
func crowd(t *testing.T, s *postgres.Database) (rolecall.TenantID, rolecall.Role) {
	t.Helper()
	tenant, role := newTenant(t, s, "crowd"), rolecall.BuiltInRoles(now)[2]
	write(t, s, tenant, func(tx *store.Tx) { tx.InsertRole(role) })
	var users []rolecall.User
	var assignments []rolecall.Assignment
	for i := range 2 * rolecall.MaxScan {
		draft := rolecall.UserDraft{Email: fmt.Sprintf("ada%d@example.com", i), Name: fmt.Sprintf("Ada %05d", (i*7919)%(2*rolecall.MaxScan))}
		department := "Sales"
		if i%10 == 0 {
			department = "Support"
		}
		if i == 4000 {
			draft.Name = "Grace Hopper"
		}
		draft.Department = &department
		u := draft.User(now)
		u.Status = rolecall.UserActive
		users = append(users, u)
		assignments = append(assignments, rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: now})
	}
	for chunk := range slices.Chunk(users, 1000) {
		write(t, s, tenant, func(tx *store.Tx) { tx.InsertUsers(chunk) })
	}
	for chunk := range slices.Chunk(assignments, 1000) {
		write(t, s, tenant, func(tx *store.Tx) { tx.InsertAssignments(chunk) })
	}
	return tenant, role
}

// plannerOf updates the statistics of the tables, and returns a planner in a transaction
// with the settings of the store.
func plannerOf(t *testing.T, url string, tenant rolecall.TenantID) *planner {
	t.Helper()
	conn := connect(t, url)
	run(t, conn, "analyze users, user_words, assignments")
	postgres.RegisterIDs(conn.TypeMap())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), postgres.Settings, tenant.String(), true); err != nil {
		t.Fatal(err)
	}
	return &planner{T: t, tx: tx}
}

func TestListsAreDrivenByAnIndex(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	tenant, role := crowd(t, open(t, url, postgres.Options{}))
	p := plannerOf(t, url, tenant)
	sales, support, legal := rolecall.TextKey("Sales"), rolecall.TextKey("Support"), rolecall.TextKey("Legal")

	for name, query := range map[string]rolecall.UserQuery{
		"all":                           {},
		"a status":                      {Status: rolecall.UserActive},
		"a big department":              {Department: &sales},
		"a small department":            {Department: &support},
		"a department that nobody's is": {Department: &legal},
		"a reach of one department":     {Within: rolecall.Within("Sales")},
		"a reach of several":            {Within: rolecall.Within("Support", "Legal")},
		"a role":                        {Role: role.ID},
		"a role in a department":        {Role: role.ID, Department: &support},
		"a common word":                 {Words: []string{"ada"}},
		"a common word of a role":       {Words: []string{"ada"}, Role: role.ID},
		"a rare word":                   {Words: []string{"ada", "hopp"}},
		"a word that nobody has":        {Words: []string{"zz"}},
		"an address":                    {EmailKey: "ada7@example.com"},
		"an external id":                {TextFilter: rolecall.TextFilter{ExternalID: "7"}},
		"common words":                  {Words: []string{"ada", "exam", "com"}},
		"common words in a reach":       {Words: []string{"ada", "exam"}, Within: rolecall.Within("Sales"), NameWords: rolecall.Within("Sales"), EmailWords: rolecall.Within("Support")},
		"a status that nobody has":      {Status: rolecall.UserSuspended},
	} {
		p.check(name, tenant, query, rolecall.MaxScan+1)
		query.Count = true
		p.check(name+", counted", tenant, query, rolecall.MaxCount+1)
	}
}

func TestEachDepartmentIsAnIndexSearch(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	tenant, _ := crowd(t, open(t, url, postgres.Options{}))
	p := plannerOf(t, url, tenant)
	list, err := store.NewTx(p, tenant).Departments()
	if err != nil || !slices.Equal(list, []string{"Sales", "Support"}) {
		t.Error(list, err)
	}
	for _, plan := range p.plans {
		if strings.Contains(plan, "Seq Scan") || pgtest.LookedAt(plan) > 10 {
			t.Error(plan)
		}
	}
}

func TestTheListOfDeletedUsersIsDrivenByAnIndex(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	tenant, _ := crowd(t, open(t, url, postgres.Options{}))
	admin := connect(t, pgtest.Admin(t, url))
	run(t, admin, `insert into tombstones (tenant_id, user_id, id, deleted_at, department, department_key, content)
		select tenant_id, id, id, created_at, department, department_key, '{"user":{},"version":1,"assignments":[]}' from users`, "analyze tombstones")
	p := plannerOf(t, url, tenant)
	for _, within := range []rolecall.Reach{rolecall.Everywhere(), rolecall.Within("Support"), rolecall.Within("Legal", "Support"), rolecall.Within("Legal")} {
		for _, after := range []*rolecall.Position{nil, {ID: rolecall.NewID[any](now)}} {
			if _, err := store.NewTx(p, tenant).Tombstones(rolecall.TombstoneQuery{Within: within, After: after, Limit: 50}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, plan := range p.plans {
		if strings.Contains(plan, "Seq Scan") || pgtest.LookedAt(plan) > rolecall.MaxScan+1 {
			t.Error(plan)
		}
	}
}

func TestTheSearchForAnAddressIsDrivenByItsIndex(t *testing.T) {
	url := pgtest.Migrated(t)
	crowd(t, open(t, url, postgres.Options{}))
	p := plannerOf(t, url, rolecall.TenantID{})
	users, err := store.NewTx(p, rolecall.TenantID{}).UsersWithAddress("ada7@example.com", nil, rolecall.TenantID{}, 50)
	if err != nil || len(users) != 1 {
		t.Errorf("found %d users (error %v)", len(users), err)
	}
	for _, plan := range p.plans {
		if !strings.Contains(plan, "users_address") || pgtest.LookedAt(plan) > 2 {
			t.Error(plan)
		}
	}
}

// The summary of a tenant reads a bounded number of rows, even if the tenant has many
// rows.
func TestSummariesAreDrivenByIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	tenant, role := crowd(t, open(t, url, postgres.Options{}))
	admin := connect(t, pgtest.Admin(t, url))
	run(t, admin, "update assignments set expires_at = 1000000 + (random() * 1e12)::bigint where role_id = '"+role.ID.String()+"'", "analyze")
	p := plannerOf(t, url, tenant)
	tx := store.NewTx(p, tenant)
	if _, err := tx.ExpiringRoles(false, 0, rolecall.Never-1); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.FactorCoverage(); err != nil {
		t.Fatal(err)
	}
	for _, plan := range p.plans {
		if strings.Contains(plan, "Seq Scan on assignments") || strings.Contains(plan, "Seq Scan on users") || pgtest.LookedAt(plan) > rolecall.MaxScan+1 {
			t.Error(plan)
		}
	}
}

// A purge of places reads no more of them than it may delete, although a disabled webhook needs old ones.
func TestAPurgeOfPlacesReadsFewPlaces(t *testing.T) {
	url := pgtest.Migrated(t)
	open(t, url, postgres.Options{})
	admin := connect(t, pgtest.Admin(t, url))
	old, fresh := rolecall.FirstID[any](now.Add(-2*rolecall.PlacesKept)), rolecall.FirstID[any](now)
	run(t, admin, fmt.Sprintf(`insert into feed_places (place, tenant, first_number, last_number, mark)
			select n, '%s', n, n, case when n <= 4000 then '%s'::uuid else '%s' end from generate_series(1, 5000) n`, rolecall.OperatorsTenant, old, fresh),
		"insert into feed_of_tenants (id, last, begin_place, begin_number) values (1, 5000, 10, 10)",
		fmt.Sprintf(`insert into webhook_cursors (webhook_id, part, tenant, queue, state, changed, due_at, number, until_number, from_time, to_time, lease, attempts, failing_since, blocked, slot)
			values ('%s', 0, '%s', 0, 3, 0, 0, 2 * 16777216, 0, 0, 0, 0, 0, 0, 0, 0)`, rolecall.NewID[rolecall.Webhook](now), rolecall.OperatorsTenant),
		"analyze feed_places, feed_of_tenants, webhook_cursors")
	const limit = 100
	for _, begin := range []int{10, 5000} {
		run(t, admin, fmt.Sprintf("update feed_of_tenants set begin_place = %d", begin))
		p := plannerOf(t, url, rolecall.TenantID{})
		if _, err := store.NewTx(p, rolecall.TenantID{}).PurgePlaces(now, limit); err != nil {
			t.Fatal(err)
		}
		for _, plan := range p.plans {
			if strings.Contains(plan, "Seq Scan on feed_places") || pgtest.LookedAt(plan) > limit {
				t.Errorf("with the beginning %d: %s", begin, plan)
			}
		}
		if err := p.tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEachIDIsAnIndexSearch(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	tenant, _ := crowd(t, open(t, url, postgres.Options{}))
	admin := connect(t, pgtest.Admin(t, url))
	run(t, admin, `insert into tombstones (tenant_id, user_id, id, deleted_at, department, department_key, content)
		select tenant_id, id, id, created_at, department, department_key, '{"user":{},"version":1,"assignments":[]}' from users`, "analyze tombstones")
	p := plannerOf(t, url, tenant)
	var others []rolecall.AnyID
	ids := make([]rolecall.UserID, 100)
	for i := range ids {
		ids[i] = rolecall.NewID[rolecall.User](now)
	}
	if _, err := store.NewTx(p, tenant).UsersByID(ids); err != nil {
		t.Fatal(err)
	}
	if _, err := store.NewTx(p, tenant).TombstonesByUser(ids, 0); err != nil {
		t.Fatal(err)
	}
	for range ids {
		others = append(others, rolecall.NewID[any](now))
	}
	if _, err := store.NewTx(p, tenant).Deletions(others); err != nil {
		t.Fatal(err)
	}
	for _, plan := range p.plans {
		if strings.Contains(plan, "Seq Scan") || pgtest.LookedAt(plan) > float64(len(ids)) {
			t.Error(plan)
		}
	}
}

func TestTheListOfAccessIsDrivenByAnIndex(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	s := open(t, url, postgres.Options{})
	tenant, role := crowd(t, s)
	rare := rolecall.BuiltInRoles(now)[1]
	write(t, s, tenant, func(tx *store.Tx) { tx.InsertRole(rare) })
	p := plannerOf(t, url, tenant)
	for _, permission := range []rolecall.Permission{role.Permissions[0], rolecall.UsersErase, rolecall.TenantUpdate} {
		for _, within := range []rolecall.Reach{rolecall.Everywhere(), rolecall.Within("Support"), rolecall.Within("Sales"), rolecall.Within("Legal", "Support")} {
			for _, after := range []*rolecall.Position{nil, {ID: rolecall.NewID[any](now)}} {
				q := rolecall.AccessQuery{Permission: permission, Within: within, Now: now, After: after, Limit: 50}
				page, err := store.NewTx(p, tenant).UsersWithAccess(q)
				if err != nil {
					t.Fatal(err)
				}
				var ids []rolecall.UserID
				for _, u := range page.Items {
					ids = append(ids, u.ID)
				}
				if _, _, err := store.NewTx(p, tenant).AccessAssignments(q, ids); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, plan := range p.plans {
		if strings.Contains(plan, "Seq Scan on users") || strings.Contains(plan, "Seq Scan on assignments") || pgtest.LookedAt(plan) > rolecall.MaxScan+1 {
			t.Error(plan)
		}
	}
}

func TestDirectoriesAreReadByIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	tenant, _ := crowd(t, open(t, url, postgres.Options{}))
	d := rolecall.NewID[rolecall.Directory](now)
	source, limit := rolecall.SourceOf(d), 100
	run(t, connect(t, pgtest.Admin(t, url)),
		fmt.Sprintf(`insert into directories (tenant_id, id, name, name_key, matching, deprovisioning, paused, created_at, updated_at, version)
			values ('%s', '%s', 'Acme', 'acme', 'refuse', 'suspend', 0, 1, 1, 1)`, tenant, d),
		fmt.Sprintf(`insert into directory_users (tenant_id, user_id, directory_id, removed, user_name_key, external_id, work_email_key, active, suspended, attributes)
			select tenant_id, id, '%s', 0, email_key, email_key, email_key, 1, 0, '{}' from users`, d),
		fmt.Sprintf(`insert into groups (tenant_id, id, name, name_key, words, description, external_id, source, created_at, updated_at, version)
			select tenant_id, id, '', email_key, '', '', email_key, '', 1, 1, 1 from users union all
			select tenant_id, gen_random_uuid(), name, email_key, '', '', email_key, '%s', 1, 1, 1 from users where email_key in ('ada1@example.com', 'ada2@example.com')`, source),
		`insert into group_members (tenant_id, user_id, group_id, added_at) select u.tenant_id, u.id, g.id, 1 from users u, groups g where g.name_key = 'ada7@example.com'`,
		`insert into directory_tokens (tenant_id, id, directory_id, hash, name, created_at, expires_at, last_used_at, warned)
			select tenant_id, id, directory_id, uuid_send(user_id), '', 1, 1, 0, 0 from directory_users join (select id from users) u on u.id = user_id`,
		"analyze",
	)
	p := plannerOf(t, url, tenant)
	tx, writing := store.NewTx(p, tenant), store.NewTx(&writingPlanner{p}, tenant)
	var ids []rolecall.UserID
	for range limit {
		ids = append(ids, rolecall.NewID[rolecall.User](now))
	}
	for _, q := range []rolecall.DirectoryUserQuery{
		{}, {Offset: 50}, {After: ids[0]}, {ID: ids[0]}, {UserName: "ada7@example.com"}, {ExternalID: "ada7@example.com"}, {WorkEmail: "ada7@example.com"},
		{UserName: "none"}, {ExternalID: "none"}, {WorkEmail: "none@example.com"}, {Active: rolecall.Some(true)},
	} {
		q.Directory, q.Limit = d, 50
		if _, err := tx.DirectoryUsers(q); err != nil {
			t.Fatal(err)
		}
		if q.ID.IsZero() && q.UserName+q.ExternalID+q.WorkEmail == "" {
			continue // all users are counted
		}
		if _, err := tx.CountDirectoryUsers(q); err != nil {
			t.Fatal(err)
		}
	}
	_, _, tokenErr := tx.DirectoryByToken([]byte("hash"))
	for _, err := range []error{
		errorOf(tx.AmongDirectoryUsers(d, ids)), errorOf(tx.CrowdedUsers(ids)), errorOf(tx.MemberIDs(rolecall.NewID[rolecall.Group](now), limit)),
		errorOf(tx.Groups(rolecall.GroupQuery{Source: source, Limit: limit})), errorOf(writing.WarnDirectoryTokens(now, now-1)),
		writing.ReleaseGroups(source, func(g rolecall.Group) string { return g.ID.String() }), errorOf(writing.ReleaseUsers(d, limit)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(tokenErr, rolecall.ErrNotFound) {
		t.Errorf("an unknown token: %v", tokenErr)
	}
	for _, plan := range p.plans {
		if strings.Contains(plan, "Seq Scan on directory_users") || strings.Contains(plan, "Seq Scan on users") || strings.Contains(plan, "Seq Scan on groups") ||
			strings.Contains(plan, "Seq Scan on group_members") || strings.Contains(plan, "Seq Scan on directory_tokens") || pgtest.LookedAt(plan) > float64(limit+1) {
			t.Error(plan)
		}
	}
}

// check fails the test if a statement of the list, in any order, reads a table without
// an index, or if a node of its plan reads more rows than the bound.
func (p *planner) check(name string, tenant rolecall.TenantID, q rolecall.UserQuery, bound float64) {
	p.Helper()
	if q.Within.IsNowhere() {
		q.Within = rolecall.Everywhere()
	}
	if q.NameWords.IsNowhere() {
		q.NameWords, q.EmailWords = rolecall.Everywhere(), rolecall.Everywhere()
	}
	q.Now, q.Limit = now, 50
	for _, q.Sort = range []rolecall.UserSort{rolecall.SortByID, rolecall.SortByName, rolecall.SortByEmail} {
		p.plans = nil
		if _, err := store.NewTx(p, tenant).Users(q); err != nil {
			p.Fatal(err)
		}
		if len(p.plans) == 0 {
			p.Fatalf("%s: nothing was asked", name)
		}
		for _, plan := range p.plans {
			if strings.Contains(plan, "Seq Scan") || pgtest.LookedAt(plan) > bound {
				p.Errorf("%s, sort %v: %s", name, q.Sort, plan)
			}
		}
	}
}
