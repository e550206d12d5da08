package node_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

// described returns the role and the end of each assignment.
func described(assignments []rolecall.Assignment) (list []string) {
	for _, a := range assignments {
		end := "never"
		if a.ExpiresAt != rolecall.Never {
			end = fmt.Sprint(a.ExpiresAt.Sub(start))
		}
		list = append(list, a.Role.Name+" "+end)
	}
	return list
}

func TestExpiredAssignmentsAreListedSeparately(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, keeper := f.user("eve"), f.role("Keeper", "shop/a:keep")
		account := f.account("Import", keeper.ID)
		f.assign(user.ID, keeper.ID, rolecall.AssignmentDraft{})
		for _, hours := range []int{2, 1, 3} {
			end := start.Add(time.Duration(hours) * time.Hour)
			role := f.role(fmt.Sprintf("For %d", hours), "shop/a:b")
			f.assign(user.ID, role.ID, rolecall.AssignmentDraft{ExpiresAt: &end, Departments: []string{"Sales"}})
			f.ok(errorOf3(f.Directory.AssignRole(f.Context(), f.owner, rolecall.HolderOf(account.ID), role.ID, rolecall.AssignmentDraft{ExpiresAt: &end})))
		}
		lists := func(live, expired []string) {
			t.Helper()
			users, ended, err := f.Directory.Assignments(f.Context(), f.owner, rolecall.HolderOf(user.ID))
			f.ok(err)
			accounts, endedToo, err := f.Directory.Assignments(f.Context(), f.owner, rolecall.HolderOf(account.ID))
			f.ok(err)
			o, err := f.Directory.Overview(f.Context(), f.owner, user.ID)
			f.ok(err)
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
		f.clock.advance(2 * time.Hour)
		f.owner.Principal = f.signIn("owner").Principal
		lists([]string{"Keeper never", "For 3 3h0m0s"}, []string{"For 2 2h0m0s", "For 1 1h0m0s"})

		_, expired, err := f.Directory.Assignments(f.Context(), f.owner, rolecall.HolderOf(user.ID))
		f.ok(err)
		if !slices.Equal(expired[0].Reach.Departments(), []string{"Sales"}) {
			t.Errorf("the reach is lost: %v", expired[0].Reach)
		}
		f.assign(user.ID, expired[0].Role.ID, rolecall.AssignmentDraft{})
		live, expired, err := f.Directory.Assignments(f.Context(), f.owner, rolecall.HolderOf(user.ID))
		f.ok(err)
		if len(live) != 3 || len(expired) != 1 {
			t.Errorf("given again: %q and expired %q", described(live), described(expired))
		}
		if _, _, err := f.Directory.Assignments(f.Context(), f.caller(holding("users:read")), rolecall.HolderOf(user.ID)); !errors.Is(err, rolecall.ErrPermissionDenied) {
			t.Errorf("without roles:read: %v", err)
		}
		if o, err := f.Directory.Overview(f.Context(), f.caller(holding("users:read")), user.ID); err != nil || o.Expired != nil {
			t.Errorf("the overview without roles:read: %+v %v", o.Expired, err)
		}
	})
}
