package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const host = "id.example.com"

// proxied is a folder with the certificate of the host, two nodes on one SQLite database, and free ports
// for a proxy.
type proxied struct {
	folder, cert, key string
	nodes             [2]string
	logs              [2]*syncBuffer // of the nodes
	operatorKey       string
	plain, secure     string // ports
}

func newProxied(t *testing.T) proxied {
	t.Helper()
	p := proxied{folder: t.TempDir(), plain: freePort(t), secure: freePort(t)}
	cert, key := certificate(t, host)
	p.cert = cert
	write(t, p.folder, "cert.pem", cert+key)
	p.key = write(t, p.folder, "key.pem", key)
	file := database(t)
	p.operatorKey = createOperatorKey(t, "--database", file)
	for i := range p.nodes {
		p.nodes[i], p.logs[i] = startNode(t, file, "https://"+host)
	}
	return p
}

func (p *proxied) test(t *testing.T) {
	t.Helper()
	client := clientTo(t, "127.0.0.1:"+p.secure, p.cert)
	testService(t, client, "https://"+host)
	p.testOperators(t, client)
	p.testRequestID(t, client)
}

// testOperators checks that the proxy refuses the operations for operators, which a node accepts with the
// same key.
func (p *proxied) testOperators(t *testing.T, client *http.Client) {
	t.Helper()
	header := map[string]string{"authorization": "Bearer " + p.operatorKey}
	if response, body := send(t, http.DefaultClient, http.MethodGet, "http://"+p.nodes[0]+"/operator/tenants", nil, header); response.StatusCode != http.StatusOK {
		t.Fatalf("the node refuses the operator key: %d %s", response.StatusCode, body)
	}
	for _, path := range []string{"/operator/tenants", "/operator/tenants/acme", "/%6fperator/tenants", "/operator%2Ftenants", "/./operator/tenants", "//operator/tenants"} {
		response, body := send(t, client, http.MethodGet, "https://"+host+path, nil, header)
		if response.StatusCode < http.StatusMultipleChoices || strings.Contains(body, "acme") || path == "/operator/tenants" && response.StatusCode != http.StatusForbidden {
			t.Errorf("%s with an operator key got %d %s", path, response.StatusCode, body)
		}
	}
}

// testRequestID checks that clients cannot choose the request ID in the logs of the nodes.
func (p *proxied) testRequestID(t *testing.T, client *http.Client) {
	t.Helper()
	response, _ := send(t, client, http.MethodGet, "https://"+host+"/auths/session", nil, map[string]string{"x-tenant-schema": "acme", "x-request-id": "chosen-by-client"})
	id, logs := response.Header.Get("X-Request-Id"), ""
	await(t, "the line of the request in the log", func(context.Context) error {
		if logs = p.logs[0].String() + p.logs[1].String(); id == "" || !strings.Contains(logs, `"request_id":"`+id+`"`) {
			return fmt.Errorf("no line has the request ID %q of the response", id)
		}
		return nil
	})
	if strings.Contains(logs, "chosen-by-client") {
		t.Error("the log of the nodes has the request ID that the client sent")
	}
}

// testRedirect checks that plain http is redirected to https.
func (p *proxied) testRedirect(t *testing.T) {
	t.Helper()
	response, _ := send(t, clientTo(t, "127.0.0.1:"+p.plain, p.cert), http.MethodGet, "http://"+host+"/users?limit=1", nil, nil)
	if location := response.Header.Get("Location"); response.StatusCode != http.StatusMovedPermanently && response.StatusCode != http.StatusPermanentRedirect || !strings.HasPrefix(location, "https://"+host) {
		t.Errorf("plain http got %d to %q", response.StatusCode, location)
	}
}

var (
	upstream            = regexp.MustCompile(`\b(?:[\d.]+|node\d):(\d+)\b`)
	imageOperatorListen = regexp.MustCompile(`ROLECALL_OPERATOR_LISTEN=:(\d+)`)
	operatorListen      = regexp.MustCompile(`operator-listen:? [\w.]*:(\d+)`)
)

