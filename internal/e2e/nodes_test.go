package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// seenWithin is the maximum time after the response to a revocation for which another node may
// still accept the revoked right. It does not depend on the speed of the machine, because a node that
// has not heard from the database for so long does not use what it knows. The tests compare it with the
// time at which they send a request, not with the time of the answer.
const seenWithin = time.Second

// revocation is one way to revoke a caller's rights. Before the revocation, the caller may
// list users.
type revocation struct {
	name    string
	command bool // whether revoke uses the command line
	status  int  // expected status of the caller's requests afterwards
	revoke  func(*testing.T, *revoked)
	restore func(*testing.T, *revoked)
}

// revoked is the user or service account whose rights a test revokes.
type revoked struct {
	world  *world
	caller *caller
	role   string // id of the caller's role
	group  string // id of the group through which the caller has the role, or ""
	number int
}

func (r *revoked) signInAgain(t *testing.T) { r.caller = r.world.signIn(t, r.caller.email) }

var revocations = []revocation{
	{"a role gets less", false, 403, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "PATCH /roles/"+r.role, `{"permissions":[]}`).expect(t, 200)
	}, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "PATCH /roles/"+r.role, `{"permissions":["users:read"]}`).expect(t, 200)
	}},
	{"an assignment is removed", false, 403, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /users/"+r.caller.id+"/roles/"+r.role, "").expect(t, 204)
	}, func(t *testing.T, r *revoked) {
		r.world.assign(t, r.caller.id, r.role, "")
	}},
	{"the user is suspended", false, 401, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "POST /users/"+r.caller.id+"/suspend", "").expect(t, 200)
	}, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "POST /users/"+r.caller.id+"/resume", "").expect(t, 200)
		r.signInAgain(t)
	}},
	{"the user is deleted", false, 401, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /users/"+r.caller.id, "").expect(t, 204)
	}, func(t *testing.T, r *revoked) {
		r.number++
		r.caller = r.world.member(t, fmt.Sprintf("successor-%d", r.number), "")
		r.world.assign(t, r.caller.id, r.role, "")
	}},
	{"the session is ended", false, 401, func(t *testing.T, r *revoked) {
		r.caller.do(t, "POST /auths/logout", "").expect(t, 204)
	}, func(t *testing.T, r *revoked) { r.signInAgain(t) }},
	{"an administrator ends the session", false, 401, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /users/"+r.caller.id+"/sessions/"+r.caller.sessionID(t), "").expect(t, 204)
	}, func(t *testing.T, r *revoked) { r.signInAgain(t) }},
	{"an administrator ends all sessions", false, 401, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /users/"+r.caller.id+"/sessions", "").expect(t, 204)
	}, func(t *testing.T, r *revoked) { r.signInAgain(t) }},
	{"the password is set by the command line", true, 401, func(t *testing.T, r *revoked) {
		r.world.program.run(t, password, "user", "set-password", "--tenant", r.world.name, "--email", r.caller.email, "--password-stdin")
	}, func(t *testing.T, r *revoked) { r.signInAgain(t) }},
	{"the tenant is suspended by the command line", true, 403, func(t *testing.T, r *revoked) {
		r.world.program.run(t, "", "tenant", "suspend", r.world.name)
	}, func(t *testing.T, r *revoked) {
		r.world.program.run(t, "", "tenant", "resume", r.world.name)
	}},
}

