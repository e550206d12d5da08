package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// smugglers are requests that can mislead a server about where the request's body ends. Each
// body contains a hidden request. The program must never serve the hidden request.
var smugglers = []struct {
	name string
	wrap func(s *smuggling, hidden string) string
}{
	{"a length and chunks, the length being right", func(s *smuggling, hidden string) string {
		return s.post("Transfer-Encoding: chunked", length("0\r\n\r\n"+hidden)) + "0\r\n\r\n" + hidden
	}},
	{"chunks and a length that is short", func(s *smuggling, hidden string) string {
		return s.post("Content-Length: 4", "Transfer-Encoding: chunked") + chunk(hidden) + "0\r\n\r\n"
	}},
	{"two lengths, the second being right", func(s *smuggling, hidden string) string { return s.post("Content-Length: 0", length(hidden)) + hidden }},
	{"two lengths, the first being right", func(s *smuggling, hidden string) string { return s.post(length(hidden), "Content-Length: 0") + hidden }},
	{"a list of lengths", func(s *smuggling, hidden string) string {
		return s.post("Content-Length: 0, "+length(hidden)[16:]) + hidden
	}},
	{"a length with a sign", func(s *smuggling, hidden string) string {
		return s.post("Content-Length: +"+length(hidden)[16:]) + hidden
	}},
	{"a negative length", func(s *smuggling, hidden string) string { return s.post("Content-Length: -1") + hidden }},
	{"a folded length", func(s *smuggling, hidden string) string {
		return s.post("Content-Length:\r\n "+length(hidden)[16:]) + hidden
	}},
	{"a blank before the colon of the length", func(s *smuggling, hidden string) string {
		return s.post("Content-Length : "+length(hidden)[16:]) + hidden
	}},
	{"a length after a bare CR", func(s *smuggling, hidden string) string { return s.post("X: x\r"+length(hidden)) + hidden }},
	{"a length after a NUL", func(s *smuggling, hidden string) string { return s.post("X: x\x00", length(hidden)) + hidden }},
	{"an unknown coding", func(s *smuggling, hidden string) string { return s.coded("Transfer-Encoding: xchunked", hidden) }},
	{"a blank before the colon of the coding", func(s *smuggling, hidden string) string { return s.coded("Transfer-Encoding : chunked", hidden) }},
	{"a vertical tab before the coding", func(s *smuggling, hidden string) string { return s.coded("Transfer-Encoding: \vchunked", hidden) }},
	{"a quoted coding", func(s *smuggling, hidden string) string { return s.coded(`Transfer-Encoding: "chunked"`, hidden) }},
	{"chunks and identity", func(s *smuggling, hidden string) string {
		return s.coded("Transfer-Encoding: chunked, identity", hidden)
	}},
	{"chunks twice", func(s *smuggling, hidden string) string {
		return s.coded("Transfer-Encoding: chunked, chunked", hidden)
	}},
	{"two lines of codings", func(s *smuggling, hidden string) string {
		return s.coded("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", hidden)
	}},
	{"a folded coding", func(s *smuggling, hidden string) string { return s.coded("Transfer-Encoding:\r\n chunked", hidden) }},
	{"a coding after a bare LF", func(s *smuggling, hidden string) string { return s.coded("X: x\nTransfer-Encoding: chunked", hidden) }},
	{"a chunk size in another base", func(s *smuggling, hidden string) string { return s.chunked("0x0\r\n\r\n" + hidden) }},
	{"a chunk size with a sign", func(s *smuggling, hidden string) string { return s.chunked("-0\r\n\r\n" + hidden) }},
	{"a chunk size that overflows", func(s *smuggling, hidden string) string {
		return s.chunked("10000000000000000\r\n" + hidden + "\r\n0\r\n\r\n")
	}},
	{"a chunk extension with a bare LF", func(s *smuggling, hidden string) string {
		return s.chunked(fmt.Sprintf("%x;\n0\r\n\r\n%s\r\n0\r\n\r\n", len("0\r\n\r\n"+hidden), hidden))
	}},
	{"a chunk that is longer than it says", func(s *smuggling, hidden string) string { return s.chunked("2\r\n{}" + hidden + "0\r\n\r\n") }},
	{"a chunk", func(s *smuggling, hidden string) string { return s.chunked(chunk(hidden) + "0\r\n\r\n") }},
	{"trailers", func(s *smuggling, hidden string) string {
		return s.chunked(chunk("{}") + "0\r\nX-Hidden: " + strings.ReplaceAll(strings.TrimSpace(hidden), "\r\n", "\r\n ") + "\r\n\r\n")
	}},
	{"chunks of HTTP/1.0", func(s *smuggling, hidden string) string { return s.old() + "0\r\n\r\n" + hidden }},
	{"chunks of HTTP/1.0, the first looking like a request", func(s *smuggling, hidden string) string {
		return s.old() + "0 /livez HTTP/1.1\r\nHost: rolecall\r\n\r\n" + hidden
	}},
	{"the body of a GET", func(s *smuggling, hidden string) string { return s.lines("GET /users", length(hidden)) + hidden }},
	{"the body of a DELETE", func(s *smuggling, hidden string) string {
		return s.lines("DELETE /users/"+never, length(hidden)) + hidden
	}},
	{"the body on a path that is not served", func(s *smuggling, hidden string) string { return s.lines("POST /nothing", length(hidden)) + hidden }},
	{"the body of a method that is not served", func(s *smuggling, hidden string) string { return s.lines("PUT /users", length(hidden)) + hidden }},
	{"the body of a type that is not taken", func(s *smuggling, hidden string) string {
		return s.lines("POST /users", "Content-Type: text/plain", length(hidden)) + hidden
	}},
	{"a body that is too large", func(s *smuggling, hidden string) string {
		return s.post("Content-Length: 10000000000") + hidden
	}},
	{"a body that nobody asked for", func(s *smuggling, hidden string) string {
		return s.lines("PUT /users", "Expect: 100-continue", length(hidden)) + hidden
	}},
	{"another protocol", func(s *smuggling, hidden string) string {
		return s.lines("GET /livez", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA", length(hidden)) + hidden
	}},
}

// smuggling is a tenant with a user that the hidden request tries to suspend, and the address
// at which the requests are sent.
type smuggling struct {
	*world
	address string // of the program, or of the proxy before it
	victim  string
}

// lines returns the first line and the headers of a request by the owner.
func (s *smuggling) lines(line string, header ...string) string {
	header = append([]string{line + " HTTP/1.1", "Host: rolecall", "X-Tenant-Schema: " + s.name, "Cookie: session=" + s.owner.token}, header...)
	return strings.Join(header, "\r\n") + "\r\n\r\n"
}

// post returns the first line and the headers of a request that creates a user.
func (s *smuggling) post(header ...string) string {
	return s.lines("POST /users", append([]string{"Content-Type: application/json", "Idempotency-Key: " + newKey()}, header...)...)
}

// coded returns a request that creates a user, with the header line coding. A server that
// understands the body as chunked ends the request after the empty chunk, and takes the hidden
// part for the next request.
func (s *smuggling) coded(coding, hidden string) string {
	return s.post(coding, length("0\r\n\r\n"+hidden)) + "0\r\n\r\n" + hidden
}

func (s *smuggling) chunked(body string) string { return s.post("Transfer-Encoding: chunked") + body }

// old returns the head of an HTTP/1.0 request that creates a user. HTTP/1.0 has no chunked
// bodies, but the head names the chunked coding.
func (s *smuggling) old() string {
	return strings.Replace(s.post("Connection: keep-alive", "Transfer-Encoding: chunked"), "HTTP/1.1", "HTTP/1.0", 1)
}

func length(body string) string { return fmt.Sprintf("Content-Length: %d", len(body)) }

func chunk(content string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(content), content) }

