package directory_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

// changedInSales returns a user of Sales after changes of the name, the department and
// the address, one after the other.
func changedInSales(f *nodetest.Fixture) rolecall.User {
	f.Helper()
	department := "Sales"
	created, err := f.Directory.CreateUser(f.Context(), f.Owner, nodetest.NewKey(), rolecall.UserDraft{Email: nodetest.Address("ada"), Name: "Ada Byron", Department: &department})
	f.OK(err)
	id := created.Value.ID
	f.OK(nodetest.ErrorOf(f.Directory.UpdateUser(f.Context(), f.Owner, id, rolecall.UserPatch{Name: rolecall.Some("Ada Lovelace"), ExternalID: rolecall.Some(new("7"))}, nil)))
	f.OK(f.SignIn.SetEmail(f.Context(), f.Tenant.Name, nodetest.Address("ada"), nodetest.Address("lovelace")))
	return created.Value
}

func TestEventsShowTheMembersThatTheCallerMayRead(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := changedInSales(f)
		const everything = "createdAt department email externalId id managedBy metadata name status updatedAt"
		for _, c := range []struct {
			what                      string
			holds                     []nodetest.Held
			address, changed, created string // the visible members
		}{
			{"everything", []nodetest.Held{nodetest.Holding("users:read")}, "email", "externalId name", everything},
			{"everything in Sales", []nodetest.Held{nodetest.Holding("users:read").Within("sales")}, "email", "externalId name", everything},
			{"names", []nodetest.Held{nodetest.Holding("users.name:read")}, "", "name", "id name"},
			{"names, and addresses in Sales", []nodetest.Held{nodetest.Holding("users.name:read"), nodetest.Holding("users.email:read").Within("Sales")}, "email", "name", "email id name"},
			{"everything in Research", []nodetest.Held{nodetest.Holding("users:read").Within("Research"), nodetest.Holding("users.status:read")}, "", "", "id status"},
		} {
			caller := f.CallerWith(append(c.holds, nodetest.Holding("events:read"))...)
			o, err := f.Directory.Overview(f.Context(), caller, ada.ID)
			f.OK(err)
			page, err := f.Directory.UserEvents(f.Context(), caller, ada.ID, directory.EventListing{Limit: 10})
			f.OK(err)
			listed := f.Events(caller, directory.EventListing{Subject: rolecall.AnyID(ada.ID)})
			for where, events := range map[string][]rolecall.Event{"overview": o.RecentEvents, "events of the user": page.Items, "events": listed} {
				if len(events) != 3 {
					t.Fatalf("%s: there are %d events", where, len(events))
				}
				for i, want := range []string{c.address, c.changed, c.created} {
					before, after := f.Shown(events[i])
					if i == 2 && before != "" || i < 2 && before != after || after != want {
						t.Errorf("%s, %s of who reads %s: before %q, after %q, not %q", where, events[i].Type, c.what, before, after, want)
					}
				}
				if got := events[0].Members; !slices.Equal(got, []string{"email"}) {
					t.Errorf("%s: the changed members are %q", where, got)
				}
			}
		}
	})
}

