package node_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/store"
)

// shown returns the names of the members in the values of the event, before and after the
// change.
func (f *fixture) shown(e rolecall.Event) (before, after string) {
	f.Helper()
	names := func(object []byte) string {
		if object == nil {
			return ""
		}
		var members map[string]any
		f.ok(json.Unmarshal(object, &members))
		return strings.Join(slices.Sorted(maps.Keys(members)), " ")
	}
	if e.Values == nil {
		return "", ""
	}
	return names(e.Values.Before), names(e.Values.After)
}

// changedInSales returns a user of Sales after changes of the name, the department and
// the address, one after the other.
func (f *fixture) changedInSales() rolecall.User {
	f.Helper()
	department := "Sales"
	created, err := f.Directory.CreateUser(f.Context(), f.owner, newKey(), rolecall.UserDraft{Email: address("ada"), Name: "Ada Byron", Department: &department})
	f.ok(err)
	id := created.Value.ID
	f.ok(errorOf(f.Directory.UpdateUser(f.Context(), f.owner, id, rolecall.UserPatch{Name: rolecall.Some("Ada Lovelace"), ExternalID: rolecall.Some(new("7"))}, nil)))
	f.ok(f.SignIn.SetEmail(f.Context(), f.tenant.Name, address("ada"), address("lovelace")))
	return created.Value
}

func TestEventsShowTheMembersThatTheCallerMayRead(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.changedInSales()
		const everything = "createdAt department email externalId id metadata name status updatedAt"
		for _, c := range []struct {
			what                      string
			holds                     []held
			address, changed, created string // the visible members
		}{
			{"everything", []held{holding("users:read")}, "email", "externalId name", everything},
			{"everything in Sales", []held{holding("users:read").within("sales")}, "email", "externalId name", everything},
			{"names", []held{holding("users.name:read")}, "", "name", "id name"},
			{"names, and addresses in Sales", []held{holding("users.name:read"), holding("users.email:read").within("Sales")}, "email", "name", "email id name"},
			{"everything in Research", []held{holding("users:read").within("Research"), holding("users.status:read")}, "", "", "id status"},
		} {
			caller := f.caller(append(c.holds, holding("events:read"))...)
			o, err := f.Directory.Overview(f.Context(), caller, ada.ID)
			f.ok(err)
			page, err := f.Directory.UserEvents(f.Context(), caller, ada.ID, directory.EventListing{Limit: 10})
			f.ok(err)
			listed := f.events(caller, directory.EventListing{Subject: rolecall.AnyID(ada.ID)})
			for where, events := range map[string][]rolecall.Event{"overview": o.RecentEvents, "events of the user": page.Items, "events": listed} {
				if len(events) != 3 {
					t.Fatalf("%s: there are %d events", where, len(events))
				}
				for i, want := range []string{c.address, c.changed, c.created} {
					before, after := f.shown(events[i])
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
	onEachStore(t, func(f *fixture) {
		ada := f.changedInSales()
		role := f.role("Reader", "users:read")
		f.assign(ada.ID, role.ID, rolecall.AssignmentDraft{})
		f.ok(errorOf(f.Directory.UpdateTenant(f.Context(), f.owner, rolecall.TenantPatch{DisplayName: rolecall.Some("ACME")}, nil)))
		f.ok(errorOf(f.Directory.SetLogo(f.Context(), f.owner, rolecall.LogoFile{MediaType: "image/png", Content: aLogo(f, 64)}, nil)))
		f.ok(f.Directory.RemoveLogo(f.Context(), f.owner, nil))
		names := f.caller(holding("events:read", "users.name:read"))
		for kind, want := range map[rolecall.EventType]map[string]rolecall.Permission{
			rolecall.EventUserCreated: {
				"email": rolecall.MemberEmail.Read(), "department": rolecall.MemberDepartment.Read(), "externalId": rolecall.MemberExternalID.Read(), "metadata": rolecall.MemberMetadata.Read(),
				"status": rolecall.MemberStatus.Read(), "createdAt": rolecall.MemberCreatedAt.Read(), "updatedAt": rolecall.MemberUpdatedAt.Read(),
			},
			rolecall.EventRoleAssigned:  {"roleId": rolecall.RolesRead},
			rolecall.EventTenantUpdated: {"displayName": rolecall.TenantRead, "settings": rolecall.TenantRead},
			rolecall.EventLogoChanged:   {"logo": rolecall.TenantRead},
			rolecall.EventLogoRemoved:   {"logo": rolecall.TenantRead},
		} {
			if got := f.events(names, directory.EventListing{Type: string(kind)})[0].Values.Withheld; !maps.Equal(got, want) {
				t.Errorf("%s holds back %v, want %v", kind, got, want)
			}
			if got := f.events(f.owner, directory.EventListing{Type: string(kind)})[0].Values.Withheld; len(got) != 0 {
				t.Errorf("%s holds back %v from the owner", kind, got)
			}
		}
		f.remove(ada.ID)
		gone := f.events(names, directory.EventListing{Subject: rolecall.AnyID(ada.ID)})[0]
		if got := gone.Values.Withheld["name"]; got != rolecall.UsersRestore || gone.Values.Before != nil {
			t.Errorf("of who is deleted: %v, %s", gone.Values.Withheld, gone.Values.Before)
		}
	})
}

func TestEventsAreVisibleByTheCurrentDepartment(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.changedInSales()
		inSales := f.caller(holding("users:read").within("Sales"), holding("events:read"))
		anywhere := f.caller(holding("users:read"), holding("events:read"))
		about := directory.EventListing{Subject: rolecall.AnyID(ada.ID), Type: string(rolecall.EventUserUpdated)}
		shows := func(c access.Caller) bool {
			_, after := f.shown(f.events(c, about)[0])
			return after != ""
		}
		if !shows(inSales) || !shows(anywhere) {
			t.Error("values are not shown")
		}
		f.ok(errorOf(f.Directory.UpdateUser(f.Context(), f.owner, ada.ID, rolecall.UserPatch{Department: rolecall.Some(new("Research"))}, nil)))
		f.is(errorOf(f.Directory.UserEvents(f.Context(), inSales, ada.ID, directory.EventListing{Limit: 10})), rolecall.ErrNotFound)
		if shows(inSales) || !shows(anywhere) {
			t.Error("values do not follow the subject")
		}

		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, ada.ID, nil))
		f.is(errorOf(f.Directory.UserEvents(f.Context(), anywhere, ada.ID, directory.EventListing{Limit: 10})), rolecall.ErrNotFound)
		restores, elsewhere := f.caller(holding("users:read", "users:restore").within("Research"), holding("events:read")), f.caller(holding("users:read", "events:read"), holding("users:restore").within("Sales"))
		if shows(inSales) || shows(anywhere) || shows(elsewhere) || !shows(restores) {
			t.Error("values of somebody who is deleted are for those who may restore them")
		}
		f.clock.advance(30 * aDay)
		f.ok(f.Node.Purge(f.Context()))
		for _, e := range f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(ada.ID)}) {
			if e.Values != nil {
				t.Errorf("%s still shows %s, %s", e.Type, e.Values.Before, e.Values.After)
			}
		}
	})
}

