package sqlite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// planner is a Querier that records the plan of each statement.
type planner struct {
	*update
	plans []string
}

func (p *planner) Query(query string, args []any, each func(scan func(dest ...any) error) error) (int, error) {
	plan := query
	_, err := p.update.Query("explain query plan "+query, args, func(scan func(dest ...any) error) error {
		var id, parent, unused int
		var detail string
		err := scan(&id, &parent, &unused, &detail)
		plan += "\n\t" + detail
		return err
	})
	if err != nil {
		return 0, err
	}
	p.plans = append(p.plans, plan)
	return p.update.Query(query, args, each)
}

// plansOf returns the plans of the statements of fn.
func plansOf(t *testing.T, s *Database, tenant rolecall.TenantID, fn func(*store.Tx) error) []string {
	t.Helper()
	var plans []string
	if err := s.writer.do(t.Context(), func(q store.Querier) error {
		p := &planner{update: q.(*update)}
		err := fn(store.NewTx(p, tenant))
		plans = p.plans
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return plans
}

// crowd inserts more users than one page of a list may read. Every tenth user is in the
// department Support, and the others are in Sales. All of them have the role. All but one
// are called Ada.
func crowd(t *testing.T, s *Database) (rolecall.TenantID, rolecall.Role) {
	t.Helper()
	tenant := newTenant(t, s)
	role := rolecall.BuiltInRoles(now)[2]
	if err := store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
		tx.InsertRole(role)
		for i := range rolecall.MaxScan + 500 {
			u := newUser(fmt.Sprintf("Ada %05d", (i*7919)%(rolecall.MaxScan+500)))
			department := "Sales"
			if i%10 == 0 {
				department = "Support"
			}
			if i == 4000 {
				u.Name = "Grace Hopper"
			}
			u.Department = &department
			tx.InsertUser(u)
			tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: now})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return tenant, role
}

func TestListsAreDrivenByAnIndex(t *testing.T) {
	s := openNew(t)
	tenant, role := crowd(t, s)
	sales, support := rolecall.TextKey("Sales"), rolecall.TextKey("Support")
	const sorts = "USE TEMP B-TREE FOR ORDER BY"
	for _, c := range []struct {
		name   string
		query  rolecall.UserQuery
		drives string // part of the plan of the page
		sorts  bool   // the plan may sort, because the page is read from a candidate
	}{
		{"all by id", rolecall.UserQuery{}, "SEARCH r USING PRIMARY KEY (tenant_id=?", false},
		{"all by name", rolecall.UserQuery{Sort: rolecall.SortByName}, "SEARCH r USING INDEX users_name", false},
		{"all by address", rolecall.UserQuery{Sort: rolecall.SortByEmail}, "SEARCH r USING INDEX users_email", false},
		{"status", rolecall.UserQuery{Status: rolecall.UserActive}, "SEARCH users USING PRIMARY KEY (tenant_id=?", false},
		{"status by name", rolecall.UserQuery{Status: rolecall.UserActive, Sort: rolecall.SortByName}, "SEARCH users USING INDEX users_name", false},
		{"status by address", rolecall.UserQuery{Status: rolecall.UserActive, Sort: rolecall.SortByEmail}, "SEARCH users USING INDEX users_email", false},
		{"one department", rolecall.UserQuery{Department: &sales}, "SEARCH users USING COVERING INDEX users_department (tenant_id=? AND department_key=?", false},
		{"a reach of one department", rolecall.UserQuery{Within: rolecall.Within("Sales")}, "SEARCH users USING COVERING INDEX users_department", false},
		{"a small department by name", rolecall.UserQuery{Department: &support, Sort: rolecall.SortByName}, "SEARCH users USING COVERING INDEX users_department", true},
		{"small departments by name", rolecall.UserQuery{Within: rolecall.Within("Support", "Legal"), Sort: rolecall.SortByName}, "SEARCH users USING COVERING INDEX users_department", true},
		{"role", rolecall.UserQuery{Role: role.ID}, "SEARCH assignments USING COVERING INDEX assignments_role", false},
		{"a big role by name", rolecall.UserQuery{Role: role.ID, Sort: rolecall.SortByName}, "SEARCH users USING INDEX users_name", false},
		{"a common word", rolecall.UserQuery{Words: []string{"ada"}, Sort: rolecall.SortByName}, "SEARCH users USING INDEX users_name", false},
		{"a common word by id", rolecall.UserQuery{Words: []string{"exam"}}, "SEARCH user_words USING PRIMARY KEY (tenant_id=? AND word=?", false},
		{"two common words by id", rolecall.UserQuery{Words: []string{"exam", "com"}}, "SEARCH user_words USING PRIMARY KEY (tenant_id=? AND word=?", false},
		{"a rare word", rolecall.UserQuery{Words: []string{"ada", "hopp"}}, "SEARCH user_words USING PRIMARY KEY (tenant_id=? AND word>? AND word<?)", true},
		{"an address", rolecall.UserQuery{EmailKey: "ada@example.com"}, "INDEX users_email (tenant_id=? AND email_key=?)", true},
		{"an external id", rolecall.UserQuery{TextFilter: rolecall.TextFilter{ExternalID: "7"}}, "INDEX users_external_id (tenant_id=? AND external_id=?)", true},
	} {
		for _, after := range []*rolecall.Position{nil, {Key: "a", ID: rolecall.NewID[any](now)}} {
			for _, desc := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, after %v, desc %v", c.name, after != nil, desc), func(t *testing.T) {
					q := c.query
					if q.Within.IsNowhere() {
						q.Within = rolecall.Everywhere()
					}
					q.NameWords, q.EmailWords, q.Now = rolecall.Everywhere(), rolecall.Everywhere(), now
					q.After, q.Desc, q.Limit = after, desc, 50
					plans := plansOf(t, s, tenant, func(tx *store.Tx) error {
						_, err := tx.Users(q)
						return err
					})
					driven := false
					for _, plan := range plans {
						for _, whole := range []string{"SCAN users", "SCAN r", "SCAN assignments", "SCAN user_words", "SCAN a\n", "AUTOMATIC"} {
							if strings.Contains(withoutWindow(plan), whole) {
								t.Errorf("%s in: %s", whole, plan)
							}
						}
						page := strings.Contains(plan, "r.email, ")
						if page && !c.sorts && strings.Contains(plan, sorts) {
							t.Errorf("a sort in: %s", plan)
						}
						driven = driven || page && strings.Contains(plan, c.drives)
					}
					if !driven {
						t.Errorf("no page driven by %q: %s", c.drives, strings.Join(plans, "\n"))
					}
				})
			}
		}
	}
}