// TestARevocationIsSeenByEveryNode revokes rights on one node or by the command line, many
// times. It measures how long another node, behind PgBouncer, still accepts requests. In half
// of the cases, the nodes' listening connections to the database are cut just before. In some
// of these, the database also refuses new connections.
func TestARevocationIsSeenByEveryNode(t *testing.T) {
	t.Parallel()
	binary, shared := build(t), database{t, pgtest.URL(t)}
	near := serve(t, binary, shared.url)
	metrics := freeAddress(t)
	far := serve(t, binary, pgtest.Bouncer(t)(shared.url)+"?default_query_exec_mode=exec", "--direct-database", shared.url, "--metrics-listen", metrics)
	r := newRevoked(t, near)
	there := r.on(t, far)

	disturbances := []struct {
		name string
		make func() (end func())
	}{
		{"nothing", undisturbed}, {"a cut", shared.cutListeners}, {"nothing", undisturbed}, {"a cut and no way back", shared.cutAndRefuse},
	}
	rounds := 100
	if testing.Short() {
		rounds = len(disturbances) * len(revocations) // each revocation with each disturbance
	}
	longest := map[string]time.Duration{}
	for i := range rounds {
		what, disturbance := revocations[i%len(revocations)], disturbances[i/len(revocations)%len(disturbances)]
		if disturbance.name == "a cut and no way back" && what.command { // the command line needs a connection too
			disturbance = disturbances[1]
		}
		awaitMetric(t, metrics, "rolecall_watch_up 1")
		lag := what.lag(t, r, there, disturbance.make)
		longest[disturbance.name] = max(longest[disturbance.name], lag)
		if lag >= seenWithin {
			t.Errorf("round %d: %s after %s: still honoured on the other node after %v", i, what.name, disturbance.name, lag)
		}
	}
	t.Logf("%d revocations were seen by the other node; the longest took, disturbed by: %v", rounds, longest)
}

// machineRevocations are the ways to revoke the rights of a service account's token.
var machineRevocations = []revocation{
	{"the token is revoked", false, 401, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /service-accounts/"+r.caller.id+"/tokens/"+r.caller.bearerID, "").expect(t, 204)
	}, func(t *testing.T, r *revoked) { r.caller = r.world.owner.makeToken(t, r.caller.id, "users:read") }},
	{"the service account is suspended", false, 401, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "POST /service-accounts/"+r.caller.id+"/suspend", "").expect(t, 200)
	}, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "POST /service-accounts/"+r.caller.id+"/resume", "").expect(t, 200)
	}},
	{"its role is taken", false, 403, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /service-accounts/"+r.caller.id+"/roles/"+r.role, "").expect(t, 204)
	}, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "PUT /service-accounts/"+r.caller.id+"/roles/"+r.role, "").expect(t, 201)
	}},
	{"its role gets less", false, 403, revocations[0].revoke, revocations[0].restore},
	{"the service account is deleted", false, 401, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /service-accounts/"+r.caller.id, "").expect(t, 204)
	}, func(t *testing.T, r *revoked) { r.employ(t) }},
}

// groupRevocations are the ways to revoke the rights that a user has through a group.
var groupRevocations = []revocation{
	{"the user is removed from the group", false, 403, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /groups/"+r.group+"/users/"+r.caller.id, "").expect(t, 204)
	}, func(t *testing.T, r *revoked) { r.world.join(t, r.group, r.caller.id) }},
	{"the group loses the role", false, 403, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /groups/"+r.group+"/roles/"+r.role, "").expect(t, 204)
	}, func(t *testing.T, r *revoked) { r.world.assignToGroup(t, r.group, r.role, "") }},
	{"a role of the group gets less", false, 403, revocations[0].revoke, revocations[0].restore},
	{"the group is deleted", false, 403, func(t *testing.T, r *revoked) {
		r.world.owner.do(t, "DELETE /groups/"+r.group+"?force=true", "").expect(t, 204)
	}, func(t *testing.T, r *revoked) { r.enlist(t) }},
}

// enlist creates a group with the role, and adds the caller to it.
func (r *revoked) enlist(t *testing.T) {
	t.Helper()
	r.number++
	r.group = r.world.group(t, fmt.Sprintf("Group %d", r.number))
	r.world.assignToGroup(t, r.group, r.role, "")
	r.world.join(t, r.group, r.caller.id)
}

// employ creates a service account with the role and a token, which becomes the caller.
func (r *revoked) employ(t *testing.T) {
	t.Helper()
	r.number++
	account := r.world.account(t, fmt.Sprintf("Robot %d", r.number))
	r.world.owner.do(t, "PUT /service-accounts/"+account+"/roles/"+r.role, "").expect(t, 201)
	r.caller = r.world.owner.makeToken(t, account, "users:read")
}

