package directory_test

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// assignmentsOf returns the stored assignments of a user.
func assignmentsOf(f *nodetest.Fixture, id rolecall.UserID) (all []rolecall.Assignment) {
	f.Helper()
	f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
		all, err = tx.Assignments(rolecall.HolderOf(id))
		return err
	}))
	return all
}

func rolesIn(assignments []rolecall.Assignment) (ids []rolecall.RoleID) {
	for _, a := range assignments {
		ids = append(ids, a.Role.ID)
	}
	return ids
}

func TestARestoredUserHasNoCredentials(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		department := "Sales"
		created, err := f.Directory.CreateUser(f.Context(), f.Owner, nodetest.NewKey(), rolecall.UserDraft{
			Email: nodetest.Address("ada"), Name: "Ada Lovelace", Department: &department, ExternalID: &department, Metadata: map[string]string{"a": "b"},
		})
		f.OK(err)
		id := created.Value.ID
		f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address("ada"), nodetest.Password))
		in, invitation := f.LogIn("ada"), f.Invite(id)
		kept, scoped, brief := f.NewRole("Kept", "shop/a:b"), f.NewRole("Scoped", "users:read"), f.NewRole("Brief", "roles:read")
		soon, later := nodetest.Start.Add(time.Hour), nodetest.Start.Add(3*time.Hour)
		f.Assign(id, kept.ID, rolecall.AssignmentDraft{ExpiresAt: &later})
		f.Assign(id, scoped.ID, rolecall.AssignmentDraft{Departments: []string{"Sales", "Ops"}})
		f.Assign(id, brief.ID, rolecall.AssignmentDraft{ExpiresAt: &soon})
		before, err := f.Directory.User(f.Context(), f.Owner, id)
		f.OK(err)
		held := assignmentsOf(f, id)
		f.DeleteUser(id)

		f.Clock.Advance(2 * time.Hour)
		restored, err := f.Directory.RestoreUser(f.Context(), f.Owner, id)
		f.OK(err)
		want := before
		want.Status, want.UpdatedAt, want.Version = rolecall.UserPending, f.Clock.Now(), before.Version+1
		after, err := f.Directory.User(f.Context(), f.Owner, id)
		f.OK(err)
		if !reflect.DeepEqual(after, want) || !reflect.DeepEqual(restored.User, want) {
			t.Errorf("%+v came back as %+v, answered as %+v", before, after, restored.User)
		}
		held = slices.DeleteFunc(held, func(a rolecall.Assignment) bool { return a.Role.ID == brief.ID })
		if got := assignmentsOf(f, id); !reflect.DeepEqual(got, held) || len(restored.RolesNotRestored) != 0 || !restored.RolesReadable {
			t.Errorf("the roles are %+v, not %+v; not restored are %v", got, held, restored.RolesNotRestored)
		}
		f.Is(f.Guess("192.0.2.1", "ada", nodetest.Password), rolecall.ErrWrongCredentials)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
		f.Is(nodetest.ErrorOf(f.AcceptInvitation(invitation, nodetest.Password)), rolecall.ErrInvitationInvalid)
		f.Is(nodetest.ErrorOf(f.Directory.RestoreUser(f.Context(), f.Owner, id)), rolecall.ErrNotFound)
		f.OK(nodetest.ErrorOf(f.AcceptInvitation(f.Invite(id), nodetest.Password)))
		f.LogIn("ada")
	})
}

func TestStatusOfARestoredUser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for status, want := range map[rolecall.UserStatus]rolecall.UserStatus{
			rolecall.UserActive: rolecall.UserPending, rolecall.UserPending: rolecall.UserPending, rolecall.UserSuspended: rolecall.UserSuspended,
		} {
			user := f.NewUser(string(status))
			if status != rolecall.UserPending {
				f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, user.Email, nodetest.Password))
			}
			if status == rolecall.UserSuspended {
				f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, user.ID, "")))
			}
			f.DeleteUser(user.ID)
			restored, err := f.Directory.RestoreUser(f.Context(), f.Owner, user.ID)
			f.OK(err)
			if restored.User.Status != want {
				t.Errorf("who was %s is %s", status, restored.User.Status)
			}
			if resumed, err := f.Directory.ResumeUser(f.Context(), f.Owner, user.ID, ""); err != nil || resumed.Status != rolecall.UserPending {
				t.Errorf("who was %s is %s once resumed, %v", status, resumed.Status, err)
			}
		}
	})
}

