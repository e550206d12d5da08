package directory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// everyAccess returns all items of the list and the number of pages. It reads the list
// page by page.
func everyAccess(f *nodetest.Fixture, c access.Caller, l directory.AccessListing) (all []directory.Access, pages int) {
	f.Helper()
	for {
		page, err := f.Directory.Access(f.Context(), c, l)
		f.OK(err)
		if len(page.Items) > l.Limit {
			f.Fatalf("a page of %d, want at most %d", len(page.Items), l.Limit)
		}
		all, pages = append(all, page.Items...), pages+1
		if page.Next == nil {
			return all, pages
		}
		l.After = page.Next
	}
}

// TestAccessListsThoseWhosePrincipalsHoldThePermission compares the list with the principals
// of random users.
func TestAccessListsThoseWhosePrincipalsHoldThePermission(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		random := rand.New(rand.NewPCG(17, 8))
		permissions := []string{"users:erase", "users:*", "*:read", "users.email:read", "*:*", "tenant:update", "shop/*:*", "shop/a_b:read", "*/*:*", "roles:read", "roles:assign"}
		departments := []string{"", "Sales", "Ops", "Säles"}
		principals := map[rolecall.UserID]*authz.Principal{}
		for range 60 {
			var holds []nodetest.Held
			for range random.IntN(4) {
				h := nodetest.Holding(permissions[random.IntN(len(permissions))], permissions[random.IntN(len(permissions))])
				if d := departments[random.IntN(len(departments))]; d != "" {
					h = h.Within(d, "Legal")
				}
				if random.IntN(3) == 0 {
					h = h.To(nodetest.Start + rolecall.Time(random.IntN(3)-1))
				}
				holds = append(holds, h)
			}
			user, assignments := f.Person(departments[random.IntN(len(departments))], holds...)
			principals[user.ID] = authz.NewPrincipal(f.Tenant, user, rolecall.Session{}, assignments, f.Clock.Now())
		}
		for what, c := range map[string]access.Caller{
			"an owner":             f.Owner,
			"a reader of Sales":    f.CallerWith(nodetest.Holding("users:read", "roles:read").Within("Sales")),
			"a reader of names":    f.CallerWith(nodetest.Holding("users.name:read"), nodetest.Holding("roles:read").Within("ops", "Sales")),
			"a reader of programs": f.CallerWith(nodetest.Holding("users:read", "roles:read", "service-accounts:read")),
		} {
			for _, text := range []string{"users:erase", "users.email:read", "tenant:update", "roles:read", "roles:assign", "shop/a_b:read", "shop/axb:read"} {
				permission, err := rolecall.ParsePermission(text)
				f.OK(err)
				for _, department := range []string{"", "sales", "Legal", "Unknown"} {
					want := map[rolecall.UserID]bool{}
					for id, p := range principals {
						has := !p.Reach(permission).IsNowhere()
						if department != "" {
							has = p.Holds(permission, &department)
						}
						if has && c.Sees(&p.User) && c.Reach(rolecall.RolesRead).Includes(p.User.Department) {
							want[id] = true
						}
					}
					l := directory.AccessListing{Permission: permission, Department: department, Limit: 1 + random.IntN(9)}
					all, _ := everyAccess(f, c, l)
					got := map[rolecall.UserID]bool{}
					for _, a := range all {
						if a.User == nil || principals[a.User.ID] == nil {
							continue
						}
						if got[a.User.ID] {
							t.Errorf("%s, %s in %q: %v is listed twice", what, text, department, a.User.ID)
						}
						got[a.User.ID] = true
						expectGives(f, a, permission, department)
					}
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%s, %s in %q: got %v, want %v", what, text, department, got, want)
					}
				}
			}
		}
	})
}

