package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/process"
)

const (
	canaryClients = 64
	markLead      = "cnry" // prefix of every mark
	markLength    = 12
)

// marked is a tenant whose stored values all contain its mark.
type marked struct {
	mark    string // also the name of the tenant
	token   string // of the owner's session
	address string // of the owner
	owner   string // id of the owner
	role    string
	shared  string // id of the user whose address and idempotency key are the same in every tenant
}

// isolation has many tenants on the same nodes, and the ids and counts of the responses to their
// clients.
type isolation struct {
	t        *testing.T
	nodes    []string // addresses
	client   *http.Client
	tenants  []*marked
	tenantOf sync.Map // the *marked of each id that a response contained

	asked, dropped, unavailable, foreign, bare atomic.Int64
	answers                                    [600]atomic.Int64 // number of responses by status
}

// canaryTopologies are deployments in which many tenants share few connections, so that
// one tenant could get the data of another.
var canaryTopologies = []struct {
	name  string
	serve func(t *testing.T) (commands *process.Server, nodes []string, database string)
}{
	{"sqlite", func(t *testing.T) (*process.Server, []string, string) {
		s := serve(t, filepath.Join(t.TempDir(), "rolecall.db"))
		return s, []string{s.Address}, ""
	}},
	{"a pool of 4", func(t *testing.T) (*process.Server, []string, string) {
		database := pgtest.URL(t)
		s := serve(t, database+"&pool_max_conns=4")
		return s, []string{s.Address}, database
	}},
	{"citus", func(t *testing.T) (*process.Server, []string, string) {
		database := pgtest.CitusURL(t)
		s := serve(t, database+"&pool_max_conns=4")
		return s, []string{s.Address}, database
	}},
	{"two nodes behind PgBouncer with 4 connections", func(t *testing.T) (*process.Server, []string, string) {
		database := pgtest.URL(t)
		through := pgtest.Bouncer(t, "default_pool_size = 4")(database) + "?default_query_exec_mode=exec&pool_max_conns=8"
		commands := newServer(t, database)
		command(t, commands, "", "migrate")
		near, far := serve(t, through, "--direct-database", database), serve(t, through, "--direct-database", database)
		return commands, []string{near.Address, far.Address}, database
	}},
}

// TestTenantsStayIsolated runs many clients of many tenants with all kinds of requests
// at once. Clients abort requests, and connections and statements are lost. A response
// may contain only the mark of its tenant.
func TestTenantsStayIsolated(t *testing.T) {
	alongside(t)
	for _, topology := range canaryTopologies {
		t.Run(topology.name, func(t *testing.T) {
			alongside(t)
			commands, nodes, database := topology.serve(t)
			transport := &http.Transport{MaxIdleConnsPerHost: canaryClients, DisableCompression: true}
			t.Cleanup(transport.CloseIdleConnections)
			all := &isolation{t: t, nodes: nodes, client: &http.Client{Transport: transport, Timeout: patience.Limit}}
			for i := range times(6, 20) {
				all.settle(commands, i)
			}
			over := make(chan struct{})
			var disturbing, asking sync.WaitGroup
			if database != "" {
				disturbing.Go(func() { all.disturb(pgtest.Admin(t, database), topology.name == "citus", over) })
			}
			limit := int64(fewer(2_000, 6_000, 1_000_000))
			for i := range canaryClients {
				asking.Go(func() { newVisitor(all, uint64(i)).sendUntil(limit) })
			}
			asking.Wait()
			close(over)
			disturbing.Wait()
			all.report()
		})
	}
}

