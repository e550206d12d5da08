package node_test

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/store"
)

// remove deletes the user as the owner.
func (f *fixture) remove(id rolecall.UserID) {
	f.Helper()
	f.ok(f.Directory.DeleteUser(f.Context(), f.owner, id, nil))
}

// assignments returns the stored assignments of a user.
func (f *fixture) assignments(id rolecall.UserID) (all []rolecall.Assignment) {
	f.Helper()
	f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
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
	onEachStore(t, func(f *fixture) {
		department := "Sales"
		created, err := f.Directory.CreateUser(f.Context(), f.owner, newKey(), rolecall.UserDraft{
			Email: address("ada"), Name: "Ada Lovelace", Department: &department, ExternalID: &department, Metadata: map[string]string{"a": "b"},
		})
		f.ok(err)
		id := created.Value.ID
		f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, address("ada"), password))
		in, invitation := f.signIn("ada"), f.invite(id)
		kept, scoped, brief := f.role("Kept", "shop/a:b"), f.role("Scoped", "users:read"), f.role("Brief", "roles:read")
		soon, later := start.Add(time.Hour), start.Add(3*time.Hour)
		f.assign(id, kept.ID, rolecall.AssignmentDraft{ExpiresAt: &later})
		f.assign(id, scoped.ID, rolecall.AssignmentDraft{Departments: []string{"Sales", "Ops"}})
		f.assign(id, brief.ID, rolecall.AssignmentDraft{ExpiresAt: &soon})
		before, err := f.Directory.User(f.Context(), f.owner, id)
		f.ok(err)
		held := f.assignments(id)
		f.remove(id)

		f.clock.advance(2 * time.Hour)
		restored, err := f.Directory.RestoreUser(f.Context(), f.owner, id)
		f.ok(err)
		want := before
		want.Status, want.UpdatedAt, want.Version = rolecall.UserPending, f.clock.Now(), before.Version+1
		after, err := f.Directory.User(f.Context(), f.owner, id)
		f.ok(err)
		if !reflect.DeepEqual(after, want) || !reflect.DeepEqual(restored.User, want) {
			t.Errorf("%+v came back as %+v, answered as %+v", before, after, restored.User)
		}
		held = slices.DeleteFunc(held, func(a rolecall.Assignment) bool { return a.Role.ID == brief.ID })
		if got := f.assignments(id); !reflect.DeepEqual(got, held) || len(restored.RolesNotRestored) != 0 || !restored.RolesReadable {
			t.Errorf("the roles are %+v, not %+v; not restored are %v", got, held, restored.RolesNotRestored)
		}
		f.is(f.guess("192.0.2.1", "ada", password), rolecall.ErrWrongCredentials)
		f.is(errorOf(f.authenticate(f.Node, in.Token)), rolecall.ErrUnauthenticated)
		f.is(errorOf(f.accept(invitation, password)), rolecall.ErrInvitationInvalid)
		f.is(errorOf(f.Directory.RestoreUser(f.Context(), f.owner, id)), rolecall.ErrNotFound)
		f.ok(errorOf(f.accept(f.invite(id), password)))
		f.signIn("ada")
	})
}

func TestStatusOfARestoredUser(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for status, want := range map[rolecall.UserStatus]rolecall.UserStatus{
			rolecall.UserActive: rolecall.UserPending, rolecall.UserPending: rolecall.UserPending, rolecall.UserSuspended: rolecall.UserSuspended,
		} {
			user := f.user(string(status))
			if status != rolecall.UserPending {
				f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, user.Email, password))
			}
			if status == rolecall.UserSuspended {
				f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, user.ID, "")))
			}
			f.remove(user.ID)
			restored, err := f.Directory.RestoreUser(f.Context(), f.owner, user.ID)
			f.ok(err)
			if restored.User.Status != want {
				t.Errorf("who was %s is %s", status, restored.User.Status)
			}
			if resumed, err := f.Directory.ResumeUser(f.Context(), f.owner, user.ID, ""); err != nil || resumed.Status != rolecall.UserPending {
				t.Errorf("who was %s is %s once resumed, %v", status, resumed.Status, err)
			}
		}
	})
}