func TestEventsAboutOtherThingsThanUsers(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.changedInSales()
		role := f.role("Reader", "users:read")
		f.assign(ada.ID, role.ID, rolecall.AssignmentDraft{Departments: []string{"Sales"}})
		f.ok(f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(ada.ID), role.ID))
		f.ok(errorOf(f.Directory.UpdateRole(f.Context(), f.owner, role.ID, rolecall.RolePatch{Name: rolecall.Some("Viewer of all")}, nil)))
		f.ok(errorOf(f.Directory.UpdateTenant(f.Context(), f.owner, rolecall.TenantPatch{DisplayName: rolecall.Some("ACME")}, nil)))

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
			caller := f.caller(holding("events:read"), held{permissions: []string{c.permission}, departments: c.within})
			for kind, n := range map[rolecall.EventType]int{rolecall.EventRoleAssigned: 2, rolecall.EventRoleUnassigned: 1, rolecall.EventRoleUpdated: 1, rolecall.EventTenantUpdated: 1} {
				events := f.events(caller, directory.EventListing{Type: string(kind)})
				if len(events) != n { // the first owner also got a role
					t.Fatalf("there are %d events %s", len(events), kind)
				}
				if before, after := f.shown(events[0]); before != c.shown[kind][0] || after != c.shown[kind][1] {
					t.Errorf("%s by %s within %q: before %q, after %q", kind, c.permission, c.within, before, after)
				}
			}
		}
	})
}

