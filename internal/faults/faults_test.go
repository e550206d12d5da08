package faults

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/process"
)

var full = flag.Bool("full", false, "break things as often as a proof needs, which takes an hour, not as often as a check does")

// times returns the number of repetitions of a test: proof with -full, and otherwise
// check.
func times(check, proof int) int {
	if *full {
		return proof
	}
	return check
}

// fewer is like times, but returns short with -short.
func fewer(short, check, proof int) int {
	if testing.Short() {
		return short
	}
	return times(check, proof)
}

// within returns the time that something may take. With -full, this is the goal, because each test then
// has the machine for itself. Otherwise, it is the limit against hanging.
func within(goal time.Duration) time.Duration {
	if *full {
		return goal
	}
	return patience.Limit
}

// claimedLimit is the limit against hanging for mail and items that a killed process may have claimed.
// Such a claim expires within a minute, on each machine.
var claimedLimit = time.Minute + patience.Limit

// stores are the kinds of databases. database creates one, and returns its value for --database.
var stores = []struct {
	name     string
	database func(*testing.T) string
}{
	{"sqlite", func(t *testing.T) string { return filepath.Join(t.TempDir(), "rolecall.db") }},
	{"postgres", func(t *testing.T) string { return pgtest.URL(t) }},
	{"citus", func(t *testing.T) string { return pgtest.CitusURL(t) }},
}

// onStores runs a test on each store, in parallel with other tests.
func onStores(t *testing.T, run func(t *testing.T, database string)) {
	alongside(t)
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			alongside(t)
			run(t, store.database(t))
		})
	}
}

// alongside runs the test in parallel with others, because the test mostly waits. With -full, each
// test runs alone.
func alongside(t *testing.T) {
	t.Helper()
	if !*full {
		t.Parallel()
	}
}

// skipIfShort skips the test with -short, which make test uses. make race runs all tests.
func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves this test out, and make race runs it")
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runIn(m))
}

// folder contains the programs that are built for all tests.
var folder string

func runIn(m *testing.M) (code int) {
	var err error
	folder, err = os.MkdirTemp("", "rolecall-faults")
	if err == nil {
		code = m.Run()
		err = os.RemoveAll(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// release builds the program with the full cost of password hashes, and returns its path.
var release = sync.OnceValues(func() (string, error) { return buildAs("release") })

// cheap returns the path of a program with cheap password hashes, because the cost of hashes does not
// matter for most faults. Its webhooks reach the endpoint of a test. With -full, the hashes have
// their full cost.
var cheap = sync.OnceValues(func() (string, error) {
	if *full {
		return buildAs("hooked", "-tags=loopback_endpoints")
	}
	return process.TestProgram(context.Background(), filepath.Join(folder, "cheap"))
})

func buildAs(name string, flags ...string) (string, error) {
	binary := filepath.Join(folder, name)
	return binary, process.Build(context.Background(), binary, flags...)
}

// unlimited are flags that disable the limits of sign-ins. A sign-in that a fault
// interrupts counts as failed, and would lock users out.
var unlimited = []string{"--attempts-per-account-and-source=1000000", "--attempts-per-account=1000000", "--attempts-per-source=1000000"}

// newServer returns the program for the database, without starting it.
func newServer(t *testing.T, database string, flags ...string) *process.Server {
	t.Helper()
	binary, err := cheap()
	if err != nil {
		t.Fatal(err)
	}
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return &process.Server{Binary: binary, Database: database, Address: address, Flags: append(flags, unlimited...), Folder: t.TempDir()}
}

// serve starts the program on the database, and stops it when the test ends. The test fails if the
// program does not run any more at that time.
func serve(t *testing.T, database string, flags ...string) *process.Server {
	t.Helper()
	s := newServer(t, database, flags...)
	startUntilEnd(t, s)
	return s
}

// startUntilEnd starts the program, and stops it when the test ends. The test fails if the program
// does not run any more at that time.
func startUntilEnd(t *testing.T, s *process.Server) {
	t.Helper()
	start(t, s)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		checkLog(t, s)
	})
}

func start(t *testing.T, s *process.Server) {
	t.Helper()
	if err := s.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, s *process.Server) {
	t.Helper()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
}

// checkLog fails the test if the log contains a panic. No fault may cause one.
func checkLog(t *testing.T, s *process.Server) {
	t.Helper()
	for line := range strings.Lines(s.Log()) {
		if strings.Contains(line, "panic") || strings.Contains(line, "goroutine ") {
			t.Errorf("the log holds %s", line)
		}
	}
}

// command runs the command line on the database of s.
func command(t *testing.T, s *process.Server, input string, arguments ...string) {
	t.Helper()
	if _, err := s.Run(context.WithoutCancel(t.Context()), input, arguments...); err != nil {
		t.Fatal(err)
	}
}

// quoted returns text as a JSON string. The tests use no text that needs escaping.
func quoted(text string) string { return fmt.Sprintf("%q", text) }