// withoutWindow returns the plan without the step that scans the rows of a subquery.
// SQLite takes these rows from an index when they are needed, so this step does not read a
// table.
func withoutWindow(plan string) string {
	if strings.Contains(plan, "\tCO-ROUTINE r\n") {
		return strings.Replace(plan, "\tSCAN r\n", "", 1)
	}
	return plan
}

func TestEachDepartmentIsAnIndexSearch(t *testing.T) {
	s := openNew(t)
	tenant, _ := crowd(t, s)
	plans := plansOf(t, s, tenant, func(tx *store.Tx) error {
		list, err := tx.Departments()
		if !slices.Equal(list, []string{"Sales", "Support"}) {
			t.Error(list)
		}
		return err
	})
	all := strings.Join(plans, "\n")
	for _, drives := range []string{
		"SEARCH users USING COVERING INDEX users_department (tenant_id=? AND department_key>?)",
		"SEARCH u USING COVERING INDEX users_department (tenant_id=? AND department_key>?)",
		"SEARCH u USING INDEX users_department (tenant_id=? AND department_key=?)",
	} {
		if !strings.Contains(all, drives) {
			t.Errorf("not driven by %q: %s", drives, all)
		}
	}
	if strings.Contains(all, "SCAN u") || strings.Contains(all, "TEMP B-TREE") {
		t.Error(all)
	}
}

