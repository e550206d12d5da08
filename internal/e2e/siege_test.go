package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fullHash is the prefix of stored password hashes with the parameters of a release.
const fullHash = "$argon2id$v=19$m=19456,t=2,p=1$"

// TestUnderSiege attacks a program that runs behind a proxy. The last subtests kill the
// program's process.
func TestUnderSiege(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			s := newSiege(t, build(t), store.database(t))
			t.Run("a thousand sources", func(t *testing.T) { testThousandSources(t, s) })
			t.Run("at once", func(t *testing.T) { testGuessesAtOnce(t, s) })
			t.Run("spraying", func(t *testing.T) { testSpraying(t, s) })
			t.Run("equal work", func(t *testing.T) { testEqualHashes(t, s) })
			t.Run("forged headers", func(t *testing.T) { testForgedHeaders(t, s) })
			t.Run("secrets in the store", func(t *testing.T) { testSecretsInStore(t, s) })
			t.Run("loss of the process", func(t *testing.T) { testLossOfProcess(t, s) })
			t.Run("loss amid writes", func(t *testing.T) { testLossAmidWrites(t, s) })
		})
	}
}

// TestReleaseUnderSiege attacks a program with the full password hashes of a release. Such
// hashes are slow, so the test sends few guesses. It uses only SQLite, because the hashes do
// not depend on the store.
func TestReleaseUnderSiege(t *testing.T) {
	t.Parallel()
	s := newSiege(t, release(t), filepath.Join(t.TempDir(), "rolecall.db"))
	if !bytes.Contains(s.program.dump(t), []byte(fullHash)) {
		t.Errorf("no password hash starts with %s", fullHash)
	}
	if strings.Contains(s.program.Log(), "cheap_hashes") {
		t.Error("the program says that it was built for tests")
	}
	t.Run("at once", func(t *testing.T) { testGuessesAtOnce(t, s) })
	s.guest(t, "sprayer", "")
	t.Run("equal work", func(t *testing.T) { testEqualHashes(t, s) })
}

// release returns the path of the program as it is released, with full password hashes. It is built
// without the race detector, which makes a hash ten times as expensive.
func release(t *testing.T) string {
	t.Helper()
	return buildWith(t, "-ldflags=-s -w")
}

func newSiege(t *testing.T, binary, database string) *siege {
	t.Helper()
	metrics := freeAddress(t)
	s := &siege{program: serve(t, binary, database, "--trusted-proxies", "127.0.0.1/32", "--metrics-listen", metrics), metrics: "http://" + metrics + "/metrics"}
	s.world = newWorld(t, s.program)
	s.connectFrom(t, net.IPv4(127, 0, 0, 1)) // the address of the trusted proxy
	return s
}

// siege is a world whose requests come from a trusted proxy, so that each request can name any
// source address.
type siege struct {
	*world
	program *program
	metrics string // URL
}

// from returns the header line that names the source address of a request.
func from(source string) string { return "x-forwarded-for: " + source }

// guess tries to sign in from the source address.
func (s *siege) guess(t testing.TB, email, password, source string, header ...string) *answer {
	t.Helper()
	return s.anonymous().do(t, "POST /auths/login", credentials(email, password), append([]string{from(source)}, header...)...)
}

