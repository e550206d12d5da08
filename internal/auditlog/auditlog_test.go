package auditlog_test

import (
	"cmp"
	"encoding/base64"
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
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// run executes a statement in the tenant.
func run(f *nodetest.Fixture, statement string, args ...any) {
	f.Helper()
	f.OK(f.DB.Database.Update(f.Context(), f.Tenant.ID, func(q store.Querier) error {
		q.Exec(statement, args...)
		return nil
	}))
}

// logged returns all events of the log, in the order of their numbers.
func logged(f *nodetest.Fixture) (all []rolecall.LoggedEvent) {
	f.Helper()
	f.OK(store.New(f.DB.Database, nil).View(f.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
		all, err = tx.LoggedEvents(0, 1<<40)
		return err
	}))
	return all
}

// fill inserts events of all shapes into the log until it has n.
func fill(f *nodetest.Fixture, n int) {
	f.Helper()
	others := []rolecall.UserID{f.Owner.User.ID, rolecall.NewID[rolecall.User](nodetest.Start), rolecall.NewID[rolecall.User](nodetest.Start)}
	f.BuildLog()
	have := len(logged(f))
	for have < n {
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for ; have < n && have%500 != 499; have++ {
				tx.InsertEvent(anyEvent(f, have, others))
			}
			if have < n {
				tx.InsertEvent(anyEvent(f, have, others))
				have++
			}
			return nil
		}))
	}
	f.BuildLog()
}

func anyEvent(f *nodetest.Fixture, i int, people []rolecall.UserID) rolecall.Event {
	at := nodetest.Start + rolecall.Time(i)
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
type tampering func(f *nodetest.Fixture, e rolecall.LoggedEvent, next rolecall.LoggedEvent) []auditlog.Problem

const (
	deleteEvent  = "delete from events where tenant_id = $1 and id = $2"
	deleteNumber = "delete from changes where tenant_id = $1 and number = $2"
	setEvent     = "update changes set event_id = $1 where tenant_id = $2 and number = $3"
	copyEvent    = `insert into events (tenant_id, id, type, occurred_at, actor_type, actor_id, actor_via, subject_type, subject_id, members, request_id, session_id, source, reason, before, after, salts, arrival)
		select tenant_id, cast($1 as %s), type, occurred_at, actor_type, actor_id, actor_via, subject_type, subject_id, members, request_id, session_id, source, reason, before, after, salts, null
		from events where tenant_id = $2 and id = $3`
)

// inserted inserts a copy of an event, and returns its id.
func inserted(f *nodetest.Fixture, e rolecall.EventID) rolecall.EventID {
	f.Helper()
	id, kind := rolecall.NewID[rolecall.Event](nodetest.Start), "blob"
	if onPostgres(f) {
		kind = "uuid"
	}
	run(f, fmt.Sprintf(copyEvent, kind), id, f.Tenant.ID, e)
	return id
}

func onPostgres(f *nodetest.Fixture) bool {
	return f.Name()[len(f.Name())-len("postgres"):] == "postgres"
}

// tamperings are applied to each row of a log in turn.
var tamperings = []tampering{
	nil, // the row stays
	func(f *nodetest.Fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		run(f, "update events set "+alterations[int(e.Number)/9%len(alterations)]+" where tenant_id = $1 and id = $2", f.Tenant.ID, e.ID)
		return []auditlog.Problem{{Kind: auditlog.Altered, Number: e.Number, Event: e.ID}}
	},
	func(f *nodetest.Fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		run(f, deleteEvent, f.Tenant.ID, e.ID)
		return []auditlog.Problem{{Kind: auditlog.Missing, Number: e.Number, Event: e.ID}}
	},
	func(f *nodetest.Fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		run(f, deleteEvent, f.Tenant.ID, e.ID)
		run(f, deleteNumber, f.Tenant.ID, e.Number)
		return []auditlog.Problem{{Kind: auditlog.Missing, Number: e.Number}}
	},
	func(f *nodetest.Fixture, e, next rolecall.LoggedEvent) []auditlog.Problem {
		run(f, setEvent, next.ID, f.Tenant.ID, e.Number)
		run(f, setEvent, e.ID, f.Tenant.ID, next.Number)
		return []auditlog.Problem{{Kind: auditlog.Moved, Number: e.Number, Event: next.ID}, {Kind: auditlog.Moved, Number: next.Number, Event: e.ID}}
	},
	nil, // the row that changed places with the one before
	func(f *nodetest.Fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		return []auditlog.Problem{{Kind: auditlog.Inserted, Event: inserted(f, e.ID)}}
	},
	func(f *nodetest.Fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		id := inserted(f, e.ID)
		run(f, setEvent, id, f.Tenant.ID, e.Number)
		return []auditlog.Problem{{Kind: auditlog.Moved, Number: e.Number, Event: e.ID}, {Kind: auditlog.Inserted, Number: e.Number, Event: id}}
	},
	func(f *nodetest.Fixture, e, _ rolecall.LoggedEvent) []auditlog.Problem {
		run(f, deleteNumber, f.Tenant.ID, e.Number)
		return []auditlog.Problem{{Kind: auditlog.Moved, Number: e.Number, Event: e.ID}}
	},
}

// TestEveryChangeOfALogIsFound changes every row of a log in every way. The log has five full tiles and a
// part of one.
func TestEveryChangeOfALogIsFound(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		const size = 1_400
		acme := f.Tenant
		for round := range tamperings {
			f.Tenant = f.NewTenant(fmt.Sprintf("log-%d", round))
			fill(f, size)
			f.CheckLog()
			all := logged(f)
			var want []auditlog.Problem
			for i := range len(all) - 1 {
				if change := tamperings[(i+round*4)%len(tamperings)]; change != nil {
					want = append(want, change(f, all[i], all[i+1])...)
				}
			}
			expectFound(f, want)
		}
		f.Tenant = acme
	})
}