// TestALossThroughAGroupIsSeenByEveryNode checks that another node refuses the requests of a user within
// seenWithin after the user has lost the permissions of a group.
func TestALossThroughAGroupIsSeenByEveryNode(t *testing.T) {
	t.Parallel()
	binary, shared := build(t), database{t, pgtest.URL(t)}
	near, metrics := serve(t, binary, shared.url), freeAddress(t)
	far := serve(t, binary, shared.url, "--metrics-listen", metrics)
	r := newRevoked(t, near)
	r.world.owner.do(t, "DELETE /users/"+r.caller.id+"/roles/"+r.role, "").expect(t, 204)
	r.enlist(t)
	there := r.on(t, far)
	var longest time.Duration
	for i := range 2 * len(groupRevocations) {
		disturb := undisturbed
		if i >= len(groupRevocations) {
			disturb = shared.cutListeners
		}
		awaitMetric(t, metrics, "rolecall_watch_up 1")
		what := groupRevocations[i%len(groupRevocations)]
		lag := what.lag(t, r, there, disturb)
		if longest = max(longest, lag); lag >= seenWithin {
			t.Errorf("round %d: %s: still honoured on the other node after %v", i, what.name, lag)
		}
	}
	t.Logf("the longest took %v", longest)
}

// TestATokenThatIsRevokedEndsOnEveryNode checks that another node refuses the token of a
// service account within seenWithin after its rights are revoked.
func TestATokenThatIsRevokedEndsOnEveryNode(t *testing.T) {
	t.Parallel()
	binary, shared := build(t), database{t, pgtest.URL(t)}
	near, metrics := serve(t, binary, shared.url), freeAddress(t)
	far := serve(t, binary, shared.url, "--metrics-listen", metrics)
	r := newRevoked(t, near)
	r.employ(t)
	there := r.on(t, far)
	var longest time.Duration
	for i := range 4 * len(machineRevocations) {
		disturb := undisturbed
		if i%4 == 3 {
			disturb = shared.cutListeners
		}
		awaitMetric(t, metrics, "rolecall_watch_up 1")
		what := machineRevocations[i%len(machineRevocations)]
		lag := what.lag(t, r, there, disturb)
		if longest = max(longest, lag); lag >= seenWithin {
			t.Errorf("round %d: %s: still honoured on the other node after %v", i, what.name, lag)
		}
	}
	t.Logf("the longest took %v", longest)
}

// TestARevocationByTheCommandLineIsSeenOnSQLite revokes rights by the command line while a
// server uses the same SQLite file. The server must refuse requests within seenWithin.
func TestARevocationByTheCommandLineIsSeenOnSQLite(t *testing.T) {
	t.Parallel()
	p := serve(t, build(t), filepath.Join(t.TempDir(), "rolecall.db"))
	r := newRevoked(t, p)
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	var longest time.Duration
	for i := range rounds {
		for _, what := range revocations {
			if !what.command {
				continue
			}
			lag := what.lag(t, r, r.world, undisturbed)
			longest = max(longest, lag)
			if lag >= seenWithin {
				t.Errorf("round %d: %s: still honoured after %v", i, what.name, lag)
			}
		}
	}
	t.Logf("the longest took %v", longest)
}

func undisturbed() (end func()) { return func() {} }

func newRevoked(t *testing.T, p *program) *revoked {
	t.Helper()
	w := newWorld(t, p)
	r := &revoked{world: w, caller: w.member(t, "revoked", "")}
	r.role = w.role(t, "Reader", "users:read")
	w.assign(t, r.caller.id, r.role, "")
	return r
}

// on returns a world for the same tenant that sends requests to the node far.
func (r *revoked) on(t *testing.T, far *program) *world {
	t.Helper()
	w := &world{program: far, name: r.world.name}
	w.connectFrom(t, net.IPv4(127, 1, 0, 1))
	return w
}

// lag revokes the rights and returns how long afterwards requests to the node of there were
// still accepted. It causes the disturbance just before the revocation. Before lag returns, it
// ends the disturbance and restores the rights.
func (v *revocation) lag(t *testing.T, r *revoked, there *world, disturb func() (end func())) time.Duration {
	t.Helper()
	asks := *r.caller
	asks.world = there
	asks.until(t, 200) // waits until the previous restore has arrived
	asks.until(t, 200) // the node now answers from its cache
	end := disturb()
	v.revoke(t, r)
	lag := asks.until(t, v.status)
	end()
	v.restore(t, r)
	return lag
}

