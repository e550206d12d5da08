package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/client"
	"github.com/rolecall/rolecall/internal/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// folder is the directory of the built program. folder is empty until a test builds the
// program.
var folder string

// program returns the path of the program. The first test that calls it builds the program
// from this tree, unless it is built already. If TestMain built the program, go test would not notice changes of the
// program's sources, and would show cached results.
var program = sync.OnceValues(func() (file string, err error) {
	if folder, err = os.MkdirTemp("", "rolecall-client"); err != nil {
		return "", err
	}
	return process.TestProgram(context.Background(), filepath.Join(folder, "rolecall"))
})

// programFile is like program, and fails the test if the program does not build.
func programFile(t *testing.T) string {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// demo has the address of a running demo, and the credentials of the owner of its tenant.
type demo struct {
	Address, Tenant, Email, Password string

	folder string // with the database
}

// newDemo runs a demo until the test ends. The test runs in parallel with others, because it mostly
// waits for the demo.
func newDemo(t *testing.T, flags ...string) (d demo) {
	t.Helper()
	t.Parallel()
	command := exec.Command(programFile(t), append([]string{"serve", "--demo", "--json", "--listen", "127.0.0.1:0"}, flags...)...)
	command.Dir = t.TempDir() // for the database and the mail of the demo
	var log bytes.Buffer
	command.Stderr = &log
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(command.Process.Signal(os.Interrupt), command.Wait()); err != nil {
			t.Errorf("%v: %s", err, log.Bytes())
		}
	})
	if err := json.NewDecoder(stdout).Decode(&d); err != nil {
		t.Fatal(err)
	}
	d.folder = command.Dir
	return d
}

// command runs a command of the program on the database of the demo, and returns its output.
func (d demo) command(t *testing.T, input string, words ...string) []byte {
	t.Helper()
	command := exec.Command(programFile(t), append(words, "--database", "rolecall-data/demo.db")...)
	command.Dir, command.Stdin = d.folder, strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return output
}