// settle creates a tenant with the command line, and its content over HTTP. Every tenant gets a
// user with the same email address and idempotency key.
func (all *isolation) settle(commands *process.Server, i int) {
	all.t.Helper()
	mark := fmt.Sprintf("%s%02d%06x", markLead, i, rand.N(1<<24))
	c := &marked{mark: mark, address: "owner@" + mark + ".example"}
	command(all.t, commands, password+"\n", "tenant", "create", mark, "--owner-email", c.address, "--owner-name", "Owner "+mark, "--password-stdin")
	v := newVisitor(all, uint64(i))
	v.marked = c
	v.signIn()
	id := func(of reply) string {
		if of.status >= 300 || !all.checkMarks(c, of, true) {
			all.t.Fatalf("%s: %d %s", of.line, of.status, of.body)
		}
		return of.id()
	}
	c.owner = id(v.send("GET /users?email="+c.address, ""))
	id(v.send("PATCH /tenant", `{"displayName":`+quoted("Tenant "+mark)+`,"settings":{"reauthenticationSeconds":0}}`))
	id(v.send("PATCH /users/"+c.owner, fmt.Sprintf(`{"department":"Department %s","externalId":"owner-%s","metadata":{%q:%q}}`, mark, mark, mark, mark)))
	c.role = id(v.send("POST /roles", fmt.Sprintf(`{"name":"Keeper of %s","description":"Keeps %s.","permissions":["%s/shop:open","users:read"]}`, mark, mark, mark), "idempotency-key: role"))
	if of := v.send("PUT /users/"+c.owner+"/roles/"+c.role, ""); of.status != http.StatusCreated {
		all.t.Fatalf("%s: %d %s", of.line, of.status, of.body)
	}
	c.shared = id(v.send("POST /users", `{"email":"same@everywhere.example","name":"Same `+mark+`"}`, "idempotency-key: same"))
	all.tenants = append(all.tenants, c)
}

// checkMarks fails the test if the response contains the mark or an id of another tenant. If
// must is true, it also fails the test if the response lacks the tenant's own mark.
func (all *isolation) checkMarks(c *marked, of reply, must bool) bool {
	own, text := 0, of.text()
	for rest := text; ; {
		_, from, found := bytes.Cut(rest, []byte(markLead))
		if !found {
			break
		}
		mark := markLead + string(from[:min(len(from), markLength-len(markLead))])
		if mark != c.mark && all.isMark(mark) {
			all.foreign.Add(1)
			all.t.Errorf("FOREIGN: %s asked %s and got something of %s: %d %s", c.mark, of.line, mark, of.status, text)
			return false
		}
		if mark == c.mark {
			own++
		}
		rest = from
	}
	for rest := of.body; ; {
		_, from, found := bytes.Cut(rest, []byte(`"id":"`))
		if !found || len(from) < 36 {
			break
		}
		if whose, seen := all.tenantOf.LoadOrStore(string(from[:36]), c); seen && whose != c {
			all.foreign.Add(1)
			all.t.Errorf("FOREIGN: %s asked %s and got an id of %s: %d %s", c.mark, of.line, whose.(*marked).mark, of.status, text)
			return false
		}
		rest = from
	}
	if must && own == 0 {
		all.bare.Add(1)
		all.t.Errorf("%s asked %s and got nothing of its own: %d %s", c.mark, of.line, of.status, text)
		return false
	}
	return true
}

// isMark reports whether a tenant has the mark. About one in a million cursors contains the prefix
// of marks by chance, although it contains no mark.
func (all *isolation) isMark(mark string) bool {
	return slices.ContainsFunc(all.tenants, func(c *marked) bool { return c.mark == mark })
}

// disturb cancels statements, ends connections and locks rows, so that transactions end
// in every possible way. On Citus, it also cancels and ends the coordinator's
// connections to the workers.
func (all *isolation) disturb(database string, onCitus bool, over <-chan struct{}) {
	conn, err := pgx.Connect(context.Background(), database)
	if err != nil {
		all.t.Error(err)
		return
	}
	defer conn.Close(context.Background())
	const victim = ` from pg_stat_activity where datname = current_database() and usename <> current_user and state <> 'idle' order by random() limit 1`
	disturbances := []string{
		"select pg_cancel_backend(pid)" + victim, "select pg_terminate_backend(pid)" + victim,
		"begin; lock table users in access exclusive mode; select pg_sleep(0.05); rollback", "begin; lock table users in share mode; select pg_sleep(0.05); rollback",
	}
	if onCitus {
		for _, disturbance := range disturbances[:2] {
			disturbances = append(disturbances, "select run_command_on_workers($_$"+disturbance+"$_$)")
		}
	}
	next := time.NewTicker(200 * time.Millisecond)
	defer next.Stop()
	for round := 0; ; round++ {
		select {
		case <-over:
			return
		case <-next.C:
		}
		if _, err := conn.Exec(context.Background(), disturbances[round%len(disturbances)]); err != nil {
			all.t.Errorf("%s: %v", disturbances[round%len(disturbances)], err)
			return
		}
	}
}