func TestEventsNameThePermissionsForRedactedMembers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := changedInSales(f)
		role := f.NewRole("Reader", "users:read")
		f.Assign(ada.ID, role.ID, rolecall.AssignmentDraft{})
		f.OK(nodetest.ErrorOf(f.Directory.UpdateTenant(f.Context(), f.Owner, rolecall.TenantPatch{DisplayName: rolecall.Some("ACME")}, nil)))
		f.OK(nodetest.ErrorOf(f.Directory.SetLogo(f.Context(), f.Owner, rolecall.LogoFile{MediaType: "image/png", Content: aLogo(f, 64)}, nil)))
		f.OK(f.Directory.RemoveLogo(f.Context(), f.Owner, nil))
		names := f.CallerWith(nodetest.Holding("events:read", "users.name:read"))
		for kind, want := range map[rolecall.EventType]map[string]rolecall.Permission{
			rolecall.EventUserCreated: {
				"email": rolecall.MemberEmail.Read(), "department": rolecall.MemberDepartment.Read(), "externalId": rolecall.MemberExternalID.Read(), "metadata": rolecall.MemberMetadata.Read(),
				"status": rolecall.MemberStatus.Read(), "managedBy": rolecall.MemberManagedBy.Read(), "createdAt": rolecall.MemberCreatedAt.Read(), "updatedAt": rolecall.MemberUpdatedAt.Read(),
			},
			rolecall.EventRoleAssigned:  {"roleId": rolecall.RolesRead},
			rolecall.EventTenantUpdated: {"displayName": rolecall.TenantRead, "settings": rolecall.TenantRead},
			rolecall.EventLogoChanged:   {"logo": rolecall.TenantRead},
			rolecall.EventLogoRemoved:   {"logo": rolecall.TenantRead},
		} {
			if got := f.Events(names, directory.EventListing{Type: string(kind)})[0].Values.Withheld; !maps.Equal(got, want) {
				t.Errorf("%s holds back %v, want %v", kind, got, want)
			}
			if got := f.Events(f.Owner, directory.EventListing{Type: string(kind)})[0].Values.Withheld; len(got) != 0 {
				t.Errorf("%s holds back %v from the owner", kind, got)
			}
		}
		f.DeleteUser(ada.ID)
		gone := f.Events(names, directory.EventListing{Subject: rolecall.AnyID(ada.ID)})[0]
		if got := gone.Values.Withheld["name"]; got != rolecall.UsersRestore || gone.Values.Before != nil {
			t.Errorf("of who is deleted: %v, %s", gone.Values.Withheld, gone.Values.Before)
		}
	})
}

func TestEventsAreVisibleByTheCurrentDepartment(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := changedInSales(f)
		inSales := f.CallerWith(nodetest.Holding("users:read").Within("Sales"), nodetest.Holding("events:read"))
		anywhere := f.CallerWith(nodetest.Holding("users:read"), nodetest.Holding("events:read"))
		about := directory.EventListing{Subject: rolecall.AnyID(ada.ID), Type: string(rolecall.EventUserUpdated)}
		shows := func(c access.Caller) bool {
			_, after := f.Shown(f.Events(c, about)[0])
			return after != ""
		}
		if !shows(inSales) || !shows(anywhere) {
			t.Error("values are not shown")
		}
		f.OK(nodetest.ErrorOf(f.Directory.UpdateUser(f.Context(), f.Owner, ada.ID, rolecall.UserPatch{Department: rolecall.Some(new("Research"))}, nil)))
		f.Is(nodetest.ErrorOf(f.Directory.UserEvents(f.Context(), inSales, ada.ID, directory.EventListing{Limit: 10})), rolecall.ErrNotFound)
		if shows(inSales) || !shows(anywhere) {
			t.Error("values do not follow the subject")
		}

		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, ada.ID, nil))
		f.Is(nodetest.ErrorOf(f.Directory.UserEvents(f.Context(), anywhere, ada.ID, directory.EventListing{Limit: 10})), rolecall.ErrNotFound)
		restores, elsewhere := f.CallerWith(nodetest.Holding("users:read", "users:restore").Within("Research"), nodetest.Holding("events:read")), f.CallerWith(nodetest.Holding("users:read", "events:read"), nodetest.Holding("users:restore").Within("Sales"))
		if shows(inSales) || shows(anywhere) || shows(elsewhere) || !shows(restores) {
			t.Error("values of somebody who is deleted are for those who may restore them")
		}
		f.Clock.Advance(30 * nodetest.Day)
		f.OK(f.Node.Purge(f.Context()))
		for _, e := range f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(ada.ID)}) {
			if e.Values != nil {
				t.Errorf("%s still shows %s, %s", e.Type, e.Values.Before, e.Values.After)
			}
		}
	})
}

