package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/bench/floor"
	"github.com/rolecall/rolecall/bench/load"
	"github.com/rolecall/rolecall/internal/progress"
)

// operation is a request that is measured on the minimal server and on Rolecall.
type operation struct {
	name     string
	title    string
	requests []string
	status   int
	goal     float64 // minimum ratio of Rolecall's rate to that of the minimal server, with many connections
	atLeast  int     // minimum length of a response in bytes
}

var titles = map[string]string{
	"session": "who am I", "read": "read a user", "page": "page of 50 of 10,000", "create": "create a user", "login": "sign in",
}

// schedule defines how often and how long one operation is measured.
type schedule struct {
	connections    int
	pairs          int // number of pairs: a window of the minimal server and a window of Rolecall
	warmUp, window time.Duration
}

// schedules returns the schedules of the operation: first with many connections, then with
// one. Sign-ins have longer windows, because only a few hashes fit in a second.
func (op *operation) schedules(full bool) []schedule {
	long := time.Duration(1)
	if op.name == "login" {
		long = 2
	}
	if full {
		return []schedule{{crowd, 5, time.Second, long * 5 * time.Second}, {1, 3, time.Second / 2, long * 2 * time.Second}}
	}
	return []schedule{{crowd, 3, 300 * time.Millisecond, long * 700 * time.Millisecond}, {1, 1, 100 * time.Millisecond, long * 500 * time.Millisecond}}
}

// bench is Rolecall and the minimal server, with the same data.
type bench struct {
	*subject
	floor      *floor.Process
	operations []*operation
	bar        *progress.Bar
	database   int // process id of the PostgreSQL server; zero: no such server
}

// openBench starts the minimal server on a copy of the users, and checks that it
// returns the same data as Rolecall.
func (s *subject) openBench(ctx context.Context) (_ *bench, err error) {
	source := s.Database
	if s.postgres != nil {
		source = strings.Replace(s.postgres.URL(), "/postgres?", "/rolecall?", 1)
	}
	o := floor.Options{Password: password}
	if o.Database, err = floor.Copy(ctx, source, filepath.Join(s.folder, "floor.db")); err != nil {
		return nil, err
	}
	b, sessions, err := s.planBench(ctx)
	if err != nil {
		return nil, err
	}
	if _, o.Login, err = s.signIn(ctx, 0); err != nil {
		return nil, err
	}
	if o.Tenant, o.Session, o.Cursor, err = b.sample(ctx, sessions[0]); err != nil {
		return nil, err
	}
	if b.floor, err = floor.Start(o); err != nil {
		return nil, err
	}
	if err := b.checkAlike(ctx); err != nil {
		return nil, errors.Join(err, b.floor.Stop())
	}
	return b, nil
}