func TestEachIDIsAnIndexSearch(t *testing.T) {
	s := openNew(t)
	tenant, _ := crowd(t, s)
	for drives, look := range map[string]func(*store.Tx) error{
		"SEARCH r USING PRIMARY KEY (tenant_id=? AND id=?)": func(tx *store.Tx) error {
			if _, err := tx.UsersByID([]rolecall.UserID{rolecall.NewID[rolecall.User](now), rolecall.NewID[rolecall.User](now)}); err != nil {
				return err
			}
			if _, err := tx.SignInDetails([]rolecall.UserID{rolecall.NewID[rolecall.User](now), rolecall.NewID[rolecall.User](now)}); err != nil {
				return err
			}
			_, err := tx.ServiceAccountsByID([]rolecall.ServiceAccountID{rolecall.NewID[rolecall.ServiceAccount](now)})
			return err
		},
		"USING PRIMARY KEY (tenant_id=? AND user_id=?": func(tx *store.Tx) error {
			_, err := tx.RoleNames([]rolecall.UserID{rolecall.NewID[rolecall.User](now), rolecall.NewID[rolecall.User](now)}, now)
			return err
		},
		"SEARCH e USING COVERING INDEX events_subject (tenant_id=? AND subject_id=?)": func(tx *store.Tx) error {
			_, err := tx.Deletions([]rolecall.AnyID{rolecall.NewID[any](now), rolecall.NewID[any](now)})
			return err
		},
		"SEARCH r USING PRIMARY KEY (tenant_id=? AND user_id=?)": func(tx *store.Tx) error {
			_, err := tx.TombstonesByUser([]rolecall.UserID{rolecall.NewID[rolecall.User](now), rolecall.NewID[rolecall.User](now)}, now)
			return err
		},
	} {
		for _, plan := range plansOf(t, s, tenant, look) {
			if !strings.Contains(plan, drives) || strings.Contains(plan, "SCAN r") {
				t.Errorf("not driven by %q: %s", drives, plan)
			}
		}
	}
}

func TestTheListOfAccessIsDrivenByAnIndex(t *testing.T) {
	s := openNew(t)
	tenant, role := crowd(t, s)
	for _, c := range []struct {
		permission rolecall.Permission
		within     rolecall.Reach
		drives     string
	}{
		{role.Permissions[0], rolecall.Everywhere(), "SEARCH users USING PRIMARY KEY (tenant_id=?)"},
		{role.Permissions[0], rolecall.Within("Sales"), "SEARCH users USING COVERING INDEX users_department (tenant_id=? AND department_key=?)"},
		{rolecall.UsersErase, rolecall.Everywhere(), "SEARCH assignments USING COVERING INDEX assignments_role (tenant_id=? AND role_id=?"},
		{rolecall.UsersErase, rolecall.Within("Sales", "Support"), "SEARCH assignments USING COVERING INDEX assignments_role (tenant_id=? AND role_id=?"},
	} {
		plans := plansOf(t, s, tenant, func(tx *store.Tx) error {
			_, err := tx.UsersWithAccess(rolecall.AccessQuery{Permission: c.permission, Within: c.within, Now: now, Limit: 50})
			return err
		})
		page := plans[len(plans)-1]
		if !strings.Contains(page, c.drives) || !strings.Contains(page, "SEARCH a USING PRIMARY KEY (tenant_id=? AND user_id=?") || strings.Contains(page, "SCAN assignments") || strings.Contains(page, "SCAN users") {
			t.Errorf("not driven by %q: %s", c.drives, page)
		}
	}
}

