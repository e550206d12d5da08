package node_test

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// checkLog fails the test if the audit log does not verify.
func (f *fixture) checkLog() {
	f.Helper()
	f.buildLog()
	if found := f.verify().Problems; len(found) > 0 {
		f.Errorf("the audit log does not verify: %v", found)
	}
}

// buildLog adds all events of the tenant to its log.
func (f *fixture) buildLog() {
	f.Helper()
	for more := true; more; {
		f.ok(store.New(f.db.Database, nil).Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			numbered, err := tx.NumberEvents(start)
			if err != nil {
				return err
			}
			built, err := tx.BuildLog(f.clock.Now())
			more = numbered > 0 || built > 0
			return err
		}))
	}
}

// reader returns the audit log on the database without the recorder.
func (f *fixture) reader() *auditlog.Log { return f.AuditLogOf(f.db.Database) }

// AuditLogOf returns the audit log of the database. It gives no numbers.
func (f *fixture) AuditLogOf(db store.Database) *auditlog.Log {
	return auditlog.New(store.New(db, nil), f.keys, f.clock.Now, f.Access.Log, f.Access.Outages, f.Access.Feed.CatchUp)
}

func (f *fixture) verify(signed ...string) auditlog.Report {
	f.Helper()
	return f.verifyKept(0, signed...)
}

// verifyKept verifies the log with the checkpoints, for an auditor who expects that events are kept for a time.
func (f *fixture) verifyKept(kept time.Duration, signed ...string) auditlog.Report {
	f.Helper()
	var notes [][]byte
	for _, text := range signed {
		notes = append(notes, []byte(text))
	}
	tenant := f.tenant // its settings may have changed since
	f.ok(store.New(f.db.Database, nil).View(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
		current, err := tx.TenantByID(f.tenant.ID)
		if errors.Is(err, rolecall.ErrNotFound) { // it was deleted
			return nil
		}
		tenant = current
		return err
	}))
	report, err := f.reader().Verify(f.Context(), auditlog.Verification{Tenant: tenant, Notes: notes, Kept: kept})
	f.ok(err)
	return report
}

// run executes a statement in the tenant.
func (f *fixture) run(statement string, args ...any) {
	f.Helper()
	f.ok(f.db.Database.Update(f.Context(), f.tenant.ID, func(q store.Querier) error {
		q.Exec(statement, args...)
		return nil
	}))
}

// logged returns all events of the log, in the order of their numbers.
func (f *fixture) logged() (all []rolecall.LoggedEvent) {
	f.Helper()
	f.ok(store.New(f.db.Database, nil).View(f.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
		all, err = tx.LoggedEvents(0, 1<<40)
		return err
	}))
	return all
}

// fill inserts events of all shapes into the log until it has n.
func (f *fixture) fill(n int) {
	f.Helper()
	others := []rolecall.UserID{f.owner.User.ID, rolecall.NewID[rolecall.User](start), rolecall.NewID[rolecall.User](start)}
	f.buildLog()
	have := len(f.logged())
	for have < n {
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			for ; have < n && have%500 != 499; have++ {
				tx.InsertEvent(f.anyEvent(have, others))
			}
			if have < n {
				tx.InsertEvent(f.anyEvent(have, others))
				have++
			}
			return nil
		}))
	}
	f.buildLog()
}

func (f *fixture) anyEvent(i int, people []rolecall.UserID) rolecall.Event {
	at := start + rolecall.Time(i)
	e := rolecall.Event{
		ID: rolecall.NewID[rolecall.Event](at), Type: rolecall.EventUserSuspended, OccurredAt: at, Members: []string{"status"},
		Actor:     rolecall.Actor{Type: rolecall.ActorUser, ID: people[i%len(people)], Via: "http"},
		Subject:   rolecall.Subject{Type: rolecall.SubjectUser, ID: rolecall.AnyID(people[i/2%len(people)])},
		RequestID: fmt.Sprintf("request-%d", i), SessionID: rolecall.NewID[rolecall.Session](at), Source: "192.0.2.1", Reason: "because",
		Values: &rolecall.EventValues{Before: []byte(`{"status":"active"}`), After: []byte(`{"status":"suspended"}`)},
	}
	if i%3 == 0 {
		e.Type, e.Members, e.Values, e.Reason = rolecall.EventSignedIn, nil, nil, ""
	}
	return e
}

