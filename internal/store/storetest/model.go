package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

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
	return q.NameWords.Includes(u.Department) && slices.ContainsFunc(rolecall.Words(u.Name), begins) ||
		q.EmailWords.Includes(u.Department) && slices.ContainsFunc(rolecall.Words(u.Email), begins)
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
			q.Department = ptr(rolecall.Fold(rapid.SampledFrom(departments[1:]).Draw(t, "wanted department")))
		}
		got, want := f.readAll(q, nil), expected(users, nil, q)
		if !slices.Equal(ids(got), ids(want)) {
			t.Fatalf("query %+v\ngot  %v\nwant %v", q, ids(got), ids(want))
		}
	})
}
