package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

// copierProgram runs the follower of docs/guides/changes.md. The guide's code replaces %s. The
// program keeps a copy of the names of the users. It prints "ready" after its first walk, and a line
// of JSON for each change. When its standard input is closed, it follows until it is up to date, and
// prints "copy" and the copy as JSON.
const copierProgram = `package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
)

%s

func get(path string, into any) (int, error) {
	request, err := http.NewRequest(http.MethodGet, os.Getenv("FOLLOWED")+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("FOLLOWER_TOKEN"))
	request.Header.Set("X-Tenant-Schema", os.Getenv("FOLLOWER_TENANT"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return answer.StatusCode, nil
	}
	return answer.StatusCode, json.NewDecoder(answer.Body).Decode(into)
}

type user struct{ ID, Name string }

func main() {
	var last atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		last.Store(true)
	}()
	users := map[string]string{}
	lines := json.NewEncoder(os.Stdout)
	f := follower{get: get, feed: os.Getenv("FOLLOWER_FEED"), walk: func() error {
		clear(users)
		path := "/users?limit=200"
		for more := true; more; {
			var page struct {
				Items      []user
				NextCursor *string
			}
			if _, err := get(path, &page); err != nil {
				return err
			}
			for _, u := range page.Items {
				users[u.ID] = u.Name
			}
			if more = page.NextCursor != nil; more {
				path = "/users?limit=200&cursor=" + url.QueryEscape(*page.NextCursor)
			}
		}
		fmt.Println("ready")
		return nil
	}}
	apply := func(c change) error {
		if err := lines.Encode(c); err != nil {
			return err
		}
		id, ok := strings.CutPrefix(c.Subject, "user/")
		if !ok {
			return nil
		}
		var u user
		switch status, err := get("/users/"+id, &u); {
		case err != nil:
			return err
		case status == http.StatusNotFound:
			delete(users, id)
		case status != http.StatusOK:
			return fmt.Errorf("user %%s: status %%d", id, status)
		default:
			users[id] = u.Name
		}
		return nil
	}
	for ended := false; !ended; {
		closing := last.Load()
		upToDate, err := f.next(apply)
		if err != nil {
			panic(err)
		}
		ended = closing && upToDate
	}
	fmt.Println("copy")
	if err := lines.Encode(users); err != nil {
		panic(err)
	}
}
`

// copiedChange is a change that a copier has read.
type copiedChange struct {
	ID, Type, Subject string
	Data              struct{ Before, After map[string]any }
}

// copier is a running process of copierProgram.
type copier struct {
	end     io.Closer
	ready   chan struct{} // closed after the first walk
	done    chan struct{}
	changes []copiedChange    // read these two after done only
	users   map[string]string // the names by id
}

// copyOf builds and starts copierProgram with the token, which follows the feed.
func (w *world) copyOf(t *testing.T, token, feed string) *copier {
	t.Helper()
	command, input, output := w.startGuide(t, "changes", copierProgram, strings.NewReplacer(), token, "FOLLOWER_FEED="+feed)
	c := &copier{end: input, ready: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.read(t, output)
		if err := command.Wait(); err != nil {
			t.Errorf("the copier ended: %v", err)
		}
	}()
	return c
}

func (c *copier) read(t *testing.T, output io.Reader) {
	decode := func(line []byte, into any) {
		if err := json.Unmarshal(line, into); err != nil {
			t.Errorf("the copier printed %s: %v", line, err)
		}
	}
	copied := false
	lines := bufio.NewScanner(output)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		switch line := lines.Bytes(); {
		case string(line) == "ready":
			close(c.ready)
		case string(line) == "copy":
			copied = true
		case copied:
			decode(line, &c.users)
		default:
			var change copiedChange
			decode(line, &change)
			c.changes = append(c.changes, change)
		}
	}
}