func (all *isolation) report() {
	statuses := []string{}
	for status := range all.answers {
		if n := all.answers[status].Load(); n > 0 {
			statuses = append(statuses, fmt.Sprintf("%d: %d", status, n))
		}
	}
	all.t.Logf("tried %d, dropped %d, unavailable %d, foreign %d, without an own mark %d; %s",
		all.asked.Load(), all.dropped.Load(), all.unavailable.Load(), all.foreign.Load(), all.bare.Load(), strings.Join(statuses, ", "))
	wanted := []int{200, 201, 204, 304, 401, 404, 409, 422}
	if !testing.Short() { // too rare with -short
		wanted = append(wanted, http.StatusPreconditionFailed)
	}
	for _, status := range wanted {
		if all.answers[status].Load() == 0 {
			all.t.Errorf("nothing was answered %d", status)
		}
	}
	if all.dropped.Load() == 0 {
		all.t.Error("no request was dropped")
	}
}

// reply is a response.
type reply struct {
	line   string
	status int // 0: no response
	header http.Header
	body   []byte
}

// text returns all parts of the response that could contain data.
func (of reply) text() []byte {
	var text bytes.Buffer
	for _, name := range []string{"Location", "Link", "X-Auth-User", "X-Auth-Tenant", "Withheld-Fields"} {
		text.WriteString(of.header.Get(name) + "\n")
	}
	text.Write(of.body)
	return text.Bytes()
}

// id returns the id of the document, or of the first item of a page.
func (of reply) id() string {
	var document struct {
		ID    string
		Items []struct{ ID string }
	}
	if err := json.Unmarshal(of.body, &document); err != nil {
		return ""
	}
	if len(document.Items) > 0 {
		return document.Items[0].ID
	}
	return document.ID
}

// visitor is a client that sends requests for one tenant after another.
type visitor struct {
	*isolation
	*marked
	random *rand.Rand
	made   map[*marked][]string // users that it created and that still exist
	serial int
	name   uint64
}

func newVisitor(all *isolation, name uint64) *visitor {
	return &visitor{isolation: all, random: rand.New(rand.NewPCG(name, 7)), made: map[*marked][]string{}, name: name}
}

// sendUntil sends requests of all kinds in random order until all visitors together have sent limit
// requests.
func (v *visitor) sendUntil(limit int64) {
	for v.asked.Load() < limit && !v.t.Failed() {
		v.marked = v.tenants[v.random.IntN(len(v.tenants))]
		at := v.random.IntN(allWeights)
		for _, kind := range visits {
			if at -= kind.weight; at < 0 {
				kind.ask(v)
				break
			}
		}
	}
}

// send sends "METHOD /path" as the owner of the tenant.
func (v *visitor) send(line, body string, header ...string) reply {
	return v.sendWithin(context.Background(), line, body, header...)
}

func (v *visitor) sendWithin(ctx context.Context, line, body string, header ...string) reply {
	v.asked.Add(1)
	method, path, _ := strings.Cut(line, " ")
	r, err := http.NewRequestWithContext(ctx, method, "http://"+v.nodes[v.random.IntN(len(v.nodes))]+path, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		panic(err) // the requests of the tests are valid
	}
	if r.ContentLength = int64(len(body)); body == "" {
		r.Body = nil
	}
	r.Header = http.Header{"X-Tenant-Schema": {v.mark}, "Cookie": {"session=" + v.token}, "Content-Type": {"application/json"}}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	response, err := v.client.Do(r)
	if err != nil {
		return reply{line: line}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{line: line}
	}
	v.answers[response.StatusCode].Add(1)
	return reply{line, response.StatusCode, response.Header, content}
}

// expect sends a request, and fails the test unless the response has one of the statuses. A
// successful response with a body must contain the mark. expect returns false if there was no
// response, or a 503.
func (v *visitor) expect(line, body string, header []string, statuses ...int) (reply, bool) {
	of := v.send(line, body, header...)
	if of.status == 0 || of.status == http.StatusServiceUnavailable {
		v.unavailable.Add(1)
		return of, false
	}
	if !slices.Contains(statuses, of.status) {
		v.t.Errorf("%s asked %s and got %d, not %v: %s", v.mark, line, of.status, statuses, of.body)
	}
	v.checkMarks(v.marked, of, of.status < 300 && len(of.body) > 0 && !bytes.HasPrefix(of.body, []byte(`{"items":[]`)))
	return of, true
}
