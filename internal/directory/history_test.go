package directory_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
)

// period is a time in which a user had a role.
type period struct{ from, to, expires rolecall.Time }

func (p period) includes(at rolecall.Time) bool { return p.from <= at && at < p.to && at < p.expires }

// history is what a test did to assignments, and changes of assignments at random.
type history struct {
	*nodetest.Fixture
	random  *rand.Rand
	users   []rolecall.UserID
	roles   []rolecall.Role
	deleted map[rolecall.UserID]bool
	periods map[rolecall.UserID]map[rolecall.RoleID][]period
	names   map[rolecall.RoleID]string // of all roles, also of deleted ones
	changes []rolecall.Time
}

func newHistory(f *nodetest.Fixture, users, roles int) *history {
	h := &history{Fixture: f, random: rand.New(rand.NewPCG(1, 2)), deleted: map[rolecall.UserID]bool{},
		periods: map[rolecall.UserID]map[rolecall.RoleID][]period{}, names: map[rolecall.RoleID]string{}}
	for i := range users {
		id := f.NewUser(fmt.Sprintf("user-%d", i)).ID
		h.users, h.periods[id] = append(h.users, id), map[rolecall.RoleID][]period{}
	}
	for range roles {
		h.addRole()
	}
	return h
}

func (h *history) addRole() {
	role := h.NewRole(fmt.Sprintf("Role %d", len(h.names)), "shop/a:b")
	h.roles, h.names[role.ID] = append(h.roles, role), role.Name
}

// end ends the periods of the user's role, or of all roles of the user, that have not ended.
func (h *history) end(user rolecall.UserID, roles ...rolecall.RoleID) {
	for _, role := range roles {
		for i, p := range h.periods[user][role] {
			h.periods[user][role][i].to = min(p.to, h.Clock.Now())
		}
	}
}

// change makes one change at random.
func (h *history) change() {
	h.Clock.Advance(time.Duration(1+h.random.IntN(7200)) * time.Second)
	h.changes = append(h.changes, h.Clock.Now())
	user, role := h.users[h.random.IntN(len(h.users))], h.roles[h.random.IntN(len(h.roles))]
	switch what := h.random.IntN(100); {
	case what < 4: // delete a role of all its holders
		for id := range h.periods {
			h.end(id, role.ID)
		}
		h.OK(h.Directory.DeleteRole(h.Context(), h.Owner, role.ID, true, nil))
		h.roles = slices.DeleteFunc(h.roles, func(r rolecall.Role) bool { return r.ID == role.ID })
		h.addRole()
	case h.deleted[user]:
		before := h.periods[user]
		restored, err := h.Directory.RestoreUser(h.Context(), h.Owner, user)
		h.OK(err)
		delete(h.deleted, user)
		now := h.Clock.Now()
		for role, all := range before {
			last := all[len(all)-1]
			if last.expires > now && !slices.Contains(restored.RolesNotRestored, role) && slices.Contains(rolesIn(assignmentsOf(h.Fixture, user)), role) {
				before[role] = append(all, period{now, rolecall.Never, last.expires})
			}
		}
	case what < 10:
		h.end(user, slices.Collect(maps.Keys(h.periods[user]))...)
		h.DeleteUser(user)
		h.deleted[user] = true
	case what < 40 && slices.Contains(rolesIn(assignmentsOf(h.Fixture, user)), role.ID):
		h.end(user, role.ID)
		h.OK(h.Directory.UnassignRole(h.Context(), h.Owner, rolecall.HolderOf(user), role.ID))
	default:
		var draft rolecall.AssignmentDraft
		p := period{h.Clock.Now(), rolecall.Never, rolecall.Never}
		if h.random.IntN(3) == 0 {
			p.expires = p.from.Add(time.Duration(1+h.random.IntN(200)) * time.Hour)
			draft.ExpiresAt = &p.expires
		}
		h.end(user, role.ID)
		h.Assign(user, role.ID, draft)
		h.periods[user][role.ID] = append(h.periods[user][role.ID], p)
	}
}

// held returns the names of the roles that the user had at the time.
func (h *history) held(user rolecall.UserID, at rolecall.Time) (names []string) {
	for role, all := range h.periods[user] {
		if slices.ContainsFunc(all, func(p period) bool { return p.includes(at) }) {
			names = append(names, h.names[role])
		}
	}
	slices.Sort(names)
	return names
}