// finishAll lets the copiers follow to the end, and waits until they end. Each may wait for a change, so
// finishAll calls change again and again.
func finishAll(t *testing.T, copiers []*copier, change func()) {
	t.Helper()
	for _, c := range copiers {
		if err := c.end.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range copiers {
		if !patience.Poll(func() bool {
			select {
			case <-c.done:
				return true
			default:
				change()
				return false
			}
		}) {
			t.Fatal("a copier does not end")
		}
	}
}

// churn creates, renames and deletes users until n users were created. All callers also rename the
// shared users.
func churn(t *testing.T, c *caller, writer, n int, shared []string) {
	for i := range n {
		name := fmt.Sprintf("Written %d-%d", writer, i)
		a, err := c.try(t, "POST /users", fmt.Sprintf(`{"email":%s,"name":%s}`, quoted(address(fmt.Sprintf("churn-%d-%d", writer, i))), quoted(name)))
		if err != nil || a.status != 201 {
			t.Errorf("not created: %v %+v", err, a)
			return
		}
		id := a.text("/id")
		for _, line := range [][2]string{
			{"PATCH /users/" + id, `{"name":` + quoted(name+" again") + `}`},
			{"PATCH /users/" + shared[i%len(shared)], `{"name":` + quoted("Shared "+name) + `}`},
			{"DELETE /users/" + id, ""},
		} {
			if line[1] == "" && i%2 == 0 {
				continue
			}
			if a, err := c.try(t, line[0], line[1]); err != nil || a.status >= 300 {
				t.Errorf("%s: %v %+v", line[0], err, a)
				return
			}
		}
	}
}

// TestTheCopyOfTheGuideEqualsTheLists follows the changes with the code of the guide while many
// clients write. On PostgreSQL, they write on two nodes. In the end, the copy must equal the lists.
// Each event must be read once, and the events about a user in the order of their causes.
func TestTheCopyOfTheGuideEqualsTheLists(t *testing.T) {
	t.Parallel()
	binary := build(t)
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, binary, store.database(t))
			w := newWorld(t, p)
			writers := []*caller{w.owner}
			if store.name != "sqlite" {
				there := &world{program: serve(t, binary, p.Database), name: w.name}
				there.connectFrom(t, net.IPv4(127, 1, 0, 1))
				far := *w.owner
				far.world = there
				writers = append(writers, &far)
			}
			token := w.owner.do(t, "POST /users/"+w.owner.id+"/tokens", tokenBody("Copier", "changes:read", "users:read")).expect(t, 201).text("/token")
			last := writers[len(writers)-1].world
			copiers := []*copier{last.copyOf(t, token, "/changes"), last.copyOf(t, p.operatorKey(t, "--tenant", w.name).bearer, "/operator/changes")}
			for _, c := range copiers {
				<-c.ready
			}
			shared := []string{w.user(t, "shared-0", ""), w.user(t, "shared-1", "")}
			var writing sync.WaitGroup
			for i := range 6 {
				writing.Go(func() { churn(t, writers[i%len(writers)], i, 25, shared) })
			}
			if store.name == "postgres" {
				holdUpEvents(t, p.Database)
			}
			writing.Wait()
			role, renamed := w.role(t, "Of no copy"), 0
			finishAll(t, copiers, func() {
				renamed++
				w.owner.do(t, "PATCH /roles/"+role, fmt.Sprintf(`{"description":"Changed %d times"}`, renamed)).expect(t, 200)
			})
			for _, c := range copiers {
				compareCopy(t, w, c)
			}
		})
	}
}

// holdUpEvents locks the table of events until a transaction waits for it. Transactions that have
// begun before then commit after others that have begun later.
func holdUpEvents(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	for range 5 {
		holdUpCommits(t, url)
		if ctx.Err() != nil {
			t.Fatal("no transaction waits")
		}
	}
}

// compareCopy compares what the copier has read with the lists.
func compareCopy(t *testing.T, w *world, c *copier) {
	t.Helper()
	listed := map[string]string{}
	for _, id := range w.owner.readAll(t, "/users?limit=200") {
		listed[id] = ""
	}
	for id := range c.users {
		if _, ok := listed[id]; !ok {
			t.Errorf("the copy has the deleted user %s", id)
		}
	}
	for id := range listed {
		if want := w.owner.do(t, "GET /users/"+id, "").text("/name"); c.users[id] != want {
			t.Errorf("the copy has the user %s as %q, want %q", id, c.users[id], want)
		}
	}
	read := map[string]int{}
	names := map[string]string{}
	for _, change := range c.changes {
		read[change.ID]++
		before, hadName := change.Data.Before["name"].(string)
		after, hasName := change.Data.After["name"].(string)
		if last, known := names[change.Subject]; known && hadName && before != last {
			t.Errorf("%s: %s from %q follows %q", change.Subject, change.Type, before, last)
		}
		if hasName {
			names[change.Subject] = after
		}
	}
	for _, kind := range []string{"user.created", "user.updated", "user.deleted"} {
		missed := 0
		for _, id := range w.owner.readAll(t, "/events?limit=200&type="+kind) {
			switch read[id] {
			case 0:
				missed++
			case 1:
			default:
				t.Errorf("%s %s was read %d times", kind, id, read[id])
			}
			delete(read, id)
		}
		if want := map[string]int{"user.created": 1}[kind]; missed > want { // the owner, before the first walk
			t.Errorf("%d %s were not read, want %d", missed, kind, want)
		}
	}
	t.Logf("%d changes", len(c.changes))
	if len(c.changes) < 300 || strings.TrimSpace(w.name) == "" {
		t.Errorf("only %d changes", len(c.changes))
	}
}