func TestReadingEventsIsAuthorized(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.changedInSales()
		self := f.callBy(ada, nil)
		page, err := f.Directory.UserEvents(f.Context(), self, ada.ID, directory.EventListing{Limit: 10})
		f.ok(err)
		if _, after := f.shown(page.Items[0]); len(page.Items) != 3 || after != "email" {
			t.Errorf("of one's own events there are %d, and the last shows %q", len(page.Items), after)
		}
		for _, c := range []struct {
			what      string
			caller    access.Caller
			all, hers error
		}{
			{"oneself without a role", self, rolecall.ErrPermissionDenied, nil},
			{"somebody without a role", f.caller(), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{"who sees users only", f.caller(holding("users:read")), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{"who holds it within a reach", f.caller(holding("users:read", "events:read").within("Sales")), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{"who sees no users", f.caller(holding("events:read")), nil, rolecall.ErrNotFound},
			{"who does not see her", f.caller(holding("events:read"), holding("users:read").within("Research")), nil, rolecall.ErrNotFound},
			{"who sees her", f.caller(holding("events:read", "users:read")), nil, nil},
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
	onEachStore(t, func(f *fixture) {
		kept := setting("eventsKeptSeconds", new(int64(86400)))
		f.ok(errorOf(f.Directory.UpdateTenant(f.Context(), f.owner, kept, nil)))
		subject := rolecall.Subject{Type: rolecall.SubjectRole, ID: rolecall.NewID[any](start)}
		old, young := start, start.Add(time.Second)
		// The events go directly to the database, because f.db rejects events without a
		// change.
		f.ok(store.New(f.db.Database, nil).Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			for _, at := range []rolecall.Time{old, young} {
				tx.InsertEvent(rolecall.Event{
					ID: rolecall.FirstID[rolecall.Event](at), Type: rolecall.EventRoleUpdated, OccurredAt: at,
					Actor: rolecall.Actor{Type: rolecall.ActorOperator, Via: "command"}, Subject: subject,
				})
			}
			return nil
		}))
		f.clock.until(young.Add(aDay))
		f.ok(f.Node.Purge(f.Context()))
		left := f.events(f.owner, directory.EventListing{Subject: subject.ID})
		if len(left) != 1 || left[0].OccurredAt != young {
			t.Errorf("what is left is %v", left)
		}
	})
}

// A tenant that had set less than the minimum keeps its value until it changes it.
func TestNoTenantShortensTheRetentionBelowTheMinimum(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.settings(rolecall.TenantSettings{EventsKept: new(int64(2 * 86400))})
		options := f.options()
		options.KeepEvents = 72 * time.Hour
		peer := node.New(f.db, options)
		role := f.role("Kept", "shop/a:b")
		principal, err := f.authenticate(peer, f.signIn("owner").Token)
		f.ok(err)
		owner := access.Caller{Principal: principal}
		for _, seconds := range []int64{86400, 2 * 86400} {
			if _, err := peer.Directory.UpdateTenant(f.Context(), owner, setting("eventsKeptSeconds", &seconds), nil); !errors.Is(err, rolecall.ErrValidation) {
				t.Errorf("%d seconds, below the minimum: %v", seconds, err)
			}
		}
		f.ok(errorOf(peer.Directory.UpdateTenant(f.Context(), owner, setting("passwordResetSeconds", new(int64(600))), nil)))
		if n, err := peer.Directory.CountShorterRetention(f.Context()); err != nil || n != 1 {
			t.Errorf("%d tenants keep events for a shorter time (error %v), want 1", n, err)
		}
		f.clock.until(start.Add(50 * time.Hour))
		f.ok(peer.Purge(f.Context()))
		if left := f.events(f.owner, directory.EventListing{Subject: rolecall.AnyID(role.ID)}); len(left) != 0 {
			t.Errorf("after the time that the tenant has set: %d events are left", len(left))
		}
		f.ok(errorOf(peer.Directory.UpdateTenant(f.Context(), owner, setting("eventsKeptSeconds", new(int64(3*86400))), nil)))
		if n, err := peer.Directory.CountShorterRetention(f.Context()); err != nil || n != 0 {
			t.Errorf("after the change: %d tenants (error %v), want 0", n, err)
		}
	})
}

