package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/process"
)

// canary is part of every password and every address, so that one search shows whether
// the log contains any of them.
const canary = "canary"

// program is the program as a process on one store, with the data that the tests record about
// it.
type program struct {
	process.Server
	mail     *mailtest.Server // receives the program's mail; nil if no mail server is configured
	document *document
	worlds   atomic.Uint32 // number of worlds so far, from which the next world gets its name and address
	tokensMu sync.Mutex
	tokens   []string // every secret that must not be in the log
	operator *caller  // with a key for all tenants, or nil
}

// TestMain runs the tests. It then stops the shared programs, checks their logs, and removes the
// programs that the tests have built.
func TestMain(m *testing.M) {
	debug.SetGCPercent(lessGarbage) // this process and the programs live for a short time
	code := m.Run()
	for _, failure := range endPrograms() {
		fmt.Fprintln(os.Stderr, failure)
		code = 1
	}
	for _, folder := range builds.folders {
		if err := os.RemoveAll(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// lessGarbage is the value of GOGC for this process and the tested programs.
const lessGarbage = 400

// builds has the folder of each program that this test process has built. The keys are the
// flags of go build.
var builds struct {
	sync.Mutex
	folders map[string]string
}

// build returns the path of the program with cheap password hashes. Most tests sign in many users, and
// full hashes would take most of their time.
func build(t testing.TB) string {
	t.Helper()
	built, err := process.Program()
	if err != nil {
		t.Fatal(err)
	}
	if built != "" {
		return built
	}
	return buildWith(t, process.TestTags)
}

// buildWith returns the path of the program, built from this tree with the flags. It builds
// the program only once in a test process.
func buildWith(t testing.TB, flags ...string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	key := strings.Join(flags, " ")
	if builds.folders[key] == "" {
		folder, err := os.MkdirTemp("", "rolecall-e2e")
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Build(t.Context(), filepath.Join(folder, "rolecall"), flags...); err != nil {
			t.Fatal(errors.Join(err, os.RemoveAll(folder)))
		}
		if builds.folders == nil {
			builds.folders = map[string]string{}
		}
		builds.folders[key] = folder
	}
	return filepath.Join(builds.folders[key], "rolecall")
}

// serve starts the program and waits until it is ready. When the test ends, the program is
// stopped, and the test fails if the log contains forbidden text.
func serve(t testing.TB, binary, database string, flags ...string) *program {
	t.Helper()
	p := newProgram(t, binary, database, flags...)
	p.start(t)
	t.Cleanup(func() { p.stop(t) })
	return p
}

func newProgram(t testing.TB, binary, database string, flags ...string) *program {
	t.Helper()
	p := &program{document: readDocument(t), Server: process.Server{
		Binary: binary, Database: database, Flags: flags, Address: freeAddress(t), Folder: t.TempDir(), Env: []string{fmt.Sprintf("GOGC=%d", lessGarbage)},
	}}
	if !slices.Contains(flags, "--demo") && !slices.Contains(flags, "--smtp") {
		p.receiveMail(t)
	}
	return p
}

func (p *program) start(t testing.TB) {
	t.Helper()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// kill kills the process.
func (p *program) kill(t testing.TB) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

// stop stops the program, and checks its exit status and its log.
func (p *program) stop(t testing.TB) {
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	p.checkLog(t)
}

// freeAddress returns an unused loopback address.
func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// wrongInLog are texts, in lower case, that the log of a healthy program does not contain.
var wrongInLog = []string{"panic", "data race", `"level":"error"`, "level=error", canary}

// secret lets checkLog search the log for the texts.
func (p *program) secret(texts ...string) {
	p.tokensMu.Lock()
	defer p.tokensMu.Unlock()
	p.tokens = append(p.tokens, texts...)
}

func (p *program) checkLog(t testing.TB) {
	log := p.Log()
	for line := range strings.Lines(log) {
		lower := strings.ToLower(line)
		for _, wrong := range wrongInLog {
			if strings.Contains(lower, wrong) {
				t.Errorf("the log holds %q: %s", wrong, line)
			}
		}
	}
	p.tokensMu.Lock()
	defer p.tokensMu.Unlock()
	if containsAny(log, p.tokens) {
		t.Error("the log holds a token")
	}
}

// containsAny reports whether the text contains one of the parts. It reads the text only once,
// because logs are long and parts are many.
func containsAny(text string, parts []string) bool {
	const start = 8
	byStart := map[string][]string{}
	for _, part := range parts {
		if len(part) < start {
			if strings.Contains(text, part) {
				return true
			}
			continue
		}
		byStart[part[:start]] = append(byStart[part[:start]], part)
	}
	for i := range len(text) - start + 1 {
		for _, part := range byStart[text[i:i+start]] {
			if strings.HasPrefix(text[i:], part) {
				return true
			}
		}
	}
	return false
}

// run runs a command of the program on the same store, with the input, and returns its output.
func (p *program) run(t testing.TB, input string, arguments ...string) string {
	t.Helper()
	output, err := p.try(t, input, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// try is like run, but returns an error if the command fails.
func (p *program) try(t testing.TB, input string, arguments ...string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience.Limit)
	defer cancel()
	return p.Run(ctx, input, arguments...)
}