// alterations change one column of an event, in the order of the columns.
var alterations = []string{
	"type = type || 'x'", "occurred_at = occurred_at + 1", "actor_type = 'operator'", "actor_id = null", "actor_via = 'command'",
	"actor_token = subject_id", "subject_type = 'role'", "subject_id = id", `members = '["email"]'`, "members = 'x'", "request_id = ''",
	"session_id = null", "source = '192.0.2.2'", "source = ''", "reason = reason || '!'", `before = '{"name":"C"}'`, `after = '{"name":"C"}'`, "salts = null",
}

// tampering is a way to change the log. It returns the problems that the change causes.
type tampering func(f *fixture, e rolecall.LoggedEvent, next rolecall.LoggedEvent) []auditlog.Problem

const (
	deleteEvent  = "delete from events where tenant_id = $1 and id = $2"
	deleteNumber = "delete from changes where tenant_id = $1 and number = $2"
	setEvent     = "update changes set event_id = $1 where tenant_id = $2 and number = $3"
	copyEvent    = `insert into events (tenant_id, id, type, occurred_at, actor_type, actor_id, actor_via, subject_type, subject_id, members, request_id, session_id, source, reason, before, after, salts, arrival)
		select tenant_id, cast($1 as %s), type, occurred_at, actor_type, actor_id, actor_via, subject_type, subject_id, members, request_id, session_id, source, reason, before, after, salts, null
		from events where tenant_id = $2 and id = $3`
)

// inserted inserts a copy of an event, and returns its id.
func (f *fixture) inserted(e rolecall.EventID) rolecall.EventID {
	f.Helper()
	id, kind := rolecall.NewID[rolecall.Event](start), "blob"
	if f.onPostgres() {
		kind = "uuid"
	}
	f.run(fmt.Sprintf(copyEvent, kind), id, f.tenant.ID, e)
	return id
}

func (f *fixture) onPostgres() bool { return f.Name()[len(f.Name())-len("postgres"):] == "postgres" }

// tamperings are applied to each row of a log in turn.
var tamperings = []tampering{
	nil, // the row stays
	func(f *fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		f.run("update events set "+alterations[int(e.Number)/9%len(alterations)]+" where tenant_id = $1 and id = $2", f.tenant.ID, e.ID)
		return []auditlog.Problem{{Kind: auditlog.Altered, Number: e.Number, Event: e.ID}}
	},
	func(f *fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		f.run(deleteEvent, f.tenant.ID, e.ID)
		return []auditlog.Problem{{Kind: auditlog.Missing, Number: e.Number, Event: e.ID}}
	},
	func(f *fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		f.run(deleteEvent, f.tenant.ID, e.ID)
		f.run(deleteNumber, f.tenant.ID, e.Number)
		return []auditlog.Problem{{Kind: auditlog.Missing, Number: e.Number}}
	},
	func(f *fixture, e, next rolecall.LoggedEvent) []auditlog.Problem {
		f.run(setEvent, next.ID, f.tenant.ID, e.Number)
		f.run(setEvent, e.ID, f.tenant.ID, next.Number)
		return []auditlog.Problem{{Kind: auditlog.Moved, Number: e.Number, Event: next.ID}, {Kind: auditlog.Moved, Number: next.Number, Event: e.ID}}
	},
	nil, // the row that changed places with the one before
	func(f *fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		return []auditlog.Problem{{Kind: auditlog.Inserted, Event: f.inserted(e.ID)}}
	},
	func(f *fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		id := f.inserted(e.ID)
		f.run(setEvent, id, f.tenant.ID, e.Number)
		return []auditlog.Problem{{Kind: auditlog.Moved, Number: e.Number, Event: e.ID}, {Kind: auditlog.Inserted, Number: e.Number, Event: id}}
	},
	func(f *fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		f.run(deleteNumber, f.tenant.ID, e.Number)
		return []auditlog.Problem{{Kind: auditlog.Moved, Number: e.Number, Event: e.ID}}
	},
}