// The statements about groups search each table of groups by an index.
func TestGroupsAreReadByIndexes(t *testing.T) {
	s := openNew(t)
	tenant, role := crowd(t, s)
	group := rolecall.Group{ID: rolecall.NewID[rolecall.Group](now), Name: "Support", CreatedAt: now, UpdatedAt: now, Version: 1}
	user := rolecall.NewID[rolecall.User](now)
	if err := store.New(s, nil).Update(t.Context(), tenant, func(tx *store.Tx) error {
		tx.InsertGroup(group)
		tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(group.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: now})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	users := func(q rolecall.UserQuery) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			q.Within, q.Now, q.Limit = rolecall.Everywhere(), now, 50
			_, err := tx.Users(q)
			return err
		}
	}
	groups := func(q rolecall.GroupQuery) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			q.Limit = 50
			_, err := tx.Groups(q)
			return err
		}
	}
	scan := regexp.MustCompile(`SCAN (m|a|g|o|r|users|assignments|past_\w+|group_\w+|groups)\b|(m USING PRIMARY KEY|group_members\w*) \(tenant_id=\?\)`)
	names := plansOf(t, s, tenant, func(tx *store.Tx) error { _, err := tx.RoleNames([]rolecall.UserID{user}, now); return err })
	if bounded := "SEARCH a USING PRIMARY KEY (tenant_id=? AND user_id=? AND role_id<?)"; !strings.Contains(names[0], bounded) {
		t.Errorf("role names are not driven by %q: %s", bounded, names[0])
	}
	for name, look := range map[string]func(*store.Tx) error{
		"a role":                    users(rolecall.UserQuery{Role: role.ID}),
		"a role at a time":          users(rolecall.UserQuery{Role: role.ID, HeldAt: now}),
		"a group":                   users(rolecall.UserQuery{Group: group.ID}),
		"a group by name":           users(rolecall.UserQuery{Group: group.ID, Sort: rolecall.SortByName}),
		"groups":                    groups(rolecall.GroupQuery{}),
		"groups by name":            groups(rolecall.GroupQuery{ByName: true}),
		"a group by external id":    groups(rolecall.GroupQuery{ExternalID: "1"}),
		"groups of a source":        groups(rolecall.GroupQuery{Source: rolecall.SourceOf(rolecall.NewID[rolecall.Directory](now))}),
		"groups with a word":        groups(rolecall.GroupQuery{Words: []string{"support"}}),
		"the assignments":           func(tx *store.Tx) error { _, err := tx.Assignments(rolecall.HolderOf(user)); return err },
		"the assignments at a time": func(tx *store.Tx) error { _, err := tx.AssignmentsAt(user, now); return err },
		"the groups of a source by name": func(tx *store.Tx) error {
			_, _, err := tx.GroupsOfSource(rolecall.SourceOf(rolecall.NewID[rolecall.Connection](now)), user, rolecall.MatchName, []string{"a", "b"})
			return err
		},
		"the groups of a source by external id": func(tx *store.Tx) error {
			_, _, err := tx.GroupsOfSource(rolecall.SourceOf(rolecall.NewID[rolecall.Connection](now)), user, rolecall.MatchExternalID, []string{"a", "b"})
			return err
		},
		"the memberships": func(tx *store.Tx) error { _, err := tx.Memberships(user); return err },
		"a session": func(tx *store.Tx) error {
			_, err := tx.SessionWithRoles([]byte("hash"), 100)
			return ignoreNotFound(err)
		},
		"a token": func(tx *store.Tx) error { _, err := tx.APITokenByHash([]byte("hash"), 100); return ignoreNotFound(err) },
		"access": func(tx *store.Tx) error {
			q := rolecall.AccessQuery{Permission: role.Permissions[0], Within: rolecall.Everywhere(), Now: now, Limit: 50}
			if _, err := tx.UsersWithAccess(q); err != nil {
				return err
			}
			_, _, err := tx.AccessAssignments(q, []rolecall.UserID{user})
			return err
		},
		"role names": func(tx *store.Tx) error { _, err := tx.RoleNames([]rolecall.UserID{user}, now); return err },
	} {
		for _, plan := range plansOf(t, s, tenant, look) {
			if found := scan.FindString(withoutWindow(plan)); found != "" {
				t.Errorf("%s: %s in %s", name, found, plan)
			}
		}
	}
}

