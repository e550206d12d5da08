package deploy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// composeService has the members of a service that the test uses.
type composeService struct {
	Command     []string
	Environment map[string]string
	Image       string
	Networks    []string
	Logging     struct{ Options map[string]string }
	ReadOnly    bool     `json:"read_only"`
	CapDrop     []string `json:"cap_drop"`
	User        string
}

// TestCompose starts the services of the compose file one by one without Docker: PostgreSQL with the
// script that creates the database, the migration, two nodes, a mail catcher, and Caddy. The names of
// services and the ports are replaced by addresses of this machine.
func TestCompose(t *testing.T) {
	caddy, psql := need(t, "caddy"), need(t, "psql")
	admin := os.Getenv("ROLECALL_TEST_POSTGRES")
	if admin == "" {
		notTested(t, "PostgreSQL does not run: use make test-deploy")
	}
	t.Log("NOT TESTED: the images of PostgreSQL, Caddy and Mailpit. Programs of this machine and an SMTP server of the test take their places.")
	var file struct{ Services map[string]composeService }
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(read(t, "deploy/compose.yaml"), "${SITE_HOST:-localhost}", "localhost")), &file); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	output(t, "cp", filepath.Join(root, "deploy/compose/secrets.sh"), folder)
	if os.Getuid() != 0 {
		notTested(t, "secrets.sh changes the owner of files, so it needs root")
	}
	output(t, "sh", filepath.Join(folder, "secrets.sh"))
	secrets := filepath.Join(folder, "secrets")
	checkSecretsStay(t, folder)
	checkComposeServices(t, file.Services)
	server, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	createDatabase(t, psql, server, secrets)
	mails := catchMail(t)
	env := func(service, listen, metrics, operators string) (env []string) {
		replace := strings.NewReplacer("/run/secrets", secrets, "mail:1025", mails.address, "172.30.0.0/24", "127.0.0.0/8")
		for name, value := range file.Services[service].Environment {
			env = append(env, name+"="+replace.Replace(value))
		}
		return append(env, "ROLECALL_LISTEN="+listen, "ROLECALL_METRICS_LISTEN="+metrics, "ROLECALL_OPERATOR_LISTEN="+operators)
	}
	migrate := exec.Command(program, file.Services["migrate"].Command...)
	migrate.Env = append(os.Environ(), env("migrate", "", "", "")...)
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v\n%s", err, out)
	}
	flags := []string{"--database", strings.TrimSpace(readFile(t, filepath.Join(secrets, "database-url"))), "--secret-key-file", filepath.Join(secrets, "keys")}
	createTenant(t, flags...)
	operators := map[string]string{"authorization": "Bearer " + createOperatorKey(t, flags...)}
	nodes := map[string]string{}
	for _, name := range []string{"node1", "node2"} {
		if s := file.Services[name]; !s.ReadOnly || len(s.CapDrop) != 1 || s.User != "65532:65532" {
			t.Errorf("%s can do more than it needs: %+v", name, s)
		}
		nodes[name] = "127.0.0.1:" + freePort(t)
		apart := "127.0.0.1:" + freePort(t)
		start(t, env(name, nodes[name], "127.0.0.1:"+freePort(t), apart), program, "serve")
		awaitOK(t, http.DefaultClient, "http://"+nodes[name]+"/readyz")
		for address, want := range map[string]int{nodes[name]: http.StatusNotFound, apart: http.StatusOK} {
			if response, body := send(t, http.DefaultClient, http.MethodGet, "http://"+address+"/operator/tenants", nil, operators); response.StatusCode != want {
				t.Errorf("%s answers an operator key with %d, want %d: %s", name, response.StatusCode, want, body)
			}
		}
	}
	port, plain := freePort(t), freePort(t)
	config := write(t, folder, "Caddyfile", "{\n\tadmin off\n\tskip_install_trust\n\thttp_port "+plain+"\n\thttps_port "+port+"\n}\n"+
		replaceAll(t, caddyfile(t, caddy, "deploy/compose/Caddyfile"), "{$SITE_HOST} {", "localhost {", "node1:8080", nodes["node1"], "node2:8080", nodes["node2"]))
	start(t, []string{"HOME=" + folder, "XDG_DATA_HOME=" + folder, "XDG_CONFIG_HOME=" + folder}, caddy, "run", "--adapter", "caddyfile", "--config", config)
	authority := filepath.Join(folder, "caddy/pki/authorities/local/root.crt")
	await(t, "the authority of Caddy", func(context.Context) error { _, err := os.Stat(authority); return err })
	client := clientTo(t, "127.0.0.1:"+port, readFile(t, authority))
	testService(t, client, "https://localhost")
	if response, body := send(t, client, http.MethodGet, "https://localhost/operator/tenants", nil, operators); response.StatusCode != http.StatusForbidden {
		t.Errorf("the proxy answers an operator key with %d, want 403: %s", response.StatusCode, body)
	}
	testMail(t, client, mails)
}

// checkSecretsStay runs secrets.sh again, which must not change the secrets.
func checkSecretsStay(t *testing.T, folder string) {
	t.Helper()
	keys := readFile(t, filepath.Join(folder, "secrets/keys"))
	output(t, "sh", filepath.Join(folder, "secrets.sh"))
	if readFile(t, filepath.Join(folder, "secrets/keys")) != keys {
		t.Error("the second run of secrets.sh has replaced the keys")
	}
}

