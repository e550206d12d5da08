package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
)

// password is the password of all users in the tests.
const password = canary + " correct horse battery"

// world is the tenant of one test. Its requests come from a separate loopback address, so that
// tests do not use up each other's limits.
type world struct {
	program *program
	client  *http.Client
	name    string
	source  string // the address that its requests come from
	owner   *caller
}

// newWorld creates a tenant and signs in the tenant's owner. If the program has an operator key, the
// key creates the tenant, because a command takes more time than most tests.
func newWorld(t *testing.T, p *program) *world {
	t.Helper()
	if p.operator == nil {
		return newWorldByCommand(t, p)
	}
	w := nextWorld(t, p)
	body := fmt.Sprintf(`{"name":%s,"owner":{"email":%s,"name":"Olga Owner"},"delivery":"return"}`, quoted(w.name), quoted(address("owner")))
	made := p.operator.of(w).do(t, "POST /operator/tenants", body).expect(t, 201)
	w.owner = w.accept(t, address("owner"), made.text("/owner/id"), made.text("/invitation/token"))
	return w
}

// newWorldByCommand is like newWorld, but the command line creates the tenant.
func newWorldByCommand(t *testing.T, p *program) *world {
	t.Helper()
	w := nextWorld(t, p)
	p.run(t, password+"\n", "tenant", "create", w.name, "--owner-email", address("owner"), "--owner-name", "Olga Owner", "--password-stdin")
	w.owner = w.signIn(t, address("owner"))
	return w
}

// nextWorld returns a world whose tenant does not exist yet.
func nextWorld(t *testing.T, p *program) *world {
	n := p.worlds.Add(1)
	w := &world{program: p, name: fmt.Sprintf("tenant-%d", n)}
	w.connectFrom(t, net.IPv4(127, 1, byte(n>>8), byte(n)))
	return w
}

// accept accepts the invitation of the user. It returns a caller with the user's session.
func (w *world) accept(t testing.TB, email, id, token string) *caller {
	t.Helper()
	w.program.secret(token)
	a := w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(token, password)).expect(t, 200)
	return &caller{world: w, tenant: w.name, token: a.session(t), id: id, email: email}
}

// inLessThan runs the attempt until one takes less than the time that a wait in the attempt lasts if nothing
// ends it early. A slow machine needs more attempts. If nothing ends the wait, each attempt takes
// longer, and the test fails.
func inLessThan(t *testing.T, wait time.Duration, attempt func()) {
	t.Helper()
	for first := time.Now(); ; {
		began := time.Now()
		if attempt(); time.Since(began) < wait {
			return
		}
		if time.Since(first) > 2*patience.Limit {
			t.Fatalf("nothing ends the wait of %v", wait)
		}
	}
}

// connectFrom makes the world's requests come from a loopback address.
func (w *world) connectFrom(t *testing.T, source net.IP) {
	w.source = source.String()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: source}, Timeout: patience.Limit}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
		MaxIdleConnsPerHost: 128,
		DisableCompression:  true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = &http.Client{Transport: checked{w.program, transport}, Timeout: patience.Limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// address returns an email address that is easy to find in a log.
func address(name string) string { return name + "@" + canary + ".example" }

// anonymous returns a caller without a session.
func (w *world) anonymous() *caller { return &caller{world: w, tenant: w.name} }

// credentials returns the body of a sign-in.
func credentials(email, password string) string {
	return fmt.Sprintf(`{"email":%s,"password":%s}`, quoted(email), quoted(password))
}

// signIn returns a caller with a new session.
func (w *world) signIn(t testing.TB, email string) *caller {
	t.Helper()
	a := w.anonymous().do(t, "POST /auths/login", credentials(email, password)).expect(t, 200)
	return &caller{world: w, tenant: w.name, token: a.session(t), id: a.text("/user/id"), email: email}
}

// user creates a user and returns the id. If department is empty, the user has no department.
func (w *world) user(t testing.TB, name, department string) string {
	t.Helper()
	body := fmt.Sprintf(`{"email":%s,"name":%s}`, quoted(address(name)), quoted("User "+name))
	if department != "" {
		body = strings.TrimSuffix(body, "}") + `,"department":` + quoted(department) + "}"
	}
	return w.owner.do(t, "POST /users", body).expect(t, 201).text("/id")
}

// member creates a user with a password and signs the user in. It is cheaper than guest, which sends
// a mail.
func (w *world) member(t testing.TB, name, department string) *caller {
	t.Helper()
	if w.program.operator == nil {
		return w.guest(t, name, department)
	}
	id := w.user(t, name, department)
	invited := w.program.operator.of(w).do(t, "POST /users/"+id+"/invitations", `{"delivery":"return"}`).expect(t, 201)
	return w.accept(t, address(name), id, invited.text("/token"))
}

// role creates a role with the permissions and returns its id.
func (w *world) role(t testing.TB, name string, permissions ...string) string {
	t.Helper()
	return w.owner.do(t, "POST /roles", roleBody(name, permissions, nil)).expect(t, 201).text("/id")
}

func roleBody(name string, permissions, grants []string) string {
	list := func(texts []string) string {
		parts := make([]string, len(texts))
		for i, text := range texts {
			parts[i] = quoted(text)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return fmt.Sprintf(`{"name":%s,"permissions":%s,"grants":%s}`, quoted(name), list(permissions), list(grants))
}

// assign assigns a role to a user. body is the body of the request, such as that of within. If
// body is empty, the role applies to the whole tenant.
func (w *world) assign(t testing.TB, user, role, body string) {
	t.Helper()
	if a := w.owner.do(t, "PUT /users/"+user+"/roles/"+role, body); a.status != 200 && a.status != 201 {
		t.Fatalf("the role was not assigned: %d %s", a.status, a.body)
	}
}

// endSoon calls put with a time that is about to come, and returns this time. put sends requests with the
// time as their expiresAt. On a slow machine, the time can be over when a request arrives, which is then
// refused. Then put is called with a later time.
func endSoon(t testing.TB, put func(end string) (last *answer)) time.Time {
	t.Helper()
	for soon := 2 * time.Second; ; soon *= 2 {
		end := time.Now().Add(soon).UTC().Truncate(time.Microsecond)
		a := put(end.Format("2006-01-02T15:04:05.000000Z"))
		if a.status == http.StatusOK || a.status == http.StatusCreated {
			return end
		}
		if !slices.Equal(a.faults(), []string{"/expiresAt past"}) || soon > patience.Limit {
			t.Fatalf("%s answered %d: %s", a.line, a.status, a.body)
		}
	}
}

// within returns the body that assigns a role for the users of one department.
func within(department string) string {
	return `{"reach":{"departments":[` + quoted(department) + `]}}`
}

// builtIn returns the id of the built-in role with the key.
func (w *world) builtIn(t testing.TB, key string) string {
	t.Helper()
	return w.owner.do(t, "GET /roles?key="+key, "").expect(t, 200).text("/items/0/id")
}

// holder creates a user in the department, assigns a new role with the permissions, and signs
// the user in. The role applies to the users of the department reach, or to the whole tenant
// if reach is empty.
func (w *world) holder(t testing.TB, name, department, reach string, permissions ...string) *caller {
	t.Helper()
	c := w.member(t, name, department)
	body := ""
	if reach != "" {
		body = within(reach)
	}
	w.assign(t, c.id, w.role(t, "Role of "+name, permissions...), body)
	return c
}
