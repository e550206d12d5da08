package e2e

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

var documentedSize = regexp.MustCompile(`One static binary of about (\d+) MiB \((\d+) MB\)`)

// The test builds the program without -trimpath. This changes the size by less than the tolerance of
// the test, but go build would compile all packages again.
func TestTheDocumentedSizeIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("another program is linked")
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := documentedSize.FindSubmatch(page)
	if documented == nil {
		t.Fatal("docs/operations.md does not say how large the program is")
	}
	info, err := os.Stat(release(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, unit := range []float64{1 << 20, 1e6} {
		said, err := strconv.Atoi(string(documented[i+1]))
		if size := float64(info.Size()) / unit; err != nil || math.Abs(size-float64(said)) > size/20 {
			t.Errorf("documented is %s, and the program has %.1f", documented[0], size)
		}
	}
}