// send sends raw, and then a request that asks the server to close the connection. It returns
// all data that the server sends.
func (s *smuggling) send(t *testing.T, raw string) string {
	t.Helper()
	const enough = time.Second // a server may wait for the rest of a body; a shorter exchange can only miss an answer
	connection, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(connection, raw+"GET /livez HTTP/1.1\r\nHost: rolecall\r\nConnection: close\r\n\r\n") // fails if a server refuses the request early
	answers, _ := io.ReadAll(connection)                                                                        // fails if a server closes the connection with unread data
	return string(answers)
}

// suspended reports whether the victim is suspended. If so, suspended resumes the victim.
func (s *smuggling) suspended(t *testing.T) bool {
	t.Helper()
	if s.owner.do(t, "GET /users/"+s.victim, "").expect(t, 200).text("/status") != "suspended" {
		return false
	}
	s.owner.do(t, "POST /users/"+s.victim+"/resume", "").expect(t, 200)
	return true
}

// TestRequestSmuggling sends all smugglers directly, through nginx and through HAProxy. After
// each of them, it sends ordinary requests. A proxy may send these on the same connection to
// the program, so the test checks that they get their own responses.
func TestRequestSmuggling(t *testing.T) {
	t.Parallel()
	p := serve(t, build(t), filepath.Join(t.TempDir(), "rolecall.db"), "--trusted-proxies", "127.0.0.1")
	for name, way := range map[string]func(*testing.T, string) string{
		"straight": func(_ *testing.T, address string) string { return address }, "nginx": behindNginx, "haproxy": behindHaproxy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &smuggling{world: newWorld(t, p), address: way(t, p.Address)}
			s.victim = s.user(t, "victim", "")
			hidden := s.lines("POST /users/"+s.victim+"/suspend", "Content-Length: 0")
			s.send(t, s.lines("GET /livez")+hidden)
			if !s.suspended(t) {
				t.Fatal("a request after another has no effect, so that nothing would be noticed")
			}
			for _, smuggler := range smugglers {
				answers := s.send(t, smuggler.wrap(s, hidden))
				if s.suspended(t) {
					t.Errorf("%s: the hidden request was obeyed:\n%s", smuggler.name, answers)
				}
				if strings.Contains(answers, "HTTP/1.1 5") && !strings.Contains(answers, "HTTP/1.1 501") {
					t.Errorf("%s: a server error:\n%s", smuggler.name, answers)
				}
				for range 3 {
					s.whoAmI(t, smuggler.name)
				}
			}
		})
	}
}

