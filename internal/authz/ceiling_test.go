package authz_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

func TestTheCeilingSaysWhatIsMissing(t *testing.T) {
	role := &rolecall.Role{Permissions: permissions("users:read")}
	sales := rolecall.Within("Sales")
	for _, c := range []struct {
		name   string
		held   holds
		within rolecall.Reach
		until  rolecall.Time
		want   string // the end of the detail; empty if the role may be granted
	}{
		{"another permission", holds{permissions: "users:delete"}, rolecall.Everywhere(), rolecall.Never, "You need the permission users:read in the whole tenant."},
		{"some departments", holds{permissions: "users:read", within: []string{"Sales"}}, rolecall.Everywhere(), rolecall.Never, "You need the permission users:read in the whole tenant."},
		{"other departments", holds{permissions: "users:read", within: []string{"Legal"}}, sales, rolecall.Never, "You need the permission users:read for all departments of the assignment."},
		{"until earlier", holds{permissions: "users:read", until: aMoment + 1}, sales, aMoment + 2, "Your permission users:read expires too early for this."},
		{"enough", holds{permissions: "users:read", within: []string{"Sales"}, until: aMoment + 2}, sales, aMoment + 2, ""},
	} {
		err := authz.RequireGrantable(principal(c.held), role, c.within, c.until)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