// expectFound fails the test unless Verify finds exactly these problems.
func expectFound(f *nodetest.Fixture, want []auditlog.Problem) {
	f.Helper()
	got := f.VerifyLog().Problems
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.NewRole("Reader", "users:read")
		erased, deleted, stays := f.NewUser("ada"), f.NewUser("grace"), f.NewUser("alan")
		for _, u := range []rolecall.User{erased, deleted, stays} {
			f.Assign(u.ID, role.ID, rolecall.AssignmentDraft{})
			f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, u.ID, "on leave")))
		}
		f.CheckLog()
		f.OK(f.Directory.EraseUser(f.Context(), f.Owner, erased.ID, "asked by mail"))
		f.CheckLog()
		f.Clock.Advance(time.Minute)
		f.OK(f.Node.Purge(f.Context()))
		f.CheckLog()
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, deleted.ID, nil))
		f.Clock.Advance(rolecall.TombstoneLifetime)
		f.OK(f.Node.Purge(f.Context()))
		f.CheckLog()
		for id, reason := range map[rolecall.UserID]string{erased.ID: "asked by mail", deleted.ID: "the time to restore the user has ended"} {
			expectKept(f, id, reason, role.ID)
		}
		before := f.VerifyLog().Log
		f.Clock.Advance(f.Tenant.Settings.EventLifetime() - rolecall.TombstoneLifetime)
		f.OK(f.Node.Purge(f.Context()))
		f.CheckLog()
		after := f.VerifyLog().Log
		if after.Removed == 0 || after.Removed >= after.Size || len(logged(f)) != int(after.Size-after.Removed) {
			t.Errorf("%d of %d events were deleted, and %d are left", after.Removed, after.Size, len(logged(f)))
		}
		proves(f, before, after)
	})
}

