package storetest

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var directoryCases = []testCase{
	{"A directory reads back in every member", func(f *fixture) {
		want := f.newDirectory("Acme Entra")
		same(f, f.directory(want.ID), want)
		changed := want
		changed.Name, changed.Matching, changed.Deprovisioning, changed.Paused = "Änderung", rolecall.MatchEmail, rolecall.DeprovisionDelete, true
		changed.UpdatedAt, changed.Version = start+1, 2
		update := func() bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateDirectory(want, changed) })
		}
		same(f, update(), true)
		same(f, f.directory(want.ID), changed)
		same(f, update(), false)
		_, err := f.tryDirectory(aDirectory("None").ID)
		f.is(err, rolecall.ErrNotFound)
	}},
	{"The names of directories are unique in a tenant, without regard to case", func(f *fixture) {
		first, second := f.newDirectory("Käufer"), f.newDirectory("Beta")
		same(f, f.directories(), []rolecall.Directory{first, second})
		taken := aDirectory("KÄUFER")
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertDirectory(taken) }), rolecall.ErrDirectoryNameTaken)
		f.in(f.newTenant("other")).write(func(tx *store.Tx) { tx.InsertDirectory(taken) })
		renamed := second
		renamed.Name, renamed.Version = "käufer", 2
		f.is(f.tryUpdate(func(tx *store.Tx) error { _, err := tx.UpdateDirectory(second, renamed); return err }), rolecall.ErrDirectoryNameTaken)
		same(f, f.directories(), []rolecall.Directory{first, second})
	}},
	{"A token is found by its hash, until it is deleted", func(f *fixture) {
		d, other := f.newDirectory("Acme"), f.newDirectory("Beta")
		token, hash := f.newDirectoryToken(d, start+day)
		operators := rolecall.DirectoryToken{ID: rolecall.NewID[rolecall.DirectoryToken](start), DirectoryID: d.ID, Name: "No user", CreatedAt: start, ExpiresAt: start - day}
		f.write(func(tx *store.Tx) { tx.InsertDirectoryToken(operators, aHash()) })
		gotDirectory, got, err := f.directoryByToken(hash)
		f.is(err, nil)
		same(f, gotDirectory, d)
		same(f, got, token)
		same(f, f.directoryTokens(d), []rolecall.DirectoryToken{token, operators})
		same(f, f.directoryTokens(other), []rolecall.DirectoryToken{})
		_, _, err = f.directoryByToken(aHash())
		f.is(err, rolecall.ErrNotFound)
		_, _, err = f.in(f.newTenant("other")).directoryByToken(hash)
		f.is(err, rolecall.ErrNotFound)
		revoke := func(d rolecall.Directory) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteDirectoryToken(d.ID, token.ID) })
		}
		same(f, revoke(other), false)
		same(f, revoke(d), true)
		same(f, revoke(d), false)
		_, _, err = f.directoryByToken(hash)
		f.is(err, rolecall.ErrNotFound)
		token.DirectoryID = aDirectory("None").ID
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertDirectoryToken(token, aHash()) }), rolecall.ErrNotFound)
	}},
	{"The time of the last use of a token is stored at intervals", func(f *fixture) {
		d := f.newDirectory("Acme")
		token, hash := f.newDirectoryToken(d, start+day)
		interval := rolecall.Time(0).Add(rolecall.TouchInterval)
		for _, step := range []struct{ at, want rolecall.Time }{{start, start}, {start + interval - 1, start}, {start + interval, start + interval}} {
			f.write(func(tx *store.Tx) { tx.TouchDirectoryToken(token.ID, step.at) })
			_, got, err := f.directoryByToken(hash)
			f.is(err, nil)
			same(f, got.LastUsedAt, step.want)
		}
	}},
	{"A token that expires soon is returned once", func(f *fixture) {
		d := f.newDirectory("Acme")
		soon, _ := f.newDirectoryToken(d, start+day)
		f.newDirectoryToken(d, start)
		later, _ := f.newDirectoryToken(d, start+day+1)
		warn := func(until, now rolecall.Time) []rolecall.DirectoryToken {
			return change(f, func(tx *store.Tx) ([]rolecall.DirectoryToken, error) { return tx.WarnDirectoryTokens(until, now) })
		}
		same(f, warn(start+day, start), []rolecall.DirectoryToken{soon})
		same(f, len(warn(start+day, start)), 0)
		same(f, len(f.in(f.newTenant("other")).directories()), 0)
		same(f, warn(start+2*day, start), []rolecall.DirectoryToken{later})
	}},
	{"Expired tokens are purged after 30 days", func(f *fixture) {
		d := f.newDirectory("Acme")
		f.newDirectoryToken(d, start)
		kept, _ := f.newDirectoryToken(d, start+1)
		same(f, f.purge(start+30*day-1, 0, 10), 0)
		same(f, f.purge(start+30*day, 0, 10), 1)
		same(f, f.directoryTokens(d), []rolecall.DirectoryToken{kept})
	}},
	{"The last requests of a directory are kept, the newest first", func(f *fixture) {
		d, other := f.newDirectory("Acme"), f.newDirectory("Beta")
		var all []rolecall.DirectoryRequest
		for i := range rolecall.DirectoryRequestsMax + 50 {
			all = append(all, rolecall.DirectoryRequest{
				DirectoryID: d.ID, At: start + rolecall.Time(i), Method: "PATCH", Path: "/Users/" + d.ID.String(), Status: 200 + i, Detail: fmt.Sprintf("Größe %d", i),
			})
		}
		for _, chunk := range [][]rolecall.DirectoryRequest{all[:1], all[1:1], all[1:120], all[120:]} {
			f.update(func(tx *store.Tx) error { return tx.RecordDirectoryRequests(d.ID, chunk) })
		}
		want := slices.Clone(all[len(all)-rolecall.DirectoryRequestsMax:])
		slices.Reverse(want)
		same(f, f.directoryRequests(d), want)
		same(f, f.directoryRequests(other), []rolecall.DirectoryRequest{})
		f.is(f.tryUpdate(func(tx *store.Tx) error { return tx.RecordDirectoryRequests(aDirectory("None").ID, all[:1]) }), rolecall.ErrNotFound)
	}},
	{"A hidden directory releases its users step by step", hidesDirectory},
	{"A stale directory is not hidden", func(f *fixture) {
		d := f.newDirectory("Acme")
		token, _ := f.newDirectoryToken(d, start+day)
		stale := d
		stale.Version = 7
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			if ok, err := tx.HideDirectory(stale, rolecall.NewID[rolecall.Event](start)); err != nil || ok {
				return err
			}
			return errRefused
		}), errRefused)
		same(f, f.directory(d.ID), d)
		same(f, f.directoryTokens(d), []rolecall.DirectoryToken{token})
	}},
	{"The groups of a source become groups without a source", releasesGroups},
	{"The name and the external ID of a group are unique among those of its source", func(f *fixture) {
		d, c := rolecall.SourceOf(f.newDirectory("Acme").ID), rolecall.SourceOf(f.newConnection("acme").ID)
		for _, source := range []rolecall.MemberSource{{}, d, c} {
			g := f.groupFrom(source, "Käufer", "1")
			same(f, f.group(g.ID), g)
			twice := aGroup("KÄUFER")
			twice.Source = source
			f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertGroup(twice) }), rolecall.ErrGroupNameTaken)
			twice.Name, twice.ExternalID = "Other", ptr("1")
			f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertGroup(twice) }), rolecall.ErrGroupExternalIDTaken)
			f.groupFrom(source, "Without", "")
		}
		same(f, f.groupNames(rolecall.GroupQuery{Source: d, ExternalID: "1"}), []string{"Käufer"})
		same(f, f.groupNames(rolecall.GroupQuery{ExternalID: "1"}), []string{"Käufer", "Käufer", "Käufer"})
		same(f, f.groupNames(rolecall.GroupQuery{Source: d, ByName: true}), []string{"Käufer", "Without"})
		same(f, f.groupNames(rolecall.GroupQuery{ByName: true}), []string{"Käufer", "Käufer", "Käufer", "Without", "Without", "Without"})
		same(f, f.groupNames(rolecall.GroupQuery{ByName: true, Desc: true, Words: []string{"kauf"}}), []string{"Käufer", "Käufer", "Käufer"})
	}},
}

