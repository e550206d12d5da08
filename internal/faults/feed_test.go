package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// catchUp reads all changes of the tenant and of all tenants.
func (tn *tenant) catchUp() {
	l := tn.load
	l.t.Helper()
	for before := -1; before != len(tn.feed.items)+len(l.feed.items); {
		before = len(tn.feed.items) + len(l.feed.items)
		if !tn.followOnce("") || !l.followTenants("") {
			l.t.Fatal("no changes")
		}
	}
}

// hire creates a user and returns the ID.
func (tn *tenant) hire(name string) string {
	tn.load.t.Helper()
	var u struct{ ID string }
	tn.must(201, "POST /users", fmt.Sprintf(`{"email":"%s@faults.example","name":"User %[1]s"}`, name), "idempotency-key: "+name).decode(&u)
	return u.ID
}

// copied returns a copy of the database, as --database names it. No program may use the database.
func copied(t *testing.T, database string) string {
	t.Helper()
	if !strings.HasPrefix(database, "postgres:") {
		earlier := database + ".earlier"
		for _, suffix := range []string{"", "-wal"} {
			content, err := os.ReadFile(database + suffix)
			if os.IsNotExist(err) && suffix != "" {
				continue
			}
			if err == nil {
				err = os.WriteFile(earlier+suffix, content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return earlier
	}
	original := parse(t, database)
	admin := parse(t, pgtest.Admin(t, database))
	admin.Path = "/postgres"
	name := strings.TrimPrefix(original.Path, "/")
	run := func(statement string) {
		conn, err := pgx.Connect(context.WithoutCancel(t.Context()), admin.String())
		if err == nil {
			_, err = conn.Exec(context.WithoutCancel(t.Context()), statement)
		}
		if err == nil {
			err = conn.Close(context.WithoutCancel(t.Context()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	earlier := pgx.Identifier{name + "_earlier"}.Sanitize()
	run("create database " + earlier + " owner " + pgx.Identifier{original.User.Username()}.Sanitize() + " template " + pgx.Identifier{name}.Sanitize())
	t.Cleanup(func() { run("drop database " + earlier + " with (force)") })
	original.Path += "_earlier"
	return original.String()
}

// TestFollowersOfADatabaseThatLostCommits replaces the database by an earlier copy, as a failover that
// loses commits does. Followers that have read a lost change get 410, also after other changes have
// taken its place.
func TestFollowersOfADatabaseThatLostCommits(t *testing.T) {
	alongside(t)
	for _, store := range stores[:2] {
		t.Run(store.name, func(t *testing.T) {
			alongside(t)
			s := serve(t, store.database(t))
			l := newLoad(t, s)
			l.follows = true
			l.open()
			lost, other := l.tenants[0], l.tenants[1]
			lost.catchUp()
			other.catchUp()
			restart := func(database string) {
				t.Helper()
				if err := s.Stop(); err != nil {
					t.Fatal(err)
				}
				s.Database = database
				start(t, s)
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			earlier := copied(t, s.Database)
			start(t, s)
			for i := range 3 {
				lost.hire(fmt.Sprint("lost-", i))
			}
			lost.catchUp()
			restart(earlier)
			expired := func(when string) {
				t.Helper()
				for feed, of := range map[string]result{
					"the tenant":  lost.owner.send("GET /changes?limit=100&after="+url.QueryEscape(lost.feed.cursor), ""),
					"all tenants": (caller{load: l}).send("GET /operator/changes?limit=100&after="+url.QueryEscape(l.feed.cursor), "", l.operator),
				} {
					if of.status != http.StatusGone || of.code() != "changes-expired" {
						t.Errorf("%s, the changes of %s answered %d: %s", when, feed, of.status, of.body)
					}
				}
			}
			expired("after the loss")
			for i := range 5 { // take the numbers and the places of the lost changes
				lost.hire(fmt.Sprint("next-", i))
				if !lost.followElsewhere() {
					t.Error("the tenant has no changes")
				}
				expired(fmt.Sprint("after ", i+1, " other changes"))
			}
			other.catchUpAlone()
		})
	}
}

// followElsewhere reads the changes of the tenant from the beginning, as another follower does. This numbers
// the events of the tenant.
func (tn *tenant) followElsewhere() bool {
	of := tn.owner.send("GET /changes", "")
	at := (caller{load: tn.load}).send("GET /operator/changes?at=now", "", tn.load.operator)
	return of.status == http.StatusOK && at.status == http.StatusOK
}

// catchUpAlone reads the changes of the tenant, whose follower has lost nothing.
func (tn *tenant) catchUpAlone() {
	tn.load.t.Helper()
	if !tn.followOnce("") {
		tn.load.t.Errorf("%s: no changes", tn.name)
	}
}

// TestAnOpenTransactionDelaysOnlyItsEvent keeps a transaction with an event open for a minute. The other
// changes of all tenants are in the feeds at once. After the commit, the event follows once.
func TestAnOpenTransactionDelaysOnlyItsEvent(t *testing.T) {
	alongside(t)
	server, database := startPostgres(t)
	l := newLoad(t, serve(t, database))
	l.follows = true
	l.open()
	held, other := l.tenants[0], l.tenants[1]
	tx, err := connectTo(t, server).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var event string
	if err := tx.QueryRow(t.Context(), `with event as (
			insert into events (tenant_id, id, type, occurred_at, actor_type, actor_via, subject_type, subject_id, members, request_id, source, reason, arrival)
			select id, gen_random_uuid(), 'user.created', 1, 'operator', 'command', 'user', gen_random_uuid(), '[]', '', '', '', null from tenants where name = $1
			returning tenant_id, id),
		queued as (insert into event_queue (tenant_id, event_id) select tenant_id, id from event)
		select id::text from event`, held.name).Scan(&event); err != nil {
		t.Fatal(err)
	}
	open := time.Duration(fewer(2, 10, 60)) * time.Second
	began, slowest, changes := time.Now(), time.Duration(0), 0
	for ; time.Since(began) < open; changes++ {
		for _, tn := range l.tenants {
			id := tn.hire(fmt.Sprint("hired-", changes))
			committed := time.Now()
			for !l.hasRead("user/" + id) {
				if !l.followTenants("&wait=1") || time.Since(committed) > patience.Limit {
					t.Fatalf("the change is not in the feed of all tenants after %v", time.Since(committed))
				}
			}
			slowest = max(slowest, time.Since(committed))
		}
	}
	if l.hasReadEvent(event) {
		t.Error("the event was read before its commit")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	held.catchUp()
	other.catchUp()
	held.catchUp()
	if last := held.feed.items[len(held.feed.items)-1]; last.ID != event || !l.hasReadEvent(event) {
		t.Errorf("the last change of the tenant is %+v, not %s", last, event)
	}
	l.checkTenantsFeed()
	t.Logf("%d changes in %v while a transaction was open, each was read within %v", 2*changes, open, slowest.Round(time.Millisecond))
	if slowest > within(2*time.Second) {
		t.Errorf("a change was read only after %v", slowest)
	}
}

// hasRead reports whether the follower of all tenants has read a change about the subject.
func (l *load) hasRead(subject string) bool {
	for i := len(l.feed.items) - 1; i >= 0; i-- {
		if l.feed.items[i].Subject == subject {
			return true
		}
	}
	return false
}

// hasReadEvent reports whether the follower of all tenants has read the event.
func (l *load) hasReadEvent(id string) bool {
	for _, c := range l.feed.items {
		if c.ID == id {
			return true
		}
	}
	return false
}