func TestEventsAboutOtherThingsThanUsers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := changedInSales(f)
		role := f.NewRole("Reader", "users:read")
		f.Assign(ada.ID, role.ID, rolecall.AssignmentDraft{Departments: []string{"Sales"}})
		f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(ada.ID), role.ID))
		f.OK(nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), f.Owner, role.ID, rolecall.RolePatch{Name: rolecall.Some("Viewer of all")}, nil)))
		f.OK(nodetest.ErrorOf(f.Directory.UpdateTenant(f.Context(), f.Owner, rolecall.TenantPatch{DisplayName: rolecall.Some("ACME")}, nil)))

		const aRole = "createdAt description grants id key name permissions system updatedAt"
		const assigned = "departments roleId"
		for _, c := range []struct {
			permission string
			within     []string
			shown      map[rolecall.EventType][2]string // before and after
		}{
			{"users.name:read", nil, nil},
			{"roles:read", nil, map[rolecall.EventType][2]string{
				rolecall.EventRoleAssigned: {"", assigned}, rolecall.EventRoleUnassigned: {assigned, ""}, rolecall.EventRoleUpdated: {aRole, aRole},
			}},
			{"roles:read", []string{"Sales"}, map[rolecall.EventType][2]string{
				rolecall.EventRoleAssigned: {"", assigned}, rolecall.EventRoleUnassigned: {assigned, ""}, rolecall.EventRoleUpdated: {aRole, aRole},
			}},
			{"roles:read", []string{"Research"}, map[rolecall.EventType][2]string{rolecall.EventRoleUpdated: {aRole, aRole}}},
			{"tenant:read", nil, map[rolecall.EventType][2]string{rolecall.EventTenantUpdated: {"displayName settings", "displayName settings"}}},
			{"tenant:read", []string{"Sales"}, nil},
		} {
			caller := f.CallerWith(nodetest.Holding("events:read"), nodetest.Held{Permissions: []string{c.permission}, Departments: c.within})
			for kind, n := range map[rolecall.EventType]int{rolecall.EventRoleAssigned: 2, rolecall.EventRoleUnassigned: 1, rolecall.EventRoleUpdated: 1, rolecall.EventTenantUpdated: 1} {
				events := f.Events(caller, directory.EventListing{Type: string(kind)})
				if len(events) != n { // the first owner also got a role
					t.Fatalf("there are %d events %s", len(events), kind)
				}
				if before, after := f.Shown(events[0]); before != c.shown[kind][0] || after != c.shown[kind][1] {
					t.Errorf("%s by %s within %q: before %q, after %q", kind, c.permission, c.within, before, after)
				}
			}
		}
	})
}

func TestReadingEventsIsAuthorized(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := changedInSales(f)
		self := f.CallerAs(ada, nil)
		page, err := f.Directory.UserEvents(f.Context(), self, ada.ID, directory.EventListing{Limit: 10})
		f.OK(err)
		if _, after := f.Shown(page.Items[0]); len(page.Items) != 3 || after != "email" {
			t.Errorf("of one's own events there are %d, and the last shows %q", len(page.Items), after)
		}
		for _, c := range []struct {
			what      string
			caller    access.Caller
			all, hers error
		}{
			{"oneself without a role", self, rolecall.ErrPermissionDenied, nil},
			{"somebody without a role", f.CallerWith(), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{"who sees users only", f.CallerWith(nodetest.Holding("users:read")), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{"who holds it within a reach", f.CallerWith(nodetest.Holding("users:read", "events:read").Within("Sales")), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{"who sees no users", f.CallerWith(nodetest.Holding("events:read")), nil, rolecall.ErrNotFound},
			{"who does not see her", f.CallerWith(nodetest.Holding("events:read"), nodetest.Holding("users:read").Within("Research")), nil, rolecall.ErrNotFound},
			{"who sees her", f.CallerWith(nodetest.Holding("events:read", "users:read")), nil, nil},
		} {
			if _, err := f.Directory.Events(f.Context(), c.caller, directory.EventListing{Limit: 10}); !errors.Is(err, c.all) {
				t.Errorf("all events for %s: %v", c.what, err)
			}
			if _, err := f.Directory.UserEvents(f.Context(), c.caller, ada.ID, directory.EventListing{Limit: 10}); !errors.Is(err, c.hers) {
				t.Errorf("her events for %s: %v", c.what, err)
			}
		}
	})
}

func TestEventsAreKeptForTheConfiguredTime(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		kept := nodetest.Setting("eventsKeptSeconds", new(int64(86400)))
		f.OK(nodetest.ErrorOf(f.Directory.UpdateTenant(f.Context(), f.Owner, kept, nil)))
		subject := rolecall.Subject{Type: rolecall.SubjectRole, ID: rolecall.NewID[any](nodetest.Start)}
		old, young := nodetest.Start, nodetest.Start.Add(time.Second)
		// The events go directly to the database, because f.db rejects events without a
		// change.
		f.OK(store.New(f.DB.Database, nil).Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for _, at := range []rolecall.Time{old, young} {
				tx.InsertEvent(rolecall.Event{
					ID: rolecall.FirstID[rolecall.Event](at), Type: rolecall.EventRoleUpdated, OccurredAt: at,
					Actor: rolecall.Actor{Type: rolecall.ActorOperator, Via: "command"}, Subject: subject,
				})
			}
			return nil
		}))
		f.Clock.Until(young.Add(nodetest.Day))
		f.OK(f.Node.Purge(f.Context()))
		left := f.Events(f.Owner, directory.EventListing{Subject: subject.ID})
		if len(left) != 1 || left[0].OccurredAt != young {
			t.Errorf("what is left is %v", left)
		}
	})
}

