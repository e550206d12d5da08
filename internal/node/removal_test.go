package node_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/auditlog"
)

// daily records an event on each of the days, and returns a checkpoint of the last one.
func (f *fixture) daily(days int) (signed string) {
	f.Helper()
	for range days {
		f.clock.advance(aDay)
		f.renameTenant()
	}
	return f.checkpoint()
}

// renameTenant changes the display name of the tenant, so that an event of the current time is recorded.
func (f *fixture) renameTenant() {
	f.Helper()
	f.patch(rolecall.TenantPatch{DisplayName: rolecall.Some("Acme at " + f.clock.Now().String())})
}

func (f *fixture) keepEvents(kept time.Duration) {
	f.Helper()
	f.patch(rolecall.TenantPatch{Settings: rolecall.SettingsPatch{Numbers: map[string]*int64{"eventsKeptSeconds": new(int64(kept / time.Second))}}})
}

func (f *fixture) patch(patch rolecall.TenantPatch) {
	f.Helper()
	tenant, err := f.Directory.UpdateTenant(f.Context(), f.owner, patch, nil)
	f.ok(err)
	f.tenant = tenant
	f.buildLog()
}

func (f *fixture) checkpoint() string {
	f.Helper()
	c, err := f.reader().Checkpoint(f.Context(), f.tenant.ID, "id.example.com/tenants/acme")
	f.ok(err)
	return c.Note
}

// deletesOldest deletes the events up to the number as a person with access to the database can, with the leaf that
// makes the removal look like a regular one.
func (f *fixture) deletesOldest(number int64) {
	f.Helper()
	var leaf []byte
	for _, e := range f.logged() {
		if e.Number == number {
			leaf = e.Event.Leaf(e.Salts)
		}
	}
	f.run("delete from events where tenant_id = $1 and id in (select event_id from changes where tenant_id = $1 and number <= $2)", f.tenant.ID, number)
	f.run("delete from changes where tenant_id = $1 and number <= $2", f.tenant.ID, number)
	f.run("update logs set removed = $1, removed_leaf = $2 where tenant_id = $3", number, leaf, f.tenant.ID)
}

// missing fails the test unless the only problem is that the events up to the number were deleted too early.
func (f *fixture) missing(what string, number int64, report auditlog.Report) {
	f.Helper()
	if p := report.Problems; len(p) != 1 || p[0].Kind != auditlog.Missing || p[0].Number != number || !strings.Contains(p[0].Detail, "deleted") {
		f.Errorf("%s: the problems are %v", what, p)
	}
}

func (f *fixture) verifies(what string, report auditlog.Report) {
	f.Helper()
	if len(report.Problems) > 0 {
		f.Errorf("%s: the problems are %v", what, report.Problems)
	}
}

func TestOldEventsThatAPersonHasDeletedAreFound(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.keepEvents(10 * aDay)
		f.daily(5)
		kept := f.logged()
		number := kept[len(kept)-4].Number
		f.run("update logs set removed = $1 where tenant_id = $2", number, f.tenant.ID)
		f.missing("a number without a deletion", number, f.verify())
		f.run("update logs set removed = 1000000 where tenant_id = $1", f.tenant.ID)
		f.missing("more events than the log has", 1000000, f.verify())
		f.deletesOldest(number)
		f.missing("a deletion with the leaf", number, f.verify())
		f.run("update logs set removed_leaf = $1 where tenant_id = $2", kept[0].Event.Leaf(kept[0].Salts), f.tenant.ID)
		f.missing("a deletion with an older leaf", number, f.verify())
		f.run("update logs set removed_leaf = null where tenant_id = $1", f.tenant.ID)
		f.missing("a deletion without a leaf", number, f.verify())
		signed := f.checkpoint()
		f.clock.advance(20 * aDay)
		f.ok(f.Node.Purge(f.Context()))
		f.buildLog()
		f.verifies("a later removal", f.verify())
		f.missing("a checkpoint without the age", number, f.verify(signed))
	})
}

func TestARegularRemovalVerifies(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.keepEvents(10 * aDay)
		saved := []string{f.checkpoint()}
		for range 4 {
			saved = append(saved, f.daily(6))
			f.ok(f.Node.Purge(f.Context()))
			saved = append(saved, f.checkpoint())
		}
		if f.verify().Log.Removed == 0 {
			t.Fatal("no event was deleted")
		}
		f.verifies("after each purge", f.verify(saved...))
		f.verifies("with the setting as the expectation", f.verifyKept(10*aDay, saved...))
		f.missing("for more than the setting", f.verify().Log.Removed, f.verifyKept(30*aDay))
		f.keepEvents(100 * aDay)
		f.verifies("after a longer setting", f.verify(saved...))
		f.daily(2)
		f.keepEvents(3 * aDay)
		f.ok(f.Node.Purge(f.Context()))
		removed := f.verify().Log.Removed
		f.verifies("after a shorter setting", f.verify(append(saved, f.checkpoint())...))
		f.keepEvents(100 * aDay)
		f.verifies("after the setting that followed", f.verify(saved...))
		f.missing("for an auditor who expects ten days", removed, f.verifyKept(10*aDay, saved...))
	})
}

// TestACheckpointBoundsTheAgeOfDeletedEvents deletes recent events behind an event of an old time.
func TestACheckpointBoundsTheAgeOfDeletedEvents(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.keepEvents(10 * aDay)
		signed := f.daily(3)
		f.fill(len(f.logged()) + 5) // of the start
		last := f.logged()[len(f.logged())-1].Number
		f.renameTenant()
		f.clock.advance(8 * aDay)
		f.deletesOldest(last)
		f.verifies("without a checkpoint", f.verify())
		f.missing("with a checkpoint", last, f.verify(signed))
		f.clock.advance(aDay * 3)
		f.verifies("once all events are old enough", f.verify(signed))
	})
}

// TestASettingWithoutItsEventAllowsNoRemoval changes the setting in the database, so that the program deletes events.
func TestASettingWithoutItsEventAllowsNoRemoval(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.keepEvents(10 * aDay)
		f.daily(5)
		f.run("update tenants set settings = '{\"eventsKeptSeconds\":86400}' where id = $1", f.tenant.ID)
		f.ok(f.Node.Purge(f.Context()))
		removed := f.verify().Log.Removed
		if removed == 0 {
			t.Fatal("no event was deleted")
		}
		f.missing("a setting without its event", removed, f.verify())
		for _, seconds := range []string{"1", "-1", "9300000000"} {
			f.run("update tenants set settings = '{\"eventsKeptSeconds\":"+seconds+"}' where id = $1", f.tenant.ID)
			f.missing("a setting that the service does not store: "+seconds, removed, f.verify())
		}
		f.clock.advance(20 * aDay)
		f.ok(f.Node.Purge(f.Context()))
	})
}