var directoryUserCases = []testCase{
	{"The data of a user of a directory reads back", func(f *fixture) {
		d := f.newDirectory("Acme")
		u := f.managed(d, "Ada Lovelace")
		want := ofDirectory(d, u)
		same(f, f.userByID(u.ID).ManagedBy, ptr(d.ID))
		same(f, f.directoryUser(u), asRead(want))
		want.ExternalID, want.WorkEmail, want.Active, want.Suspended, want.Attributes = ptr("Größe"), "", false, true, `{"userName":"Größe"}`
		f.write(func(tx *store.Tx) { tx.SetDirectoryUser(want) })
		same(f, f.directoryUser(u), asRead(want))
		_, err := f.tryDirectoryUser(f.newUser("Grace Hopper"))
		f.is(err, rolecall.ErrNotFound)
		for _, unknown := range []rolecall.DirectoryUser{ofDirectory(d, aUser("None")), ofDirectory(aDirectory("None"), f.newUser("Eve Adams"))} {
			f.is(f.tryWrite(func(tx *store.Tx) { tx.SetDirectoryUser(unknown) }), rolecall.ErrNotFound)
		}
	}},
	{"A session and lists show which directory manages a user", func(f *fixture) {
		d := f.newDirectory("Acme")
		u := f.newUser("Ada Lovelace")
		_, hash := f.signIn(u, start)
		changed := u
		changed.ManagedBy, changed.Version = &d.ID, u.Version+1
		same(f, f.changeUser(u, changed), true)
		same(f, f.session(hash).User.ManagedBy, &d.ID)
		same(f, f.readAll(everyone(), nil)[0].ManagedBy, &d.ID)
		same(f, f.userByEmail(u.Email), changed)
		changed.ManagedBy, changed.Version = nil, changed.Version+1
		u.Version++
		same(f, f.changeUser(u, changed), true)
		same(f, f.session(hash).User.ManagedBy, (*rolecall.DirectoryID)(nil))
	}},
	{"A userName is unique in a directory, until the directory removes the user", func(f *fixture) {
		d, other := f.newDirectory("Acme"), f.newDirectory("Beta")
		ada, grace := f.managed(d, "Ada Lovelace"), f.managed(d, "Grace Hopper")
		of := func(d rolecall.Directory, u rolecall.User, name string) rolecall.DirectoryUser {
			data := ofDirectory(d, u)
			data.UserName, data.ExternalID, data.WorkEmail = name, ptr("1"), "work@example.com"
			return data
		}
		first := of(d, ada, "Käufer@example.com")
		f.write(func(tx *store.Tx) { tx.SetDirectoryUser(first) })
		taken := of(d, grace, "KÄUFER@example.com")
		f.is(f.tryWrite(func(tx *store.Tx) { tx.SetDirectoryUser(taken) }), rolecall.ErrUserNameTaken)
		elsewhere := of(other, f.managed(other, "Eve Adams"), "käufer@example.com")
		f.write(func(tx *store.Tx) { tx.SetDirectoryUser(elsewhere) })
		first.Removed = true
		f.write(func(tx *store.Tx) { tx.SetDirectoryUser(first) })
		f.write(func(tx *store.Tx) { tx.SetDirectoryUser(taken) })
		same(f, f.directoryUser(ada), asRead(first))
		first.Removed = false
		f.is(f.tryWrite(func(tx *store.Tx) { tx.SetDirectoryUser(first) }), rolecall.ErrUserNameTaken)
	}},
	{"The users of a directory are found by each filter", findsDirectoryUsers},
	{"The users of a directory are listed in pages, by the last one and by the number before", func(f *fixture) {
		d := f.newDirectory("Acme")
		var all []rolecall.UserID
		for i := range 7 {
			all = append(all, f.managed(d, fmt.Sprintf("User %d", i)).ID)
		}
		q := rolecall.DirectoryUserQuery{Directory: d.ID, Limit: 3}
		same(f, f.directoryUsers(q), all[:3])
		q.After = all[2]
		same(f, f.directoryUsers(q), all[3:6])
		q.After, q.Offset = rolecall.UserID{}, 5
		same(f, f.directoryUsers(q), all[5:])
		q.Offset = 7
		same(f, f.directoryUsers(q), nil)
		entries := read(f, func(tx *store.Tx) ([]rolecall.DirectoryEntry, error) {
			return tx.DirectoryUsers(rolecall.DirectoryUserQuery{Directory: d.ID, ID: all[4], Limit: 3})
		})
		same(f, entries, []rolecall.DirectoryEntry{{User: f.userByID(all[4]), Of: asRead(ofDirectory(d, f.userByID(all[4])))}})
	}},
	{"A directory knows which users are its own", func(f *fixture) {
		d, other := f.newDirectory("Acme"), f.newDirectory("Beta")
		var mine, all []rolecall.UserID
		for i := range 300 { // more than one statement has
			u := f.newUser(fmt.Sprintf("User %03d", i))
			all = append(all, u.ID)
			switch i % 3 {
			case 0:
				f.write(func(tx *store.Tx) { tx.SetDirectoryUser(ofDirectory(d, u)) })
				mine = append(mine, u.ID)
			case 1:
				removed := ofDirectory(d, u)
				removed.Removed = true
				f.write(func(tx *store.Tx) { tx.SetDirectoryUser(removed) })
			}
		}
		of := func(d rolecall.Directory, users []rolecall.UserID) []rolecall.UserID {
			found := read(f, func(tx *store.Tx) ([]rolecall.UserID, error) { return tx.AmongDirectoryUsers(d.ID, users) })
			return sorted(found)
		}
		same(f, of(d, all), mine)
		same(f, len(of(other, all)), 0)
		same(f, len(of(d, nil)), 0)
	}},
	{"The data of the directory is deleted with its user", func(f *fixture) {
		d := f.newDirectory("Acme")
		u := f.managed(d, "Ada Lovelace")
		f.deleteAt(u, start+hour)
		_, err := f.tryDirectoryUser(u)
		f.is(err, rolecall.ErrNotFound)
		same(f, f.countDirectoryUsers(rolecall.DirectoryUserQuery{Directory: d.ID}), 0)
		stone := read(f, func(tx *store.Tx) (rolecall.Tombstone, error) { return tx.Tombstone(u.ID, start) })
		restored := stone.Restored(start)
		same(f, restored.ManagedBy, (*rolecall.DirectoryID)(nil))
	}},
	{"Many members join and leave a group together", manyMembers},
	{"A group has its version changed when its members change", func(f *fixture) {
		g := f.newGroup("Support")
		touch := func(g rolecall.Group) bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.TouchGroup(g, start+hour) })
		}
		same(f, touch(g), true)
		same(f, touch(aGroup("None")), false)
		touched := g
		touched.UpdatedAt, touched.Version = start+hour, g.Version+1
		same(f, f.group(g.ID), touched)
		same(f, f.changeGroup(g, touched), false)
		f.hideGroup(touched)
		same(f, touch(g), false)
	}},
	{"Users who are in too many groups are known", func(f *fixture) {
		full, nearly, none := aUser("Ada Lovelace"), aUser("Grace Hopper"), f.newUser("Eve Adams")
		f.write(func(tx *store.Tx) {
			tx.InsertUsers([]rolecall.User{full, nearly})
			for i := range rolecall.GroupsOfUserMax + 1 {
				g := aGroup(fmt.Sprintf("Group %03d", i))
				tx.InsertGroup(g)
				tx.InsertMemberships([]rolecall.Membership{{Group: nameOf(g), User: full.ID, AddedAt: start}})
				if i > 0 {
					tx.InsertMemberships([]rolecall.Membership{{Group: nameOf(g), User: nearly.ID, AddedAt: start}})
				}
			}
		})
		users := []rolecall.UserID{none.ID, nearly.ID, full.ID}
		for range 250 {
			users = append(users, aUser("None").ID)
		}
		slices.Reverse(users)
		same(f, read(f, func(tx *store.Tx) ([]rolecall.UserID, error) { return tx.CrowdedUsers(users) }), []rolecall.UserID{full.ID})
		same(f, len(read(f, func(tx *store.Tx) ([]rolecall.UserID, error) { return tx.CrowdedUsers(nil) })), 0)
	}},
}

