package directory_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
)

// TestACellOfAnExportIsEmptyIfItsMemberMayNotBeRead exports users of whom the caller may read different
// members. The caller's own row is no exception, as in lists.
func TestACellOfAnExportIsEmptyIfItsMemberMayNotBeRead(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		sales, support := newCrew(f, "Sales", 1)[0], newCrew(f, "Support", 1)[0]
		c := f.CallerWith(nodetest.Holding("users.name:read"), nodetest.Holding("users.department:read", "users.status:read").Within("Sales"))
		table, err := f.Directory.ExportUsers(f.Context(), c, directory.UserListing{})
		f.OK(err)
		if want := []string{"id", "name", "department", "status"}; !slices.Equal(table.Columns, want) {
			f.Fatalf("the columns are %q, want %q", table.Columns, want)
		}
		rows, more, err := table.Next(f.Context())
		f.OK(err)
		if more {
			f.Error("there are more rows")
		}
		for id, want := range map[rolecall.UserID][]string{
			sales:     {"A Sailor", "Sales", "active"},
			support:   {"A Sailor", "", ""},
			c.User.ID: {c.User.Name, "", ""},
		} {
			i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == id.String() })
			if i < 0 || !slices.Equal(rows[i][1:], want) {
				f.Errorf("the row of %s is not %q: %q", id, want, rows)
			}
		}
	})
}
