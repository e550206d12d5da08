package nodetest

import (
	"fmt"
	"maps"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

// Refusals returns the number of events of this type, by the type of their subject and
// their reason.
func (f *Fixture) Refusals(kind rolecall.EventType) map[string]int {
	f.Helper()
	recorded := map[string]int{}
	l := directory.EventListing{Type: string(kind), Limit: rolecall.MaxLimit}
	for {
		page, err := f.Directory.Events(f.Context(), f.Owner, l)
		f.OK(err)
		for _, e := range page.Items {
			recorded[fmt.Sprintf("%s: %s", e.Subject.Type, e.Reason)]++
		}
		if page.Next == nil {
			return recorded
		}
		l.After = page.Next
	}
}

// ExpectRefusals fails the test unless Refusals returns these counts.
func (f *Fixture) ExpectRefusals(kind rolecall.EventType, want map[string]int) {
	f.Helper()
	if got := f.Refusals(kind); !maps.Equal(got, want) {
		f.Errorf("recorded is %v, not %v", got, want)
	}
}
