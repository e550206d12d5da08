package httpapi

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/web"
)

// The sizes of the hostile bodies that the tests compare, in bytes. The larger body has four
// times the size. It needs about four times the work if the work is linear, and sixteen times if
// the work is quadratic. The tests allow the factor mostRatio.
const (
	smallBody = 4 << 10
	largeBody = 4 * smallBody
	mostRatio = 6
)

// hostileSize is the name of an environment variable with the size of hostile bodies. If the
// variable is set, TestLinearWorkForEveryBody only sends the bodies. The test runs itself as a
// subprocess with this variable, to get a coverage profile.
const hostileSize = "ROLECALL_TEST_HOSTILE_SIZE"

// TestLinearWorkForEveryBody compares how often each block of code runs for the small and for the
// large hostile bodies. The counts come from coverage profiles, so they do not depend on the
// speed of the machine. Of the standard library, they include only loops of the package slices.
// TestLinearMemoryForEveryBody detects other loops if they copy data.
func TestLinearWorkForEveryBody(t *testing.T) {
	if size, err := strconv.Atoi(os.Getenv(hostileSize)); err == nil {
		s := newTestServerWith(t, web.Options{Logger: slog.New(slog.DiscardHandler)})
		s.operate()
		for _, send := range s.hostileRequests(size) {
			send()
		}
		return
	}
	if testing.Short() {
		t.Skip("compiles a program that counts")
	}
	program := filepath.Join(t.TempDir(), "counting")
	const module = "github.com/rolecall/rolecall"
	counted := []string{module, module + "/internal/httpapi", module + "/internal/access", module + "/internal/directory", module + "/internal/signin", module + "/internal/wire", "slices", "github.com/go-json-experiment/json/jsontext"}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, "-covermode", "count", "-coverpkg", strings.Join(counted, ","), ".")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	before := blocksRun(t, program, smallBody)
	after := blocksRun(t, program, largeBody)
	if len(before) < 1000 || len(after) < 1000 {
		t.Fatalf("%d and %d blocks were counted", len(before), len(after))
	}
	s := newTestServer(t)
	s.operate()
	few := 0 // tolerance for blocks whose count depends on the time, such as checks of a cached principal
	for range s.hostileRequests(smallBody) {
		few += 10
	}
	for block, runs := range after {
		if runs > mostRatio*before[block]+few {
			t.Errorf("%s runs %d times for bodies of %d bytes, and %d times for bodies of %d", block, before[block], smallBody, runs, largeBody)
		}
	}
}

// blocksRun runs the program, which sends the hostile bodies of the size. It returns how often
// each block of code ran.
func blocksRun(t *testing.T, program string, size int) map[string]int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	run := exec.CommandContext(t.Context(), program, "-test.run", "^TestLinearWorkForEveryBody$", "-test.coverprofile", profile)
	run.Env = append(os.Environ(), hostileSize+"="+strconv.Itoa(size))
	if said, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]int{}
	for line := range strings.Lines(string(text)) { // format of a line: file:from,to statements runs
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		runs, err := strconv.Atoi(fields[2])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		blocks[fields[0]] += runs
	}
	return blocks
}

// TestLinearMemoryForEveryBody compares how many bytes the server allocates for a hostile body
// and for one that is four times as large.
func TestLinearMemoryForEveryBody(t *testing.T) {
	if testing.Short() {
		t.Skip("sends every hostile body twice")
	}
	s := newTestServerWith(t, web.Options{Logger: slog.New(slog.DiscardHandler)})
	s.operate()
	before := s.bytesAllocated(2 * smallBody)
	const some = 1 << 20 // tolerance for pools that the garbage collector has emptied
	for what, allocated := range s.bytesAllocated(2 * largeBody) {
		if allocated > mostRatio*before[what]+some {
			t.Errorf("%s: %d bytes are allocated for a body of %d, and %d for one of %d", what, before[what], 2*smallBody, allocated, 2*largeBody)
		}
	}
}

// bytesAllocated returns how many bytes the server allocates for each hostile body of the size,
// by description.
func (s *testServer) bytesAllocated(size int) map[string]uint64 {
	allocated := map[string]uint64{}
	var memory runtime.MemStats
	for what, send := range s.hostileRequests(size) {
		runtime.ReadMemStats(&memory)
		before := memory.TotalAlloc
		send()
		runtime.ReadMemStats(&memory)
		allocated[what] = memory.TotalAlloc - before
	}
	return allocated
}