// hidesDirectory deletes a directory with users, of whom one was removed, in steps.
func hidesDirectory(f *fixture) {
	d, other := f.newDirectory("Acme"), f.newDirectory("Beta")
	token, hash := f.newDirectoryToken(d, start+day)
	var users []rolecall.User
	for i := range 5 {
		users = append(users, f.managed(d, fmt.Sprintf("User %d", i)))
	}
	removed := ofDirectory(d, users[1])
	removed.Removed = true
	f.write(func(tx *store.Tx) { tx.SetDirectoryUser(removed) })
	stays := f.managed(other, "Ada Lovelace")
	_, session := f.signIn(users[0], start)
	f.update(func(tx *store.Tx) error {
		return tx.RecordDirectoryRequests(d.ID, []rolecall.DirectoryRequest{{At: start, Method: "GET", Path: "/Users", Status: 200}})
	})
	hidden := func() (rolecall.DirectoryID, error) {
		return tryRead(f, (*store.Tx).HiddenDirectory)
	}
	_, err := hidden()
	f.is(err, rolecall.ErrNotFound)
	hide := func() bool {
		return change(f, func(tx *store.Tx) (bool, error) { return tx.HideDirectory(d, rolecall.NewID[rolecall.Event](start)) })
	}
	same(f, hide(), true)
	id, err := hidden()
	f.is(err, nil)
	same(f, id, d.ID)
	_, err = f.tryDirectory(d.ID)
	f.is(err, rolecall.ErrNotFound)
	_, _, err = f.directoryByToken(hash)
	f.is(err, rolecall.ErrNotFound)
	f.write(func(tx *store.Tx) { tx.TouchDirectoryToken(token.ID, start+day) })
	same(f, f.directories(), []rolecall.Directory{other})
	f.write(func(tx *store.Tx) { tx.InsertDirectory(aDirectory("ACME")) })
	same(f, f.session(session).User.ManagedBy, &d.ID)
	for _, want := range []int{2, 2, 1} {
		same(f, change(f, func(tx *store.Tx) (int, error) { return tx.ReleaseUsers(d.ID, 2) }), want)
	}
	_, err = hidden()
	f.is(err, nil)
	same(f, change(f, func(tx *store.Tx) (int, error) { return tx.ReleaseUsers(d.ID, 2) }), 0)
	_, err = hidden()
	f.is(err, rolecall.ErrNotFound)
	same(f, len(f.directoryRequests(d)), 0)
	for _, u := range users {
		same(f, f.userByID(u.ID).ManagedBy, (*rolecall.DirectoryID)(nil))
		same(f, f.userByID(u.ID).Version, u.Version+1)
		_, err := f.tryDirectoryUser(u)
		f.is(err, rolecall.ErrNotFound)
	}
	same(f, f.session(session).User.ManagedBy, (*rolecall.DirectoryID)(nil))
	same(f, f.userByID(stays.ID), stays)
	same(f, f.directoryUser(stays), asRead(ofDirectory(other, stays)))
}