// until lists users repeatedly until the response has the status. It returns the time from the
// start until the last request with another status was sent.
func (c *caller) until(t *testing.T, status int) (other time.Duration) {
	t.Helper()
	began := time.Now()
	var a *answer
	patience.Poll(func() bool {
		asked := time.Since(began)
		if a = c.do(t, "GET /users", ""); a.status == status {
			return true
		}
		other = asked
		return false
	})
	a.expect(t, status)
	return other
}

// database is a PostgreSQL database on which a test runs statements as the administrator.
type database struct {
	*testing.T
	url string
}

// run runs the statements in the database named in. If in is empty, run uses the database of
// d.url.
func (d database) run(in string, statements ...string) {
	d.Helper()
	ctx := context.WithoutCancel(d.Context())
	u, err := url.Parse(d.url)
	if err != nil {
		d.Fatal(err)
	}
	if in != "" {
		u.Path = "/" + in
	}
	conn, err := pgx.Connect(ctx, pgtest.Admin(d, u.String()))
	if err != nil {
		d.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			d.Errorf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(ctx); err != nil {
		d.Error(err)
	}
}

const cutListeners = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'rolecall listener'"

// cutListeners terminates the connections on which the nodes listen for changes.
func (d database) cutListeners() (end func()) {
	d.run("", cutListeners)
	return func() {}
}

// cutAndRefuse is like cutListeners, but the database also refuses new connections until end
// is called.
func (d database) cutAndRefuse() (end func()) {
	u, err := url.Parse(d.url)
	if err != nil {
		d.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	allow := "alter database " + pgx.Identifier{name}.Sanitize() + " allow_connections "
	d.run("postgres", allow+"false", strings.Replace(cutListeners, "current_database()", "'"+name+"'", 1))
	return func() { d.run("postgres", allow+"true") }
}

func TestTheMetricsShowWhetherANodeReceivesChanges(t *testing.T) {
	t.Parallel()
	shared, metrics := database{t, pgtest.URL(t)}, freeAddress(t)
	serve(t, build(t), shared.url, "--metrics-listen", metrics)
	awaitMetric(t, metrics, "rolecall_watch_up 1")
	awaitMetric(t, metrics, "rolecall_watch_behind_seconds 0.")
	end := shared.cutAndRefuse()
	awaitMetric(t, metrics, "rolecall_watch_up 0")
	awaitMetric(t, metrics, "rolecall_watch_behind_seconds 1.")
	end()
	awaitMetric(t, metrics, "rolecall_watch_up 1")
	awaitMetric(t, metrics, "rolecall_watch_behind_seconds 0.")
}

// awaitMetric waits until the metrics at the address contain a line that begins with line.
func awaitMetric(t *testing.T, address, line string) {
	t.Helper()
	var text string
	if !patience.Poll(func() bool {
		text = scrape(t, address)
		return strings.Contains(text, "\n"+line)
	}) {
		t.Fatalf("the metrics never said %q:\n%s", line, text)
	}
}

// scrape returns the metrics at the address as text.
func scrape(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestARoleThatOwnsNothingServes creates the tables as their owner. It then checks that the
// program can serve with a database role that has only the privileges granted by migrate
// --grant-to.
func TestARoleThatOwnsNothingServes(t *testing.T) {
	t.Parallel()
	owners := database{t, pgtest.URL(t)}
	role := "rolecall_node_" + rolecall.NewID[any](rolecall.TimeOf(time.Now())).String()
	quotedRole := pgx.Identifier{role}.Sanitize()
	owners.run("", "create role "+quotedRole+" login password 'node'")
	t.Cleanup(func() { owners.run("", "drop owned by "+quotedRole, "drop role "+quotedRole) })
	owner := newProgram(t, build(t), owners.url)
	owner.run(t, "", "migrate", "--grant-to", role)

	p := serve(t, owner.Binary, strings.Replace(owners.url, "rolecall_test:rolecall_test@", role+":node@", 1), "--no-migrate")
	w := newWorld(t, p)
	c := w.holder(t, "reader", "", "", "users:read")
	c.do(t, "GET /users", "").expect(t, 200)
	w.owner.do(t, "DELETE /users/"+c.id, "").expect(t, 204)
	if output, err := p.try(t, "", "migrate", "--grant-to", "somebody"); err == nil {
		t.Errorf("a role that owns nothing granted: %s", output)
	}
}