// operatorPorts returns the ports for operator keys in the files of deploy and in the documents, with the
// file of each.
func operatorPorts(t *testing.T) map[string]string {
	t.Helper()
	ports := map[string]string{}
	var compose struct{ Services map[string]composeService }
	var values struct{ Operator struct{ Port int } }
	if err := errors.Join(yaml.Unmarshal([]byte(read(t, "deploy/compose.yaml")), &compose), yaml.Unmarshal([]byte(read(t, "deploy/helm/rolecall/values.yaml")), &values)); err != nil {
		t.Fatal(err)
	}
	ports[strings.TrimPrefix(compose.Services["node1"].Environment["ROLECALL_OPERATOR_LISTEN"], ":")] = "deploy/compose.yaml"
	image := imageOperatorListen.FindStringSubmatch(read(t, "deploy/Dockerfile"))
	if image == nil || strings.Contains(read(t, "deploy/Dockerfile"), "EXPOSE "+image[1]) {
		t.Errorf("the image serves operators on %v", image)
	} else {
		ports[image[1]] = "deploy/Dockerfile"
	}
	ports[fmt.Sprint(values.Operator.Port)] = "deploy/helm/rolecall/values.yaml"
	streams := listenStream.FindAllStringSubmatch(read(t, "deploy/systemd/rolecall.socket"), -1)
	_, port, _ := strings.Cut(streams[len(streams)-1][1], ":")
	ports[port] = "deploy/systemd/rolecall.socket"
	for _, page := range []string{"docs/deploy.md", "docs/operations.md"} {
		for _, found := range operatorListen.FindAllStringSubmatch(read(t, page), -1) {
			ports[found[1]] = page
		}
	}
	return ports
}

// TestProxiesDoNotReachOperators checks that no example of a proxy sends requests to a port for operator
// keys, also if an operator combines it with the settings of another example.
func TestProxiesDoNotReachOperators(t *testing.T) {
	operators := operatorPorts(t)
	for _, name := range []string{"proxy/nginx.conf", "proxy/haproxy.cfg", "proxy/Caddyfile", "proxy/traefik-routes.yaml", "compose/Caddyfile"} {
		upstreams := upstream.FindAllStringSubmatch(read(t, "deploy/"+name), -1)
		if len(upstreams) < 2 {
			t.Errorf("%s has the upstreams %v", name, upstreams)
		}
		for _, found := range upstreams {
			if file, isOperator := operators[found[1]]; isOperator {
				t.Errorf("%s sends requests to %s, which is a port for operator keys in %s", name, found[0], file)
			}
		}
	}
}

func TestNginx(t *testing.T) {
	nginx := need(t, "nginx")
	p := newProxied(t)
	p.startNginx(t, nginx)
	p.test(t)
	p.testRedirect(t)
	p.testSecrets(t, func() string { return readFile(t, filepath.Join(p.folder, "access.log")) })
}

func (p *proxied) startNginx(t *testing.T, nginx string) {
	t.Helper()
	config := replaceAll(t, read(t, "deploy/proxy/nginx.conf"),
		"127.0.0.1:8091", p.nodes[0], "127.0.0.1:8092", p.nodes[1],
		"listen 80;", "listen 127.0.0.1:"+p.plain+";", "listen 443 ssl;\n        http2 on;", listenTLS(t, nginx, p.secure),
		"/var/log/nginx/access.log", filepath.Join(p.folder, "access.log"), "error_log /var/log/nginx/error.log crit;", "",
		"/etc/nginx/id.example.com.pem", filepath.Join(p.folder, "cert.pem"), "/etc/nginx/id.example.com.key", p.key,
		"worker_processes auto;", "user root;\nworker_processes 1;", // another user cannot reach the folder of the test
		"http {", "http {\n    client_body_temp_path "+p.folder+"/body;\n    proxy_temp_path "+p.folder+"/proxy;\n    fastcgi_temp_path "+p.folder+"/f;\n    uwsgi_temp_path "+p.folder+"/u;\n    scgi_temp_path "+p.folder+"/s;")
	file := write(t, p.folder, "nginx.conf", config)
	start(t, nil, nginx, "-c", file, "-e", "stderr", "-g", "daemon off; pid "+p.folder+"/pid;")
}