// releasesGroups releases groups whose names and external ids groups without a source can have.
func releasesGroups(f *fixture) {
	d, other := rolecall.SourceOf(f.newDirectory("Acme").ID), rolecall.SourceOf(f.newDirectory("Beta").ID)
	f.groupFrom(rolecall.MemberSource{}, "Support", "1")
	f.groupFrom(rolecall.MemberSource{}, "Sales", "2")
	free := f.groupFrom(d, "Free", "9")
	without := f.groupFrom(d, "No external ID", "")
	both := f.groupFrom(d, "SUPPORT", "1")
	name := f.groupFrom(d, "Sales", "7")
	external := f.groupFrom(d, "Taken", "2")
	third := f.groupFrom(other, "Free", "9")
	hidden := f.groupFrom(d, "Hidden", "5")
	f.hideGroup(hidden)
	u := f.newUser("Ada Lovelace")
	_, hash := f.signIn(u, start)
	f.join(rolecall.Membership{Group: nameOf(name), User: u.ID, AddedAt: start})
	release := func() {
		f.update(func(tx *store.Tx) error {
			return tx.ReleaseGroups(d, func(g rolecall.Group) string { return g.Name + " (" + g.ID.String() + ")" })
		})
	}
	release()
	renamed := func(g rolecall.Group) string { return g.Name + " (" + g.ID.String() + ")" }
	for _, want := range []struct {
		g          rolecall.Group
		name       string
		externalID *string
	}{
		{free, "Free", ptr("9")}, {without, "No external ID", nil}, {both, renamed(both), nil}, {name, renamed(name), ptr("7")}, {external, "Taken", nil},
	} {
		g := want.g
		g.Name, g.ExternalID, g.Source, g.Version = want.name, want.externalID, rolecall.MemberSource{}, g.Version+1
		same(f, f.group(g.ID), g)
	}
	same(f, f.group(third.ID), third)
	same(f, f.groupNames(rolecall.GroupQuery{Words: []string{"sales", name.ID.String()[:8]}}), []string{renamed(name)})
	state := read(f, func(tx *store.Tx) (rolecall.SessionState, error) { return tx.SessionWithRoles(hash, rolecall.MaxScan) })
	same(f, state.Groups, []rolecall.GroupName{{ID: name.ID, Name: renamed(name)}})
	release()
	same(f, f.group(free.ID).Version, free.Version+1)
}

