package directory_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// wideReach returns the reach with the longest list of departments.
func wideReach() rolecall.Reach {
	departments := make([]string, rolecall.ReachDepartmentsMax)
	for i := range departments {
		departments[i] = fmt.Sprintf("%03d %s", i, strings.Repeat("d", rolecall.DepartmentMax-4))
	}
	return rolecall.Within(departments...)
}

func TestAssignmentsAreListedInPages(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := f.NewMember("ada")
		roles := storeRoles(f, rolecall.AssignmentsMax)
		reach := wideReach()
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for i, role := range roles {
				until := rolecall.Never
				if i%2 == 0 {
					until = nodetest.Start - rolecall.Time(i/4)
				}
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: reach, ExpiresAt: until, GrantedAt: nodetest.Start})
			}
			return nil
		}))
		live, expired, err := f.Directory.Assignments(f.Context(), f.Owner, rolecall.HolderOf(user.ID))
		f.OK(err)
		for limit, all := range map[int][]rolecall.Assignment{7: append(live, expired...), rolecall.MaxLimit: live} {
			l := directory.AssignmentListing{IncludeExpired: limit == 7, Limit: limit}
			var listed []rolecall.Assignment
			pages := 0
			for ; ; pages++ {
				page, err := f.Directory.AssignmentPage(f.Context(), f.Owner, rolecall.HolderOf(user.ID), l)
				f.OK(err)
				size := 0
				for _, a := range page.Items {
					size += len(strings.Join(a.Reach.Departments(), `","`))
				}
				if size > rolecall.MaxPageBytes || len(page.Items) > limit {
					t.Errorf("a page has %d items of %d bytes", len(page.Items), size)
				}
				listed = append(listed, page.Items...)
				if l.After = page.Next; l.After == nil {
					break
				}
			}
			if len(listed) != len(all) || pages < 2 {
				t.Fatalf("%d of %d assignments on %d pages", len(listed), len(all), pages+1)
			}
			for i := range all {
				if listed[i].Role.ID != all[i].Role.ID {
					t.Fatalf("the assignment %d is of another role", i)
				}
			}
		}
	})
}

// TestPagesEndAtOneMebibyte reads lists of large items with the highest limit.
func TestPagesEndAtOneMebibyte(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		const n = 60
		large := rolecall.RoleDraft{}
		for i := range rolecall.RolePermissionsMax {
			text := fmt.Sprintf("%s%d/%s:read", strings.Repeat("a", 60), i, strings.Repeat("b", 64))
			large.Permissions, large.Grants = append(large.Permissions, text), append(large.Grants, text)
		}
		metadata := map[string]string{}
		for i := range rolecall.MetadataPairs {
			metadata[fmt.Sprint("key", i)] = strings.Repeat("v", rolecall.MetadataMax)
		}
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for i := range n {
				large.Name = fmt.Sprint("Large ", i)
				role, faults := large.Role(nodetest.Start, rolecall.DefaultNameMin)
				f.OK(faults.Err())
				tx.InsertRole(role)
				draft := rolecall.UserDraft{Email: fmt.Sprintf("large-%d@example.com", i), Name: "Large", Metadata: metadata}
				user := draft.User(nodetest.Start)
				tx.InsertUser(user)
				before, err := json.Marshal(role)
				f.OK(err)
				tx.InsertEvent(rolecall.Event{
					ID: rolecall.NewID[rolecall.Event](nodetest.Start), Type: rolecall.EventRoleUpdated, OccurredAt: nodetest.Start, Actor: f.Owner.Actor(),
					Subject: rolecall.About(role.ID), Values: &rolecall.EventValues{Before: before, After: before},
				})
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(user.ID), Role: role, Reach: wideReach(), ExpiresAt: rolecall.Never, GrantedAt: nodetest.Start})
				tx.InsertJob(rolecall.Job{
					ID: rolecall.NewID[rolecall.Job](nodetest.Start), Action: rolecall.JobAssignRole, RoleID: role.ID, CreatedAt: nodetest.Start, Status: rolecall.JobRunning,
					Assignment: rolecall.AssignmentDraft{Departments: wideReach().Departments()},
				})
			}
			return nil
		}))
		held, err := rolecall.ParsePermission(large.Permissions[0])
		f.OK(err)
		for what, read := range map[string]func(at *rolecall.Position) (size, items int, next *rolecall.Position){
			"roles": func(at *rolecall.Position) (size, items int, next *rolecall.Position) {
				page, err := f.Directory.Roles(f.Context(), f.Owner, directory.RoleListing{After: at, Limit: rolecall.MaxLimit})
				f.OK(err)
				return bytesOf(f, page.Items), len(page.Items), page.Next
			},
			"users": func(at *rolecall.Position) (size, items int, next *rolecall.Position) {
				page, err := f.Directory.Users(f.Context(), f.Owner, directory.UserListing{After: at, Limit: rolecall.MaxLimit})
				f.OK(err)
				return bytesOf(f, page.Items), len(page.Items), page.Next
			},
			"events": func(at *rolecall.Position) (size, items int, next *rolecall.Position) {
				page, err := f.Directory.Events(f.Context(), f.Owner, directory.EventListing{Type: string(rolecall.EventRoleUpdated), After: at, Limit: rolecall.MaxLimit})
				f.OK(err)
				for _, e := range page.Items {
					size += len(e.Values.Before) + len(e.Values.After)
				}
				return size, len(page.Items), page.Next
			},
			"jobs": func(at *rolecall.Position) (size, items int, next *rolecall.Position) {
				page, err := f.Directory.Jobs(f.Context(), f.Owner, at, rolecall.MaxLimit)
				f.OK(err)
				return bytesOf(f, page.Items), len(page.Items), page.Next
			},
			"access": func(at *rolecall.Position) (size, items int, next *rolecall.Position) {
				page, err := f.Directory.Access(f.Context(), f.Owner, directory.AccessListing{Permission: held, After: at, Limit: rolecall.MaxLimit})
				f.OK(err)
				for _, a := range page.Items {
					for _, assignment := range a.Assignments {
						size += len(strings.Join(assignment.Reach.Departments(), `","`))
					}
				}
				return size, len(page.Items), page.Next
			},
		} {
			var at *rolecall.Position
			all, pages := 0, 0
			for pages = 1; ; pages++ {
				size, items, next := read(at)
				if size > rolecall.MaxPageBytes || items == 0 && next != nil {
					t.Errorf("%s: a page of %d items has %d bytes", what, items, size)
				}
				all += items
				if at = next; at == nil {
					break
				}
			}
			if all < n || pages < 2 {
				t.Errorf("%s: %d items on %d pages", what, all, pages)
			}
		}
		q, all, pages := feed.Query{Type: rolecall.EventRoleUpdated, Limit: rolecall.MaxLimit}, 0, 0
		for pages = 1; ; pages++ {
			page, err := f.Directory.Changes(f.Context(), f.Owner, q)
			f.OK(err)
			size := 0
			for _, c := range page.Changes {
				size += len(c.Values.Before) + len(c.Values.After)
			}
			if size > rolecall.MaxPageBytes {
				t.Errorf("changes: a page of %d items has %d bytes", len(page.Changes), size)
			}
			all, q.After = all+len(page.Changes), &page.Next
			if page.UpToDate {
				break
			}
		}
		if all != n || pages < 2 {
			t.Errorf("changes: %d items on %d pages", all, pages)
		}
	})
}