// planBench signs the owners in and creates the requests of each operation.
func (s *subject) planBench(ctx context.Context) (b *bench, sessions []string, err error) {
	b = &bench{subject: s}
	if s.postgres != nil {
		if b.database, err = s.postgres.PID(); err != nil {
			return nil, nil, err
		}
	}
	for n := range owners {
		session, _, err := s.signIn(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		sessions = append(sessions, session)
	}
	return b, sessions, b.plan(ctx, sessions)
}

// plan creates the requests of each operation.
func (b *bench) plan(ctx context.Context, sessions []string) error {
	goals := map[string]float64{"session": 0.75, "read": 0.65, "page": 0.80, "create": 0.45, "login": 0.95}
	if b.postgres != nil {
		goals["read"], goals["create"] = 0.70, 0.50
	}
	requests := map[string][]string{"create": creations(sessions)}
	for n, session := range sessions {
		requests["session"] = append(requests["session"], get("/auths/session", session))
		requests["page"] = append(requests["page"], get("/users?limit=50", session))
		requests["login"] = append(requests["login"], send("POST", "/auths/login", fmt.Sprintf(`{"email":%q,"password":%q}`, address(n), password)))
	}
	ids, err := userIDs(ctx, b.Address, tenant, sessions[0])
	if err != nil {
		return err
	}
	for n, id := range ids {
		requests["read"] = append(requests["read"], get("/users/"+id, sessions[n%owners]))
	}
	if n := len(requests["read"]); n != users {
		return fmt.Errorf("the store has %d users, not %d", n, users)
	}
	rand.Shuffle(users, func(i, j int) {
		requests["read"][i], requests["read"][j] = requests["read"][j], requests["read"][i]
	})
	for _, name := range []string{"session", "read", "page", "create", "login"} {
		op := &operation{name: name, title: titles[name], requests: requests[name], status: http.StatusOK, goal: goals[name]}
		if name == "create" {
			op.status = http.StatusCreated
		}
		b.operations = append(b.operations, op)
	}
	return nil
}

// userIDs returns the ids of all users of the tenant.
func userIDs(ctx context.Context, address, tenant, session string) (ids []string, err error) {
	for query := "?limit=200"; query != ""; {
		list, err := sendOne(ctx, address, ofTenant(tenant, []string{get("/users"+query, session)})[0])
		if err != nil {
			return nil, err
		}
		var page struct {
			Items      []struct{ ID string }
			NextCursor string
		}
		if err := json.Unmarshal([]byte(list), &page); err != nil {
			return nil, err
		}
		for _, user := range page.Items {
			ids = append(ids, user.ID)
		}
		if query = ""; page.NextCursor != "" {
			query = "?limit=200&cursor=" + url.QueryEscape(page.NextCursor)
		}
	}
	return ids, nil
}

// sample asks Rolecall for the data that the minimal server puts into its responses: the id of the
// tenant, the response to a request for the session, and the cursor of a page.
func (b *bench) sample(ctx context.Context, session string) (tenant, who, cursor string, err error) {
	var principal struct{ Tenant struct{ ID string } }
	var page struct{ NextCursor string }
	who, err = sendOne(ctx, b.Address, get("/auths/session", session))
	if err != nil {
		return "", "", "", err
	}
	list, err := sendOne(ctx, b.Address, get("/users?limit=50", session))
	if err != nil {
		return "", "", "", err
	}
	err = errors.Join(json.Unmarshal([]byte(who), &principal), json.Unmarshal([]byte(list), &page))
	return principal.Tenant.ID, who, page.NextCursor, err
}

// checkAlike sends the same requests to Rolecall and to the minimal server and compares the
// responses, so that both do the same work. It records the lengths of Rolecall's responses.
func (b *bench) checkAlike(ctx context.Context) error {
	for _, op := range b.operations {
		ours, err := op.measureAnswer(ctx, b.Address)
		if err != nil {
			return err
		}
		theirs, err := sendOne(ctx, b.floor.Address, op.requests[0])
		if err != nil {
			return fmt.Errorf("the floor: %s: %w", op.title, err)
		}
		switch op.name {
		case "read", "page":
			if !alike(ours, theirs) {
				return fmt.Errorf("%s: Rolecall answers %.900s, the floor %.900s", op.title, ours, theirs)
			}
		default:
			if len(theirs) < op.atLeast {
				return fmt.Errorf("%s: the floor answers %s only", op.title, theirs)
			}
		}
	}
	return nil
}

// measureAnswer sends one request of the operation to the address, and returns the response. Three
// quarters of the length of this response become the minimum length of a correct response, because
// names differ in length. A page with far fewer users is thus rejected as too short.
func (op *operation) measureAnswer(ctx context.Context, address string) (string, error) {
	answer, err := sendOne(ctx, address, op.requests[0])
	if err != nil {
		return "", fmt.Errorf("the program: %s: %w", op.title, err)
	}
	op.atLeast = len(answer) * 3 / 4
	return answer, nil
}

// alike reports whether two responses contain the same data about users.
func alike(a, b string) bool {
	var left, right map[string]any
	if json.Unmarshal([]byte(a), &left) != nil || json.Unmarshal([]byte(b), &right) != nil || len(left) == 0 {
		return false
	}
	delete(left, "nextCursor")
	delete(right, "nextCursor")
	return reflect.DeepEqual(left, right)
}

// sendOne sends one request to the address, and returns the body of the response.
func sendOne(ctx context.Context, address, text string) (string, error) {
	text = strings.ReplaceAll(text, load.Number, strconv.FormatInt(time.Now().UnixMicro(), 10))
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return "", err
	}
	request.URL.Scheme, request.URL.Host, request.RequestURI = "http", address, ""
	answer, err := http.DefaultClient.Do(request.WithContext(ctx))
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return "", err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		return "", fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(bytes.TrimSpace(body)), nil
}

// choose returns the operations whose names are in the comma-separated list. If the list is empty,
// it returns all operations.
func (b *bench) choose(names string) []*operation {
	var chosen []*operation
	for _, op := range b.operations {
		if names == "" || strings.Contains(","+names+",", ","+op.name+",") {
			chosen = append(chosen, op)
		}
	}
	return chosen
}

// find returns the operation with the name, or nil.
func find(among []*operation, name string) *operation {
	for _, op := range among {
		if op.name == name {
			return op
		}
	}
	return nil
}