// findsDirectoryUsers compares what each filter finds and counts.
func findsDirectoryUsers(f *fixture) {
	d, other := f.newDirectory("Acme"), f.newDirectory("Beta")
	ada, grace, eve := f.managed(d, "Ada Lovelace"), f.managed(d, "Grace Hopper"), f.managed(d, "Eve Adams")
	gone := f.managed(d, "Removed")
	for _, u := range []struct {
		user       rolecall.User
		name       string
		externalID *string
		work       string
		active     bool
		removed    bool
	}{
		{ada, "Käufer", ptr("1"), "Work@Example.com", true, false},
		{grace, "grace", ptr("1"), "work@example.com", false, false},
		{eve, "eve", nil, "", true, false},
		{gone, "gone", ptr("1"), "work@example.com", true, true},
	} {
		data := ofDirectory(d, u.user)
		data.UserName, data.ExternalID, data.WorkEmail, data.Active, data.Removed = u.name, u.externalID, u.work, u.active, u.removed
		f.write(func(tx *store.Tx) { tx.SetDirectoryUser(data) })
	}
	f.managed(other, "Alan Turing")
	f.newUser("No Directory")
	for name, test := range map[string]struct {
		q    rolecall.DirectoryUserQuery
		want []rolecall.UserID
	}{
		"all":                         {rolecall.DirectoryUserQuery{}, []rolecall.UserID{ada.ID, grace.ID, eve.ID}},
		"an id":                       {rolecall.DirectoryUserQuery{ID: grace.ID}, []rolecall.UserID{grace.ID}},
		"the id of a removed user":    {rolecall.DirectoryUserQuery{ID: gone.ID}, nil},
		"a userName":                  {rolecall.DirectoryUserQuery{UserName: "KÄUFER"}, []rolecall.UserID{ada.ID}},
		"the userName of a removed":   {rolecall.DirectoryUserQuery{UserName: "gone"}, nil},
		"an external id":              {rolecall.DirectoryUserQuery{ExternalID: "1"}, []rolecall.UserID{ada.ID, grace.ID}},
		"an address":                  {rolecall.DirectoryUserQuery{WorkEmail: "WORK@example.com"}, []rolecall.UserID{ada.ID, grace.ID}},
		"active users":                {rolecall.DirectoryUserQuery{Active: rolecall.Some(true)}, []rolecall.UserID{ada.ID, eve.ID}},
		"inactive users":              {rolecall.DirectoryUserQuery{Active: rolecall.Some(false)}, []rolecall.UserID{grace.ID}},
		"an external id and a status": {rolecall.DirectoryUserQuery{ExternalID: "1", Active: rolecall.Some(true)}, []rolecall.UserID{ada.ID}},
	} {
		test.q.Directory, test.q.Limit = d.ID, 10
		if got := f.directoryUsers(test.q); !slices.Equal(got, test.want) || f.countDirectoryUsers(test.q) != len(test.want) {
			f.Errorf("%s: found %v and counted %d, want %v", name, got, f.countDirectoryUsers(test.q), test.want)
		}
	}
}

