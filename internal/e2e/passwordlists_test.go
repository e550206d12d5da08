package e2e

import (
	"crypto/sha1"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeList writes the lines to a file and returns its path.
func writeList(t *testing.T, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPasswordLists(t *testing.T) {
	t.Parallel()
	const leaked, leakedToo, fine = canary + " correct horse battery", canary + " leaked elsewhere", canary + " quite another battery"
	var hashes []string
	for _, password := range []string{leaked, leakedToo} {
		hashes = append(hashes, fmt.Sprintf("%X:17", sha1.Sum([]byte(password))))
	}
	slices.Sort(hashes)
	words := writeList(t, "words", "Battery", "STAPLE gun")
	list := writeList(t, "list", hashes...)
	p := newProgram(t, build(t), filepath.Join(t.TempDir(), "rolecall.db"))
	breached := filepath.Join(t.TempDir(), "breached")
	p.run(t, "", "breached-passwords", "build", list, breached)
	for what, flags := range map[string][]string{
		"--breached-passwords: " + list: {"--breached-passwords", writeList(t, "unsorted", hashes[1], hashes[0])},
		"--forbidden-words: ":           {"--forbidden-words", writeList(t, "words", strings.Repeat("x", 300))},
		"no such file":                  {"--breached-passwords", "absent"},
	} {
		if output, err := p.try(t, fine, append([]string{"tenant", "create", "acme", "--owner-email", owner, "--owner-name", "Olga Owner", "--password-stdin"}, flags...)...); err == nil {
			t.Errorf("%s: %s", what, output)
		}
	}
	p.Flags = []string{"--breached-passwords", breached, "--forbidden-words", words}
	p.start(t)
	t.Cleanup(func() { p.stop(t) })
	create := func(password string) error {
		_, err := p.try(t, password, "tenant", "create", "acme", "--owner-email", owner, "--owner-name", "Olga Owner", "--password-stdin",
			"--breached-passwords", breached, "--forbidden-words", words)
		return err
	}
	if err := create(leaked); err == nil {
		t.Error("the command line takes a password that was leaked")
	}
	if err := create("1 staple GUN battery"); err == nil {
		t.Error("the command line takes a password of forbidden words")
	}
	if err := create(fine); err != nil {
		t.Fatal(err)
	}
	w := &world{program: p, name: "acme"}
	w.connectFrom(t, net.IPv4(127, 0, 0, 1))
	c := w.anonymous()
	c = c.with(c.do(t, "POST /auths/login", credentials(owner, fine)).expect(t, 200).session(t))
	too := func(name, password, fault string) scenario {
		return scenario{name: name, as: c, send: "PUT /auths/password", body: passwords(fine, password), status: 422, code: "validation", faults: []string{"/newPassword " + fault}, lacks: []string{canary}}
	}
	play(t, []scenario{
		too("leaked", leaked, "breached"), too("leaked too", leakedToo, "breached"),
		too("forbidden words", "Battery2 staple gun 4", "personal"), too("a forbidden word and the owner", "olga-battery-owner", "personal"),
		{name: "another", as: c, send: "PUT /auths/password", body: passwords(fine, leaked+"!"), status: 204},
		{name: "a leaked one at sign-in is only wrong", as: w.anonymous(), send: "POST /auths/login", body: credentials(owner, leaked), status: 401, code: "wrong-credentials"},
	})
}
