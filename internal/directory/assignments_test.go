package directory_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
)

// described returns the role and the end of each assignment.
func described(assignments []rolecall.Assignment) (list []string) {
	for _, a := range assignments {
		end := "never"
		if a.ExpiresAt != rolecall.Never {
			end = fmt.Sprint(a.ExpiresAt.Sub(nodetest.Start))
		}
		list = append(list, a.Role.Name+" "+end)
	}
	return list
}

func TestExpiredAssignmentsAreListedSeparately(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, keeper := f.NewUser("eve"), f.NewRole("Keeper", "shop/a:keep")
		account := f.NewAccount("Import", keeper.ID)
		f.Assign(user.ID, keeper.ID, rolecall.AssignmentDraft{})
		for _, hours := range []int{2, 1, 3} {
			end := nodetest.Start.Add(time.Duration(hours) * time.Hour)
			role := f.NewRole(fmt.Sprintf("For %d", hours), "shop/a:b")
			f.Assign(user.ID, role.ID, rolecall.AssignmentDraft{ExpiresAt: &end, Departments: []string{"Sales"}})
			f.OK(nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(account.ID), role.ID, rolecall.AssignmentDraft{ExpiresAt: &end})))
		}
		lists := func(live, expired []string) {
			t.Helper()
			users, ended, err := f.Directory.Assignments(f.Context(), f.Owner, rolecall.HolderOf(user.ID))
			f.OK(err)
			accounts, endedToo, err := f.Directory.Assignments(f.Context(), f.Owner, rolecall.HolderOf(account.ID))
			f.OK(err)
			o, err := f.Directory.Overview(f.Context(), f.Owner, user.ID)
			f.OK(err)
			for what, got := range map[string][2][]string{
				"user":            {described(users), described(ended)},
				"service account": {described(accounts), described(endedToo)},
				"overview":        {described(o.Assignments), described(o.Expired)},
			} {
				if !slices.Equal(got[0], live) || !slices.Equal(got[1], expired) {
					t.Errorf("%s: %q and expired %q, not %q and %q", what, got[0], got[1], live, expired)
				}
			}
			if o.AssignmentCount != len(live) {
				t.Errorf("the overview counts %d", o.AssignmentCount)
			}
		}
		lists([]string{"Keeper never", "For 2 2h0m0s", "For 1 1h0m0s", "For 3 3h0m0s"}, nil)
		f.Clock.Advance(2 * time.Hour)
		f.Owner.Principal = f.LogIn("owner").Principal
		lists([]string{"Keeper never", "For 3 3h0m0s"}, []string{"For 2 2h0m0s", "For 1 1h0m0s"})

		_, expired, err := f.Directory.Assignments(f.Context(), f.Owner, rolecall.HolderOf(user.ID))
		f.OK(err)
		if !slices.Equal(expired[0].Reach.Departments(), []string{"Sales"}) {
			t.Errorf("the reach is lost: %v", expired[0].Reach)
		}
		f.Assign(user.ID, expired[0].Role.ID, rolecall.AssignmentDraft{})
		live, expired, err := f.Directory.Assignments(f.Context(), f.Owner, rolecall.HolderOf(user.ID))
		f.OK(err)
		if len(live) != 3 || len(expired) != 1 {
			t.Errorf("given again: %q and expired %q", described(live), described(expired))
		}
		if _, _, err := f.Directory.Assignments(f.Context(), f.CallerWith(nodetest.Holding("users:read")), rolecall.HolderOf(user.ID)); !errors.Is(err, rolecall.ErrPermissionDenied) {
			t.Errorf("without roles:read: %v", err)
		}
		if o, err := f.Directory.Overview(f.Context(), f.CallerWith(nodetest.Holding("users:read")), user.ID); err != nil || o.Expired != nil {
			t.Errorf("the overview without roles:read: %+v %v", o.Expired, err)
		}
	})
}
