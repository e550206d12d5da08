package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

// hookGuide is the guide with the configuration that these tests run.
const hookGuide = "../../docs/guides/proxy-hook.md"

// nginx is a running nginx with the configuration of the guide.
type nginx struct {
	address string
	client  http.Client
}

// startNginx starts nginx with the configuration of the guide, on unused ports. nginx forwards
// to the program at the address and checks permissions in the tenant.
func startNginx(t *testing.T, program, tenant string) *nginx {
	t.Helper()
	binary := tool(t, "nginx")
	n := &nginx{address: freeAddress(t), client: http.Client{Timeout: patience.Limit}}
	folder := t.TempDir()
	written := strings.NewReplacer(
		"127.0.0.1:8080", program, "127.0.0.1:8090", n.address, "127.0.0.1:8091", freeAddress(t), "x-tenant-schema demo;", "x-tenant-schema "+tenant+";",
		"http {\n", "http {\n  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n",
	).Replace(guideConfiguration(t))
	if err := os.WriteFile(filepath.Join(folder, "nginx.conf"), []byte(written), 0o600); err != nil {
		t.Fatal(err)
	}
	startProxy(t, n.address, binary, "-p", folder, "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off; master_process off;")
	return n
}

// guideConfiguration returns the content of nginx.conf as the guide shows it.
func guideConfiguration(t *testing.T) string {
	t.Helper()
	guide, err := os.ReadFile(hookGuide)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begun := bytes.Cut(guide, []byte("cat > nginx.conf <<'END'\n"))
	configuration, _, ended := bytes.Cut(rest, []byte("\nEND\n"))
	if !begun || !ended {
		t.Fatal("the guide shows no nginx.conf")
	}
	return string(configuration)
}

// send sends a request through nginx and returns the status and the body.
func (n *nginx) send(t *testing.T, token, line, body string, header ...string) (int, string) {
	t.Helper()
	method, path, _ := strings.Cut(line, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Cookie", "session="+token)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	response, err := n.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

func TestNginxChecksBeforeItForwards(t *testing.T) {
	t.Parallel()
	tool(t, "nginx")
	p := serve(t, build(t), filepath.Join(t.TempDir(), "rolecall.db"), "--trusted-proxies", "127.0.0.1")
	w := newWorld(t, p)
	n := startNginx(t, p.Address, w.name)
	const approve = "shop/invoices:approve"
	clerk := w.holder(t, "clerk", "", "", approve)
	scoped := w.holder(t, "scoped", "Sales", "Sales", approve)
	reader := w.holder(t, "reader", "", "", "shop/invoices:read", "users:read")
	stranger := newWorld(t, p).owner

	passes := func(who, token, id, line, body string, header ...string) {
		t.Helper()
		if status, got := n.send(t, token, line, body, header...); status != http.StatusOK || got != "invoices for "+id+"\n" {
			t.Errorf("%s: %d %q", who, status, got)
		}
	}
	stops := func(who, token string, want int, header ...string) {
		t.Helper()
		if status, got := n.send(t, token, "GET /invoices/", "", header...); status != want || strings.Contains(got, "invoices for") {
			t.Errorf("%s: %d %q, want %d", who, status, got, want)
		}
	}
	passes("who may", clerk.token, clerk.id, "GET /invoices/", "")
	passes("who holds everything", w.owner.token, w.owner.id, "GET /invoices/2026?page=2", "")
	passes("who says to be another", clerk.token, clerk.id, "GET /invoices/", "", "x-auth-user: "+w.owner.id)
	passes("who names another tenant", clerk.token, clerk.id, "GET /invoices/", "", "x-tenant-schema: other")
	passes("who wants a page", clerk.token, clerk.id, "GET /invoices/", "", "accept: text/html", `if-none-match: "x"`, "range: bytes=0-1")
	passes("who sends a form", clerk.token, clerk.id, "POST /invoices/", strings.Repeat("a=b&", 50_000), "content-type: application/x-www-form-urlencoded")
	stops("nobody", "", 401)
	stops("nobody who says to be somebody", "", 401, "x-auth-user: "+clerk.id)
	stops("who made the session up", strings.Repeat("A", len(clerk.token)), 401)
	stops("who is of another tenant", stranger.token, 401)
	stops("who may something else", reader.token, 403)
	stops("who may only in a department", scoped.token, 403)
	if status, _ := n.send(t, clerk.token, "GET /rolecall", ""); status != http.StatusNotFound {
		t.Errorf("the hook is open to everybody: %d", status)
	}

	t.Run("sign-in through nginx", func(t *testing.T) {
		status, got := n.send(t, "", "POST /auths/login", credentials(clerk.email, password), "content-type: application/json", "x-tenant-schema: "+w.name)
		if status != http.StatusOK || !strings.Contains(got, clerk.id) {
			t.Errorf("%d %s", status, got)
		}
	})
	w.owner.do(t, "POST /users/"+clerk.id+"/suspend", "").expect(t, 200)
	stops("who was suspended just now", clerk.token, 401)
	n = startNginx(t, freeAddress(t), w.name)
	stops("who may, while the service is away", w.owner.token, 500)
}