// A tenant that had set less than the minimum keeps its value until it changes it.
func TestNoTenantShortensTheRetentionBelowTheMinimum(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.SetSettings(rolecall.TenantSettings{EventsKept: new(int64(2 * 86400))})
		options := f.Options()
		options.KeepEvents = 72 * time.Hour
		peer := node.New(f.DB, options)
		role := f.NewRole("Kept", "shop/a:b")
		principal, err := f.Authenticate(peer, f.LogIn("owner").Token)
		f.OK(err)
		owner := access.Caller{Principal: principal}
		for _, seconds := range []int64{86400, 2 * 86400} {
			if _, err := peer.Directory.UpdateTenant(f.Context(), owner, nodetest.Setting("eventsKeptSeconds", &seconds), nil); !errors.Is(err, rolecall.ErrValidation) {
				t.Errorf("%d seconds, below the minimum: %v", seconds, err)
			}
		}
		f.OK(nodetest.ErrorOf(peer.Directory.UpdateTenant(f.Context(), owner, nodetest.Setting("passwordResetSeconds", new(int64(600))), nil)))
		if n, err := peer.Directory.CountShorterRetention(f.Context()); err != nil || n != 1 {
			t.Errorf("%d tenants keep events for a shorter time (error %v), want 1", n, err)
		}
		f.Clock.Until(nodetest.Start.Add(50 * time.Hour))
		f.OK(peer.Purge(f.Context()))
		if left := f.Events(f.Owner, directory.EventListing{Subject: rolecall.AnyID(role.ID)}); len(left) != 0 {
			t.Errorf("after the time that the tenant has set: %d events are left", len(left))
		}
		f.OK(nodetest.ErrorOf(peer.Directory.UpdateTenant(f.Context(), owner, nodetest.Setting("eventsKeptSeconds", new(int64(3*86400))), nil)))
		if n, err := peer.Directory.CountShorterRetention(f.Context()); err != nil || n != 0 {
			t.Errorf("after the change: %d tenants (error %v), want 0", n, err)
		}
	})
}

// A shorter retention deletes evidence, so all owners learn of it, also those who did not change it.
func TestOwnersAreMailedAboutAShorterRetention(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		second, member := f.NewMember("second"), f.NewMember("member")
		f.Assign(second.ID, f.OwnerRole(), rolecall.AssignmentDraft{})
		mailed := func() (to []string) {
			for _, m := range f.Mails() {
				if m.Kind == rolecall.MailEventsKept {
					to = append(to, m.To+": "+m.What)
				}
			}
			slices.Sort(to)
			return to
		}
		f.PatchTenant(nodetest.Setting("eventsKeptSeconds", new(int64(500*86400))))
		f.PatchTenant(nodetest.Setting("passwordResetSeconds", new(int64(600))))
		if got := mailed(); len(got) > 0 {
			t.Errorf("without a shorter retention: %q", got)
		}
		f.PatchTenant(nodetest.Setting("eventsKeptSeconds", new(int64(100*86400))))
		want := []string{f.Owner.User.Email + ": 100 days", second.Email + ": 100 days"}
		slices.Sort(want)
		if got := mailed(); !slices.Equal(got, want) {
			t.Errorf("mailed %q, want %q and not %s", got, want, member.Email)
		}
	})
}