// TestEveryChangeOfALogIsFound changes every row of a log in every way. The log has five full tiles and a
// part of one.
func TestEveryChangeOfALogIsFound(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		const size = 1_400
		acme := f.tenant
		for round := range tamperings {
			f.tenant = f.newTenant(fmt.Sprintf("log-%d", round))
			f.fill(size)
			f.checkLog()
			all := f.logged()
			var want []auditlog.Problem
			for i := range len(all) - 1 {
				if change := tamperings[(i+round*4)%len(tamperings)]; change != nil {
					want = append(want, change(f, all[i], all[i+1])...)
				}
			}
			f.found(want)
		}
		f.tenant = acme
	})
}

// found fails the test unless Verify finds exactly these problems.
func (f *fixture) found(want []auditlog.Problem) {
	f.Helper()
	got := f.verify().Problems
	for i := range got {
		if got[i].Detail == "" {
			f.Errorf("%v has no detail", got[i])
		}
		got[i].Detail = ""
	}
	order := func(a, b auditlog.Problem) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Event.String(), b.Event.String()))
	}
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		f.Errorf("found are %d problems, want %d", len(got), len(want))
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				f.Fatalf("the first difference is %v, want %v", got[i], want[i])
			}
		}
	}
}

func TestALogVerifiesAfterErasuresAndRetention(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.role("Reader", "users:read")
		erased, deleted, stays := f.user("ada"), f.user("grace"), f.user("alan")
		for _, u := range []rolecall.User{erased, deleted, stays} {
			f.assign(u.ID, role.ID, rolecall.AssignmentDraft{})
			f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, u.ID, "on leave")))
		}
		f.checkLog()
		f.ok(f.Directory.EraseUser(f.Context(), f.owner, erased.ID, "asked by mail"))
		f.checkLog()
		f.clock.advance(time.Minute)
		f.ok(f.Node.Purge(f.Context()))
		f.checkLog()
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, deleted.ID, nil))
		f.clock.advance(rolecall.TombstoneLifetime)
		f.ok(f.Node.Purge(f.Context()))
		f.checkLog()
		for id, reason := range map[rolecall.UserID]string{erased.ID: "asked by mail", deleted.ID: "the time to restore the user has ended"} {
			f.hasKept(id, reason, role.ID)
		}
		before := f.verify().Log
		f.clock.advance(f.tenant.Settings.EventLifetime() - rolecall.TombstoneLifetime)
		f.ok(f.Node.Purge(f.Context()))
		f.checkLog()
		after := f.verify().Log
		if after.Removed == 0 || after.Removed >= after.Size || len(f.logged()) != int(after.Size-after.Removed) {
			t.Errorf("%d of %d events were deleted, and %d are left", after.Removed, after.Size, len(f.logged()))
		}
		proves(f, before, after)
	})
}

// hasKept fails the test unless the events about an erased user have kept only the id of the assigned
// role, and the reason of the erasure.
func (f *fixture) hasKept(user rolecall.UserID, reason string, role rolecall.RoleID) {
	f.Helper()
	page, err := f.Directory.Events(f.Context(), f.owner, directory.EventListing{Subject: rolecall.AnyID(user), Limit: 100})
	f.ok(err)
	assigned := 0
	for _, e := range page.Items {
		switch {
		case e.Type == rolecall.EventUserErased:
			if e.Reason != reason {
				f.Errorf("the reason of the erasure is %q, not %q", e.Reason, reason)
			}
		case e.Type == rolecall.EventRoleAssigned:
			assigned++
			if e.Values == nil || e.Values.Before != nil || string(e.Values.After) != `{"roleId":"`+role.String()+`"}` {
				f.Errorf("the values of an assignment are %+v", e.Values)
			}
		case e.Reason != "" || e.Values != nil:
			f.Errorf("the event %s has the reason %q and the values %v", e.Type, e.Reason, e.Values)
		}
	}
	if assigned == 0 {
		f.Error("no event of an assignment was found")
	}
}