// Each statement about directories uses the index of its filter, also in a directory with many users.
func TestDirectoriesAreReadByIndexes(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	d, user := rolecall.NewID[rolecall.Directory](now), rolecall.NewID[rolecall.User](now)
	of := func(q rolecall.DirectoryUserQuery) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			q.Directory, q.Limit = d, 50
			if _, err := tx.DirectoryUsers(q); err != nil {
				return err
			}
			_, err := tx.CountDirectoryUsers(q)
			return err
		}
	}
	for name, c := range map[string]struct {
		look   func(*store.Tx) error
		drives string // part of each plan
	}{
		"users":             {of(rolecall.DirectoryUserQuery{}), "directory_users USING COVERING INDEX directory_users_directory (tenant_id=? AND directory_id=? AND removed=?"},
		"users after one":   {of(rolecall.DirectoryUserQuery{After: user}), "directory_users USING COVERING INDEX directory_users_directory (tenant_id=? AND directory_id=? AND removed=?"},
		"a user":            {of(rolecall.DirectoryUserQuery{ID: user}), "(tenant_id=? AND user_id=?)"},
		"a userName":        {of(rolecall.DirectoryUserQuery{UserName: "ada"}), "INDEX directory_users_name (tenant_id=? AND directory_id=? AND user_name_key=?)"},
		"an external id":    {of(rolecall.DirectoryUserQuery{ExternalID: "7"}), "INDEX directory_users_external_id (tenant_id=? AND directory_id=? AND external_id=?)"},
		"an address":        {of(rolecall.DirectoryUserQuery{WorkEmail: "ada@example.com"}), "INDEX directory_users_work_email (tenant_id=? AND directory_id=? AND work_email_key=?)"},
		"the data of users": {func(tx *store.Tx) error { _, err := tx.DirectoryUser(user); return ignoreNotFound(err) }, "PRIMARY KEY (tenant_id=? AND user_id=?)"},
		"users among others": {func(tx *store.Tx) error {
			_, err := tx.AmongDirectoryUsers(d, []rolecall.UserID{user, rolecall.NewID[rolecall.User](now)})
			return err
		}, "INDEX directory_users_directory (tenant_id=? AND directory_id=? AND removed=? AND user_id=?)"},
		"crowded users": {func(tx *store.Tx) error {
			_, err := tx.CrowdedUsers([]rolecall.UserID{user, rolecall.NewID[rolecall.User](now)})
			return err
		}, "PRIMARY KEY (tenant_id=? AND user_id=?)"},
		"members": {func(tx *store.Tx) error {
			_, err := tx.MemberIDs(rolecall.NewID[rolecall.Group](now), 50)
			return err
		}, "INDEX group_members_group (tenant_id=? AND group_id=?)"},
		"a token":            {func(tx *store.Tx) error { _, _, err := tx.DirectoryByToken([]byte("hash")); return ignoreNotFound(err) }, "INDEX directory_tokens_hash (tenant_id=? AND hash=?)"},
		"expiring tokens":    {func(tx *store.Tx) error { _, err := tx.WarnDirectoryTokens(now, 0); return err }, "INDEX directory_tokens_expiry (tenant_id=? AND expires_at>? AND expires_at<?)"},
		"a hidden directory": {func(tx *store.Tx) error { _, err := tx.HiddenDirectory(); return ignoreNotFound(err) }, "INDEX directories_deletion (tenant_id=? AND deletion>?)"},
		"groups of a source": {func(tx *store.Tx) error {
			return tx.ReleaseGroups(rolecall.SourceOf(d), func(g rolecall.Group) string { return g.Name })
		}, "INDEX groups_source_name (tenant_id=? AND source=?)"},
	} {
		for _, plan := range plansOf(t, s, tenant, c.look) {
			if !strings.Contains(plan, c.drives) || strings.Contains(plan, "SCAN directory_users") {
				t.Errorf("%s is not driven by %q: %s", name, c.drives, plan)
			}
		}
	}
}

func ignoreNotFound(err error) error {
	if errors.Is(err, rolecall.ErrNotFound) {
		return nil
	}
	return err
}

func TestRoleListsAreDrivenByAnIndex(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	for _, c := range []struct {
		query  rolecall.RoleQuery
		drives string
	}{
		{rolecall.RoleQuery{}, "SEARCH r USING PRIMARY KEY (tenant_id=?)"},
		{rolecall.RoleQuery{ByName: true}, "SEARCH r USING INDEX roles_name (tenant_id=?)"},
		{rolecall.RoleQuery{ByName: true, Words: []string{"view"}}, "SEARCH roles USING INDEX roles_name (tenant_id=?)"},
		{rolecall.RoleQuery{Permission: &rolecall.UsersErase}, "SEARCH roles USING PRIMARY KEY (tenant_id=?)"},
		{rolecall.RoleQuery{Key: "viewer"}, "INDEX roles_key (tenant_id=? AND key=?)"},
	} {
		c.query.Limit = 50
		plans := plansOf(t, s, tenant, func(tx *store.Tx) error {
			_, err := tx.Roles(c.query)
			return err
		})
		if all := strings.Join(plans, "\n"); !strings.Contains(all, c.drives) || strings.Contains(all, "SCAN roles") || strings.Contains(withoutWindow(all), "SCAN r\n") {
			t.Errorf("not driven by %q: %s", c.drives, all)
		}
	}
}