// manyMembers adds and removes more members than one statement has.
func manyMembers(f *fixture) {
	g, role, stranger := f.newGroup("Support"), f.newRole("Agent"), f.newUser("Grace Hopper")
	f.write(func(tx *store.Tx) { tx.UpsertAssignment(ofGroup(g, role)) })
	users := sorted(ids(f.crowd(260)))
	f.join(rolecall.Membership{Group: nameOf(g), User: users[0], AddedAt: start})
	other := f.newGroup("Sales")
	f.join(rolecall.Membership{Group: nameOf(other), User: users[0], AddedAt: start})
	add := func(users []rolecall.UserID) []rolecall.UserID {
		return sorted(change(f, func(tx *store.Tx) ([]rolecall.UserID, error) {
			return tx.AddMembers(g.ID, users, stranger.ID, start+minute)
		}))
	}
	members := func(limit int) []rolecall.UserID {
		return read(f, func(tx *store.Tx) ([]rolecall.UserID, error) { return tx.MemberIDs(g.ID, limit) })
	}
	remove := func(users []rolecall.UserID) []rolecall.UserID {
		return sorted(change(f, func(tx *store.Tx) ([]rolecall.UserID, error) { return tx.RemoveMembers(g.ID, users, start+hour) }))
	}
	same(f, add(users), users[1:])
	same(f, len(add(users)), 0)
	same(f, len(add(nil)), 0)
	same(f, members(1000), users)
	same(f, members(3), users[:3])
	added := read(f, func(tx *store.Tx) (rolecall.Membership, error) { return tx.Membership(users[1], g.ID) })
	same(f, added, rolecall.Membership{Group: nameOf(g), User: users[1], AddedBy: stranger.ID, AddedAt: start + minute})
	same(f, len(f.assignments(users[1])), 1)
	for _, unknown := range []struct {
		group rolecall.GroupID
		user  rolecall.UserID
	}{{aGroup("None").ID, users[0]}, {g.ID, aUser("None").ID}} {
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			_, err := tx.AddMembers(unknown.group, []rolecall.UserID{unknown.user}, stranger.ID, start)
			return err
		}), rolecall.ErrNotFound)
	}
	same(f, remove(append(slices.Clone(users[5:]), stranger.ID)), users[5:])
	same(f, len(remove(users[5:])), 0)
	same(f, len(remove(nil)), 0)
	same(f, members(1000), users[:5])
	same(f, len(f.assignments(users[5])), 0)
	same(f, len(f.assignmentsAt(users[5], start+2*minute)), 1)
	same(f, len(f.assignmentsAt(users[5], start+hour)), 0)
	same(f, len(f.memberships(users[0])), 2)
}