func TestDataThatIsRemovedWithoutAnErasureIsFound(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.fill(20)
		all := f.logged()
		var want []auditlog.Problem
		for i, e := range all {
			changed := *e.Event
			salts := *e.Salts
			switch i % 3 {
			case 0:
				if !changed.EraseSubject(&salts) {
					continue
				}
			case 1:
				if !changed.EraseSource(&salts) {
					continue
				}
			default: // without the salts, it is an ordinary change
				if changed.Values == nil {
					continue
				}
				f.run("update events set before = null, after = null where tenant_id = $1 and id = $2", f.tenant.ID, e.ID)
				want = append(want, auditlog.Problem{Kind: auditlog.Altered, Number: e.Number, Event: e.ID})
				continue
			}
			var before, after *string
			if changed.Values != nil && changed.Values.Before != nil {
				before = new(string(changed.Values.Before))
			}
			if changed.Values != nil && changed.Values.After != nil {
				after = new(string(changed.Values.After))
			}
			f.run("update events set before = $1, after = $2, reason = $3, source = $4, salts = $5 where tenant_id = $6 and id = $7",
				before, after, changed.Reason, changed.Source, salts.Stored(), f.tenant.ID, e.ID)
			for g := range rolecall.EventGroupCount {
				if salts.Erased(g) {
					want = append(want, auditlog.Problem{Kind: auditlog.Wiped, Number: e.Number, Event: e.ID})
				}
			}
		}
		f.found(want)
		f.run("delete from events where tenant_id = $1", f.tenant.ID)
		f.run("delete from changes where tenant_id = $1", f.tenant.ID)
		f.run("delete from logs where tenant_id = $1", f.tenant.ID)
		f.run("update feeds set last = 0 where tenant_id = $1", f.tenant.ID)
	})
}

func TestACheckpointExposesALogThatWasRebuilt(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.fill(300)
		before, err := f.reader().Checkpoint(f.Context(), f.tenant.ID, "id.example.com/tenants/acme")
		f.ok(err)
		f.fill(700)
		if found := f.verify(before.Note).Problems; len(found) > 0 {
			t.Errorf("a log that has grown does not verify: %v", found)
		}
		all := f.logged()
		f.run("update events set reason = 'another one' where tenant_id = $1 and id = $2", f.tenant.ID, all[200].ID)
		f.run("update changes set leaf = null where tenant_id = $1", f.tenant.ID)
		f.run("delete from tiles where tenant_id = $1", f.tenant.ID)
		f.run("update logs set size = 0 where tenant_id = $1", f.tenant.ID)
		f.checkLog() // the events match the new leaves
		if found := f.verify(before.Note).Problems; len(found) != 1 || found[0].Kind != auditlog.Rebuilt {
			t.Errorf("a log that was rebuilt after the checkpoint has the problems %v", found)
		}
		f.run("delete from tiles where tenant_id = $1", f.tenant.ID)
		f.run("update logs set size = 0 where tenant_id = $1", f.tenant.ID)
		if found := f.verify(before.Note).Problems; !slices.ContainsFunc(found, func(p auditlog.Problem) bool { return p.Kind == auditlog.Rebuilt }) {
			t.Errorf("an empty log has the problems %v", found)
		}
		f.run("delete from logs where tenant_id = $1", f.tenant.ID)
		for _, what := range []string{"without a key", "with another key"} {
			if found := f.verify(before.Note).Problems; len(found) != 1 || found[0].Kind != auditlog.Rebuilt {
				t.Errorf("a log %s has the problems %v", what, found)
			}
			_, err := f.reader().Checkpoint(f.Context(), f.tenant.ID, "id.example.com/tenants/acme")
			f.ok(err)
		}
	})
}

func TestCheckpointsOfOthersAreRefused(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		const origin = "id.example.com/tenants/acme"
		f.fill(5)
		signed, err := f.reader().Checkpoint(f.Context(), f.tenant.ID, origin)
		f.ok(err)
		other, _, err := secret.NoteSigner(origin, secret.NewKey())
		f.ok(err)
		text, _, _ := strings.Cut(signed.Note, "\n\n")
		withOtherKey := func(text string) auditlog.Report {
			signed, err := note.Sign(&note.Note{Text: text + "\n"}, other)
			f.ok(err)
			return f.verify(string(signed))
		}
		// The key of a log ends with the loss of all keys of the instance. The events show that nothing was changed.
		if report := withOtherKey(text); len(report.Problems) > 0 || report.OldKeys != 1 {
			t.Errorf("with the checkpoint of another key, the log has the problems %v, and %d old keys", report.Problems, report.OldKeys)
		}
		forged := strings.Replace(text, auditlog.RootText(&signed.Log), base64.StdEncoding.EncodeToString(make([]byte, 32)), 1)
		if found := withOtherKey(forged).Problems; len(found) != 1 || found[0].Kind != auditlog.Rebuilt {
			t.Errorf("with the checkpoint of another key and other events, the log has the problems %v", found)
		}
		for what, text := range map[string]string{
			"another tenant": "id.example.com/tenants/globex" + signed.Note[len(origin):], "another size": origin + "\n4" + signed.Note[len(origin)+2:],
			"no note": "x", "no signature": origin + "\n5\n" + auditlog.RootText(&signed.Log) + "\n",
		} {
			if _, err := f.reader().Verify(f.Context(), auditlog.Verification{Tenant: f.tenant, Notes: [][]byte{[]byte(text)}}); err == nil {
				t.Errorf("%s: the checkpoint is accepted", what)
			}
		}
		again, err := f.reader().Checkpoint(f.Context(), f.tenant.ID, origin)
		if err != nil || again.VerifierKey != signed.VerifierKey || again.Note != signed.Note {
			t.Errorf("the second checkpoint is %+v, not %+v (%v)", again, signed, err)
		}
	})
}