// expectKept fails the test unless the events about an erased user have kept only the id of the assigned
// role, and the reason of the erasure.
func expectKept(f *nodetest.Fixture, user rolecall.UserID, reason string, role rolecall.RoleID) {
	f.Helper()
	page, err := f.Directory.Events(f.Context(), f.Owner, directory.EventListing{Subject: rolecall.AnyID(user), Limit: 100})
	f.OK(err)
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		fill(f, 20)
		all := logged(f)
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
				run(f, "update events set before = null, after = null where tenant_id = $1 and id = $2", f.Tenant.ID, e.ID)
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
			run(f, "update events set before = $1, after = $2, reason = $3, source = $4, salts = $5 where tenant_id = $6 and id = $7",
				before, after, changed.Reason, changed.Source, salts.Stored(), f.Tenant.ID, e.ID)
			for g := range rolecall.EventGroupCount {
				if salts.Erased(g) {
					want = append(want, auditlog.Problem{Kind: auditlog.Wiped, Number: e.Number, Event: e.ID})
				}
			}
		}
		expectFound(f, want)
		run(f, "delete from events where tenant_id = $1", f.Tenant.ID)
		run(f, "delete from changes where tenant_id = $1", f.Tenant.ID)
		run(f, "delete from logs where tenant_id = $1", f.Tenant.ID)
		run(f, "update feeds set last = 0 where tenant_id = $1", f.Tenant.ID)
	})
}

func TestACheckpointExposesALogThatWasRebuilt(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		fill(f, 300)
		before, err := f.AuditLog().Checkpoint(f.Context(), f.Tenant.ID, "id.example.com/tenants/acme")
		f.OK(err)
		fill(f, 700)
		if found := f.VerifyLog(before.Note).Problems; len(found) > 0 {
			t.Errorf("a log that has grown does not verify: %v", found)
		}
		all := logged(f)
		run(f, "update events set reason = 'another one' where tenant_id = $1 and id = $2", f.Tenant.ID, all[200].ID)
		run(f, "update changes set leaf = null where tenant_id = $1", f.Tenant.ID)
		run(f, "delete from tiles where tenant_id = $1", f.Tenant.ID)
		run(f, "update logs set size = 0 where tenant_id = $1", f.Tenant.ID)
		f.CheckLog() // the events match the new leaves
		if found := f.VerifyLog(before.Note).Problems; len(found) != 1 || found[0].Kind != auditlog.Rebuilt {
			t.Errorf("a log that was rebuilt after the checkpoint has the problems %v", found)
		}
		run(f, "delete from tiles where tenant_id = $1", f.Tenant.ID)
		run(f, "update logs set size = 0 where tenant_id = $1", f.Tenant.ID)
		if found := f.VerifyLog(before.Note).Problems; !slices.ContainsFunc(found, func(p auditlog.Problem) bool { return p.Kind == auditlog.Rebuilt }) {
			t.Errorf("an empty log has the problems %v", found)
		}
		run(f, "delete from logs where tenant_id = $1", f.Tenant.ID)
		for _, what := range []string{"without a key", "with another key"} {
			if found := f.VerifyLog(before.Note).Problems; len(found) != 1 || found[0].Kind != auditlog.Rebuilt {
				t.Errorf("a log %s has the problems %v", what, found)
			}
			_, err := f.AuditLog().Checkpoint(f.Context(), f.Tenant.ID, "id.example.com/tenants/acme")
			f.OK(err)
		}
	})
}

func TestCheckpointsOfOthersAreRefused(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		const origin = "id.example.com/tenants/acme"
		fill(f, 5)
		signed, err := f.AuditLog().Checkpoint(f.Context(), f.Tenant.ID, origin)
		f.OK(err)
		other, _, err := secret.NoteSigner(origin, secret.NewKey())
		f.OK(err)
		text, _, _ := strings.Cut(signed.Note, "\n\n")
		withOtherKey := func(text string) auditlog.Report {
			signed, err := note.Sign(&note.Note{Text: text + "\n"}, other)
			f.OK(err)
			return f.VerifyLog(string(signed))
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
			if _, err := f.AuditLog().Verify(f.Context(), auditlog.Verification{Tenant: f.Tenant, Notes: [][]byte{[]byte(text)}}); err == nil {
				t.Errorf("%s: the checkpoint is accepted", what)
			}
		}
		again, err := f.AuditLog().Checkpoint(f.Context(), f.Tenant.ID, origin)
		if err != nil || again.VerifierKey != signed.VerifierKey || again.Note != signed.Note {
			t.Errorf("the second checkpoint is %+v, not %+v (%v)", again, signed, err)
		}
	})
}