// checkComposeServices checks that only the proxy shares the network that the nodes trust, that no service
// is in the network of programs with operator keys, that images of versions differ, and that logs are
// limited.
func checkComposeServices(t *testing.T, services map[string]composeService) {
	t.Helper()
	for name, service := range services {
		isNode := strings.HasPrefix(name, "node")
		if isTrusted := slices.Contains(service.Networks, "front"); isTrusted != (isNode || name == "proxy") {
			t.Errorf("%s is in the networks %v", name, service.Networks)
		}
		if slices.Contains(service.Networks, "operators") != isNode {
			t.Errorf("%s is in the networks %v, and only nodes must be in operators", name, service.Networks)
		}
		if (isNode || name == "migrate") && service.Image != "rolecall:${VERSION:-latest}" {
			t.Errorf("the image of %s is %q", name, service.Image)
		}
		if service.Logging.Options["max-size"] == "" {
			t.Errorf("the log of %s has no limit", name)
		}
		if isNode && service.Environment["ROLECALL_NO_MIGRATE"] != "true" {
			t.Errorf("%s migrates, so docs/deploy.md need not run the service migrate", name)
		}
	}
	page := read(t, "docs/deploy.md")
	migrate, replace := strings.Index(page, "docker compose run --rm migrate\n"), strings.Index(page, "docker compose up -d --no-deps node1\n")
	if migrate < 0 || replace < migrate {
		t.Error("the upgrade in docs/deploy.md does not migrate before it replaces a node")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// createDatabase runs the script of the image of PostgreSQL, and lets the secret database-url name the
// server of the test.
func createDatabase(t *testing.T, psql string, server *url.URL, secrets string) {
	t.Helper()
	password, _ := server.User.Password()
	connect := append(os.Environ(), "PGHOST="+server.Hostname(), "PGPORT="+server.Port(), "PGPASSWORD="+password, "POSTGRES_USER="+server.User.Username())
	if host := server.Query().Get("host"); host != "" {
		connect = append(connect, "PGHOST="+host, "PGPORT="+server.Query().Get("port"))
	}
	script := exec.Command("sh", write(t, filepath.Dir(secrets), "create-database.sh", replaceAll(t, read(t, "deploy/compose/create-database.sh"), "/run/secrets", secrets)))
	script.Env = connect
	if out, err := script.CombinedOutput(); err != nil {
		t.Fatalf("create-database.sh: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		drop := exec.Command(psql, "-U", server.User.Username(), "-d", "postgres", "-c", "drop database rolecall with (force)", "-c", "drop role rolecall")
		drop.Env = connect
		if out, err := drop.CombinedOutput(); err != nil {
			t.Errorf("drop the database: %v\n%s", err, out)
		}
	})
	file := filepath.Join(secrets, "database-url")
	own, err := url.Parse(strings.TrimSpace(readFile(t, file)))
	if err != nil || own.Host != "database:5432" {
		t.Fatalf("the secret database-url is %q: %v", own, err)
	}
	own.Host, own.RawQuery = server.Host, server.RawQuery
	if err := os.WriteFile(file, []byte(own.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mailCatcher is an SMTP server that accepts every mail.
type mailCatcher struct {
	address  string
	received chan string // the data of mails
}

func catchMail(t *testing.T) *mailCatcher {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	catcher := &mailCatcher{listener.Addr().String(), make(chan string, 10)}
	done := make(chan error, 1)
	go func() { done <- catcher.serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(listener.Close(), <-done); err != nil {
			t.Error(err)
		}
	})
	return catcher
}

func (c *mailCatcher) serve(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := errors.Join(c.session(conn), conn.Close()); err != nil {
			return err
		}
	}
}

// session answers the commands of one connection.
func (c *mailCatcher) session(conn net.Conn) error {
	lines := textproto.NewReader(bufio.NewReader(conn))
	if _, err := fmt.Fprint(conn, "220 catcher\r\n"); err != nil {
		return err
	}
	for {
		line, err := lines.ReadLine()
		if err != nil {
			return nil // the client has closed the connection
		}
		answer := "250 ok"
		switch command := strings.ToUpper(line); {
		case strings.HasPrefix(command, "DATA"):
			if _, err := fmt.Fprint(conn, "354 go on\r\n"); err != nil {
				return err
			}
			data, err := lines.ReadDotBytes()
			if err != nil {
				return err
			}
			c.received <- string(data)
		case strings.HasPrefix(command, "QUIT"):
			_, err := fmt.Fprint(conn, "221 bye\r\n")
			return err
		}
		if _, err := fmt.Fprint(conn, answer+"\r\n"); err != nil {
			return err
		}
	}
}

// testMail requests a link for a new password, and waits until the mail catcher has it.
func testMail(t *testing.T, client *http.Client, mails *mailCatcher) {
	t.Helper()
	send(t, client, http.MethodPost, "https://localhost/auths/password-resets", []byte(`{"email":"`+ownerEmail+`"}`), map[string]string{"x-tenant-schema": "acme", "content-type": "application/json"})
	await(t, "the mail with the link", func(context.Context) error {
		select {
		case mail := <-mails.received:
			if !strings.Contains(mail, "https://localhost/console/acme/") && !strings.Contains(mail, "https://localhost/con=") {
				return errors.New("the mail has no link to the public URL: " + mail)
			}
			return nil
		default:
			return errors.New("no mail")
		}
	})
}