// TestDamagedTilesAreFound changes and deletes each tile in turn.
func TestDamagedTilesAreFound(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.fill(600)
		for _, tile := range []struct{ level, n, number int }{{0, 0, 1}, {0, 1, 257}, {0, 2, 513}, {1, 0, 1}} {
			for _, damage := range []string{"update tiles set hashes = salts from", "delete"} {
				var kept []byte
				f.ok(f.db.Database.View(f.Context(), f.tenant.ID, func(q store.Querier) error {
					_, err := q.Query("select hashes from tiles where tenant_id = $1 and level = $2 and n = $3", []any{f.tenant.ID, tile.level, tile.n}, func(scan func(...any) error) error { return scan(&kept) })
					return err
				}))
				changed := slices.Clone(kept)
				changed[37] ^= 1
				if damage == "delete" {
					f.run("delete from tiles where tenant_id = $1 and level = $2 and n = $3", f.tenant.ID, tile.level, tile.n)
				} else {
					f.run("update tiles set hashes = $1 where tenant_id = $2 and level = $3 and n = $4", changed, f.tenant.ID, tile.level, tile.n)
				}
				found := f.verify().Problems
				if !slices.ContainsFunc(found, func(p auditlog.Problem) bool { return p.Kind == auditlog.Damaged }) {
					t.Errorf("%s of %v: found are %v", damage, tile, found)
				}
				f.run("delete from tiles where tenant_id = $1 and level = $2 and n = $3", f.tenant.ID, tile.level, tile.n)
				f.run("insert into tiles (tenant_id, level, n, hashes) values ($1, $2, $3, $4)", f.tenant.ID, tile.level, tile.n, kept)
				f.checkLog()
			}
		}
		f.run("update logs set root = $1 where tenant_id = $2", make([]byte, tlog.HashSize), f.tenant.ID)
		f.found([]auditlog.Problem{{Kind: auditlog.Damaged}})
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			tx.InsertEvent(f.anyEvent(1, []rolecall.UserID{f.owner.User.ID}))
			return nil
		}))
		_, err := f.reader().Checkpoint(f.Context(), f.tenant.ID, "x")
		f.is(err, store.ErrLogDamaged)
		root, err := f.reader().Root(f.Context(), f.tenant.ID, 600)
		f.ok(err)
		f.run("update logs set root = $1 where tenant_id = $2", root[:], f.tenant.ID)
	})
}

// proves verifies the proofs between two states of the log with the functions of tlog.
func proves(f *fixture, before, after rolecall.Log) {
	f.Helper()
	const origin = "id.example.com/tenants/acme"
	c, err := f.reader().Consistency(f.Context(), f.tenant.ID, origin, before.Size)
	f.ok(err)
	f.ok(tlog.CheckTree(c.Hashes, c.Size, c.Root, before.Size, before.Root))
	if c.Size != after.Size || c.Root != after.Root {
		f.Errorf("the log has the size %d, not %d", c.Size, after.Size)
	}
}