// TestDamagedTilesAreFound changes and deletes each tile in turn.
func TestDamagedTilesAreFound(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		fill(f, 600)
		for _, tile := range []struct{ level, n, number int }{{0, 0, 1}, {0, 1, 257}, {0, 2, 513}, {1, 0, 1}} {
			for _, damage := range []string{"update tiles set hashes = salts from", "delete"} {
				var kept []byte
				f.OK(f.DB.Database.View(f.Context(), f.Tenant.ID, func(q store.Querier) error {
					_, err := q.Query("select hashes from tiles where tenant_id = $1 and level = $2 and n = $3", []any{f.Tenant.ID, tile.level, tile.n}, func(scan func(...any) error) error { return scan(&kept) })
					return err
				}))
				changed := slices.Clone(kept)
				changed[37] ^= 1
				if damage == "delete" {
					run(f, "delete from tiles where tenant_id = $1 and level = $2 and n = $3", f.Tenant.ID, tile.level, tile.n)
				} else {
					run(f, "update tiles set hashes = $1 where tenant_id = $2 and level = $3 and n = $4", changed, f.Tenant.ID, tile.level, tile.n)
				}
				found := f.VerifyLog().Problems
				if !slices.ContainsFunc(found, func(p auditlog.Problem) bool { return p.Kind == auditlog.Damaged }) {
					t.Errorf("%s of %v: found are %v", damage, tile, found)
				}
				run(f, "delete from tiles where tenant_id = $1 and level = $2 and n = $3", f.Tenant.ID, tile.level, tile.n)
				run(f, "insert into tiles (tenant_id, level, n, hashes) values ($1, $2, $3, $4)", f.Tenant.ID, tile.level, tile.n, kept)
				f.CheckLog()
			}
		}
		run(f, "update logs set root = $1 where tenant_id = $2", make([]byte, tlog.HashSize), f.Tenant.ID)
		expectFound(f, []auditlog.Problem{{Kind: auditlog.Damaged}})
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			tx.InsertEvent(anyEvent(f, 1, []rolecall.UserID{f.Owner.User.ID}))
			return nil
		}))
		_, err := f.AuditLog().Checkpoint(f.Context(), f.Tenant.ID, "x")
		f.Is(err, store.ErrLogDamaged)
		root, err := f.AuditLog().Root(f.Context(), f.Tenant.ID, 600)
		f.OK(err)
		run(f, "update logs set root = $1 where tenant_id = $2", root[:], f.Tenant.ID)
	})
}

// proves verifies the proofs between two states of the log with the functions of tlog.
func proves(f *nodetest.Fixture, before, after rolecall.Log) {
	f.Helper()
	const origin = "id.example.com/tenants/acme"
	c, err := f.AuditLog().Consistency(f.Context(), f.Tenant.ID, origin, before.Size)
	f.OK(err)
	f.OK(tlog.CheckTree(c.Hashes, c.Size, c.Root, before.Size, before.Root))
	if c.Size != after.Size || c.Root != after.Root {
		f.Errorf("the log has the size %d, not %d", c.Size, after.Size)
	}
}