// TestTheOverviewIsBounded reads the overviews of users whose permissions would have 6.6 MB and 1.3 GB.
func TestTheOverviewIsBounded(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		large := rolecall.RoleDraft{}
		for i := range rolecall.RolePermissionsMax {
			large.Permissions = append(large.Permissions, fmt.Sprintf("%s%d/%s:read", strings.Repeat("a", 60), i, strings.Repeat("b", 64)))
		}
		few, many := f.NewMember("ada"), f.NewMember("grace")
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for i := range rolecall.AssignmentsMax {
				large.Name = fmt.Sprint("Large ", i)
				role, faults := large.Role(nodetest.Start, rolecall.DefaultNameMin)
				f.OK(faults.Err())
				tx.InsertRole(role)
				departments := wideReach().Departments()
				for j := range departments {
					departments[j] = fmt.Sprintf("%03d%s", i, departments[j][:rolecall.DepartmentMax-3])
				}
				a := rolecall.Assignment{Holder: rolecall.HolderOf(many.ID), Role: role, Reach: rolecall.Within(departments...), ExpiresAt: rolecall.Never, GrantedAt: nodetest.Start}
				tx.UpsertAssignment(a)
				if a.Holder = rolecall.HolderOf(few.ID); i == 0 {
					tx.UpsertAssignment(a)
				}
			}
			return nil
		}))
		for user, want := range map[rolecall.UserID][2]int{few.ID: {1, 1}, many.ID: {rolecall.AssignmentsMax, 0}} {
			o, err := f.Directory.Overview(f.Context(), f.Owner, user)
			f.OK(err)
			size, reaches := 0, []rolecall.Reach{}
			for _, g := range o.Permissions {
				reaches = append(reaches, g.Reach)
			}
			for _, a := range append(o.Assignments, o.Expired...) {
				reaches = append(reaches, a.Reach)
			}
			for _, reach := range reaches {
				for _, department := range reach.Departments() {
					size += len(department) + len(`"",`)
				}
			}
			if size > rolecall.MaxPageBytes || o.AssignmentCount != want[0] || len(o.Assignments) == 0 || !o.MorePermissions || len(o.Permissions) < want[1] {
				t.Errorf("the overview of %d assignments has %d of them and %d permissions, in %d bytes", o.AssignmentCount, len(o.Assignments), len(o.Permissions), size)
			}
		}
	})
}

// bytesOf returns the length of the JSON of the items.
func bytesOf(f *nodetest.Fixture, items any) int {
	f.Helper()
	var b bytes.Buffer
	f.OK(json.NewEncoder(&b).Encode(items))
	return b.Len()
}
