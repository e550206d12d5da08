package console

import (
	"os"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/httpapi"
)

// The browser test for ended sessions has a list of all forms. This test fails if a new
// form is missing there.
func TestTheInputOfEachFormIsTestedInTheBrowser(t *testing.T) {
	source, err := os.ReadFile("e2e/drafts.test.js")
	if err != nil {
		t.Fatal(err)
	}
	policies := httpapi.Policies()
	for _, p := range (&console{}).pages() {
		if path, ok := strings.CutPrefix(p.path, "/{tenant}"); ok && p.act != nil && !policies[p.operation].Public && !strings.Contains(string(source), `"`+path+`"`) {
			t.Errorf("e2e/drafts.test.js does not list the form of %s", path)
		}
	}
}