func TestOnlyGrantableRolesAreRestored(t *testing.T) {
	const restore = "users:restore"
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for _, c := range []struct {
			what  string
			holds []nodetest.Held
			had   nodetest.Held
			back  bool
		}{
			{"who holds it", nodetest.Roles(nodetest.Holding(restore, "roles:assign", "users:read")), nodetest.Holding("users:read"), true},
			{"who may hand it on", nodetest.Roles(nodetest.Holding(restore, "roles:assign"), nodetest.Granting("shop/*:*")), nodetest.Holding("shop/a:b"), true},
			{"who holds it there", nodetest.Roles(nodetest.Holding(restore, "roles:assign", "users:read").Within("Sales")), nodetest.Holding("users:read").Within("Sales"), true},
			{"who holds it as long", nodetest.Roles(nodetest.Holding(restore, "roles:assign", "users:read").To(nodetest.NextWeek)), nodetest.Holding("users:read").To(nodetest.Tomorrow), true},
			{"a caller who may not assign roles", nodetest.Roles(nodetest.Holding(restore, "users:read")), nodetest.Holding("users:read"), false},
			{"who may give roles elsewhere", nodetest.Roles(nodetest.Holding(restore, "users:read"), nodetest.Holding("roles:assign").Within("Ops")), nodetest.Holding("users:read"), false},
			{"who does not hold it", nodetest.Roles(nodetest.Holding(restore, "roles:assign")), nodetest.Holding("users:read"), false},
			{"who holds a part of it", nodetest.Roles(nodetest.Holding(restore, "roles:assign", "users.name:read")), nodetest.Holding("users:read"), false},
			{"who holds it in a department", nodetest.Roles(nodetest.Holding(restore, "roles:assign", "users:read").Within("Sales")), nodetest.Holding("users:read"), false},
			{"who holds it for a while", nodetest.Roles(nodetest.Holding(restore, "roles:assign", "users:read").To(nodetest.NextWeek)), nodetest.Holding("users:read"), false},
			{"a caller who may not grant what the role grants", nodetest.Roles(nodetest.Holding(restore, "roles:assign")), nodetest.Granting("shop/a:b"), false},
		} {
			user, assignments := f.Person("Sales", c.had)
			f.DeleteUser(user.ID)
			caller := f.CallerWith(c.holds...)
			restored, err := f.Directory.RestoreUser(f.Context(), caller, user.ID)
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
				continue
			}
			back, missing := rolesIn(assignments), []rolecall.RoleID(nil)
			if !c.back {
				back, missing = nil, back
			}
			if got := rolesIn(assignmentsOf(f, user.ID)); !slices.Equal(got, back) || !slices.Equal(restored.RolesNotRestored, missing) {
				t.Errorf("%s: held again are %v, and not %v", c.what, got, restored.RolesNotRestored)
			}
		}
	})
}

func TestRestoredRolesHaveTheirCurrentPermissions(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, assignments := f.Person("Sales", nodetest.Holding("users:read"), nodetest.Holding("users:read"))
		grown, gone := assignments[0].Role.ID, assignments[1].Role.ID
		f.DeleteUser(user.ID)
		f.OK(nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), f.Owner, grown, rolecall.RolePatch{Permissions: rolecall.Some([]string{"*:*"})}, nil)))
		f.OK(f.Directory.DeleteRole(f.Context(), f.Owner, gone, false, nil))
		restored, err := f.Directory.RestoreUser(f.Context(), f.CallerWith(nodetest.Holding("users:*", "roles:*")), user.ID)
		f.OK(err)
		if got := assignmentsOf(f, user.ID); len(got) != 0 || !slices.Equal(restored.RolesNotRestored, []rolecall.RoleID{grown, gone}) {
			t.Errorf("held again are %v, and not %v", rolesIn(got), restored.RolesNotRestored)
		}
		event := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventUserRestored)})[0]
		if before, after := f.Shown(event); before != "" || after != "createdAt department email externalId id managedBy metadata name roles rolesNotRestored status updatedAt" {
			t.Errorf("the event shows %q, %q", before, after)
		}
		event = f.Events(f.CallerWith(nodetest.Holding("users.name:read", "events:read")), directory.EventListing{Type: string(rolecall.EventUserRestored)})[0]
		if _, after := f.Shown(event); after != "id name" {
			t.Errorf("who reads names is shown %q", after)
		}
	})
}