func TestListsOfServiceAccountsAreDrivenByAnIndex(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	for _, c := range []struct {
		list   func(*store.Tx) error
		drives string
	}{
		{serviceAccounts(rolecall.ServiceAccountQuery{}), "SEARCH r USING PRIMARY KEY (tenant_id=?)"},
		{serviceAccounts(rolecall.ServiceAccountQuery{ByName: true}), "SEARCH r USING INDEX service_accounts_name (tenant_id=?)"},
		{serviceAccounts(rolecall.ServiceAccountQuery{ByName: true, Words: []string{"import"}}), "SEARCH service_accounts USING INDEX service_accounts_name (tenant_id=?)"},
		{apiTokens(rolecall.APITokenQuery{Holder: rolecall.HolderOf(rolecall.NewID[rolecall.User](now))}), "SEARCH api_tokens USING COVERING INDEX api_tokens_user (tenant_id=? AND user_id=?)"},
		{apiTokens(rolecall.APITokenQuery{Holder: rolecall.HolderOf(rolecall.NewID[rolecall.ServiceAccount](now))}), "SEARCH api_tokens USING COVERING INDEX api_tokens_service_account (tenant_id=? AND service_account_id=?)"},
	} {
		all := strings.Join(plansOf(t, s, tenant, c.list), "\n")
		for _, bad := range []string{"SCAN service_accounts", "SCAN api_tokens", "SCAN r\n", "USE TEMP B-TREE"} {
			if !strings.Contains(all, c.drives) || strings.Contains(withoutWindow(all), bad) {
				t.Errorf("not driven by %q, or %s: %s", c.drives, bad, all)
			}
		}
	}
}

func serviceAccounts(q rolecall.ServiceAccountQuery) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		q.Limit = 50
		_, err := tx.ServiceAccounts(q)
		return err
	}
}

func apiTokens(q rolecall.APITokenQuery) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		q.Limit = 50
		_, err := tx.APITokens(q)
		return err
	}
}

func TestEventListsAreDrivenByAnIndex(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	id := rolecall.NewID[any](now)
	for _, c := range []struct {
		query  rolecall.EventQuery
		drives string
	}{
		{rolecall.EventQuery{}, "SEARCH r USING PRIMARY KEY (tenant_id=?)"},
		{rolecall.EventQuery{After: &rolecall.Position{ID: id}}, "SEARCH r USING PRIMARY KEY (tenant_id=? AND id<?)"},
		{rolecall.EventQuery{Type: rolecall.EventSignedIn}, "SEARCH events USING PRIMARY KEY (tenant_id=?)"},
		{rolecall.EventQuery{From: now, To: now + 1}, "SEARCH events USING PRIMARY KEY (tenant_id=? AND id>? AND id<?)"},
		{rolecall.EventQuery{Subject: id}, "SEARCH events USING COVERING INDEX events_subject (tenant_id=? AND subject_id=?)"},
		{rolecall.EventQuery{Subject: id, Actor: id, To: now}, "SEARCH events USING COVERING INDEX events_subject (tenant_id=? AND subject_id=? AND id<?)"},
	} {
		c.query.Limit = 50
		plans := plansOf(t, s, tenant, func(tx *store.Tx) error {
			_, err := tx.Events(c.query)
			return err
		})
		page := plans[slices.IndexFunc(plans, func(plan string) bool { return strings.Contains(plan, "r.type, ") })]
		if !strings.Contains(page, c.drives) {
			t.Errorf("not driven by %q: %s", c.drives, page)
		}
		for _, bad := range []string{"SCAN events", "SCAN r\n", "SCAN v", "SCAN u", "USE TEMP B-TREE"} {
			if strings.Contains(withoutWindow(page), bad) {
				t.Errorf("%s in: %s", bad, page)
			}
		}
	}
}

