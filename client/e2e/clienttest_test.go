package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/client"
	"github.com/rolecall/rolecall/client/clienttest"
)

func start(t *testing.T) *clienttest.Server {
	t.Helper()
	server, err := clienttest.Start(clienttest.Options{Program: programFile(t), Flags: []string{"--metrics-listen", "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(server.Mailbox); !os.IsNotExist(err) {
			t.Errorf("the mailbox still exists: %v", err)
		}
	})
	return server
}

func TestTenantsOfTestsAreSeparate(t *testing.T) {
	server := start(t)
	one, other := server.Tenant(t), server.Tenant(t)
	user := one.User(t, clienttest.NewUser{Name: "Grace Hopper", Department: "Sales", Permissions: []string{"shop/invoices:approve"}, Reach: &client.Reach{Departments: []string{"Sales"}}})
	session, err := user.Client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if session.User.Name != "Grace Hopper" || !client.Can(&session, "shop/invoices:approve", "Sales") || client.Can(&session, "shop/invoices:approve", "Design") {
		t.Errorf("the session of the user is %+v", session)
	}
	if _, err := client.New(server.URL, one.Name, nil).Login(t.Context(), user.Email, clienttest.Password); err != nil {
		t.Error(err)
	}
	if _, err := other.Operator.User(t.Context(), user.ID); err == nil {
		t.Error("the user is in another tenant too")
	}
	for _, tenant := range []*clienttest.Tenant{one, other} {
		if session, err := tenant.Owner.Client.Session(t.Context()); err != nil || !client.Can(&session, "users:delete", "") {
			t.Errorf("the owner has %+v, %v", session, err)
		}
	}
}

func TestResetDeletesTenantsAndMails(t *testing.T) {
	server := start(t)
	tenant := server.Tenant(t)
	if err := os.MkdirAll(server.Mailbox, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(server.Mailbox, "mail.eml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := tenant.Owner.Client.Session(t.Context()); err == nil {
		t.Error("the tenant still exists")
	}
	if left, err := filepath.Glob(filepath.Join(server.Mailbox, "*.eml")); err != nil || len(left) > 0 {
		t.Errorf("mails %v, %v", left, err)
	}
	if _, err := server.Tenant(t).Owner.Client.Session(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	if _, err := clienttest.Start(clienttest.Options{Program: "no-such-program"}); err == nil {
		t.Error("a missing program starts")
	}
	_, err := clienttest.Start(clienttest.Options{Program: programFile(t), Flags: []string{"--public-url", "nonsense"}})
	if err == nil || !strings.Contains(err.Error(), "public-url") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheGuideToTestsRunsAsItIsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out the build of a test")
	}
	guide, err := os.ReadFile("../../docs/guides/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) != 2 {
		t.Fatalf("the guide has %d blocks of Go", len(blocks))
	}
	folder := application(t)
	for i, name := range []string{"shop.go", "shop_test.go"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(blocks[i][1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-count=1", ".")
	command.Dir = folder
	command.Env = append(os.Environ(), "ROLECALL_PROGRAM="+programFile(t))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
