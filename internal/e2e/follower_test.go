package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/internal/patience"
)

// followerProgram runs the follower of docs/guides/events.md. The guide's code replaces %s.
// The program polls again and again until its standard input is closed, and then polls once more. It
// pauses between the polls, because other tests need the processor. It prints the id of each handled
// event, and "polled" after each poll.
const followerProgram = `package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

%s

func get(path string, into any) error {
	request, err := http.NewRequest(http.MethodGet, os.Getenv("FOLLOWED")+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("FOLLOWER_TOKEN"))
	request.Header.Set("X-Tenant-Schema", os.Getenv("FOLLOWER_TENANT"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%%s answers %%s", path, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

func main() {
	var last atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		last.Store(true)
	}()
	f := follower{get: get, seen: map[string]time.Time{}}
	for ended := false; !ended; {
		ended = last.Load()
		err := f.poll(func(e event) error {
			_, err := fmt.Println(e.ID)
			return err
		})
		if err != nil {
			panic(err)
		}
		fmt.Println("polled")
		time.Sleep(20 * time.Millisecond)
	}
}
`

// follower is a running process of followerProgram.
type follower struct {
	end   io.Closer // its standard input, which is closed to end the follower
	polls atomic.Int32
	done  chan struct{}
	ids   []string // of the handled events; read them after the end only
}

// follow builds and starts followerProgram with the token. If overlap is not empty, this Go
// expression replaces the overlap of the guide.
func (w *world) follow(t *testing.T, overlap, token string) *follower {
	t.Helper()
	code := strings.NewReplacer()
	if overlap != "" {
		code = strings.NewReplacer("const overlap = time.Minute\n", "const overlap = "+overlap+"\n")
	}
	command, input, output := w.startGuide(t, "events", followerProgram, code, token)
	f := &follower{end: input, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if line := lines.Text(); line == "polled" {
				f.polls.Add(1)
			} else {
				f.ids = append(f.ids, line)
			}
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the follower ended: %v", err)
		}
	}()
	return f
}

// startGuide builds a program and starts it with the token. The program contains the first Go code of
// the guide, after the replacements. The caller must close input, read output to its end, and wait for the
// command.
func (w *world) startGuide(t *testing.T, guide, program string, replacements *strings.Replacer, token string, environment ...string) (command *exec.Cmd, input io.WriteCloser, output io.Reader) {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/" + guide + ".md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindSubmatch(text)
	if block == nil {
		t.Fatal("the guide has no code")
	}
	folder := t.TempDir()
	source, binary := filepath.Join(folder, guide+".go"), filepath.Join(folder, guide)
	if err := os.WriteFile(source, fmt.Appendf(nil, program, replacements.Replace(string(block[1]))), 0o600); err != nil {
		t.Fatal(err)
	}
	// Unlike go build, go run caches linked programs. With -trimpath, the cached program is
	// also used if the source file has another path. -exec cp copies the program instead of
	// running it.
	if output, err := exec.CommandContext(t.Context(), "go", "run", "-trimpath", "-exec", "cp", source, binary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	command = exec.CommandContext(t.Context(), binary)
	command.Env = append(append(os.Environ(), environment...), "FOLLOWED=http://"+w.program.Address, "FOLLOWER_TENANT="+w.name, "FOLLOWER_TOKEN="+token)
	command.Stderr = os.Stderr
	if input, err = command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if output, err = command.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, input, output
}

// finish lets the follower poll once more and waits until it ends. It returns how many times
// each event was handled.
func (f *follower) finish(t *testing.T) map[string]int {
	t.Helper()
	if err := f.end.Close(); err != nil {
		t.Error(err)
	}
	<-f.done
	handled := map[string]int{}
	for _, id := range f.ids {
		handled[id]++
	}
	return handled
}

// holdUpCommits locks the table of events until each follower has polled three times. Events
// that waited for the lock become visible only then, but their ids are older than these polls.
func holdUpCommits(t *testing.T, database string, followers ...*follower) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	if _, err := conn.Exec(ctx, "begin"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "lock table events in share mode"); err != nil {
		t.Fatal(err)
	}
	if !patience.Poll(func() bool {
		waiting := 0
		if err := conn.QueryRow(ctx, "select count(*) from pg_locks where relation = 'events'::regclass and not granted").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting > 0
	}) {
		t.Fatal("no transaction waits")
	}
	for _, f := range followers {
		enough := f.polls.Load() + 3
		if !patience.Poll(func() bool { return f.polls.Load() >= enough }) {
			t.Fatal("the follower does not poll")
		}
	}
	if _, err := conn.Exec(ctx, "commit"); err != nil {
		t.Fatal(err)
	}
}

func TestTheFollowerOfTheGuideLosesNoEvent(t *testing.T) {
	t.Parallel()
	binary := build(t)
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, binary, store.database(t))
			w := newWorld(t, p)
			token := w.owner.do(t, "POST /users/"+w.owner.id+"/tokens", tokenBody("Follower", "events:read")).expect(t, 201).text("/token")
			f, hasty := w.follow(t, "", token), w.follow(t, "time.Duration(0)", token)
			earlier := w.owner.readAll(t, "/events?limit=200") // the followers read the last minute only

			var writing sync.WaitGroup
			var heldUp atomic.Bool
			for i := range 6 {
				writing.Go(func() {
					for n := 0; n < 40 || !heldUp.Load(); n++ {
						body := fmt.Sprintf(`{"email":%s,"name":"Written Down"}`, quoted(address(fmt.Sprintf("written-%d-%d", i, n))))
						if a, err := w.owner.try(t, "POST /users", body); err != nil || a.status != 201 && a.status != 503 {
							t.Errorf("not created: %v %+v", err, a)
							return
						}
					}
				})
			}
			if store.name == "postgres" {
				holdUpCommits(t, p.Database, f, hasty)
			}
			heldUp.Store(true)
			writing.Wait()

			handled, hurried := f.finish(t), hasty.finish(t)
			all := w.owner.readAll(t, "/events?limit=200")
			lost := 0
			for _, id := range all {
				if n := handled[id]; n != 1 && (n != 0 || !slices.Contains(earlier, id)) {
					t.Errorf("event %s was handled %d times", id, handled[id])
				}
				if hurried[id] == 0 {
					lost++
				}
			}
			t.Logf("%d events, %d polls; without the overlap %d lost", len(all), f.polls.Load(), lost)
			if store.name == "postgres" && lost == 0 {
				t.Error("the test does not hold up a commit: without the overlap nothing is lost either")
			}
		})
	}
}
