package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var listCases = []testCase{
	{"An empty list has one empty page", func(f *fixture) {
		page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.User], error) { return tx.Users(everyone()) })
		same(f, len(page.Items), 0)
		same(f, page.Next, nil)
		same(f, page.Total, nil)
	}},
	{"Pages are complete and in order for every sort, direction and size", func(f *fixture) {
		users := f.crowd(60)
		for _, sort := range []rolecall.UserSort{rolecall.SortByID, rolecall.SortByName, rolecall.SortByEmail} {
			for _, desc := range []bool{false, true} {
				for _, limit := range []int{1, 7, 60, 200} {
					q := everyone()
					q.Sort, q.Desc, q.Limit = sort, desc, limit
					same(f, ids(f.readAll(q, nil)), ids(expected(users, nil, q)))
				}
			}
		}
	}},
	{"Names sort by folding, and equal names by id", func(f *fixture) {
		for _, name := range []string{"Zoé", "zoe", "Ärmel", "armband", "ZOE", "Ångström"} {
			f.newUser(name)
		}
		q := everyone()
		q.Sort = rolecall.SortByName
		same(f, names(f.readAll(q, nil)), []string{"Ångström", "armband", "Ärmel", "Zoé", "zoe", "ZOE"})
	}},
	{"A full last page does not promise another item", func(f *fixture) {
		f.crowd(10)
		q := everyone()
		q.Limit = 5
		same(f, len(f.readAll(q, nil)), 10)
	}},
	{"Filters select, alone and together", filtersSelect},
	{"A list shows only users within the reach", reachesBound},
	{"Words find the beginnings of words of the name and the address", wordsFind},
	{"Words are used only where they may be read", wordsWithin},
	{"A role filter counts unexpired assignments only", roleFilter},
	{"All pages together return each unchanged row exactly once", readAllUnderChange},
	{"The list of departments contains each department of a user once", departmentsOnce},
	{"A total is exact", func(f *fixture) {
		f.crowd(30)
		q := everyone()
		q.Count, q.Limit = true, 7
		total := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.User], error) { return tx.Users(q) }).Total
		same(f, total, &rolecall.Total{Count: 30, Exact: true})
		q.Department = ptr("sales")
		total = read(f, func(tx *store.Tx) (rolecall.Page[rolecall.User], error) { return tx.Users(q) }).Total
		same(f, total, &rolecall.Total{Count: len(f.found(q)), Exact: true})
	}},
	{"Above the work limit, totals are lower bounds and pages are short but complete", manyUsers},
	{"Lists agree with a naive filter", agreesWithModel},
}

// departments are the departments of the users that crowd inserts. The empty string means
// that the user has no department.
var departments = []string{"", "Sales", "SALES", "Säles", "Research", "Ops", "カード事業部", "ガード事業部"}

// crowd inserts n users with many departments, states and names.
func (f *fixture) crowd(n int) []rolecall.User {
	f.Helper()
	given := []string{"Ada", "Grace", "Zoë", "Alan", "Änne", "ada"}
	family := []string{"Lovelace", "Hopper", "Byron", "O'Neil", "Smith-Jones"}
	states := []rolecall.UserStatus{rolecall.UserActive, rolecall.UserPending, rolecall.UserSuspended}
	users := make([]rolecall.User, n)
	for i := range users {
		u := aUser(given[i%len(given)] + " " + family[i%len(family)])
		u.Email = fmt.Sprintf("%s.%d@%s.example", strings.ToLower(family[i%len(family)][:1]), (i*37)%n, []string{"east", "West"}[i%2])
		u.Status = states[i%len(states)]
		if d := departments[i%len(departments)]; d != "" {
			u.Department = &d
		}
		if i%3 == 0 {
			u.ExternalID = ptr(fmt.Sprintf("HR-%d", i))
		}
		users[i] = u
	}
	f.write(func(tx *store.Tx) {
		for _, u := range users {
			tx.InsertUser(u)
		}
	})
	return users
}