func TestOnlyGrantableRolesAreRestored(t *testing.T) {
	const restore = "users:restore"
	onEachStore(t, func(f *fixture) {
		for _, c := range []struct {
			what  string
			holds []held
			had   held
			back  bool
		}{
			{"who holds it", hold(holding(restore, "roles:assign", "users:read")), holding("users:read"), true},
			{"who may hand it on", hold(holding(restore, "roles:assign"), granting("shop/*:*")), holding("shop/a:b"), true},
			{"who holds it there", hold(holding(restore, "roles:assign", "users:read").within("Sales")), holding("users:read").within("Sales"), true},
			{"who holds it as long", hold(holding(restore, "roles:assign", "users:read").to(nextWeek)), holding("users:read").to(tomorrow), true},
			{"who may not give roles", hold(holding(restore, "users:read")), holding("users:read"), false},
			{"who may give roles elsewhere", hold(holding(restore, "users:read"), holding("roles:assign").within("Ops")), holding("users:read"), false},
			{"who does not hold it", hold(holding(restore, "roles:assign")), holding("users:read"), false},
			{"who holds a part of it", hold(holding(restore, "roles:assign", "users.name:read")), holding("users:read"), false},
			{"who holds it in a department", hold(holding(restore, "roles:assign", "users:read").within("Sales")), holding("users:read"), false},
			{"who holds it for a while", hold(holding(restore, "roles:assign", "users:read").to(nextWeek)), holding("users:read"), false},
			{"who may not hand on what it hands on", hold(holding(restore, "roles:assign")), granting("shop/a:b"), false},
		} {
			user, assignments := f.person("Sales", c.had)
			f.remove(user.ID)
			caller := f.caller(c.holds...)
			restored, err := f.Directory.RestoreUser(f.Context(), caller, user.ID)
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
				continue
			}
			back, missing := rolesIn(assignments), []rolecall.RoleID(nil)
			if !c.back {
				back, missing = nil, back
			}
			if got := rolesIn(f.assignments(user.ID)); !slices.Equal(got, back) || !slices.Equal(restored.RolesNotRestored, missing) {
				t.Errorf("%s: held again are %v, and not %v", c.what, got, restored.RolesNotRestored)
			}
		}
	})
}

func TestRestoredRolesHaveTheirCurrentPermissions(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, assignments := f.person("Sales", holding("users:read"), holding("users:read"))
		grown, gone := assignments[0].Role.ID, assignments[1].Role.ID
		f.remove(user.ID)
		f.ok(errorOf(f.Directory.UpdateRole(f.Context(), f.owner, grown, rolecall.RolePatch{Permissions: rolecall.Some([]string{"*:*"})}, nil)))
		f.ok(f.Directory.DeleteRole(f.Context(), f.owner, gone, false, nil))
		restored, err := f.Directory.RestoreUser(f.Context(), f.caller(holding("users:*", "roles:*")), user.ID)
		f.ok(err)
		if got := f.assignments(user.ID); len(got) != 0 || !slices.Equal(restored.RolesNotRestored, []rolecall.RoleID{grown, gone}) {
			t.Errorf("held again are %v, and not %v", rolesIn(got), restored.RolesNotRestored)
		}
		event := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventUserRestored)})[0]
		if before, after := f.shown(event); before != "" || after != "createdAt department email externalId id metadata name roles rolesNotRestored status updatedAt" {
			t.Errorf("the event shows %q, %q", before, after)
		}
		event = f.events(f.caller(holding("users.name:read", "events:read")), directory.EventListing{Type: string(rolecall.EventUserRestored)})[0]
		if _, after := f.shown(event); after != "id name" {
			t.Errorf("who reads names is shown %q", after)
		}
	})
}