// storm sends n sign-ins, 16 at a time. It returns the number of responses for each status.
func (s *siege) storm(t *testing.T, n int, attempt func(i int) (email, password, source string)) map[int]int {
	t.Helper()
	var mu sync.Mutex
	statuses := map[int]int{}
	next := make(chan int)
	var running sync.WaitGroup
	for range 16 {
		running.Go(func() {
			for i := range next {
				email, password, source := attempt(i)
				a, err := s.anonymous().try(t, "POST /auths/login", credentials(email, password), from(source))
				if err != nil {
					t.Error(err)
					continue
				}
				mu.Lock()
				statuses[a.status]++
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
	return statuses
}

var hashesLine = regexp.MustCompile(`(?m)^rolecall_password_hashes_total (\d+)$`)

// hashes returns the number of password hashes that the program has computed so far.
func (s *siege) hashes(t *testing.T) int {
	t.Helper()
	response, err := http.Get(s.metrics)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := hashesLine.FindSubmatch(body)
	if found == nil {
		t.Fatalf("the metrics say nothing of hashes: %s", body)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// device returns the Cookie header line with the known-device token that the response sets.
func (a *answer) device(t testing.TB) string {
	t.Helper()
	for _, cookie := range a.cookies {
		if cookie.Name == "rolecall_device" {
			return "cookie: rolecall_device=" + cookie.Value
		}
	}
	t.Fatalf("%s left no mark: %d", a.line, a.status)
	return ""
}

// testThousandSources guesses one account's password a thousand times, each time from another
// source. The program must check only a hundred guesses. The owner of the account must still
// be able to sign in from a browser with a known-device token.
func testThousandSources(t *testing.T, s *siege) {
	owner := address("owner")
	home := s.guess(t, owner, password, "203.0.113.1").device(t)
	before := s.hashes(t)
	statuses := s.storm(t, 1000, func(i int) (string, string, string) {
		return owner, fmt.Sprintf("guess %d", i), fmt.Sprintf("198.18.%d.%d", i/250, i%250)
	})
	if statuses[401] != 100 || statuses[429] != 900 {
		t.Errorf("a thousand guesses were answered %v", statuses)
	}
	if spent := s.hashes(t) - before; spent != 100 {
		t.Errorf("a thousand guesses cost %d hashes", spent)
	}
	for _, source := range []string{"203.0.113.1", "203.0.113.2", "198.18.0.7"} {
		in := s.guess(t, owner, password, source, home).expect(t, 200)
		s.anonymous().with(in.session(t)).do(t, "GET /auths/session", "").expect(t, 200)
	}
	s.owner.do(t, "PUT /auths/password", passwords("wrong", newPassword), from("203.0.113.1")).refused(t, 422, "validation")
	s.owner.do(t, "PUT /auths/password", passwords(password, newPassword), from("203.0.113.1")).expect(t, 204)
	home = s.owner.do(t, "PUT /auths/password", passwords(newPassword, password), from("203.0.113.1")).expect(t, 204).device(t)

	unknown := s.guess(t, owner, password, "203.0.113.3").refused(t, 429, "too-many-attempts")
	if seconds, err := strconv.Atoi(unknown.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 3600 {
		t.Errorf("an unknown browser is told to wait %q", unknown.header.Get("Retry-After"))
	}
	if missing := s.guess(t, address("nobody-at-all"), password, "203.0.113.3"); missing.status != http.StatusUnauthorized {
		t.Errorf("another account is answered %d", missing.status)
	}
	elsewhere := newWorld(t, s.program) // the same address in another tenant
	elsewhere.signIn(t, owner)
	t.Run("another browser's mark", func(t *testing.T) { testForeignDevices(t, s, home, elsewhere) })
}

// testForeignDevices sends known-device tokens that are not valid for the attacked account.
// Sign-ins with them must be limited like sign-ins without a token. A valid token next to an
// invalid one must work. A valid token has a separate limit.
func testForeignDevices(t *testing.T, s *siege, home string, elsewhere *world) {
	owner := address("owner")
	thief := s.guest(t, "thief", "")
	thiefs := s.guess(t, thief.email, password, "203.0.113.8").device(t)
	foreign := elsewhere.anonymous().do(t, "POST /auths/login", credentials(owner, password)).device(t)
	i := len(home) - 8
	broken := home[:i] + string(other(home[i])) + home[i+1:]
	madeUp := "cookie: rolecall_device=" + strings.Repeat("A", 200)
	for name, mark := range map[string]string{"another account's": thiefs, "another tenant's": foreign, "a broken one": broken, "an empty one": "cookie: rolecall_device=", "a made-up one": madeUp} {
		if a := s.guess(t, owner, password, "203.0.113.9", mark); a.status != http.StatusTooManyRequests {
			t.Errorf("with %s: %d", name, a.status)
		}
	}
	beside := "; " + strings.TrimPrefix(home, "cookie: ")
	for _, tossed := range []string{madeUp, thiefs} {
		s.guess(t, owner, password, "203.0.113.7", tossed+beside).expect(t, 200)
	}
	for range 10 {
		s.guess(t, owner, "wrong", "203.0.113.7", home).refused(t, 401, "wrong-credentials")
	}
	s.guess(t, owner, password, "203.0.113.7", home).refused(t, 429, "too-many-attempts")
}

// testGuessesAtOnce sends two hundred wrong passwords at once from one source. The program
// must check only ten. After that, it must refuse the correct password from this source, but
// not from another source.
func testGuessesAtOnce(t *testing.T, s *siege) {
	s.guest(t, "at-once", "")
	before := s.hashes(t)
	answers := make([]*answer, 200)
	var running sync.WaitGroup
	for i := range answers {
		running.Go(func() {
			a, err := s.anonymous().try(t, "POST /auths/login", credentials(address("at-once"), fmt.Sprintf("guess %d", i)), from("198.51.100.1"))
			if err != nil {
				t.Error(err)
				return
			}
			answers[i] = a
		})
	}
	running.Wait()
	statuses := map[int]int{}
	for _, a := range answers {
		if a != nil {
			statuses[a.status]++
		}
	}
	if spent := s.hashes(t) - before; statuses[401] != 10 || statuses[429] != 190 || spent != 10 {
		t.Errorf("two hundred guesses were answered %v and cost %d hashes", statuses, spent)
	}
	s.guess(t, address("at-once"), password, "198.51.100.1").refused(t, 429, "too-many-attempts")
	s.guess(t, address("at-once"), password, "198.51.100.2").expect(t, 200)
}

// testSpraying tries one password on many accounts from one source. In between, the attacker
// signs in to their own account. These sign-ins must not reset the limit of the source.
func testSpraying(t *testing.T, s *siege) {
	s.guest(t, "sprayer", "")
	before := s.hashes(t)
	wrong, limited := 0, 0
	for i := range 110 {
		if i%10 == 9 {
			if a := s.guess(t, address("sprayer"), password, "198.51.100.9"); wrong < 100 {
				a.expect(t, 200)
			}
		}
		switch a := s.guess(t, address(fmt.Sprintf("target-%d", i)), "Summer of 2026 is here", "198.51.100.9"); a.status {
		case http.StatusUnauthorized:
			wrong++
		case http.StatusTooManyRequests:
			limited++
		}
	}
	if wrong != 100 || limited != 10 || s.hashes(t)-before > 112 {
		t.Errorf("of 110 sprayed guesses %d were looked at and %d not, for %d hashes", wrong, limited, s.hashes(t)-before)
	}
	s.guess(t, address("sprayer"), password, "198.51.100.9").refused(t, 429, "too-many-attempts")
	s.guess(t, address("sprayer"), password, "198.51.100.10").expect(t, 200)
}

// testEqualHashes checks that each kind of refused sign-in costs one password hash, so that
// the time does not reveal the reason.
func testEqualHashes(t *testing.T, s *siege) {
	s.user(t, "pending", "")
	suspended := s.guest(t, "suspended", "")
	s.owner.do(t, "POST /users/"+suspended.id+"/suspend", "").expect(t, 200)
	unknown := s.anonymous().in("no-such-tenant")
	for name, refused := range map[string]func() *answer{
		"a wrong password":                     func() *answer { return s.guess(t, address("sprayer"), "wrong", "192.0.2.1") },
		"a wrong password of a suspended user": func() *answer { return s.guess(t, address("suspended"), "wrong", "192.0.2.2") },
		"an unknown address":                   func() *answer { return s.guess(t, address("unknown"), "wrong", "192.0.2.3") },
		"what is no address":                   func() *answer { return s.guess(t, "unknown", "wrong", "192.0.2.4") },
		"a pending user":                       func() *answer { return s.guess(t, address("pending"), "wrong", "192.0.2.5") },
		"a password that is too long":          func() *answer { return s.guess(t, address("sprayer"), strings.Repeat("x", 5000), "192.0.2.6") },
		"an unknown tenant": func() *answer {
			return unknown.do(t, "POST /auths/login", credentials(address("owner"), "wrong"), from("192.0.2.7"))
		},
		"an unknown tenant, the right password": func() *answer {
			return unknown.do(t, "POST /auths/login", credentials(address("owner"), password), from("192.0.2.8"))
		},
	} {
		before := s.hashes(t)
		refused().refused(t, 401, "wrong-credentials")
		if spent := s.hashes(t) - before; spent != 1 {
			t.Errorf("%s costs %d hashes", name, spent)
		}
	}
}

// testForgedHeaders sends headers with made-up source addresses. Through the proxy, only the
// address that the proxy has appended at the right counts. Without the proxy, the headers must
// have no effect.
func testForgedHeaders(t *testing.T, s *siege) {
	count := func(name string, guess func(i int) *answer) {
		t.Helper()
		looked := 0
		for i := range 14 {
			if a := guess(i); a.status == http.StatusUnauthorized {
				looked++
			}
		}
		if looked != 10 {
			t.Errorf("%s: %d of 14 guesses were looked at", name, looked)
		}
	}
	spoof := func(i int) string { return fmt.Sprintf("10.1.2.%d", i) }
	count("a made-up hop before the real one", func(i int) *answer {
		return s.guess(t, address("forged-1"), "wrong", spoof(i)+", 198.51.100.20")
	})
	count("two lines", func(i int) *answer {
		return s.guess(t, address("forged-2"), "wrong", spoof(i), "+x-forwarded-for: 198.51.100.21")
	})
	count("other headers", func(i int) *answer {
		return s.guess(t, address("forged-3"), "wrong", "198.51.100.22", "x-real-ip: "+spoof(i), "forwarded: for="+spoof(i), "x-client-ip: "+spoof(i), "true-client-ip: "+spoof(i))
	})
	count("a network of IPv6", func(i int) *answer {
		return s.guess(t, address("forged-4"), "wrong", fmt.Sprintf("2001:db8:0:7::%x", i))
	})
	direct := *s.world
	direct.connectFrom(t, net.IPv4(127, 1, 99, 1))
	count("past the proxy", func(i int) *answer {
		return direct.anonymous().do(t, "POST /auths/login", credentials(address("forged-5"), "wrong"), from(spoof(i)), "x-real-ip: "+spoof(i), "forwarded: for="+spoof(i))
	})
	play(t, []scenario{
		{name: "a request id of the proxy", as: s.owner, send: "GET /auths/session", header: []string{"x-request-id: from-the-proxy"}, status: 200, headers: map[string]string{"X-Request-Id": "from-the-proxy"}},
	})
	for _, id := range []string{"a b", "a\"b", strings.Repeat("x", 65), "ä"} {
		if got := s.owner.do(t, "GET /auths/session", "", "x-request-id: "+id).header.Get("X-Request-Id"); got == id {
			t.Errorf("a request id of another form was taken: %q", got)
		}
	}
	past := &caller{world: &direct, tenant: s.name, token: s.owner.token}
	if got := past.do(t, "GET /auths/session", "", "x-request-id: made-up").header.Get("X-Request-Id"); got == "made-up" {
		t.Error("a request id was taken from who is no proxy")
	}
	s.owner.do(t, "PATCH /tenant", `{"displayName":"Besieged"}`, from("203.0.113.50")).expect(t, 200)
	event := s.owner.do(t, "GET /events?type=tenant.updated&limit=1", "")
	if got := event.text("/items/0/source"); got != "203.0.113.50" {
		t.Errorf("the event says that it came from %q", got)
	}
}
