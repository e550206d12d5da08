package deploy

import (
	"net/http"
	"path/filepath"
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
	for i := range p.nodes {
		p.nodes[i] = startNode(t, file, "https://"+host)
	}
	return p
}

func (p *proxied) test(t *testing.T) {
	t.Helper()
	testService(t, clientTo(t, "127.0.0.1:"+p.secure, p.cert), "https://"+host)
}

// testRedirect checks that plain http is redirected to https.
func (p *proxied) testRedirect(t *testing.T) {
	t.Helper()
	response, _ := send(t, clientTo(t, "127.0.0.1:"+p.plain, p.cert), http.MethodGet, "http://"+host+"/users?limit=1", nil, nil)
	if location := response.Header.Get("Location"); response.StatusCode != http.StatusMovedPermanently && response.StatusCode != http.StatusPermanentRedirect || !strings.HasPrefix(location, "https://"+host) {
		t.Errorf("plain http got %d to %q", response.StatusCode, location)
	}
}

func TestNginx(t *testing.T) {
	nginx := need(t, "nginx")
	p := newProxied(t)
	config := replaceAll(t, read(t, "deploy/proxy/nginx.conf"),
		"127.0.0.1:8081", p.nodes[0], "127.0.0.1:8082", p.nodes[1],
		"listen 80;", "listen 127.0.0.1:"+p.plain+";", "listen 443 ssl", "listen 127.0.0.1:"+p.secure+" ssl",
		"/etc/nginx/id.example.com.pem", filepath.Join(p.folder, "cert.pem"), "/etc/nginx/id.example.com.key", p.key,
		"worker_processes auto;", "user root;\nworker_processes 1;", // another user cannot reach the folder of the test
		"http {", "http {\n    access_log off;\n    client_body_temp_path "+p.folder+"/body;\n    proxy_temp_path "+p.folder+"/proxy;\n    fastcgi_temp_path "+p.folder+"/f;\n    uwsgi_temp_path "+p.folder+"/u;\n    scgi_temp_path "+p.folder+"/s;")
	file := write(t, p.folder, "nginx.conf", config)
	start(t, nil, nginx, "-c", file, "-e", "stderr", "-g", "daemon off; pid "+p.folder+"/pid;")
	p.test(t)
	p.testRedirect(t)
}

func TestHAProxy(t *testing.T) {
	haproxy := need(t, "haproxy")
	p := newProxied(t)
	file := write(t, p.folder, "haproxy.cfg", replaceAll(t, read(t, "deploy/proxy/haproxy.cfg"),
		"127.0.0.1:8081", p.nodes[0], "127.0.0.1:8082", p.nodes[1],
		"bind :80", "bind 127.0.0.1:"+p.plain, "bind :443", "bind 127.0.0.1:"+p.secure,
		"/etc/haproxy/id.example.com.pem", filepath.Join(p.folder, "cert.pem")))
	output(t, haproxy, "-c", "-f", file)
	start(t, nil, haproxy, "-db", "-f", file)
	p.test(t)
	p.testRedirect(t)
}

func TestCaddy(t *testing.T) {
	caddy := need(t, "caddy")
	p := newProxied(t)
	file := write(t, p.folder, "Caddyfile", replaceAll(t, read(t, "deploy/proxy/Caddyfile"),
		"127.0.0.1:8081", p.nodes[0], "127.0.0.1:8082", p.nodes[1],
		"{\n\tservers {", "{\n\tadmin off\n\thttp_port "+p.plain+"\n\thttps_port "+p.secure+"\n\tservers {",
		"/etc/caddy/id.example.com.pem", filepath.Join(p.folder, "cert.pem"), "/etc/caddy/id.example.com.key", p.key))
	home := "HOME=" + p.folder
	start(t, []string{home, "XDG_DATA_HOME=" + p.folder, "XDG_CONFIG_HOME=" + p.folder}, caddy, "run", "--adapter", "caddyfile", "--config", file)
	p.test(t)
	p.testRedirect(t)
}

// Debian has no package of Traefik, so the test only checks that its files are YAML.
func TestTraefik(t *testing.T) {
	for _, name := range []string{"traefik.yaml", "traefik-routes.yaml"} {
		var content map[string]any
		if err := yaml.UnmarshalStrict([]byte(read(t, "deploy/proxy/"+name)), &content); err != nil || len(content) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Skip("NOT TESTED: Traefik is not in Debian, so its example was only parsed")
}
