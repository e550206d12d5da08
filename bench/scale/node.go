package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/bench/load"
	"github.com/rolecall/rolecall/internal/process"
)

const password = "correct horse battery"

// session is the session of a user.
type session struct{ tenant, user, token string }

// node is the program that serves a filled store.
type node struct {
	process.Server
	sessions []session
}

// filled creates a database of the name, fills it by rolecall seed with the flags, and
// serves it.
func (b *bench) filled(ctx context.Context, name string, flags ...string) (_ *node, err error) {
	n, err := b.empty(ctx, name)
	if err != nil {
		return nil, err
	}
	tokens := filepath.Join(b.folder, name+".sessions")
	if err := n.seed(ctx, append([]string{name, "--sessions", tokens}, flags...)...); err != nil {
		return nil, err
	}
	if n.sessions, err = readSessions(tokens); err != nil {
		return nil, err
	}
	if name == fewUsersName || name == manyUsersName {
		if err := b.fillEvents(ctx, name, n); err != nil {
			return nil, fmt.Errorf("events: %w", err)
		}
	}
	if err := b.settle(ctx, name); err != nil {
		return nil, err
	}
	return n, n.Start(ctx)
}

// empty creates an empty database with the schema.
func (b *bench) empty(ctx context.Context, name string) (*node, error) {
	database := filepath.Join(b.folder, name+".db")
	if b.server != nil {
		var err error
		if database, err = b.server.NewDatabase(ctx, name); err != nil {
			return nil, err
		}
	}
	n := b.nodeOn(database)
	_, err := n.Run(ctx, "", "migrate")
	return n, err
}

// nodeOn returns a node for the database. All nodes share a log file.
func (b *bench) nodeOn(database string) *node {
	return &node{Server: process.Server{Binary: b.binary, Database: database, LogFile: b.log}}
}

// seed runs rolecall seed, and shows its progress.
func (n *node) seed(ctx context.Context, arguments ...string) error {
	fmt.Fprintln(os.Stderr, "seed", strings.Join(arguments, " "))
	command := exec.CommandContext(ctx, n.Binary, append([]string{"seed", "--password-stdin", "--database", n.Database}, arguments...)...)
	command.Stdin, command.Stderr = strings.NewReader(password), os.Stderr
	if output, err := command.Output(); err != nil {
		return fmt.Errorf("rolecall seed: %w\n%s", err, output)
	}
	return nil
}

// settle vacuums and analyzes the database, and writes a checkpoint. Otherwise PostgreSQL would do
// this within minutes, during the measurement.
func (b *bench) settle(ctx context.Context, database string) error {
	if b.server == nil {
		return nil
	}
	return b.asAdmin(ctx, database, "vacuum analyze", "checkpoint")
}

// asAdmin runs statements on the database as the administrator of the server.
func (b *bench) asAdmin(ctx context.Context, database string, statements ...string) (err error) {
	u, err := url.Parse(b.server.URL())
	if err != nil {
		return err
	}
	u.Path = "/" + database
	admin, err := pgx.Connect(ctx, u.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close(ctx)) }()
	for _, statement := range statements {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func readSessions(name string) (all []session, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var s session
		if _, err := fmt.Sscan(lines.Text(), &s.tenant, &s.user, &s.token); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// owner returns the session of the first tenant's owner.
func (n *node) owner() session { return n.sessions[0] }

// request returns the text of a request in the session. Except for GET, the request has the body
// and a unique idempotency key.
func (s session) request(method, path, body string) string {
	text := method + " " + path + " HTTP/1.1\r\nHost: scale\r\nX-Tenant-Schema: " + s.tenant + "\r\nCookie: session=" + s.token + "\r\n"
	if method != http.MethodGet {
		length := len(strings.ReplaceAll(body, load.Number, "0123456789abcdef"))
		text += "Content-Type: application/json\r\nIdempotency-Key: " + load.Number + "\r\nContent-Length: " + strconv.Itoa(length) + "\r\n"
	}
	return text + "\r\n" + body
}

// get requests the path in the session and decodes the response into the value into.
func (n *node) get(ctx context.Context, s session, path string, into any) error {
	answer, err := n.send(ctx, s, http.MethodGet, path, "")
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

// send sends one request and returns the body of its response. It returns an error if the
// response is not a success.
func (n *node) send(ctx context.Context, s session, method, path, body string) ([]byte, error) {
	status, answer, err := n.exchange(ctx, s, method, path, body)
	if err == nil && status >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %d %s", method, path, status, answer)
	}
	return answer, err
}

func (n *node) exchange(ctx context.Context, s session, method, path, body string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, n.URL()+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil, err
	}
	request.Header = http.Header{"X-Tenant-Schema": {s.tenant}, "Cookie": {"session=" + s.token}}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", strconv.FormatInt(time.Now().UnixNano(), 10))
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, content, errors.Join(err, answer.Body.Close())
}

// memory returns the memory of the processes in bytes. kind is a field of /proc/PID/smaps_rollup,
// such as Pss.
func memory(kind string, pids ...int) (total int, err error) {
	for _, pid := range pids {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if errors.Is(err, os.ErrNotExist) { // the process has ended
			continue
		}
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(content)) {
			var kilobytes int
			if _, err := fmt.Sscanf(line, kind+": %d kB", &kilobytes); err == nil {
				total += kilobytes << 10
			}
		}
	}
	return total, nil
}

// backends returns the processes of PostgreSQL that serve the database.
func (b *bench) backends(database string) (pids []int, err error) {
	server, err := b.server.PID()
	if err != nil {
		return nil, err
	}
	for _, pid := range processes(server) {
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(title), " "+database+" ") {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// processes returns the id of the process and the ids of all its descendants.
func processes(pid int) []int {
	all := []int{pid}
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return all // the process has ended, or the kernel does not report its children
	}
	for _, child := range strings.Fields(string(content)) {
		if id, err := strconv.Atoi(child); err == nil {
			all = append(all, processes(id)...)
		}
	}
	return all
}
