package faults

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
)

// check reads all data after all requests have ended, and compares it with the
// acknowledged results.
func (tn *tenant) check() {
	tn.load.t.Helper()
	tn.resolve()
	tn.closeKeys()
	tn.checkUsers()
	tn.checkEvents()
	if tn.load.follows {
		tn.checkFeed()
	}
	for range cap(tn.grantees) {
		g := <-tn.grantees
		g.listRoles()
		tn.grantees <- g
	}
	l := tn.load
	for _, check := range []func() (checked, refuted int){
		func() (int, int) { return tn.users.check(l.t) }, func() (int, int) { return tn.addresses.check(l.t) },
		func() (int, int) { return tn.keys.check(l.t) }, func() (int, int) { return tn.sessions.check(l.t) },
		func() (int, int) { return tn.grants.check(l.t) }, func() (int, int) { return tn.rights.check(l.t) },
	} {
		checked, refuted := check()
		l.histories += checked
		l.refuted += refuted
	}
}

// resolve repeats every creation with an unknown outcome. A creation that is rejected
// now was never made, and never will be.
func (tn *tenant) resolve() {
	for _, c := range tn.pending {
		switch of := tn.tryCreate(c); {
		case of.status == http.StatusCreated:
			tn.make(c, of)
		case of.status != http.StatusConflict || of.code() != "email-taken":
			tn.load.t.Errorf("the creation with %s cannot be repeated: %d %s", c.key, of.status, of.body)
		}
	}
}

// checkUsers compares the existing users with those that were created.
func (tn *tenant) checkUsers() {
	l := tn.load
	there := map[string]string{tn.ownerID: ""}
	ids := map[string]string{}
	whole := tn.readAll("/users?limit=200", func(page result) {
		var list struct{ Items []user }
		page.decode(&list)
		for _, u := range list.Items {
			if _, known := tn.known[u.ID]; !known && u.ID != tn.ownerID {
				l.doubled++
				l.t.Errorf("%s: the user %s (%s) is there, and no answer told of it", tn.name, u.ID, u.Email)
			}
			if other, held := ids[u.Email]; held {
				l.doubled++
				l.t.Errorf("%s: %s and %s have the address %s", tn.name, other, u.ID, u.Email)
			}
			ids[u.Email], there[u.ID] = u.ID, u.Email
			u.note("")
			tn.users.add(u.ID, page, userRead(u.userState), "listed %+v", u.userState)
		}
	})
	for id, address := range tn.known {
		if _, ok := there[id]; ok {
			continue
		}
		tn.users.add(id, whole, userGone, "not listed")
		if tn.tally["user.deleted"][id].most == 0 {
			l.lost++
			l.t.Errorf("%s: the user %s (%s) was acknowledged and is lost", tn.name, id, address)
		}
	}
	delete(tn.users.ops, tn.ownerID)
	for address := range tn.addresses.ops {
		tn.addresses.add(address, whole, addressFound(ids[address]), "listed %q", ids[address])
	}
}

// readAll calls see with every page of a list. It returns the first page, with the end time
// of the last one.
func (tn *tenant) readAll(path string, see func(page result)) (whole result) {
	l := tn.load
	for next := ""; ; {
		page := tn.owner.send("GET "+path+next, "")
		if page.status != http.StatusOK {
			l.t.Fatalf("%s: %s answered %d after all faults: %s", tn.name, path, page.status, page.body)
		}
		if see(page); whole.start == 0 {
			whole = page
		}
		whole.end = page.end
		var list struct{ NextCursor *string }
		page.decode(&list)
		if list.NextCursor == nil {
			return whole
		}
		next = "&cursor=" + url.QueryEscape(*list.NextCursor)
	}
}

// checkEvents compares the events with the acknowledged changes. Each change must have one event,
// and a change that was not made must not have one.
func (tn *tenant) checkEvents() {
	l := tn.load
	told := map[string]map[string]int{}
	tn.readAll("/events?limit=200", func(page result) {
		var list struct {
			Items []struct {
				Type    string
				Subject struct{ ID string }
			}
		}
		page.decode(&list)
		for _, e := range list.Items {
			if told[e.Type] == nil {
				told[e.Type] = map[string]int{}
			}
			told[e.Type][e.Subject.ID]++
		}
	})
	for kind := range tn.tally {
		delete(told[kind], tn.ownerID) // the events of the owner, who was created with the tenant and signs in
		for id := range maps.Keys(told[kind]) {
			if _, expected := tn.tally[kind][id]; !expected {
				l.doubled++
				l.t.Errorf("%s: %s tells of %s, which nobody asked for", tn.name, kind, id)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(tn.tally[kind])) {
			n, want := told[kind][id], tn.tally[kind][id]
			if n < want.least {
				l.lost++
			} else if n > want.most {
				l.doubled++
			}
			if n < want.least || n > want.most {
				l.t.Errorf("%s: %d events %s tell of %s, not %d to %d", tn.name, n, kind, id, want.least, want.most)
			}
		}
	}
}
