package e2e

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/process"
)

// documentedFigures are the sentences with the size of the program and with the memory of an idle node, in MiB.
var documentedFigures = map[string][]struct{ document, sentence string }{
	"size": {
		{"docs/operations.md", `One static binary of about (\d+) MiB`},
		{"docs/performance.md", `The program of this tree has about (\d+) MiB`},
	},
	"memory": {
		{"docs/operations.md", `\| memory of an idle node \| about (\d+) MiB \|`},
		{"docs/performance.md", `The program of this tree takes about (\d+) MiB`},
	},
}

// checkFigure compares the documented figures with the measured one, in bytes. The tolerance is a part of it.
func checkFigure(t *testing.T, name string, bytes, tolerance float64) {
	t.Helper()
	measured := bytes / (1 << 20)
	for _, d := range documentedFigures[name] {
		page, err := os.ReadFile("../../" + d.document)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(d.sentence).FindSubmatch(page)
		if found == nil {
			t.Fatalf("%s does not say %s", d.document, d.sentence)
		}
		documented, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil || math.Abs(measured-documented) > measured*tolerance {
			t.Errorf("%s says %q, and the %s is %.1f MiB", d.document, found[0], name, measured)
		}
	}
}

// The test builds the program without -trimpath. This changes the size by less than the tolerance of
// the test, but go build would compile all packages again.
func TestTheDocumentedSizeIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out the build of the program without the tags of tests")
	}
	info, err := os.Stat(release(t))
	if err != nil {
		t.Fatal(err)
	}
	checkFigure(t, "size", float64(info.Size()), 0.05)
}

// How much of the program's file is in memory depends on the kernel, so the tolerance is large.
func TestTheDocumentedMemoryIsThatOfAnIdleNode(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out the build of the program without the tags of tests")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is read from /proc, which only Linux has")
	}
	node := process.Server{Binary: release(t), Database: filepath.Join(t.TempDir(), "idle.db"), Folder: t.TempDir()}
	if err := node.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(node.PID()), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	kilobytes, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	checkFigure(t, "memory", kilobytes*1024, 0.3)
}