func TestProofsVerifyWithAnotherImplementation(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		const origin = "id.example.com/tenants/acme"
		random := rand.New(rand.NewPCG(18, 3))
		var states []auditlog.Checkpoint
		for _, size := range []int{5, 6, 255, 256, 257, 511, 600, 900} {
			f.fill(size)
			now, err := f.reader().Checkpoint(f.Context(), f.tenant.ID, origin)
			f.ok(err)
			states = append(states, now)
			verifier, err := note.NewVerifier(now.VerifierKey)
			f.ok(err)
			opened, err := note.Open([]byte(now.Note), note.VerifierList(verifier))
			f.ok(err)
			if want := fmt.Sprintf("%s\n%d\n%s\ntime ", origin, size, tlog.Hash(now.Root)); !strings.HasPrefix(opened.Text, want) {
				t.Errorf("the checkpoint is %q, not %q", opened.Text, want)
			}
			for _, before := range states {
				proves(f, before.Log, now.Log)
			}
			all := f.logged()
			for range 10 {
				e := all[random.IntN(len(all))]
				p, err := f.Directory.EventProof(f.Context(), f.owner, "https://id.example.com", e.ID)
				f.ok(err)
				f.ok(tlog.CheckRecord(p.Hashes, p.Size, p.Root, p.Number-1, tlog.RecordHash(p.Leaf)))
				groups := int(rolecall.EventGroupCount)
				if e.Event.Values != nil && e.Event.Subject.Type == rolecall.SubjectUser && e.Event.Subject.ID != rolecall.AnyID(f.owner.User.ID) {
					groups-- // the user does not exist, so the values may not be read
				}
				if p.Number != e.Number || len(p.Opened) != groups {
					t.Errorf("the event %d has the number %d and %d groups, want %d", e.Number, p.Number, len(p.Opened), groups)
				}
				for g, opened := range p.Opened {
					if commitment := tlog.RecordHash(slices.Concat(opened.Salt, opened.Data)).String(); !strings.Contains(string(p.Leaf), `"`+g.String()+`":"`+commitment+`"`) {
						t.Errorf("the data %s of the %s is not that of the leaf %s", opened.Data, g, p.Leaf)
					}
				}
			}
		}
		_, err := f.Directory.Consistency(f.Context(), f.owner, "https://id.example.com", 901)
		f.is(err, rolecall.ErrLogShorter)
		_, err = f.Directory.EventProof(f.Context(), f.owner, "https://id.example.com", rolecall.NewID[rolecall.Event](start))
		f.is(err, rolecall.ErrNotFound)
	})
}

// TestManyNodesBuildOneLog writes and builds on several nodes at the same time.
func TestManyNodesBuildOneLog(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		var group sync.WaitGroup
		for i := range 4 {
			peer := store.New(f.open(), nil)
			group.Go(func() {
				for j := range 40 {
					if err := peer.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
						for k := range 5 {
							tx.InsertEvent(f.anyEvent(i*1000+j*10+k, []rolecall.UserID{f.owner.User.ID}))
						}
						return nil
					}); err != nil {
						t.Error(err)
					}
					if err := peer.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
						_, err := tx.NumberEvents(start)
						return err
					}); err != nil {
						t.Error(err)
					}
					if err := peer.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
						_, err := tx.BuildLog(start)
						return err
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		f.checkLog()
		if size := f.verify().Log.Size; size < 800 {
			t.Errorf("the log has %d events", size)
		}
	})
}

// TestEventsThatAreOlderThanTheLogGetALeaf stores events as programs do that do not know the log.
func TestEventsThatAreOlderThanTheLogGetALeaf(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.fill(700)
		user := f.user("ada")
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, user.ID, "on leave")))
		f.buildLog()
		f.run("update events set salts = null where tenant_id = $1", f.tenant.ID)
		f.run("update changes set leaf = null where tenant_id = $1", f.tenant.ID)
		f.run("delete from tiles where tenant_id = $1", f.tenant.ID)
		f.run("delete from logs where tenant_id = $1", f.tenant.ID)
		f.run("delete from changes where tenant_id = $1 and number <= 300", f.tenant.ID) // and the events were deleted
		f.run("delete from events where tenant_id = $1 and salts is null and id not in (select event_id from changes where tenant_id = $1)", f.tenant.ID)
		f.ok(f.Directory.EraseUser(f.Context(), f.owner, user.ID, "")) // before the events have leaves
		f.checkLog()
		if log := f.verify().Log; log.Removed != 300 || log.Size < 700 {
			t.Errorf("the log has %d events, of which %d were deleted", log.Size, log.Removed)
		}
	})
}