// listenTLS returns the directives of the example that listen with HTTP/2, in the form of this nginx: the
// directive http2 exists since 1.25.1.
func listenTLS(t *testing.T, nginx, port string) string {
	t.Helper()
	out, err := exec.Command(nginx, "-v").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(out), "nginx version: nginx/%d.%d", &major, &minor); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if major == 1 && minor < 26 {
		t.Logf("NOT TESTED: the directive http2, which nginx %d.%d does not have", major, minor)
		return "listen 127.0.0.1:" + port + " ssl http2;"
	}
	return "listen 127.0.0.1:" + port + " ssl;\n        http2 on;"
}

// testSecrets checks that the access log has the paths of requests, without tickets, codes and ID tokens.
func (p *proxied) testSecrets(t *testing.T, log func() string) {
	t.Helper()
	client := clientTo(t, "127.0.0.1:"+p.secure, p.cert)
	for _, path := range []string{"/auths/oidc/begin?ticket=", "/auths/oidc/callback/x?code=", "/console/acme/signed-out?id_token_hint="} {
		send(t, client, http.MethodGet, "https://"+host+path+"confidential", nil, map[string]string{"referer": "https://" + host + "/?code=confidential"})
		path, _, _ := strings.Cut(path, "?")
		await(t, "the path "+path+" in the access log", func(context.Context) error {
			if !strings.Contains(log(), path) {
				return errors.New("no line has it")
			}
			return nil
		})
	}
	if strings.Contains(log(), "confidential") {
		t.Errorf("the access log has a ticket, a code or an ID token:\n%s", log())
	}
}

func TestHAProxy(t *testing.T) {
	haproxy := need(t, "haproxy")
	p := newProxied(t)
	log := p.startHAProxy(t, haproxy)
	p.test(t)
	p.testRedirect(t)
	await(t, "the log of haproxy", func(context.Context) error {
		if !strings.Contains(log.String(), "/auths/session") {
			return errors.New("no line of a request")
		}
		return nil
	})
	p.testSecrets(t, log.String)
}

func (p *proxied) startHAProxy(t *testing.T, haproxy string) *syncBuffer {
	t.Helper()
	file := write(t, p.folder, "haproxy.cfg", replaceAll(t, read(t, "deploy/proxy/haproxy.cfg"),
		"127.0.0.1:8091", p.nodes[0], "127.0.0.1:8092", p.nodes[1],
		"log /dev/log local0", "log stdout format raw local0", "bind :80", "bind 127.0.0.1:"+p.plain, "bind :443", "bind 127.0.0.1:"+p.secure,
		"/etc/haproxy/id.example.com.pem", filepath.Join(p.folder, "cert.pem")))
	output(t, haproxy, "-c", "-f", file)
	_, log := start(t, nil, haproxy, "-db", "-f", file)
	return log
}

func TestCaddy(t *testing.T) {
	caddy := need(t, "caddy")
	p := newProxied(t)
	p.startCaddy(t, caddy)
	p.test(t)
	p.testRedirect(t)
}

// caddyfile returns an example for the version of Caddy. Before version 2.6.4, request_buffers had another name.
func caddyfile(t *testing.T, caddy, name string) string {
	t.Helper()
	config := read(t, name)
	if version := output(t, caddy, "version"); strings.Contains(version, "2.6.2") {
		return replaceAll(t, config, "request_buffers 128KB", "buffer_requests")
	}
	return config
}