func TestTheListOfDeletedUsersIsDrivenByAnIndex(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	for _, c := range []struct {
		query  rolecall.TombstoneQuery
		drives string
	}{
		{rolecall.TombstoneQuery{Within: rolecall.Everywhere()}, "INDEX tombstones_id (tenant_id=?)"},
		{rolecall.TombstoneQuery{Within: rolecall.Within("Sales", "Ops"), After: &rolecall.Position{ID: rolecall.NewID[any](now)}}, "INDEX tombstones_id (tenant_id=? AND id<?)"},
	} {
		c.query.Limit, c.query.Since = 50, now
		plans := plansOf(t, s, tenant, func(tx *store.Tx) error {
			_, err := tx.Tombstones(c.query)
			return err
		})
		all := strings.Join(plans, "\n")
		for _, bad := range []string{"SCAN tombstones", "SCAN r\n", "USE TEMP B-TREE"} {
			if !strings.Contains(all, c.drives) || strings.Contains(withoutWindow(all), bad) {
				t.Errorf("not driven by %q, or with %q: %s", c.drives, bad, all)
			}
		}
	}
}

func TestSessionListsAreDrivenByAnIndex(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	q := rolecall.SessionQuery{User: rolecall.NewID[rolecall.User](now), Now: now, Limit: 50}
	for _, q.After = range []*rolecall.Position{nil, {ID: rolecall.NewID[any](now)}} {
		plans := plansOf(t, s, tenant, func(tx *store.Tx) error {
			if _, err := tx.Sessions(q); err != nil {
				return err
			}
			_, err := tx.DeleteOldestSessions(q.User, 100, q.Settings, now)
			return err
		})
		for i, plan := range plans {
			if !strings.Contains(plan, "INDEX sessions_user (tenant_id=? AND user_id=?") || strings.Contains(plan, "SCAN sessions") || i == 0 && strings.Contains(plan, "USE TEMP B-TREE") {
				t.Errorf("not driven by the user: %s", plan)
			}
		}
	}
}

func TestTheSearchForAnAddressIsDrivenByItsIndex(t *testing.T) {
	s := openNew(t)
	plans := plansOf(t, s, rolecall.TenantID{}, func(tx *store.Tx) error {
		_, err := tx.UsersWithAddress("ada@example.com", []string{"acme", "other"}, rolecall.NewID[rolecall.Tenant](now), 50)
		return err
	})
	for _, plan := range plans {
		if !strings.Contains(plan, "INDEX users_address (email_key=? AND tenant_id>?)") || strings.Contains(plan, "USE TEMP B-TREE") {
			t.Errorf("not driven by the address: %s", plan)
		}
	}
}

func TestUsersWithoutFactorReadsSessionsInOrder(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	plans := plansOf(t, s, tenant, func(tx *store.Tx) error {
		_, err := tx.UsersWithoutFactor(rolecall.TenantSettings{}, now)
		return err
	})
	if all := strings.Join(plans, "\n"); !strings.Contains(all, "SEARCH sessions USING PRIMARY KEY (tenant_id=?)") || strings.Contains(all, "ORDER BY") {
		t.Errorf("sessions are not read in the order of their ids: %s", all)
	}
}

func TestSummariesAreDrivenByIndexes(t *testing.T) {
	s := openNew(t)
	tenant := newTenant(t, s)
	for drives, fn := range map[string]func(tx *store.Tx) error{
		"SEARCH invitations USING INDEX invitations_expiry (tenant_id=? AND expires_at>?)": func(tx *store.Tx) error { _, err := tx.CountInvitations(now); return err },
		"SEARCH r USING PRIMARY KEY (tenant_id=?)":                                         func(tx *store.Tx) error { _, err := tx.FactorCoverage(); return err },
		"SEARCH events USING PRIMARY KEY (tenant_id=? AND id>?)":                           func(tx *store.Tx) error { _, _, err := tx.FailedSignIns(now); return err },
		"SEARCH events USING PRIMARY KEY (tenant_id=? AND id>? AND id<?)":                  func(tx *store.Tx) error { _, err := tx.EventsOfDays([]rolecall.Day{{From: 0, To: now}}); return err },
		"SEARCH assignments USING COVERING INDEX assignments_expiry (tenant_id=? AND expires_at>? AND expires_at<?)": func(tx *store.Tx) error {
			_, err := tx.ExpiringRoles(false, 0, now)
			return err
		},
		"SEARCH service_account_roles USING COVERING INDEX service_account_roles_expiry (tenant_id=? AND expires_at>? AND expires_at<?)": func(tx *store.Tx) error {
			_, err := tx.ExpiringRoles(true, 0, now)
			return err
		},
		"SEARCH r USING INDEX api_tokens_expiry (tenant_id=? AND expires_at>? AND expires_at<?)": func(tx *store.Tx) error { _, err := tx.ExpiringTokens(true, true, 0, now); return err },
	} {
		if all := strings.Join(plansOf(t, s, tenant, fn), "\n"); !strings.Contains(all, drives) {
			t.Errorf("not driven by %q: %s", drives, all)
		}
	}
}