// sorted sorts the ids in place, and returns them.
func sorted(users []rolecall.UserID) []rolecall.UserID {
	slices.SortFunc(users, func(a, b rolecall.UserID) int { return bytes.Compare(a[:], b[:]) })
	return users
}

// aDirectory returns a directory that is not stored yet.
func aDirectory(name string) rolecall.Directory {
	draft := rolecall.DirectoryDraft{Name: name}
	return draft.Directory(start)
}

func (f *fixture) newDirectory(name string) rolecall.Directory {
	f.Helper()
	d := aDirectory(name)
	f.write(func(tx *store.Tx) { tx.InsertDirectory(d) })
	return d
}

func (f *fixture) directory(id rolecall.DirectoryID) rolecall.Directory {
	f.Helper()
	d, err := f.tryDirectory(id)
	f.is(err, nil)
	return d
}

func (f *fixture) tryDirectory(id rolecall.DirectoryID) (rolecall.Directory, error) {
	f.Helper()
	return tryRead(f, func(tx *store.Tx) (rolecall.Directory, error) { return tx.Directory(id) })
}

func (f *fixture) directories() []rolecall.Directory {
	f.Helper()
	return read(f, (*store.Tx).Directories)
}

// newDirectoryToken writes a token of a user, and returns it with the hash of its secret.
func (f *fixture) newDirectoryToken(d rolecall.Directory, expiresAt rolecall.Time) (rolecall.DirectoryToken, []byte) {
	f.Helper()
	draft := rolecall.DirectoryTokenDraft{Name: "Entra", ExpiresAt: expiresAt}
	token, hash := draft.DirectoryToken(d.ID, start), aHash()
	token.CreatedBy = rolecall.NewID[rolecall.User](start)
	f.write(func(tx *store.Tx) { tx.InsertDirectoryToken(token, hash) })
	return token, hash
}