func (p *proxied) startCaddy(t *testing.T, caddy string) {
	t.Helper()
	file := write(t, p.folder, "Caddyfile", replaceAll(t, caddyfile(t, caddy, "deploy/proxy/Caddyfile"),
		"127.0.0.1:8091", p.nodes[0], "127.0.0.1:8092", p.nodes[1],
		"{\n\tservers {", "{\n\tadmin off\n\thttp_port "+p.plain+"\n\thttps_port "+p.secure+"\n\tservers {",
		"/etc/caddy/id.example.com.pem", filepath.Join(p.folder, "cert.pem"), "/etc/caddy/id.example.com.key", p.key))
	home := "HOME=" + p.folder
	start(t, []string{home, "XDG_DATA_HOME=" + p.folder, "XDG_CONFIG_HOME=" + p.folder}, caddy, "run", "--adapter", "caddyfile", "--config", file)
}

// TestProxiesBufferRequests sends a part of a body, and then a whole request. A proxy that buffers sends only the whole
// request to a node.
func TestProxiesBufferRequests(t *testing.T) {
	for name, start := range map[string]func(*proxied, *testing.T, string){
		"nginx":   (*proxied).startNginx,
		"haproxy": func(p *proxied, t *testing.T, program string) { p.startHAProxy(t, program) },
		"caddy":   (*proxied).startCaddy,
	} {
		t.Run(name, func(t *testing.T) {
			program := need(t, name)
			p := proxied{folder: t.TempDir(), plain: freePort(t), secure: freePort(t)}
			cert, key := certificate(t, host)
			p.cert = cert
			write(t, p.folder, "cert.pem", cert+key)
			p.key = write(t, p.folder, "key.pem", key)
			reached := make(chan string, 10)
			for i := range p.nodes {
				node := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/readyz" {
						reached <- r.URL.Path
					}
				}))
				t.Cleanup(node.Close)
				p.nodes[i] = strings.TrimPrefix(node.URL, "http://")
			}
			start(&p, t, program)
			client := clientTo(t, "127.0.0.1:"+p.secure, p.cert)
			await(t, "the proxy", func(ctx context.Context) error {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/first", nil)
				if err != nil {
					return err
				}
				response, err := client.Do(request)
				if err != nil {
					return err
				}
				if response.StatusCode != http.StatusOK {
					err = fmt.Errorf("the proxy answers %d", response.StatusCode)
				}
				return errors.Join(err, response.Body.Close())
			})
			for len(reached) > 0 {
				<-reached
			}
			in, out := io.Pipe()
			answered := make(chan error, 1)
			go func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host+"/slow", in)
				if err != nil {
					answered <- err
					return
				}
				request.ContentLength = 2
				response, err := client.Do(request)
				if err == nil {
					err = response.Body.Close()
				}
				answered <- err
			}()
			if _, err := out.Write([]byte("{")); err != nil {
				t.Fatal(err)
			}
			for range 5 {
				send(t, client, http.MethodPost, "https://"+host+"/whole", []byte("{}"), nil)
				if path := <-reached; path != "/whole" {
					t.Errorf("a part of a body reached a node at %s", path)
				}
			}
			if _, err := out.Write([]byte("}")); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(out.Close(), <-answered); err != nil {
				t.Fatal(err)
			}
			if path := <-reached; path != "/slow" {
				t.Errorf("the whole body reached a node at %s", path)
			}
		})
	}
}

// Debian has no package of Traefik, so the test only checks that its files are YAML.
func TestTraefik(t *testing.T) {
	for _, part := range []string{"!PathPrefix(`/operator`)", `X-Request-Id: ""`} {
		if !strings.Contains(read(t, "deploy/proxy/traefik-routes.yaml"), part) {
			t.Errorf("the routes do not contain %s", part)
		}
	}
	for _, name := range []string{"traefik.yaml", "traefik-routes.yaml"} {
		var content map[string]any
		if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/proxy/"+name)), &content); err != nil || len(content) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Log("NOT TESTED: Traefik is not in Debian, so its example was only parsed")
}
