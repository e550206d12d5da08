package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/bench/load"
	"github.com/rolecall/rolecall/internal/progress"

	"os"
)

const (
	fewUsersName, manyUsersName = "few", "many"

	fewUsers = 1_000
	sampled  = 200 // number of users that the requests name
)

// oneTenant compares a tenant of many users, roles and assignments with one of few.
func (b *bench) oneTenant(ctx context.Context) (err error) {
	common := []string{"--departments", "20", "--passwords", "1"}
	few, err := b.filled(ctx, fewUsersName, append(common, "--users", strconv.Itoa(fewUsers), "--roles", "100", "--holders", "100", "--assignments", "10")...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, few.Stop()) }()
	many, err := b.filled(ctx, manyUsersName, append(common, "--users", strconv.Itoa(b.users), "--roles", strconv.Itoa(b.roles),
		"--holders", strconv.Itoa(b.holders), "--assignments", strconv.Itoa(b.assignments))...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, many.Stop()) }()

	var pair [2]*survey
	for i, n := range []*node{few, many} {
		if pair[i], err = n.survey(ctx, []int{fewUsers, b.users}[i]); err != nil {
			return err
		}
	}
	bar := progress.Start(os.Stderr, "operations", len(operations))
	defer bar.End()
	for _, o := range operations {
		if !strings.Contains(o.name, b.only) {
			continue
		}
		if err := b.compare(ctx, o, pair); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		bar.Add(1)
	}
	if b.server != nil {
		if err := b.checkPlans(ctx, pair[1]); err != nil {
			return err
		}
	}
	if b.only != "" {
		return nil
	}
	return b.single(ctx, pair[1])
}

// compare measures the response times of an operation on both stores in turn, with one request at a
// time. It adds the result to the table.
func (b *bench) compare(ctx context.Context, o operation, pair [2]*survey) error {
	var took [2][]time.Duration
	for range b.rounds {
		for i, s := range pair {
			middle, err := b.medianTime(ctx, s.Address, o.requests(s), o.status)
			if err != nil {
				return err
			}
			took[i] = append(took[i], middle)
		}
	}
	b.table.times(o.name, took[0], took[1], o.goal)
	return nil
}

// leastAnswers is the minimum number of responses for a median.
const leastAnswers = 20

// medianTime sends the requests in turn, one at a time, and returns the median response time. If it
// gets fewer than leastAnswers responses, it starts again with twice the duration.
func (b *bench) medianTime(ctx context.Context, address string, requests []string, status int) (time.Duration, error) {
	for duration := b.duration; ; duration *= 2 {
		result, err := load.RunApart(ctx, load.Plan{
			Address: address, Connections: 1, WarmUp: b.duration / 5, Duration: duration, Requests: requests, Status: status, AtLeast: 2,
		})
		if err == nil {
			err = result.Err()
		}
		if err != nil {
			return 0, err
		}
		if result.Counted() >= leastAnswers {
			return result.Latency.Quantile(0.5), nil
		}
	}
}

// survey is the data from which the requests to one store are made.
type survey struct {
	*node
	users  []user
	deep   string   // query parameter with the cursor after nine tenths of all users, sorted by name
	roles  []string // ids of some roles
	first  string   // id of the role that many users hold
	holder string   // id of the user who holds many roles
}

// user is a user in a response.
type user struct {
	ID, Email, Name string
}

// list is a response with a page of a list.
type list[T any] struct {
	Items      []T
	NextCursor *string
}

func (n *node) survey(ctx context.Context, users int) (*survey, error) {
	s := &survey{node: n}
	for i := range sampled {
		found, err := n.byNumber(ctx, 2+i*(users-2)/sampled)
		if err != nil {
			return nil, err
		}
		s.users = append(s.users, found)
	}
	holder, err := n.byNumber(ctx, 1)
	if err != nil {
		return nil, err
	}
	s.holder = holder.ID
	var first, some list[struct{ ID string }]
	if err := n.get(ctx, n.owner(), "/roles?key=role-1", &first); err != nil {
		return nil, err
	}
	s.first = first.Items[0].ID
	if err := n.get(ctx, n.owner(), "/roles?limit=20", &some); err != nil {
		return nil, err
	}
	for _, role := range some.Items[5:] { // without the built-in roles and the first
		s.roles = append(s.roles, role.ID)
	}
	s.deep, err = n.cursorAfter(ctx, users*9/10)
	return s, err
}