func TestRestoreUserIsAuthorized(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for _, c := range []struct {
			what       string
			holds      []nodetest.Held
			department string
			want       error
		}{
			{"everywhere", nodetest.Roles(nodetest.Holding("users:restore")), "", nil},
			{"in their department", nodetest.Roles(nodetest.Holding("users:restore").Within("sales")), "Sales", nil},
			{"of another department", nodetest.Roles(nodetest.Holding("users:restore").Within("Ops")), "Sales", rolecall.ErrNotFound},
			{"of no department", nodetest.Roles(nodetest.Holding("users:restore").Within("Ops")), "", rolecall.ErrNotFound},
			{"with all else", nodetest.Roles(nodetest.Holding("users:read", "users:create", "users:delete", "users:erase", "roles:*")), "Sales", rolecall.ErrPermissionDenied},
		} {
			user, _ := f.Person(c.department)
			f.DeleteUser(user.ID)
			caller := f.CallerWith(c.holds...)
			listed, err := f.Directory.DeletedUsers(f.Context(), caller, directory.DeletedListing{Limit: 1})
			if c.want == nil && (err != nil || len(listed.Items) != 1 || listed.Items[0].User.ID != user.ID || listed.Items[0].User.Status != rolecall.UserDeleted) ||
				errors.Is(c.want, rolecall.ErrNotFound) && (err != nil || len(listed.Items) != 0) || errors.Is(c.want, rolecall.ErrPermissionDenied) && !errors.Is(err, c.want) {
				t.Errorf("%s: listed are %+v, %v", c.what, listed.Items, err)
			}
			if err := nodetest.ErrorOf(f.Directory.RestoreUser(f.Context(), caller, user.ID)); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", c.what, err)
			}
			if c.want != nil {
				f.OK(nodetest.ErrorOf(f.Directory.RestoreUser(f.Context(), f.Owner, user.ID)))
			}
		}
		living, _ := f.Person("")
		f.Is(nodetest.ErrorOf(f.Directory.RestoreUser(f.Context(), f.Owner, living.ID)), rolecall.ErrNotFound)
	})
}

func TestADeletionIsFinalAfterThirtyDays(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user := f.NewUser("ada")
		f.DeleteUser(user.ID)
		restorable := func() bool {
			f.Owner.Principal = f.LogIn("owner").Principal
			listed, err := f.Directory.DeletedUsers(f.Context(), f.Owner, directory.DeletedListing{Limit: 10})
			f.OK(err)
			return len(listed.Items) == 1
		}
		f.Clock.Advance(30*nodetest.Day - time.Microsecond)
		if !restorable() {
			t.Error("after almost thirty days they are not listed")
		}
		f.Clock.Advance(time.Microsecond)
		if restorable() {
			t.Error("after thirty days they are listed")
		}
		f.Is(nodetest.ErrorOf(f.Directory.RestoreUser(f.Context(), f.Owner, user.ID)), rolecall.ErrNotFound)
	})
}

func TestOneConcurrentRequestGetsTheAddressOfADeletedUser(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		node := f.NewNode()
		for range 4 {
			user := f.NewUser("ada")
			f.DeleteUser(user.ID)
			var mu sync.Mutex
			var who []rolecall.UserID
			var running sync.WaitGroup
			for i := range 50 {
				running.Go(func() {
					var id rolecall.UserID
					var err error
					if i%2 == 0 {
						restored, failed := node.Directory.RestoreUser(f.Context(), f.Owner, user.ID)
						id, err = restored.User.ID, failed
					} else {
						created, failed := f.Directory.CreateUser(f.Context(), f.Owner, nodetest.NewKey(), rolecall.UserDraft{Email: nodetest.Address("ada"), Name: "Ada Byron"})
						id, err = created.Value.ID, failed
					}
					switch {
					case err == nil:
						mu.Lock()
						who = append(who, id)
						mu.Unlock()
					case !errors.Is(err, rolecall.ErrEmailTaken) && !errors.Is(err, rolecall.ErrNotFound):
						t.Error(err)
					}
				})
			}
			running.Wait()
			if len(who) != 1 {
				t.Fatalf("%d got the address", len(who))
			}
			page, err := f.Directory.Users(f.Context(), f.Owner, directory.UserListing{Email: nodetest.Address("ada"), Limit: 10})
			f.OK(err)
			if len(page.Items) != 1 || page.Items[0].ID != who[0] {
				t.Errorf("the address is that of %+v", page.Items)
			}
			if who[0] != user.ID { // no user is missing
				f.DeleteUser(who[0])
				f.OK(nodetest.ErrorOf(f.Directory.RestoreUser(f.Context(), f.Owner, user.ID)))
				who[0] = user.ID
			}
			f.DeleteUser(who[0])
		}
	})
}