// The notices of a change are written in its transaction, so their number is limited. The oldest owners get them,
// because an attacker can add new ones.
func TestAShorterRetentionIsMailedToTheOldestOwners(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		owner := rolecall.Role{ID: f.OwnerRole()}
		mails := []string{f.Owner.User.Email}
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for i := range 150 {
				u := rolecall.User{
					ID: rolecall.NewID[rolecall.User](f.Clock.Now()), Email: nodetest.Address(fmt.Sprint("owner", i)), Name: "Owner", Status: rolecall.UserActive,
					CreatedAt: nodetest.Start, UpdatedAt: nodetest.Start, Version: 1,
				}
				tx.InsertUser(u)
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: owner, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: nodetest.Start})
				mails = append(mails, u.Email)
			}
			return nil
		}))
		f.PatchTenant(nodetest.Setting("eventsKeptSeconds", new(int64(100*86400))))
		var got []string
		for _, m := range f.Mails() {
			if m.Kind == rolecall.MailEventsKept {
				got = append(got, m.To)
			}
		}
		if !slices.Equal(got, mails[:100]) {
			t.Errorf("mailed %d owners: %q", len(got), got)
		}
	})
}

// TestOwnEventsHideTheSourcesOfOthers changes a user as an administrator and as an
// operator. The user's own list of events omits their source addresses. An auditor sees
// all of it.
func TestOwnEventsHideTheSourcesOfOthers(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		const elsewhere = "203.0.113.9"
		ada := f.NewMember("ada")
		first, second := f.LogIn("ada"), f.LogIn("ada")
		c := f.CallerOf(second)
		c.Source = elsewhere
		f.OK(nodetest.ErrorOf(f.Directory.UpdateUser(f.Context(), c, ada.ID, rolecall.UserPatch{Name: rolecall.Some("Ada Lovelace")}, nil)))
		f.Is(f.Guess("198.51.100.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		admin := f.Owner
		admin.Source = elsewhere
		f.OK(nodetest.ErrorOf(f.Directory.UpdateUser(f.Context(), admin, ada.ID, rolecall.UserPatch{Department: rolecall.Some(new("Sales"))}, nil)))
		program := f.CallerByToken(f.NewUserToken(f.Owner, "*:*"))
		program.Source = elsewhere
		f.OK(nodetest.ErrorOf(f.Directory.UpdateUser(f.Context(), program, ada.ID, rolecall.UserPatch{Department: rolecall.Some(new("Ops"))}, nil)))
		f.OK(f.SignIn.EndUserSession(f.Context(), admin, ada.ID, first.Principal.Session.ID))
		f.Access.Refused(admin, ada.ID, "test", "forbidden")
		f.OK(f.Access.Refusals.Flush(f.Context()))

		own := func(e rolecall.Event) bool {
			return e.Actor.ID == ada.ID || e.Actor.Type == rolecall.ActorAnonymous
		}
		for what, read := range map[string]func(access.Caller) []rolecall.Event{
			"the list": func(c access.Caller) []rolecall.Event {
				page, err := f.Directory.UserEvents(f.Context(), c, ada.ID, directory.EventListing{Limit: 100})
				f.OK(err)
				return page.Items
			},
			"the overview": func(c access.Caller) []rolecall.Event {
				o, err := f.Directory.Overview(f.Context(), c, ada.ID)
				f.OK(err)
				return o.RecentEvents
			},
		} {
			hidden, kept := 0, 0
			seen, all := read(f.CallerOf(second)), read(f.Owner)
			for i, e := range seen {
				want := all[i]
				if !own(want) && want.Actor.Via != "command" {
					hidden++
					if want.Source == "" || want.SessionID.IsZero() && want.Actor.Token.IsZero() && want.Type != rolecall.EventRefused {
						t.Errorf("%s: an auditor sees %+v", what, want)
					}
					want.Source, want.Actor.Token = "", rolecall.APITokenID{}
					if want.Type != rolecall.EventSessionEnded {
						want.SessionID = rolecall.SessionID{}
					} else if want.SessionID != first.Principal.Session.ID {
						t.Errorf("%s: the session that ended is %s", what, want.SessionID)
					}
				} else if want.Source != "" {
					kept++
				}
				if e.ID != want.ID || e.Actor != want.Actor || e.Source != want.Source || e.SessionID != want.SessionID {
					t.Errorf("%s: %+v, not %+v", what, e, want)
				}
			}
			if hidden < 4 || kept < 3 {
				t.Errorf("%s: %d are hidden and %d are not", what, hidden, kept)
			}
		}
	})
}