// whoAmI requests the caller's identity. It fails the test if the response belongs to another
// request.
func (s *smuggling) whoAmI(t *testing.T, after string) {
	t.Helper()
	r := s.owner.request(t, "GET /auths/session", "")
	r.URL.Host = s.address
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("after %s: %v", after, err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.Body.Close() != nil || response.StatusCode != 200 || !strings.Contains(string(body), s.owner.id) {
		t.Errorf("after %s another request is answered %d %s (%v)", after, response.StatusCode, body, err)
	}
}

func behindNginx(t *testing.T, program string) string {
	address, folder := freeAddress(t), t.TempDir()
	configure(t, filepath.Join(folder, "nginx.conf"), `events {}
http {
  access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream program { server `+program+`; keepalive 4; }
  server {
    listen `+address+`;
    location / { proxy_pass http://program; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; client_max_body_size 0; }
  }
}`)
	startProxy(t, address, tool(t, "nginx"), "-p", folder, "-c", "nginx.conf", "-e", "stderr", "-g", "pid nginx.pid; daemon off; master_process off;")
	return address
}

func behindHaproxy(t *testing.T, program string) string {
	address, file := freeAddress(t), filepath.Join(t.TempDir(), "haproxy.cfg")
	configure(t, file, `defaults
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s
  http-reuse always
frontend all
  bind `+address+`
  default_backend program
backend program
  server program `+program+`
`)
	startProxy(t, address, tool(t, "haproxy"), "-db", "-f", file)
	return address
}

func configure(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
