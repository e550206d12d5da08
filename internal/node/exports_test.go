package node_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

// TestACellOfAnExportIsEmptyIfItsMemberMayNotBeRead exports users of whom the caller may read different
// members. The caller's own row is no exception, as in lists.
func TestACellOfAnExportIsEmptyIfItsMemberMayNotBeRead(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		sales, support := f.crew("Sales", 1)[0], f.crew("Support", 1)[0]
		c := f.caller(holding("users.name:read"), holding("users.department:read", "users.status:read").within("Sales"))
		table, err := f.Directory.ExportUsers(f.Context(), c, directory.UserListing{})
		f.ok(err)
		if want := []string{"id", "name", "department", "status"}; !slices.Equal(table.Columns, want) {
			f.Fatalf("the columns are %q, want %q", table.Columns, want)
		}
		rows, more, err := table.Next(f.Context())
		f.ok(err)
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