func filtersSelect(f *fixture) {
	users := f.crowd(60)
	for _, c := range []struct {
		filter string
		set    func(*rolecall.UserQuery)
		some   bool
	}{
		{"address", func(q *rolecall.UserQuery) { q.EmailKey = users[5].EmailKey() }, true},
		{"unknown address", func(q *rolecall.UserQuery) { q.EmailKey = "nobody@example.com" }, false},
		{"external id", func(q *rolecall.UserQuery) { q.ExternalID = "HR-9" }, true},
		{"external id in other case", func(q *rolecall.UserQuery) { q.ExternalID = "hr-9" }, false},
		{"department", func(q *rolecall.UserQuery) { q.Department = ptr("sales") }, true},
		{"status", func(q *rolecall.UserQuery) { q.Status = rolecall.UserSuspended }, true},
		{"department and status", func(q *rolecall.UserQuery) {
			q.Department, q.Status = ptr("research"), rolecall.UserPending
		}, true},
		{"department, status, word and order", func(q *rolecall.UserQuery) {
			q.Department, q.Status, q.Words, q.Sort = ptr("sales"), rolecall.UserPending, []string{"ho"}, rolecall.SortByName
		}, true},
		{"address and another department", func(q *rolecall.UserQuery) {
			q.EmailKey, q.Department = users[0].EmailKey(), ptr("ops")
		}, false},
	} {
		for _, limit := range []int{3, 200} {
			q := everyone()
			q.Limit = limit
			c.set(&q)
			got, want := f.readAll(q, nil), expected(users, nil, q)
			if !slices.Equal(ids(got), ids(want)) || len(got) > 0 != c.some {
				f.Errorf("%s: got %v, want %v", c.filter, names(got), names(want))
			}
		}
	}
}

func reachesBound(f *fixture) {
	users := f.crowd(60)
	for _, within := range []rolecall.Reach{
		rolecall.Nowhere(), rolecall.Within("sales"), rolecall.Within("Research", "OPS"), rolecall.Within("unknown"), rolecall.Everywhere(),
	} {
		for _, sort := range []rolecall.UserSort{rolecall.SortByID, rolecall.SortByName, rolecall.SortByEmail} {
			q := everyone()
			q.Within, q.Sort, q.Limit = within, sort, 7
			same(f, ids(f.readAll(q, nil)), ids(expected(users, nil, q)))
		}
	}
}

func wordsFind(f *fixture) {
	for _, person := range []struct{ name, email string }{
		{"Ada Lovelace", "ada@example.com"},
		{"Grace Hopper", "grace.hopper@navy.example"},
		{"Zoë Ångström", "z+list@example.org"},
		{"李小龍", "bruce@example.net"},
		{"Ada-Mae O'Neil 3rd", "mae_3@x.example"},
		{"100% Real_Name", "percent@example.com"},
		{"山田太郎", "yamada@navy.test"},
		{"Łukasz Ørsted", "lukasz@navy.test"},
	} {
		u := aUser(person.name)
		u.Email = person.email
		f.write(func(tx *store.Tx) { tx.InsertUser(u) })
	}
	for search, want := range map[string][]string{
		"ada lov":         {"Ada Lovelace"},
		"lovelace":        {"Ada Lovelace"},
		"lov example":     {"Ada Lovelace"},
		"LOVE":            {"Ada Lovelace"},
		"ovelace":         {},
		"ada":             {"Ada Lovelace", "Ada-Mae O'Neil 3rd"},
		"ada neil":        {"Ada-Mae O'Neil 3rd"},
		"mae 3":           {"Ada-Mae O'Neil 3rd"},
		"zoe angstrom":    {"Zoë Ångström"},
		"list":            {"Zoë Ångström"},
		"李":               {"李小龍"},
		"navy grace":      {"Grace Hopper"},
		"example":         {"100% Real_Name", "Ada Lovelace", "Ada-Mae O'Neil 3rd", "Grace Hopper", "Zoë Ångström", "李小龍"},
		"ada grace":       {},
		"太郎":              {"山田太郎"},
		"田":               {"山田太郎"},
		"山太":              {},
		"lukasz orsted":   {"Łukasz Ørsted"},
		"ŁUK ØR":          {"Łukasz Ørsted"},
		"100":             {"100% Real_Name"},
		"name":            {"100% Real_Name"},
		"ada ada ada lov": {"Ada Lovelace"},
	} {
		for _, limit := range []int{1, 200} {
			q := withWords(rolecall.Words(search)...)
			q.Limit = limit
			if got := f.found(q); !slices.Equal(got, want) {
				f.Errorf("%q with limit %d found %q, want %q", search, limit, got, want)
			}
		}
	}
}