// expectGives fails the test unless each assignment of the item gives the permission.
func expectGives(f *nodetest.Fixture, a directory.Access, permission rolecall.Permission, department string) {
	f.Helper()
	for _, assignment := range a.Assignments {
		covers := slices.ContainsFunc(assignment.Role.Permissions, func(p rolecall.Permission) bool { return p.Covers(permission) })
		if !covers || !assignment.Live(f.Clock.Now()) || department != "" && !assignment.Reach.Includes(&department) {
			f.Errorf("%s in %q: %+v does not give it", permission, department, assignment)
		}
	}
	if len(a.Assignments) == 0 {
		f.Errorf("%s in %q: nothing gives it to %+v", permission, department, a)
	}
}

func TestAccessListsServiceAccountsAfterUsers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.NewRole("Shop", "shop/*:*")
		var want []string
		for range 3 {
			user, _ := f.Person("Sales")
			f.Assign(user.ID, role.ID, rolecall.AssignmentDraft{})
			want = append(want, user.ID.String())
		}
		for i := range 3 {
			want = append(want, f.NewAccount(fmt.Sprintf("Import %d", i), role.ID).ID.String())
		}
		permission, err := rolecall.ParsePermission("shop/invoices:read")
		f.OK(err)
		c := f.CallerWith(nodetest.Holding("users:read", "roles:read", "service-accounts:read"))
		blind := f.CallerWith(nodetest.Holding("users:read", "roles:read"))
		for limit := 1; limit <= 8; limit++ {
			for _, department := range []string{"", "Sales"} {
				l := directory.AccessListing{Permission: permission, Department: department, Limit: limit}
				list := func(c access.Caller) (got []string) {
					all, _ := everyAccess(f, c, l)
					for _, a := range all {
						if id := a.Assignments[0].Holder.ID.String(); len(a.Assignments) == 1 && a.Assignments[0].Role.Name == "Shop" {
							got = append(got, id)
						}
					}
					return got
				}
				if got := list(c); !slices.Equal(got, want) {
					t.Errorf("limit %d: got %v, want %v", limit, got, want)
				}
				if got := list(blind); !slices.Equal(got, want[:3]) {
					t.Errorf("limit %d, without service-accounts:read: got %v, want %v", limit, got, want[:3])
				}
			}
		}
		f.Is(nodetest.ErrorOf(f.Directory.Access(f.Context(), f.CallerWith(nodetest.Holding("users:read")), directory.AccessListing{Permission: permission, Limit: 1})), rolecall.ErrPermissionDenied)
		f.Is(nodetest.ErrorOf(f.Directory.Access(f.Context(), f.CallerWith(nodetest.Holding("roles:read")), directory.AccessListing{Permission: permission, Limit: 1})), rolecall.ErrPermissionDenied)
	})
}

// TestAccessReadsLimitedPagesForADepartment lists one holder in Sales after many in Ops.
func TestAccessReadsLimitedPagesForADepartment(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		role := f.NewRole("Shop", "shop/*:*")
		var users []rolecall.User
		var assignments []rolecall.Assignment
		for i := range 5*rolecall.MaxLimit + 50 {
			draft := rolecall.UserDraft{Email: fmt.Sprintf("holder-%d@example.com", i), Name: "A Holder"}
			u := draft.User(nodetest.Start)
			users = append(users, u)
			assignments = append(assignments, rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: role, Reach: rolecall.Within("Ops"), ExpiresAt: rolecall.Never, GrantedAt: nodetest.Start})
		}
		last := &assignments[len(assignments)-1]
		last.Reach = rolecall.Within("Sales")
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.InsertUsers(users)
			tx.InsertAssignments(assignments)
			return nil
		}))
		permission, err := rolecall.ParsePermission("shop/invoices:read")
		f.OK(err)
		c := f.CallerWith(nodetest.Holding("users:read", "roles:read"))
		all, pages := everyAccess(f, c, directory.AccessListing{Permission: permission, Department: "SALES", Limit: 50})
		if len(all) != 2 || all[0].User.ID != f.Owner.User.ID || all[1].User.ID != users[len(users)-1].ID || pages != 2 {
			t.Errorf("got %d in %d pages, want the owner and the last holder in 2", len(all), pages)
		}
	})
}
