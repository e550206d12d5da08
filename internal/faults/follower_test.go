package faults

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
)

// followed is what a client has read of the change feed of a tenant.
type followed struct {
	cursor string
	items  []followedChange
}

type followedChange struct {
	ID, Type, Subject string
	Data              struct {
		Tenant        string
		Before, After map[string]any
	}
}

// follow reads the next changes. After a request without a response, it continues at the same cursor.
func (tn *tenant) follow(*rand.Rand) {
	if !tn.followOnce("&wait=1") {
		tn.load.pause()
	}
}

// followOnce reads the next changes, and reports whether it got a response.
func (tn *tenant) followOnce(wait string) bool {
	path := "GET /changes?limit=100" + wait
	if tn.feed.cursor != "" {
		path += "&after=" + url.QueryEscape(tn.feed.cursor)
	}
	of := tn.owner.sendTo(tn.load.followedURL(), path, "")
	switch {
	case !of.known || of.status == 0:
		return false
	case of.status != http.StatusOK:
		tn.load.t.Errorf("%s: the changes answered %d: %s", tn.name, of.status, of.body)
		return false
	}
	var page struct {
		Items      []followedChange
		NextCursor string
	}
	of.decode(&page)
	tn.feed.items = append(tn.feed.items, page.Items...)
	tn.feed.cursor = page.NextCursor
	return true
}

// followedURL returns the URL at which the clients follow changes.
func (l *load) followedURL() string {
	if l.far != nil {
		return l.far.URL()
	}
	return l.url
}

// followTenants reads the next changes of all tenants.
func (l *load) followTenants(wait string) bool {
	path := "GET /operator/changes?limit=100" + wait
	if l.feed.cursor != "" {
		path += "&after=" + url.QueryEscape(l.feed.cursor)
	}
	of := (caller{load: l}).sendTo(l.followedURL(), path, "", l.operator)
	switch {
	case !of.known || of.status == 0:
		return false
	case of.status != http.StatusOK:
		l.t.Errorf("the changes of all tenants answered %d: %s", of.status, of.body)
		return false
	}
	var page struct {
		Items      []followedChange
		NextCursor string
	}
	of.decode(&page)
	l.feed.items = append(l.feed.items, page.Items...)
	l.feed.cursor = page.NextCursor
	return true
}

// checkTenantsFeed reads the rest of the changes of all tenants, and compares them with those that the
// followers of the tenants read: each tenant has the same changes in the same order. Events can still
// follow, such as those of refused requests. So the changes that the follower of a tenant has read before
// must be the first ones of the other follower, and the changes of this follower must be the first ones that
// the follower of the tenant has read afterwards.
func (l *load) checkTenantsFeed() {
	before := map[string][]string{}
	for _, tn := range l.tenants {
		before[tn.name] = tn.readRest()
	}
	for read := -1; read != len(l.feed.items); {
		read = len(l.feed.items)
		if !l.followTenants("") {
			l.t.Fatal("no changes of all tenants after all faults")
		}
	}
	all := map[string][]string{}
	for _, c := range l.feed.items {
		all[c.Data.Tenant] = append(all[c.Data.Tenant], c.ID)
	}
	for _, tn := range l.tenants {
		got, first, after := all[tn.name], before[tn.name], tn.readRest()
		if len(got) < len(first) || len(got) > len(after) || !slices.Equal(got[:len(first)], first) || !slices.Equal(got, after[:len(got)]) {
			l.lost += max(0, len(first)-len(got))
			l.doubled += max(0, len(got)-len(after))
			l.t.Errorf("%s: the follower of all tenants has read %q, and that of the tenant at first %q and then %q", tn.name, got, first, after)
		}
	}
}

// readRest reads the rest of the changes of the tenant, and returns the ids of all.
func (tn *tenant) readRest() (ids []string) {
	for read := -1; read != len(tn.feed.items); {
		read = len(tn.feed.items)
		if !tn.followOnce("") {
			tn.load.t.Fatalf("%s: no changes after all faults", tn.name)
		}
	}
	for _, c := range tn.feed.items {
		ids = append(ids, c.ID)
	}
	return ids
}

// checkFeed reads the rest of the changes, and compares them with the list of events. Each event
// must have been read once. The events about a user must be in the order of their causes: each value
// before a change is the value after the last one.
func (tn *tenant) checkFeed() {
	l := tn.load
	tn.readRest()
	read := map[string]int{}
	values := map[string]any{}
	for _, c := range tn.feed.items {
		read[c.ID]++
		for _, member := range []string{"name", "department"} {
			key := c.Subject + " " + member
			before, had := c.Data.Before[member]
			if last, known := values[key]; had && known && before != last {
				l.t.Errorf("%s: in the changes, %s is changed from %v, and was %v", tn.name, key, before, last)
			}
			if after, has := c.Data.After[member]; has {
				values[key] = after
			}
		}
	}
	listed := 0
	tn.readAll("/events?limit=200", func(page result) {
		var list struct{ Items []struct{ ID string } }
		page.decode(&list)
		for _, e := range list.Items {
			listed++
			switch n := read[e.ID]; {
			case n == 0:
				l.lost++
				l.t.Errorf("%s: the event %s is not in the changes", tn.name, e.ID)
			case n > 1:
				l.doubled++
				l.t.Errorf("%s: the event %s is in the changes %d times", tn.name, e.ID, n)
			}
		}
	})
	if listed != len(read) {
		l.t.Errorf("%s: the changes have %d events, and the list has %d", tn.name, len(read), listed)
	}
	tn.checkLog()
}

// checkLog verifies the audit log, also against the checkpoint of the call before.
func (tn *tenant) checkLog() {
	l := tn.load
	verify := []string{"events", "verify", "--tenant", tn.name}
	if tn.checkpoint != "" {
		verify = append(verify, "--checkpoint", tn.checkpoint)
	} else {
		tn.checkpoint = filepath.Join(l.t.TempDir(), tn.name)
	}
	of := tn.owner.send("GET /events/checkpoint", "")
	if _, err := l.server.Run(context.WithoutCancel(l.t.Context()), "", verify...); err != nil || of.status != http.StatusOK {
		l.t.Errorf("%s: the audit log does not verify: %v (the checkpoint answered %d)", tn.name, err, of.status)
	}
	if err := os.WriteFile(tn.checkpoint, []byte(of.body), 0o600); err != nil {
		l.t.Fatal(err)
	}
}