func wordsWithin(f *fixture) {
	users := f.crowd(60)
	for _, c := range []struct{ names, emails rolecall.Reach }{
		{rolecall.Everywhere(), rolecall.Nowhere()},
		{rolecall.Nowhere(), rolecall.Everywhere()},
		{rolecall.Nowhere(), rolecall.Nowhere()},
		{rolecall.Within("sales"), rolecall.Everywhere()},
		{rolecall.Within("sales"), rolecall.Within("research")},
		{rolecall.Everywhere(), rolecall.Within("Ops", "Sales")},
	} {
		for _, words := range [][]string{{"ada"}, {"h"}, {"east"}, {"ada", "west"}, {"l", "example"}} {
			q := withWords(words...)
			q.NameWords, q.EmailWords, q.Limit = c.names, c.emails, 9
			same(f, ids(f.readAll(q, nil)), ids(expected(users, nil, q)))
		}
	}
}

func roleFilter(f *fixture) {
	users, role, other := f.crowd(12), f.newRole("Support"), f.newRole("Sales desk")
	f.write(func(tx *store.Tx) {
		for i, u := range users {
			a := rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start}
			switch i % 4 {
			case 1:
				a.ExpiresAt = start
			case 2:
				a.ExpiresAt = start + 1
			case 3:
				a.Role = other
			}
			tx.UpsertAssignment(a)
		}
	})
	holds := func(u rolecall.User) bool {
		i := slices.IndexFunc(users, func(v rolecall.User) bool { return v.ID == u.ID })
		return i%4 == 0 || i%4 == 2
	}
	for _, sort := range []rolecall.UserSort{rolecall.SortByID, rolecall.SortByName} {
		for _, desc := range []bool{false, true} {
			q := everyone()
			q.Role, q.Sort, q.Desc, q.Limit = role.ID, sort, desc, 2
			same(f, ids(f.readAll(q, nil)), ids(expected(users, holds, q)))
			q.Status = rolecall.UserActive
			same(f, ids(f.readAll(q, nil)), ids(expected(users, holds, q)))
		}
	}
}

func readAllUnderChange(f *fixture) {
	for _, sort := range []rolecall.UserSort{rolecall.SortByID, rolecall.SortByName, rolecall.SortByEmail} {
		for _, desc := range []bool{false, true} {
			f := f.in(f.newTenant(fmt.Sprintf("walk-%d-%t", sort, desc)))
			users := f.crowd(60)
			var stable, leaving []rolecall.User
			for i, u := range users {
				if i%3 == 0 {
					leaving = append(leaving, u)
				} else {
					stable = append(stable, u)
				}
			}
			step := 0
			q := everyone()
			q.Sort, q.Desc, q.Limit = sort, desc, 5
			seen := f.readAll(q, func() {
				f.newUser([]string{"Aaa Arrives", "Mmm Arrives", "Zzz Arrives"}[step%3])
				if step < len(leaving) {
					same(f, f.deleteUser(leaving[(step*7)%len(leaving)]), true)
				}
				step++
			})
			times := map[rolecall.UserID]int{}
			for _, u := range seen {
				times[u.ID]++
			}
			for _, u := range stable {
				if times[u.ID] != 1 {
					f.Errorf("sort %d desc %t: %s was returned %d times, want once", sort, desc, u.Name, times[u.ID])
				}
			}
		}
	}
}

// manyUsers searches for a few users in a tenant with more users than one statement may
// read.
func manyUsers(f *fixture) {
	if testing.Short() {
		f.Skip("inserts thousands of users")
	}
	const count, batch = rolecall.MaxCount + 50, 2_010
	// These are near the end of the first page, in both directions.
	numbers := []int{20, rolecall.MaxScan - 1, rolecall.MaxScan, count - 1 - rolecall.MaxScan, count - rolecall.MaxScan, count - 1}
	var rare, titled []rolecall.User
	for written := 0; written < count; written += batch {
		f.write(func(tx *store.Tx) {
			for i := range batch {
				u := aUser("Common Name")
				if i%2 == 1 {
					u = aUser("Common Title")
					titled = append(titled, u)
				}
				if slices.Contains(numbers, written+i) {
					u.Status = rolecall.UserSuspended
					rare = append(rare, u)
				}
				tx.InsertUser(u)
			}
		})
	}
	q := everyone()
	q.Count = true
	page := read(f, func(tx *store.Tx) (rolecall.Page[rolecall.User], error) { return tx.Users(q) })
	if page.Total == nil || page.Total.Exact || page.Total.Count < rolecall.MaxCount || page.Total.Count > count {
		f.Errorf("got total %+v, want at least %d of %d, inexact", page.Total, rolecall.MaxCount, count)
	}
	for _, desc := range []bool{false, true} {
		for _, words := range [][]string{nil, {"common"}} {
			q := withWords(words...)
			q.Status, q.Desc, q.Sort = rolecall.UserSuspended, desc, rolecall.SortByName
			pages := 1
			got := f.readAll(q, func() { pages++ })
			same(f, ids(got), ids(expected(rare, nil, q)))
			if pages < 2 {
				f.Errorf("words %q: the whole walk was one page, want bounded pages", words)
			}
		}
		for _, words := range [][]string{{"title"}, {"common", "titl"}, {"titl", "c"}} {
			q := withWords(words...)
			q.Desc = desc
			same(f, ids(f.readAll(q, nil)), ids(expected(titled, nil, q)))
		}
		q := withWords("name", "title") // each word is common, and no user has both
		q.Desc = desc
		pages := 1
		same(f, len(f.readAll(q, func() { pages++ })), 0)
		if pages < 2 {
			f.Error("words of no user: all rows were read for one page, want bounded pages")
		}
	}
	q = withWords("title")
	q.Count = true
	page = read(f, func(tx *store.Tx) (rolecall.Page[rolecall.User], error) { return tx.Users(q) })
	same(f, page.Total, &rolecall.Total{Count: len(titled), Exact: true})
}