// check compares the roles of a user and the users of a role at a time with the history.
func (h *history) check(at rolecall.Time) {
	h.Helper()
	user := h.users[h.random.IntN(len(h.users))]
	for h.deleted[user] {
		user = h.users[h.random.IntN(len(h.users))]
	}
	held, err := h.Directory.AssignmentsAt(h.Context(), h.Owner, user, at)
	h.OK(err)
	var names []string
	for _, a := range held {
		names = append(names, a.Role.Name)
	}
	slices.Sort(names)
	if want := h.held(user, at); !slices.Equal(names, want) {
		h.Fatalf("at %v, user %v has %q, want %q", at, user, names, want)
	}
	ids := slices.Collect(maps.Keys(h.names))
	role := ids[h.random.IntN(len(ids))]
	var want, got []rolecall.UserID
	for id := range h.periods {
		if !h.deleted[id] && slices.Contains(h.held(id, at), h.names[role]) {
			want = append(want, id)
		}
	}
	l := directory.UserListing{HeldAt: at, Limit: 3}
	for {
		page, err := h.Directory.RoleUsers(h.Context(), h.Owner, role, l)
		if err != nil && len(want) == 0 { // a deleted role that no user ever had
			h.Is(err, rolecall.ErrNotFound)
		} else {
			h.OK(err)
		}
		for _, u := range page.Items {
			got = append(got, u.ID)
		}
		if l.After = page.Next; l.After == nil {
			break
		}
	}
	slices.SortFunc(want, compareIDs)
	if !slices.Equal(got, want) {
		h.Fatalf("at %v, role %v has the users %v, want %v", at, h.names[role], got, want)
	}
}

func compareIDs(a, b rolecall.UserID) int { return slices.Compare(a[:], b[:]) }

func TestAssignmentsAtATimeMatchTheHistory(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		const changes, checks = 400, 2_000
		h := newHistory(f, 8, 5)
		for range changes {
			h.change()
		}
		began, now := nodetest.Start, f.Clock.Now()
		for range checks {
			at := began + rolecall.Time(h.random.Int64N(int64(now-began)+1))
			if h.random.IntN(3) == 0 {
				at = h.changes[h.random.IntN(len(h.changes))]
			}
			h.check(at)
		}
	})
}

func TestAssignmentsAreKeptAsLongAsEvents(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		kept := int64(86400)
		f.SetSettings(rolecall.TenantSettings{EventsKept: &kept})
		f.Owner.Tenant = f.Tenant
		user, role := f.NewUser("ada").ID, f.NewRole("Kept", "shop/a:b")
		f.Assign(user, role.ID, rolecall.AssignmentDraft{})
		f.Clock.Advance(time.Hour)
		f.OK(f.Directory.UnassignRole(f.Context(), f.Owner, rolecall.HolderOf(user), role.ID))
		at := func(at rolecall.Time) ([]rolecall.RoleID, error) {
			held, err := f.Directory.AssignmentsAt(f.Context(), f.Owner, user, at)
			if _, listed := f.Directory.RoleUsers(f.Context(), f.Owner, role.ID, directory.UserListing{HeldAt: at, Limit: 1}); fmt.Sprint(listed) != fmt.Sprint(err) {
				t.Errorf("the users of the role give %v, the roles of the user %v", listed, err)
			}
			return rolesIn(held), err
		}
		f.Clock.Advance(23 * time.Hour)
		f.OK(f.Node.Purge(f.Context()))
		held, err := at(nodetest.Start)
		f.OK(err)
		if !slices.Equal(held, []rolecall.RoleID{role.ID}) {
			t.Errorf("held %v", held)
		}
		f.Is(nodetest.ErrorOf(at(nodetest.Start-1)), rolecall.ErrHistoryExpired)
		f.Is(nodetest.ErrorOf(at(f.Clock.Now()+1)), rolecall.ErrMalformed)
		f.Clock.Advance(2 * time.Hour)
		f.OK(f.Node.Purge(f.Context()))
		f.Is(nodetest.ErrorOf(at(nodetest.Start)), rolecall.ErrHistoryExpired)
		f.OK(nodetest.ErrorOf(at(nodetest.Start.Add(2 * time.Hour))))
		f.Is(nodetest.ErrorOf(at(1)), rolecall.ErrHistoryExpired)
	})
}