// client returns a client without a session.
func (d demo) client() *client.Client {
	return client.New(d.Address+"/", d.Tenant, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
}

// signedIn returns a client of the owner of a demo that runs until the test ends.
func signedIn(t *testing.T) *client.Client { return newDemo(t).signedIn(t) }

// signedIn returns a client of the owner.
func (d demo) signedIn(t *testing.T) *client.Client {
	t.Helper()
	c := d.client()
	in, err := c.Login(t.Context(), d.Email, d.Password)
	if err != nil || in.User.Email != d.Email || !in.Session.ExpiresAt.After(time.Now()) {
		t.Fatalf("Login = %+v, %v", in, err)
	}
	if s, err := c.Confirm(t.Context(), d.Password, client.Proof{}); err != nil || s.ID != in.Session.ID || s.ConfirmedAt == nil {
		t.Fatalf("Confirm = %+v, %v", s, err)
	}
	return c
}

// is reports whether err is a Problem whose Code is code.
func is(err error, code string) bool {
	problem, ok := errors.AsType[*client.Problem](err)
	return ok && problem.Code == code
}

func TestUsersFromBeginningToEnd(t *testing.T) {
	c, ctx := signedIn(t), t.Context()
	department := "Sales"
	user, err := c.CreateUser(ctx, "key-1", client.NewUser{Email: "new@demo.example", Name: "New Person", Department: &department})
	if err != nil || user.ID == "" || user.ETag == "" || *user.Department != department {
		t.Fatalf("CreateUser = %+v, %v", user, err)
	}
	if again, err := c.CreateUser(ctx, "key-1", client.NewUser{Email: "new@demo.example", Name: "New Person", Department: &department}); err != nil || again.ID != user.ID {
		t.Errorf("the same again = %+v, %v; want %s", again, err, user.ID)
	}
	changed, err := c.UpdateUser(ctx, user.ID, user.ETag, client.Patch{"name": "Renamed Person", "department": nil})
	if err != nil || changed.Name != "Renamed Person" || changed.Department != nil || changed.ETag == user.ETag {
		t.Errorf("UpdateUser = %+v, %v", changed, err)
	}
	if _, err := c.UpdateUser(ctx, user.ID, user.ETag, client.Patch{"name": "Too late"}); !is(err, "precondition-failed") {
		t.Errorf("UpdateUser of an old version: %v", err)
	}
	if u, err := c.SuspendUser(ctx, user.ID, "on leave"); err != nil || u.Status != "suspended" {
		t.Errorf("SuspendUser = %+v, %v", u, err)
	}
	if u, err := c.ResumeUser(ctx, user.ID, ""); err != nil || u.Status != "pending" {
		t.Errorf("ResumeUser = %+v, %v", u, err)
	}
	if err := c.DeleteUser(ctx, user.ID); err != nil {
		t.Errorf("DeleteUser: %v", err)
	}
	if _, err := c.User(ctx, user.ID); !is(err, "not-found") {
		t.Errorf("User after DeleteUser: %v", err)
	}
}

func TestListsReadEveryPage(t *testing.T) {
	c, ctx := signedIn(t), t.Context()
	all, previous := 0, ""
	for user, err := range c.Users(ctx, client.UserFilter{Department: "Sales", Sort: "email", Limit: 7}) {
		if err != nil {
			t.Fatal(err)
		}
		if *user.Department != "Sales" || user.Email <= previous {
			t.Errorf("%s of %s after %s", user.Email, *user.Department, previous)
		}
		all, previous = all+1, user.Email
	}
	if all < 20 {
		t.Errorf("%d people in Sales", all)
	}
	for _, err := range c.Users(ctx, client.UserFilter{Role: "nonsense"}) {
		problem, ok := errors.AsType[*client.Problem](err)
		if !ok || problem.Status != http.StatusBadRequest || len(problem.Errors) != 1 || problem.Errors[0].Parameter != "role" {
			t.Errorf("a filter that is wrong: %v", err)
		}
	}
}

func TestRolesAndAssignments(t *testing.T) {
	c, ctx := signedIn(t), t.Context()
	role, err := c.CreateRole(ctx, "key-1", client.NewRole{Name: "Greeter", Permissions: []string{"users.name:read"}})
	if err != nil || role.ETag == "" {
		t.Fatalf("CreateRole = %+v, %v", role, err)
	}
	role, err = c.UpdateRole(ctx, role.ID, role.ETag, client.Patch{"description": "Says hello."})
	if err != nil || role.Description != "Says hello." {
		t.Errorf("UpdateRole = %+v, %v", role, err)
	}
	user, err := c.CreateUser(ctx, "key-2", client.NewUser{Email: "new@demo.example", Name: "New Person"})
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	for _, departments := range [][]string{nil, {}} {
		if _, err := c.AssignRole(ctx, user.ID, role.ID, &client.Reach{Departments: departments}, nil); !errors.Is(err, client.ErrEmptyReach) {
			t.Errorf("AssignRole with a reach of no departments: %v", err)
		}
	}
	if list, err := c.UserRoles(ctx, user.ID); err != nil || len(list) != 0 {
		t.Errorf("roles after refused reaches: %+v, %v", list, err)
	}
	a, err := c.AssignRole(ctx, user.ID, role.ID, &client.Reach{Departments: []string{"Sales"}}, &until)
	if err != nil || a.Role.ID != role.ID || a.Reach.Departments[0] != "Sales" || !a.ExpiresAt.Equal(until) {
		t.Errorf("AssignRole = %+v, %v", a, err)
	}
	if list, err := c.UserRoles(ctx, user.ID); err != nil || len(list) != 1 || list[0].Role.Name != "Greeter" {
		t.Errorf("UserRoles = %+v, %v", list, err)
	}
	if err := c.DeleteRole(ctx, role.ID, false); !is(err, "role-in-use") {
		t.Errorf("DeleteRole of a role in use: %v", err)
	}
	if err := c.UnassignRole(ctx, user.ID, role.ID); err != nil {
		t.Errorf("UnassignRole: %v", err)
	}
	if err := c.DeleteRole(ctx, role.ID, false); err != nil {
		t.Errorf("DeleteRole: %v", err)
	}
	for found, err := range c.Roles(ctx) {
		if err != nil || found.ID == role.ID {
			t.Errorf("Roles after DeleteRole: %+v, %v", found, err)
		}
	}
	if _, err := c.Role(ctx, role.ID); !is(err, "not-found") {
		t.Errorf("Role after DeleteRole: %v", err)
	}
}

func TestCheckPermissions(t *testing.T) {
	c, ctx := signedIn(t), t.Context()
	sales := "Sales"
	got, err := c.CheckPermissions(ctx, client.PermissionCheck{Permission: "shop/invoices:approve", Department: &sales}, client.PermissionCheck{Permission: "tenant:update"})
	if err != nil || !slices.Equal(got, []bool{true, true}) {
		t.Errorf("of an owner: %v, %v", got, err)
	}
	if got, err := c.CheckPermissions(ctx); err != nil || len(got) != 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
	if got, err := c.CheckPermissions(ctx, client.PermissionCheck{Permission: "shop/*:*"}); !is(err, "validation") {
		t.Errorf("of a wildcard: %v, %v", got, err)
	}
}

func TestSessions(t *testing.T) {
	d := newDemo(t)
	t.Run("cookie", func(t *testing.T) { testSessions(t, d.client(), d) })
	t.Run("bearer", func(t *testing.T) {
		c := client.NewBearer(d.Address, d.Tenant, nil)
		testSessions(t, c, d)
		if c.Token() != "" {
			t.Errorf("the token after Logout is %q", c.Token())
		}
	})
}

// A client with the token of a session sends the token that replaces it.
func TestTheTokenOfASessionIsReplaced(t *testing.T) {
	d, ctx := newDemo(t), t.Context()
	signedIn := client.NewBearer(d.Address, d.Tenant, nil)
	if _, err := signedIn.Login(ctx, d.Email, d.Password); err != nil {
		t.Fatal(err)
	}
	old := signedIn.Token()
	c := client.NewWithToken(d.Address, d.Tenant, old, nil)
	if _, err := c.Refresh(ctx); err != nil || c.Token() == old {
		t.Fatalf("Refresh: %v, and the token is replaced: %v", err, c.Token() != old)
	}
	if _, err := c.Session(ctx); err != nil {
		t.Errorf("Session after Refresh: %v", err)
	}
}

func testSessions(t *testing.T, c *client.Client, d demo) {
	ctx := t.Context()
	if _, err := c.Login(ctx, d.Email, d.Password); err != nil {
		t.Fatal(err)
	}
	before, err := c.Session(ctx)
	if err != nil || before.Tenant.Name != "demo" || len(before.Permissions) == 0 {
		t.Errorf("Session = %+v, %v", before, err)
	}
	if in, err := c.Refresh(ctx); err != nil || in.Session.ID != before.Session.ID {
		t.Errorf("Refresh = %+v, %v", in, err)
	}
	if _, err := c.Confirm(ctx, "not the password", client.Proof{}); !is(err, "validation") {
		t.Errorf("Confirm with a wrong password: %v", err)
	}
	if err := c.Logout(ctx); err != nil {
		t.Errorf("Logout: %v", err)
	}
	if _, err := c.Session(ctx); !is(err, "unauthenticated") {
		t.Errorf("Session after Logout: %v", err)
	}
	if _, err := c.Login(ctx, "ada.lovelace@demo.example", "not the password"); !is(err, "wrong-credentials") {
		t.Errorf("Login with a wrong password: %v", err)
	}
}