// A purge of places reads only the oldest ones, also to find the first one that a webhook needs.
func TestAPurgeOfPlacesReadsOldPlacesOnly(t *testing.T) {
	s := openNew(t)
	plans := plansOf(t, s, rolecall.TenantID{}, func(tx *store.Tx) error {
		_, err := tx.PurgePlaces(now, 100)
		return err
	})
	const old = "SEARCH feed_places USING PRIMARY KEY (place<?)"
	if all := strings.Join(plans, "\n"); strings.Count(all, old) != 2 || strings.Count(all, "\tSEARCH feed_places") != 3 || strings.Contains(all, "SCAN feed_places") {
		t.Errorf("other places than the oldest are read: %s", all)
	}
}

// TestEveryIndexHasFigures fails if a migration adds an index without statistics in the
// table sqlite_stat1.
func TestEveryIndexHasFigures(t *testing.T) {
	s := openNew(t)
	c := <-s.readers
	defer func() { s.readers <- c }()
	all := 0
	if _, err := c.query(`select t.name, i.name, f.stat from sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
			left join sqlite_stat1 f on f.tbl = t.name and f.idx = case when i.origin = 'pk' then t.name else i.name end
		where t.type = 'table' and c.seqno = 0 and c.name = 'tenant_id'`, nil, func(scan func(dest ...any) error) error {
		var table, index string
		var figures *string
		if err := scan(&table, &index, &figures); err != nil {
			return err
		}
		if all++; figures == nil {
			t.Errorf("no figures of %s of %s", index, table)
		}
		return nil
	}); err != nil || all < 40 {
		t.Errorf("found %d indexes, %v", all, err)
	}
}

// few are the tables that have few rows, in total or for each tenant. The name m is the
// alias of the table of migrations.
var few = []string{"instance_keys", "instance_key_fingerprints", "m", "tenant_guards", "tenant_logos", "feeds", "logs"}

// planned has the statements whose plan noTableIsScanned has checked. The plan does not depend on the rows.
var planned sync.Map

// noTableIsScanned checks the statements that were run on the store. It fails the test if
// one of them reads a table without an index, or all rows of a tenant without a limit.
func noTableIsScanned(t *testing.T, s *Database) {
	check := func(c *conn) {
		for query := range c.prepared {
			if _, known := planned.LoadOrStore(query, true); known {
				continue
			}
			for _, scanned := range scans(t, c, query) {
				if !slices.Contains(few, scanned) {
					t.Errorf("all of %s is read by: %s", scanned, query)
				}
			}
		}
	}
	for range s.count {
		c := <-s.readers
		check(c)
		defer func() { s.readers <- c }()
	}
	looked := make(chan struct{})
	s.writer.looks <- func() {
		defer close(looked)
		check(s.writer.conn)
	}
	<-looked
}

// scans returns the tables of which the statement reads all rows, or all rows of a tenant.
// It omits tables that the statement itself creates.
func scans(t *testing.T, c *conn, query string) (tables []string) {
	made := map[string]bool{"CONSTANT": true}
	arguments := make([]any, 0, 16)
	for strings.Contains(query, fmt.Sprintf("$%d", len(arguments)+1)) {
		arguments = append(arguments, nil)
	}
	rows, err := c.QueryContext(context.WithoutCancel(t.Context()), "explain query plan "+query, arguments...)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Error(err)
		}
		switch step := strings.Fields(detail); {
		case len(step) < 2:
		case step[0] == "CO-ROUTINE" || step[0] == "MATERIALIZE":
			made[step[1]] = true
		case strings.HasSuffix(detail, "(tenant_id=?)") && !strings.Contains(query, " limit ") && !slices.Contains(few, step[1]):
			tables = append(tables, step[1])
		case step[0] == "SCAN" && !made[step[1]] && !strings.HasSuffix(step[1], "-ROW"): // values of an insert
			tables = append(tables, step[1])
		}
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
	return tables
}