func TestProofsVerifyWithAnotherImplementation(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		const origin = "id.example.com/tenants/acme"
		random := rand.New(rand.NewPCG(18, 3))
		var states []auditlog.Checkpoint
		for _, size := range []int{5, 6, 255, 256, 257, 511, 600, 900} {
			fill(f, size)
			now, err := f.AuditLog().Checkpoint(f.Context(), f.Tenant.ID, origin)
			f.OK(err)
			states = append(states, now)
			verifier, err := note.NewVerifier(now.VerifierKey)
			f.OK(err)
			opened, err := note.Open([]byte(now.Note), note.VerifierList(verifier))
			f.OK(err)
			if want := fmt.Sprintf("%s\n%d\n%s\ntime ", origin, size, tlog.Hash(now.Root)); !strings.HasPrefix(opened.Text, want) {
				t.Errorf("the checkpoint is %q, not %q", opened.Text, want)
			}
			for _, before := range states {
				proves(f, before.Log, now.Log)
			}
			all := logged(f)
			for range 10 {
				e := all[random.IntN(len(all))]
				p, err := f.Directory.EventProof(f.Context(), f.Owner, "https://id.example.com", e.ID)
				f.OK(err)
				f.OK(tlog.CheckRecord(p.Hashes, p.Size, p.Root, p.Number-1, tlog.RecordHash(p.Leaf)))
				groups := int(rolecall.EventGroupCount)
				if e.Event.Values != nil && e.Event.Subject.Type == rolecall.SubjectUser && e.Event.Subject.ID != rolecall.AnyID(f.Owner.User.ID) {
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
		_, err := f.Directory.Consistency(f.Context(), f.Owner, "https://id.example.com", 901)
		f.Is(err, rolecall.ErrLogShorter)
		_, err = f.Directory.EventProof(f.Context(), f.Owner, "https://id.example.com", rolecall.NewID[rolecall.Event](nodetest.Start))
		f.Is(err, rolecall.ErrNotFound)
	})
}

// TestManyNodesBuildOneLog writes and builds on several nodes at the same time.
func TestManyNodesBuildOneLog(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		var group sync.WaitGroup
		for i := range 4 {
			peer := store.New(f.Open(), nil)
			group.Go(func() {
				for j := range 40 {
					if err := peer.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
						for k := range 5 {
							tx.InsertEvent(anyEvent(f, i*1000+j*10+k, []rolecall.UserID{f.Owner.User.ID}))
						}
						return nil
					}); err != nil {
						t.Error(err)
					}
					if err := peer.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
						_, err := tx.NumberEvents(nodetest.Start)
						return err
					}); err != nil {
						t.Error(err)
					}
					if err := peer.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
						_, err := tx.BuildLog(nodetest.Start)
						return err
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		f.CheckLog()
		if size := f.VerifyLog().Log.Size; size < 800 {
			t.Errorf("the log has %d events", size)
		}
	})
}

// TestEventsThatAreOlderThanTheLogGetALeaf stores events as programs do that do not know the log.
func TestEventsThatAreOlderThanTheLogGetALeaf(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		fill(f, 700)
		user := f.NewUser("ada")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, user.ID, "on leave")))
		f.BuildLog()
		run(f, "update events set salts = null where tenant_id = $1", f.Tenant.ID)
		run(f, "update changes set leaf = null where tenant_id = $1", f.Tenant.ID)
		run(f, "delete from tiles where tenant_id = $1", f.Tenant.ID)
		run(f, "delete from logs where tenant_id = $1", f.Tenant.ID)
		run(f, "delete from changes where tenant_id = $1 and number <= 300", f.Tenant.ID) // and the events were deleted
		run(f, "delete from events where tenant_id = $1 and salts is null and id not in (select event_id from changes where tenant_id = $1)", f.Tenant.ID)
		f.OK(f.Directory.EraseUser(f.Context(), f.Owner, user.ID, "")) // before the events have leaves
		f.CheckLog()
		if log := f.VerifyLog().Log; log.Removed != 300 || log.Size < 700 {
			t.Errorf("the log has %d events, of which %d were deleted", log.Size, log.Removed)
		}
	})
}