func ids(users []rolecall.User) []rolecall.UserID {
	list := make([]rolecall.UserID, len(users))
	for i, u := range users {
		list[i] = u.ID
	}
	return list
}

func names(users []rolecall.User) []string {
	list := make([]string, len(users))
	for i, u := range users {
		list[i] = u.Name
	}
	return list
}

func departmentsOnce(f *fixture) {
	departments := func() []string {
		return read(f, func(tx *store.Tx) ([]string, error) { return tx.Departments() })
	}
	same(f, departments(), nil)
	inDepartments := func(list ...*string) {
		f.write(func(tx *store.Tx) {
			for i, department := range list {
				u := aUser(fmt.Sprintf("Person %d", i))
				u.Department = department
				tx.InsertUser(u)
			}
		})
	}
	inDepartments(ptr("Sales"), nil, ptr("Überseehandel"), ptr("sales"), ptr("Legal"), ptr("Legal, Risk"), ptr("SALES"))
	same(f, departments(), []string{"Legal", "Legal, Risk", "Sales", "Überseehandel"})
	var branches []*string
	for i := range 300 {
		branches = append(branches, ptr(fmt.Sprintf("Branch %03d", i)))
	}
	inDepartments(branches...)
	same(f, len(departments()), 200)
	same(f, departments()[199], "Branch 199")
}

// everyPage returns all items of a list. It reads the list page by page. If between is not
// nil, everyPage calls it after each page except the last.
func everyPage[T any](f *fixture, limit int, look func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[T], error), between func()) (all []T) {
	f.Helper()
	var after *rolecall.Position
	for {
		page := read(f, func(tx *store.Tx) (rolecall.Page[T], error) { return look(tx, after) })
		if len(page.Items) > limit {
			f.Fatalf("a page of %d items, want at most %d", len(page.Items), limit)
		}
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		if after != nil && *after == *page.Next {
			f.Fatalf("the walk stands still at %+v", *page.Next)
		}
		after = page.Next
		if between != nil {
			between()
		}
	}
}

// pagesInOrder checks that a list of n items is in the right order: by id and by the key
// of the name, in both directions, and with several page sizes.
func pagesInOrder[T any](f *fixture, n int, list func(byName, desc bool, limit int) []T, place func(*T) (id [16]byte, key string)) {
	f.Helper()
	for _, byName := range []bool{false, true} {
		for _, desc := range []bool{false, true} {
			all := list(byName, desc, rolecall.MaxLimit)
			same(f, len(all), n)
			order := func(a, b T) int {
				id, key := place(&a)
				otherID, otherKey := place(&b)
				c := slices.Compare(id[:], otherID[:])
				if byName {
					c = slices.Compare([]byte(key), []byte(otherKey))
				}
				if desc {
					return -c
				}
				return c
			}
			if !slices.IsSortedFunc(all, order) {
				f.Errorf("by name %t, descending %t: out of order", byName, desc)
			}
			same(f, list(byName, desc, 3), all)
		}
	}
}