func (f *fixture) directoryTokens(d rolecall.Directory) []rolecall.DirectoryToken {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.DirectoryToken, error) { return tx.DirectoryTokens(d.ID) })
}

func (f *fixture) directoryByToken(hash []byte) (d rolecall.Directory, token rolecall.DirectoryToken, err error) {
	f.Helper()
	d, err = tryRead(f, func(tx *store.Tx) (d rolecall.Directory, err error) {
		d, token, err = tx.DirectoryByToken(hash)
		return d, err
	})
	return d, token, err
}

func (f *fixture) directoryRequests(d rolecall.Directory) []rolecall.DirectoryRequest {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.DirectoryRequest, error) { return tx.DirectoryRequests(d.ID) })
}

// ofDirectory returns data of a directory about the user that is not stored yet.
func ofDirectory(d rolecall.Directory, u rolecall.User) rolecall.DirectoryUser {
	return rolecall.DirectoryUser{
		User: u.ID, Directory: d.ID, UserName: u.Email, ExternalID: ptr("x-" + u.ID.String()), WorkEmail: u.Email, Active: true, Attributes: `{"userName":"` + u.Email + `"}`,
	}
}

// asRead returns the data without the members that are only keys.
func asRead(u rolecall.DirectoryUser) rolecall.DirectoryUser {
	u.UserName, u.WorkEmail = "", ""
	return u
}

// managed writes a user of the directory.
func (f *fixture) managed(d rolecall.Directory, name string) rolecall.User {
	f.Helper()
	u := aUser(name)
	u.ManagedBy = &d.ID
	f.write(func(tx *store.Tx) {
		tx.InsertUser(u)
		tx.SetDirectoryUser(ofDirectory(d, u))
	})
	return u
}

func (f *fixture) directoryUser(u rolecall.User) rolecall.DirectoryUser {
	f.Helper()
	data, err := f.tryDirectoryUser(u)
	f.is(err, nil)
	return data
}

func (f *fixture) tryDirectoryUser(u rolecall.User) (rolecall.DirectoryUser, error) {
	f.Helper()
	return tryRead(f, func(tx *store.Tx) (rolecall.DirectoryUser, error) { return tx.DirectoryUser(u.ID) })
}

// directoryUsers returns the ids of the users that q selects.
func (f *fixture) directoryUsers(q rolecall.DirectoryUserQuery) (found []rolecall.UserID) {
	f.Helper()
	for _, entry := range read(f, func(tx *store.Tx) ([]rolecall.DirectoryEntry, error) { return tx.DirectoryUsers(q) }) {
		found = append(found, entry.User.ID)
	}
	return found
}

func (f *fixture) countDirectoryUsers(q rolecall.DirectoryUserQuery) int {
	f.Helper()
	return read(f, func(tx *store.Tx) (int, error) { return tx.CountDirectoryUsers(q) })
}

// groupFrom writes a group of the source. With an empty externalID, it has none.
func (f *fixture) groupFrom(source rolecall.MemberSource, name, externalID string) rolecall.Group {
	f.Helper()
	g := aGroup(name)
	g.Source = source
	if externalID != "" {
		g.ExternalID = &externalID
	}
	f.write(func(tx *store.Tx) { tx.InsertGroup(g) })
	return g
}
