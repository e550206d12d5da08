package main

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

const (
	ownerEmail    = "ada@example.com"
	ownerPassword = "correct horse battery staple"
)

// run runs a command of the program and returns its output.
func run(t *testing.T, folder, stdin string, args ...string) string {
	t.Helper()
	command := exec.Command("rolecall", args...)
	command.Dir, command.Stdin = folder, strings.NewReader(stdin)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("rolecall %s: %v: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

// tenantFiles are the files of a database that holds the tenant acme, by name. newTenant fills it.
var (
	tenantFiles map[string][]byte
	tenantMutex sync.Mutex
)

// newTenant returns a folder with a database that holds the tenant acme. The database is a copy of the
// first one, because the commands that create it take much of the time of a test.
func newTenant(t *testing.T) string {
	t.Helper()
	tenantMutex.Lock()
	defer tenantMutex.Unlock()
	folder := t.TempDir()
	data := filepath.Join(folder, "rolecall-data")
	if tenantFiles != nil {
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range tenantFiles {
			if err := os.WriteFile(filepath.Join(data, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	createTenant(t, folder)
	entries, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(data, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	tenantFiles = files
	return folder
}

func createTenant(t *testing.T, folder string, args ...string) {
	t.Helper()
	run(t, folder, "", append([]string{"migrate"}, args...)...)
	create := []string{"tenant", "create", "acme", "--owner-email", ownerEmail, "--owner-name", "Ada Lovelace", "--password-stdin"}
	run(t, folder, ownerPassword+"\n", append(create, args...)...)
}

// writeKeys writes a key file and returns the flag that names it. For each byte in fills, the file
// has a key that consists of 32 such bytes.
func writeKeys(t *testing.T, folder string, fills ...byte) []string {
	t.Helper()
	var content string
	for _, fill := range fills {
		content += base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32)) + "\n"
	}
	if err := os.WriteFile(filepath.Join(folder, "keys"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--secret-key-file", "keys"}
}

func TestANewDatabaseIsReported(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, want := range []bool{true, false} {
		s := startServer(t, folder)
		if created := slices.ContainsFunc(s.before, func(l logLine) bool { return l.Message == "created a new database" }); created != want {
			t.Errorf("reported a new database: %v, want %v", created, want)
		}
		if err := s.stop(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
}

func TestTheDemoCanBeUsedAtOnce(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var passwords []string
	for range 2 {
		s := startServer(t, folder, "--demo")
		first := time.Since(s.began)
		s.get("/livez")
		t.Logf("start to first answer: %v, serving after %v", time.Since(s.began).Round(time.Millisecond), first.Round(time.Millisecond))
		if len(s.before) != 1 || s.before[0].Level != "WARN" || !strings.Contains(s.before[0].Message, "not marked Secure") {
			t.Errorf("before it served it logged %+v, want one warning of the cookie", s.before)
		}
		printed := readUntilCurl(t, s)
		for _, want := range []string{"http://" + s.address, "demo", "ada.lovelace@demo.example"} {
			if !strings.Contains(printed, want) {
				t.Errorf("it does not print %q:\n%s", want, printed)
			}
		}
		line := printed[strings.LastIndex(strings.TrimSpace(printed), "\n")+1:]
		answer, err := exec.Command("sh", "-c", strings.Replace(line, "curl ", "curl -s ", 1)).Output()
		if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 OK")) {
			t.Fatalf("pasted, the line %s answers %q: %v", line, answer, err)
		}
		password := regexp.MustCompile(`"password":"([^"]+)"`).FindStringSubmatch(line)[1]
		passwords = append(passwords, password)
		checkDemo(t, s, password)
		if err := s.stop(syscall.SIGTERM); err != nil {
			t.Errorf("stopped: %v", err)
		}
	}
	if passwords[0] == passwords[1] {
		t.Error("the second start has the password of the first")
	}
}

// readUntilCurl returns the output of the process up to and including the curl line.
func readUntilCurl(t *testing.T, s *process) string {
	t.Helper()
	var printed string
	for !strings.Contains(printed, "\ncurl ") {
		line, err := s.stdout.ReadString('\n')
		if err != nil {
			t.Fatalf("printed %q: %v", printed, err)
		}
		printed += line
	}
	return printed
}

func checkDemo(t *testing.T, s *process, password string) {
	t.Helper()
	c := &caller{process: s, tenant: "demo"}
	if code := c.signIn(t, "ada.lovelace@demo.example", password).problem(t); code != "" {
		t.Fatal(code)
	}
	departments, statuses := map[string]int{}, map[string]int{}
	for query := "?limit=100"; query != ""; {
		var page struct {
			Items      []struct{ Status, Department string }
			NextCursor string
		}
		c.get(t, "/users"+query).decode(t, &page)
		for _, user := range page.Items {
			statuses[user.Status]++
			if user.Department != "" {
				departments[user.Department]++
			}
		}
		if query = ""; page.NextCursor != "" {
			query = "?limit=100&cursor=" + url.QueryEscape(page.NextCursor)
		}
	}
	var roles struct{ Items []struct{ ID string } }
	c.get(t, "/roles?limit=100").decode(t, &roles)
	if n := statuses["active"] + statuses["suspended"] + statuses["pending"]; n != 241 || len(statuses) != 3 || len(departments) != 8 || len(roles.Items) != 10 {
		t.Errorf("the demo has users %v in %d departments and %d roles", statuses, len(departments), len(roles.Items))
	}
}

func TestOnlyNamedSettingsWeakenTheCookie(t *testing.T) {
	t.Parallel()
	folder := newTenant(t)
	for _, test := range []struct {
		args    []string
		secure  bool
		hsts    string
		warning string
	}{
		{nil, true, "", ""},
		{[]string{"--public-url", "https://id.example.com"}, true, "max-age=31536000", ""},
		{[]string{"--public-url", "https://id.example.com", "--hsts-include-subdomains"}, true, "max-age=31536000; includeSubDomains", ""},
		{[]string{"--public-url", "http://localhost:8080"}, false, "", "not marked Secure"},
		{[]string{"--public-url", "http://id.example.com"}, true, "", "browsers do not send"},
	} {
		s := startServer(t, folder, test.args...)
		_, answer := owner(t, s)
		for _, cookie := range answer.Cookies() {
			if cookie.Secure != test.secure || !cookie.HttpOnly {
				t.Errorf("%v: cookie %v, want Secure %v", test.args, cookie, test.secure)
			}
		}
		if got := answer.Header.Get("Strict-Transport-Security"); got != test.hsts {
			t.Errorf("%v: HSTS %q, want %q", test.args, got, test.hsts)
		}
		var warned string
		for _, line := range s.before {
			warned += line.Message
		}
		if (warned == "") != (test.warning == "") || !strings.Contains(warned, test.warning) {
			t.Errorf("%v: warned %q, want %q", test.args, warned, test.warning)
		}
	}
}

func TestPublicURLIsTheBaseOfEveryRoute(t *testing.T) {
	t.Parallel()
	s := startServer(t, newTenant(t), "--public-url", "http://localhost/people/")
	if got := s.get("/people/livez").StatusCode; got != http.StatusOK {
		t.Errorf("under the base: %d", got)
	}
	if got := s.get("/livez").StatusCode; got != http.StatusNotFound {
		t.Errorf("outside of the base: %d", got)
	}
}

func TestCommandsWorkNextToARunningServer(t *testing.T) {
	for name, folder := range map[string]string{"SQLite": newTenant(t), "PostgreSQL": ""} {
		t.Run(name, func(t *testing.T) {
			if folder == "" {
				t.Setenv("ROLECALL_DATABASE", pgtest.URL(t))
				folder = t.TempDir()
				createTenant(t, folder)
			}
			s := startServer(t, folder)
			c, _ := owner(t, s)
			const replacement = "another passphrase of some length"
			run(t, folder, replacement+"\n", "user", "set-password", "--tenant", "acme", "--email", ownerEmail, "--password-stdin")
			if code := c.signIn(t, ownerEmail, ownerPassword).problem(t); code != "wrong-credentials" {
				t.Errorf("the old password: %q", code)
			}
			if code := c.signIn(t, ownerEmail, replacement).problem(t); code != "" {
				t.Errorf("the new password: %q", code)
			}
			run(t, folder, "", "tenant", "suspend", "acme")
			code := ""
			patience.Poll(func() bool { // the server reads the change a moment later
				code = c.get(t, "/auths/session").problem(t)
				return code != ""
			})
			if code != "tenant-suspended" {
				t.Errorf("in a suspended tenant: %q", code)
			}
		})
	}
}

func TestCursorsOutliveTheRotationOfTheKeyFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	createTenant(t, folder, writeKeys(t, folder, 1)...)
	var cursor string
	for _, test := range []struct {
		keys []byte
		want int
	}{
		{[]byte{1}, http.StatusOK},
		{[]byte{2, 1}, http.StatusOK},
		{[]byte{2}, http.StatusBadRequest},
	} {
		s := startServer(t, folder, writeKeys(t, folder, test.keys...)...)
		c, _ := owner(t, s)
		if cursor == "" {
			var page struct{ NextCursor string }
			c.get(t, "/roles?limit=1").decode(t, &page)
			cursor = page.NextCursor
		}
		if a := c.get(t, "/roles?limit=1&cursor="+url.QueryEscape(cursor)); a.StatusCode != test.want {
			t.Errorf("with the keys %q: %s %s", test.keys, a.Status, a.body)
		}
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	folder := newTenant(t)
	s := startServer(t, folder)
	command := exec.Command("rolecall", "serve", "--listen", s.address)
	command.Dir = folder
	out, err := command.CombinedOutput()
	want := "rolecall: --listen: listen tcp " + s.address + ": bind: address already in use\n"
	if err == nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	folder := newTenant(t)
	db, err := sql.Open("sqlite", filepath.Join(folder, "rolecall-data", "rolecall.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("insert into migrations (version_id, is_applied) values (9999, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"migrate"}, {"tenant", "list"}} {
		command := exec.Command("rolecall", args...)
		command.Dir = folder
		out, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "newer") || strings.Count(string(out), "\n") != 1 {
			t.Errorf("rolecall %s: %v: %q, want one line that says the schema is newer", strings.Join(args, " "), err, out)
		}
	}
}

func TestSuperuserIsRefused(t *testing.T) {
	t.Parallel()
	admin := pgtest.Admin(t, pgtest.Migrated(t))
	out, err := exec.Command("rolecall", "serve", "--listen", "127.0.0.1:0", "--no-migrate", "--database", admin).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--allow-superuser") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("%v: %q, want one line that names --allow-superuser", err, out)
	}
	s := startServer(t, t.TempDir(), "--database", admin, "--allow-superuser")
	if !slices.ContainsFunc(s.before, func(l logLine) bool { return l.Level == "WARN" && strings.Contains(l.Message, "--allow-superuser") }) {
		t.Errorf("logged %+v, want a warning that names --allow-superuser", s.before)
	}
}

func TestMetricsHaveTheirOwnListener(t *testing.T) {
	t.Parallel()
	s := startServer(t, newTenant(t), "--metrics-listen", "127.0.0.1:0")
	if got := s.get("/metrics").StatusCode; got != http.StatusNotFound {
		t.Errorf("/metrics on the main listener: %d", got)
	}
	var address string
	for _, line := range s.before {
		if line.Message == "serving metrics" {
			address = line.Address
		}
	}
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"go_goroutines", "process_start_time_seconds", "rolecall_"} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("no metric %s", want)
		}
	}
	series := 0
	for line := range bytes.Lines(body) {
		if !bytes.HasPrefix(line, []byte("#")) {
			series++
		}
	}
	if series >= 400 {
		t.Errorf("an idle node exposes %d series in %d bytes", series, len(body))
	}
	t.Logf("%d series in %d bytes", series, len(body))
}

// metricsOf returns the metrics that the process serves.
func metricsOf(t *testing.T, s *process) string {
	t.Helper()
	for _, line := range s.before {
		if line.Message != "serving metrics" {
			continue
		}
		answer, err := http.Get("http://" + line.Address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	t.Fatal("the process serves no metrics")
	return ""
}

func TestMetricsOfANode(t *testing.T) {
	t.Parallel()
	folder := newTenant(t)
	s := startServer(t, folder, "--metrics-listen", "127.0.0.1:0")
	if metrics := metricsOf(t, s); !strings.Contains(metrics, "rolecall_operator_key_next_expiry_timestamp_seconds +Inf\n") {
		t.Errorf("without an operator key: %s", metrics)
	}
	run(t, folder, "", "operator-key", "create", "Portal", "--expires", "30d")
	run(t, folder, "", "operator-key", "create", "Billing", "--expires", "90d")
	c := &caller{process: s, tenant: "acme"}
	if a := c.signIn(t, ownerEmail, "wrong"); a.StatusCode == http.StatusOK {
		t.Error("a wrong password signs in")
	}
	metrics := metricsOf(t, s)
	for _, want := range []string{
		`rolecall_sign_ins_failed_total 1\n`, `rolecall_cache_entries{cache="tenants"} 1\n`, `rolecall_cache_misses_total{cache="tenants"} [1-9]`,
		`rolecall_database_connections_max [1-9]`, `rolecall_database_connections_in_use \d`, `rolecall_build_info{commit="[^"]*",go_version="go1`,
	} {
		if !regexp.MustCompile(want).MatchString(metrics) {
			t.Errorf("no metric matches %s", want)
		}
	}
	expiry := regexp.MustCompile(`(?m)^rolecall_operator_key_next_expiry_timestamp_seconds (\S+)$`).FindStringSubmatch(metrics)
	if expiry == nil {
		t.Fatal("no metric has the expiry of the next operator key")
	}
	at, err := strconv.ParseFloat(expiry[1], 64)
	if days := time.Until(time.Unix(int64(at), 0)).Hours() / 24; err != nil || days < 29 || days > 30 {
		t.Errorf("the next key expires in %.1f days, want 30: %v", days, err)
	}
}

func TestAKeyInTheDatabaseIsWarnedOf(t *testing.T) {
	t.Parallel()
	folder, withFile := newTenant(t), t.TempDir()
	createTenant(t, withFile, writeKeys(t, withFile, 1)...)
	for _, test := range []struct {
		folder string
		args   []string
		want   bool
	}{
		{folder, nil, true},
		{withFile, []string{"--secret-key-file", "keys"}, false},
		{folder, []string{"--demo"}, false},
	} {
		if got := startServer(t, test.folder, test.args...).noKeyFile; got != test.want {
			t.Errorf("%v: warned %v, want %v", test.args, got, test.want)
		}
	}
}

// TestAnEmptyLimitOfAnOperatorKeyIsRefused tries the flags of an unset variable, which must not create a key
// for all tenants.
func TestAnEmptyLimitOfAnOperatorKeyIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	createTenant(t, folder, writeKeys(t, folder, 1)...)
	for _, flag := range []string{"--tenant=", "--tenant=acme,", "--scope=", "--scope= "} {
		command := exec.Command("rolecall", "operator-key", "create", "test", "--secret-key-file", "keys", flag)
		command.Dir = folder
		if output, err := command.CombinedOutput(); err == nil || !strings.Contains(string(output), "must not be empty") {
			t.Errorf("%s: %v, %s", flag, err, output)
		}
	}
	run(t, folder, "", "operator-key", "create", "test", "--secret-key-file", "keys", "--tenant=acme", "--scope=tenants,lookup", "--scope=changes")
	if list := run(t, folder, "", "operator-key", "list", "--secret-key-file", "keys"); !strings.Contains(list, "acme  only changes lookup tenants") {
		t.Errorf("the key is %s", list)
	}
}

func TestKeysOfAnotherInstanceAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	createTenant(t, folder, writeKeys(t, folder, 1)...)
	try := func(args ...string) string {
		command := exec.Command("rolecall", args...)
		command.Dir = folder
		output, err := command.CombinedOutput()
		if err == nil {
			return ""
		}
		return string(output)
	}
	list := []string{"operator-key", "create", "test", "--secret-key-file", "keys"}
	for _, test := range []struct {
		what string
		keys []byte
		want string
	}{
		{"another key", []byte{2}, "none of the given keys"},
		{"a new key before that of the instance", []byte{2, 1}, ""},
		{"the new key alone", []byte{2}, ""},
		{"a third key", []byte{3}, "none of the given keys"},
	} {
		writeKeys(t, folder, test.keys...)
		for _, command := range [][]string{list, {"migrate", "--secret-key-file", "keys"}} {
			if got := try(command...); test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("%s: %v: %q, want %q", test.what, command, got, test.want)
			}
		}
	}
	for _, command := range [][]string{{"migrate"}, {"operator-key", "create", "test"}} {
		if got := try(command...); !strings.Contains(got, "--secret-key-file") {
			t.Errorf("without the file: %v: %q", command, got)
		}
	}
}