// expected returns the users that a list of q must contain, without using the database.
// The function holds reports whether a user has the role of q. It is nil if q has no role.
func expected(users []rolecall.User, holds func(rolecall.User) bool, q rolecall.UserQuery) []rolecall.User {
	matching := []rolecall.User{}
	for _, u := range users {
		if matches(u, q) && (holds == nil || holds(u)) {
			matching = append(matching, u)
		}
	}
	slices.SortFunc(matching, func(a, b rolecall.User) int {
		byID := bytes.Compare(a.ID[:], b.ID[:])
		switch q.Sort {
		case rolecall.SortByName:
			return cmp.Or(strings.Compare(a.NameKey(), b.NameKey()), byID)
		case rolecall.SortByEmail:
			return cmp.Or(strings.Compare(a.EmailKey(), b.EmailKey()), byID)
		default:
			return byID
		}
	})
	if q.Desc {
		slices.Reverse(matching)
	}
	return matching
}

func matches(u rolecall.User, q rolecall.UserQuery) bool {
	key := u.DepartmentKey()
	return q.Within.Includes(u.Department) &&
		(q.EmailKey == "" || q.EmailKey == u.EmailKey()) &&
		(q.ExternalID == "" || u.ExternalID != nil && q.ExternalID == *u.ExternalID) &&
		(q.Department == nil || key != nil && *q.Department == *key) &&
		(q.Status == "" || q.Status == u.Status) &&
		!slices.ContainsFunc(q.Words, func(word string) bool { return !hasWord(u, q, word) })
}

// hasWord reports whether the user has a word that begins with word, in a member that q
// may search.
func hasWord(u rolecall.User, q rolecall.UserQuery, word string) bool {
	begins := func(whole string) bool { return strings.HasPrefix(whole, word) }
	return q.NameWords.Includes(u.Department) && slices.ContainsFunc(rolecall.WordsToFind(u.Name), begins) ||
		q.EmailWords.Includes(u.Department) && slices.ContainsFunc(rolecall.WordsToFind(u.Email), begins)
}

// agreesWithModel inserts random users and runs random queries. It compares the lists of
// the store with those of the function expected.
func agreesWithModel(f *fixture) {
	names := rapid.SampledFrom([]string{"Ada Lovelace", "ADA LOVELACE", "Adá Byron", "Alan T", "Zoë", "zoe zoe", "a b c", "李 小龍", "x'y_z%"})
	hosts := rapid.SampledFrom([]string{"ada.example", "ALAN.example", "b.c.example", "zoë.example"})
	states := rapid.SampledFrom([]rolecall.UserStatus{rolecall.UserActive, rolecall.UserPending, rolecall.UserSuspended})
	reaches := rapid.SampledFrom([]rolecall.Reach{
		rolecall.Everywhere(), rolecall.Everywhere(), rolecall.Within("sales"), rolecall.Within("Research", "ops"), rolecall.Nowhere(),
	})
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ada", "al", "lov", "z", "zoe", "example", "exa", "小", "李", "b", "user", "zz"}), 0, 3)
	round := 0

	rapid.Check(f.T, func(t *rapid.T) {
		round++
		f := f.in(f.newTenant(fmt.Sprintf("model-%d", round)))
		users := make([]rolecall.User, rapid.IntRange(0, 25).Draw(t, "users"))
		for i := range users {
			u := aUser(names.Draw(t, "name"))
			u.Email = fmt.Sprintf("user%d@%s", i, hosts.Draw(t, "host"))
			u.Status = states.Draw(t, "status")
			if d := rapid.SampledFrom(departments).Draw(t, "department"); d != "" {
				u.Department = &d
			}
			users[i] = u
		}
		f.write(func(tx *store.Tx) {
			for _, u := range users {
				tx.InsertUser(u)
			}
		})
		q := rolecall.UserQuery{
			Within: reaches.Draw(t, "within"), NameWords: reaches.Draw(t, "name words"), EmailWords: reaches.Draw(t, "email words"),
			Words: words.Draw(t, "words"), Now: start,
			Sort:  rapid.SampledFrom([]rolecall.UserSort{rolecall.SortByID, rolecall.SortByName, rolecall.SortByEmail}).Draw(t, "sort"),
			Desc:  rapid.Bool().Draw(t, "desc"),
			Limit: rapid.SampledFrom([]int{1, 2, 5, 200}).Draw(t, "limit"),
		}
		if rapid.Bool().Draw(t, "by status") {
			q.Status = states.Draw(t, "wanted status")
		}
		if rapid.Bool().Draw(t, "by department") {
			q.Department = ptr(rolecall.TextKey(rapid.SampledFrom(departments[1:]).Draw(t, "wanted department")))
		}
		got, want := f.readAll(q, nil), expected(users, nil, q)
		if !slices.Equal(ids(got), ids(want)) {
			t.Fatalf("query %+v\ngot  %v\nwant %v", q, ids(got), ids(want))
		}
	})
}