// byNumber returns the user that the generator created with this number. The number is part of the user's externalId.
func (n *node) byNumber(ctx context.Context, number int) (user, error) {
	var found list[user]
	if err := n.get(ctx, n.owner(), fmt.Sprintf("/users?externalId=E%08d", number), &found); err != nil {
		return user{}, err
	}
	if len(found.Items) != 1 {
		return user{}, fmt.Errorf("there are %d users with the number %d", len(found.Items), number)
	}
	return found.Items[0], nil
}

// cursorAfter returns a query parameter with the cursor after this number of users, sorted by name.
func (n *node) cursorAfter(ctx context.Context, rows int) (string, error) {
	bar := progress.Start(os.Stderr, "rows walked", rows)
	defer bar.End()
	cursor := ""
	for seen := 0; seen < rows; {
		var page list[struct{}]
		if err := n.get(ctx, n.owner(), fmt.Sprintf("/users?sort=name&limit=%d%s", min(200, rows-seen), cursor), &page); err != nil {
			return "", err
		}
		if page.NextCursor == nil {
			return "", errors.New("the list ended early")
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
		seen += len(page.Items)
		bar.Add(len(page.Items))
	}
	return cursor, nil
}

// operation is a request that is measured on both stores.
type operation struct {
	name     string
	goal     float64 // maximum ratio of large to small; zero: no goal, because the cost may grow up to a bound
	status   int
	requests func(*survey) []string
}

// read returns an operation with a GET request for each of the paths of a store.
func read(name string, goal float64, paths func(*survey) []string) operation {
	return operation{name, goal, http.StatusOK, func(s *survey) (requests []string) {
		for _, path := range paths(s) {
			requests = append(requests, s.owner().request(http.MethodGet, path, ""))
		}
		return requests
	}}
}

// fixed returns an operation that reads the same path on both stores.
func fixed(name string, goal float64, path string) operation {
	return read(name, goal, func(*survey) []string { return []string{path} })
}

// perUser returns an operation that reads a path for each sampled user.
func perUser(name string, goal float64, path func(user) string) operation {
	return read(name, goal, func(s *survey) (paths []string) {
		for _, u := range s.users {
			paths = append(paths, path(u))
		}
		return paths
	})
}

// write returns an operation that sends a body to the path of each sampled user.
func write(name, method string, status int, path func(*survey, user) string, body string) operation {
	return operation{name, 1.5, status, func(s *survey) (requests []string) {
		for _, u := range s.users {
			requests = append(requests, s.owner().request(method, path(s, u), body))
		}
		return requests
	}}
}

func query(text string) string { return "/users?limit=50&q=" + url.QueryEscape(text) }

// firstOf and lastOf return the words of a generated name.
func firstOf(u user) string { return strings.Fields(u.Name)[0] }
func lastOf(u user) string  { return strings.Fields(u.Name)[1] }

// uniqueOf returns the word of the address that is unique to the user.
func uniqueOf(u user) string {
	local, _, _ := strings.Cut(u.Email, "@")
	_, word, _ := strings.Cut(local, ".")
	return word
}

var operations = []operation{
	perUser("read a user", 1.5, func(u user) string { return "/users/" + u.ID }),
	perUser("find an address", 1.5, func(u user) string { return "/users?email=" + url.QueryEscape(u.Email) }),
	fixed("first page", 1.5, "/users?limit=50"),
	fixed("first page by name", 1.5, "/users?limit=50&sort=name"),
	read("page at nine tenths", 1.5, func(s *survey) []string { return []string{"/users?limit=50&sort=name" + s.deep} }),
	fixed("of a common status", 1.5, "/users?limit=50&status=active"),
	fixed("of a rare status", 0, "/users?limit=50&status=suspended"),
	fixed("of a department", 1.5, "/users?limit=50&department=Department%207"),
	fixed("of a department, by name", 0, "/users?limit=50&sort=name&department=Department%207"),
	read("holders of a role", 1.5, func(s *survey) []string { return []string{"/users?limit=50&role=" + s.first} }),
	read("holders of a role, by name", 0, func(s *survey) []string { return []string{"/users?limit=50&sort=name&role=" + s.first} }),
	perUser("search: a rare word", 1.5, func(u user) string { return query(uniqueOf(u)) }),
	perUser("search: a common word", 2, func(u user) string { return query(firstOf(u)) }),
	fixed("search: everybody's word", 1.5, query("example")),
	perUser("search: two words", 2, func(u user) string { return query(firstOf(u) + " " + lastOf(u)) }),
	perUser("search: two common beginnings", 0, func(u user) string { return query(firstOf(u) + " " + lastOf(u)[:2]) }),
	fixed("search: a word of no user", 1.5, query("nobody")),
	perUser("overview of a user", 1.5, func(u user) string { return "/users/" + u.ID + "/overview" }),
	perUser("roles of a user", 1.5, func(u user) string { return "/users/" + u.ID + "/roles" }),
	perUser("events of a user", 1.5, func(u user) string { return "/users/" + u.ID + "/events?limit=50" }),
	fixed("roles", 1.5, "/roles?limit=50"),
	fixed("roles by name", 1.5, "/roles?limit=50&sort=name"),
	fixed("roles: a rare word", 0, "/roles?q=000015"),
	read("read a role", 1.5, func(s *survey) (paths []string) {
		for _, id := range s.roles {
			paths = append(paths, "/roles/"+id)
		}
		return paths
	}),
	read("users of a role", 1.5, func(s *survey) []string { return []string{"/roles/" + s.first + "/users?limit=50"} }),
	write("create a user", http.MethodPost, http.StatusCreated, func(*survey, user) string { return "/users" },
		`{"email":"new.`+load.Number+`@example.com","name":"Newcomer `+load.Number+`","department":"Department 3"}`),
	write("change a user", http.MethodPatch, http.StatusOK, func(_ *survey, u user) string { return "/users/" + u.ID }, `{"metadata":{"n":"`+load.Number+`"}}`),
	write("create a role", http.MethodPost, http.StatusCreated, func(*survey, user) string { return "/roles" },
		`{"name":"New role `+load.Number+`","permissions":["users:read"]}`),
	write("change a held role", http.MethodPatch, http.StatusOK, func(s *survey, _ user) string { return "/roles/" + s.first }, `{"description":"Change `+load.Number+`"}`),
	fixed("events", 1.5, "/events?limit=50"),
}

// bounded is the maximum duration of an operation that is measured once.
const bounded = time.Second

// single measures operations on the large store that can be done only once, or that
// affect many objects.
func (b *bench) single(ctx context.Context, s *survey) error {
	holder := s.sessions[1]
	u, owner := "/users/"+s.holder, s.owner()
	if _, err := s.send(ctx, owner, http.MethodPost, "/auths/confirm", `{"password":"`+password+`"}`); err != nil {
		return err // the store was filled too long ago
	}
	last, err := s.byNumber(ctx, b.holders) // the last user with the role
	if err != nil {
		return err
	}
	deletion := fmt.Sprintf("delete a role with %d holders", b.holders)
	what := fmt.Sprintf("user with %d roles: ", b.assignments)
	for _, act := range []struct {
		name, method, path, body string
		as                       session
	}{
		{what + "who am I", http.MethodGet, "/auths/session", "", holder},
		{what + "overview", http.MethodGet, u + "/overview", "", owner},
		{what + "roles", http.MethodGet, u + "/roles", "", owner},
		{what + "another role", http.MethodPut, u + "/roles/" + s.roles[0], "{}", owner},
		{what + "one role less", http.MethodDelete, u + "/roles/" + s.roles[0], "", owner},
		{what + "suspend", http.MethodPost, u + "/suspend", "{}", owner},
		{what + "delete", http.MethodDelete, u, "", owner},
		{deletion, http.MethodDelete, "/roles/" + s.first + "?force=true", "", owner},
	} {
		begun := time.Now()
		if _, err := s.send(ctx, act.as, act.method, act.path, act.body); err != nil {
			return err
		}
		b.table.took(act.name, time.Since(begun), bounded)
	}
	begun := time.Now()
	for done := false; !done; {
		var lost list[struct{ Type string }]
		if err := s.get(ctx, owner, "/users/"+last.ID+"/events?limit=1&type=role.unassigned", &lost); err != nil {
			return err
		}
		if done = len(lost.Items) > 0; !done {
			time.Sleep(50 * time.Millisecond)
		}
	}
	b.table.took(deletion+": until it is taken from all", time.Since(begun), 0)
	return nil
}