func TestRestoreUserIsAuthorized(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for _, c := range []struct {
			what       string
			holds      []held
			department string
			want       error
		}{
			{"everywhere", hold(holding("users:restore")), "", nil},
			{"in their department", hold(holding("users:restore").within("sales")), "Sales", nil},
			{"of another department", hold(holding("users:restore").within("Ops")), "Sales", rolecall.ErrNotFound},
			{"of no department", hold(holding("users:restore").within("Ops")), "", rolecall.ErrNotFound},
			{"with all else", hold(holding("users:read", "users:create", "users:delete", "users:erase", "roles:*")), "Sales", rolecall.ErrPermissionDenied},
		} {
			user, _ := f.person(c.department)
			f.remove(user.ID)
			caller := f.caller(c.holds...)
			listed, err := f.Directory.DeletedUsers(f.Context(), caller, directory.DeletedListing{Limit: 1})
			if c.want == nil && (err != nil || len(listed.Items) != 1 || listed.Items[0].User.ID != user.ID || listed.Items[0].User.Status != rolecall.UserDeleted) ||
				errors.Is(c.want, rolecall.ErrNotFound) && (err != nil || len(listed.Items) != 0) || errors.Is(c.want, rolecall.ErrPermissionDenied) && !errors.Is(err, c.want) {
				t.Errorf("%s: listed are %+v, %v", c.what, listed.Items, err)
			}
			if err := errorOf(f.Directory.RestoreUser(f.Context(), caller, user.ID)); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", c.what, err)
			}
			if c.want != nil {
				f.ok(errorOf(f.Directory.RestoreUser(f.Context(), f.owner, user.ID)))
			}
		}
		living, _ := f.person("")
		f.is(errorOf(f.Directory.RestoreUser(f.Context(), f.owner, living.ID)), rolecall.ErrNotFound)
	})
}

func TestADeletionIsFinalAfterThirtyDays(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user := f.user("ada")
		f.remove(user.ID)
		restorable := func() bool {
			f.owner.Principal = f.signIn("owner").Principal
			listed, err := f.Directory.DeletedUsers(f.Context(), f.owner, directory.DeletedListing{Limit: 10})
			f.ok(err)
			return len(listed.Items) == 1
		}
		f.clock.advance(30*aDay - time.Microsecond)
		if !restorable() {
			t.Error("after almost thirty days they are not listed")
		}
		f.clock.advance(time.Microsecond)
		if restorable() {
			t.Error("after thirty days they are listed")
		}
		f.is(errorOf(f.Directory.RestoreUser(f.Context(), f.owner, user.ID)), rolecall.ErrNotFound)
	})
}

func TestOneConcurrentRequestGetsTheAddressOfADeletedUser(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		node := f.node()
		for range 4 {
			user := f.user("ada")
			f.remove(user.ID)
			var mu sync.Mutex
			var who []rolecall.UserID
			var running sync.WaitGroup
			for i := range 50 {
				running.Go(func() {
					var id rolecall.UserID
					var err error
					if i%2 == 0 {
						restored, failed := node.Directory.RestoreUser(f.Context(), f.owner, user.ID)
						id, err = restored.User.ID, failed
					} else {
						created, failed := f.Directory.CreateUser(f.Context(), f.owner, newKey(), rolecall.UserDraft{Email: address("ada"), Name: "Ada Byron"})
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
			page, err := f.Directory.Users(f.Context(), f.owner, directory.UserListing{Email: address("ada"), Limit: 10})
			f.ok(err)
			if len(page.Items) != 1 || page.Items[0].ID != who[0] {
				t.Errorf("the address is that of %+v", page.Items)
			}
			if who[0] != user.ID { // no user is missing
				f.remove(who[0])
				f.ok(errorOf(f.Directory.RestoreUser(f.Context(), f.owner, user.ID)))
				who[0] = user.ID
			}
			f.remove(who[0])
		}
	})
}