// A shorter retention deletes evidence, so all owners learn of it, also those who did not change it.
func TestOwnersAreMailedAboutAShorterRetention(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		second, member := f.member("second"), f.member("member")
		f.assign(second.ID, f.ownerRole(), rolecall.AssignmentDraft{})
		mailed := func() (to []string) {
			for _, m := range f.mails() {
				if m.Kind == rolecall.MailEventsKept {
					to = append(to, m.To+": "+m.What)
				}
			}
			slices.Sort(to)
			return to
		}
		f.patchTenant(setting("eventsKeptSeconds", new(int64(500*86400))))
		f.patchTenant(setting("passwordResetSeconds", new(int64(600))))
		if got := mailed(); len(got) > 0 {
			t.Errorf("without a shorter retention: %q", got)
		}
		f.patchTenant(setting("eventsKeptSeconds", new(int64(100*86400))))
		want := []string{f.owner.User.Email + ": 100 days", second.Email + ": 100 days"}
		slices.Sort(want)
		if got := mailed(); !slices.Equal(got, want) {
			t.Errorf("mailed %q, want %q and not %s", got, want, member.Email)
		}
	})
}

// The notices of a change are written in its transaction, so their number is limited. The oldest owners get them,
// because an attacker can add new ones.
func TestAShorterRetentionIsMailedToTheOldestOwners(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		owner := rolecall.Role{ID: f.ownerRole()}
		mails := []string{f.owner.User.Email}
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			for i := range 150 {
				u := rolecall.User{
					ID: rolecall.NewID[rolecall.User](f.clock.Now()), Email: address(fmt.Sprint("owner", i)), Name: "Owner", Status: rolecall.UserActive,
					CreatedAt: start, UpdatedAt: start, Version: 1,
				}
				tx.InsertUser(u)
				tx.UpsertAssignment(rolecall.Assignment{Holder: rolecall.HolderOf(u.ID), Role: owner, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: start})
				mails = append(mails, u.Email)
			}
			return nil
		}))
		f.patchTenant(setting("eventsKeptSeconds", new(int64(100*86400))))
		var got []string
		for _, m := range f.mails() {
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
	onEachStore(t, func(f *fixture) {
		const elsewhere = "203.0.113.9"
		ada := f.member("ada")
		first, second := f.signIn("ada"), f.signIn("ada")
		c := f.call(second)
		c.Source = elsewhere
		f.ok(errorOf(f.Directory.UpdateUser(f.Context(), c, ada.ID, rolecall.UserPatch{Name: rolecall.Some("Ada Lovelace")}, nil)))
		f.is(f.guess("198.51.100.7", "ada", "wrong"), rolecall.ErrWrongCredentials)
		admin := f.owner
		admin.Source = elsewhere
		f.ok(errorOf(f.Directory.UpdateUser(f.Context(), admin, ada.ID, rolecall.UserPatch{Department: rolecall.Some(new("Sales"))}, nil)))
		program := f.ofProgram(f.userToken(f.owner, "*:*"))
		program.Source = elsewhere
		f.ok(errorOf(f.Directory.UpdateUser(f.Context(), program, ada.ID, rolecall.UserPatch{Department: rolecall.Some(new("Ops"))}, nil)))
		f.ok(f.SignIn.EndUserSession(f.Context(), admin, ada.ID, first.Principal.Session.ID))
		f.Access.Refused(admin, ada.ID, "test", "forbidden")
		f.ok(f.Access.Refusals.Flush(f.Context()))

		own := func(e rolecall.Event) bool {
			return e.Actor.ID == ada.ID || e.Actor.Type == rolecall.ActorAnonymous
		}
		for what, read := range map[string]func(access.Caller) []rolecall.Event{
			"the list": func(c access.Caller) []rolecall.Event {
				page, err := f.Directory.UserEvents(f.Context(), c, ada.ID, directory.EventListing{Limit: 100})
				f.ok(err)
				return page.Items
			},
			"the overview": func(c access.Caller) []rolecall.Event {
				o, err := f.Directory.Overview(f.Context(), c, ada.ID)
				f.ok(err)
				return o.RecentEvents
			},
		} {
			hidden, kept := 0, 0
			seen, all := read(f.call(second)), read(f.owner)
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
