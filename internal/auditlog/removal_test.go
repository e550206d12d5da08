package auditlog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/nodetest"
)

// daily records an event on each of the days, and returns a checkpoint of the last one.
func daily(f *nodetest.Fixture, days int) (signed string) {
	f.Helper()
	for range days {
		f.Clock.Advance(nodetest.Day)
		renameTenant(f)
	}
	return checkpoint(f)
}

// renameTenant changes the display name of the tenant, so that an event of the current time is recorded.
func renameTenant(f *nodetest.Fixture) {
	f.Helper()
	patchTenant(f, rolecall.TenantPatch{DisplayName: rolecall.Some("Acme at " + f.Clock.Now().String())})
}

func keepEvents(f *nodetest.Fixture, kept time.Duration) {
	f.Helper()
	patchTenant(f, rolecall.TenantPatch{Settings: rolecall.SettingsPatch{Numbers: map[string]*int64{"eventsKeptSeconds": new(int64(kept / time.Second))}}})
}

func patchTenant(f *nodetest.Fixture, patch rolecall.TenantPatch) {
	f.Helper()
	tenant, err := f.Directory.UpdateTenant(f.Context(), f.Owner, patch, nil)
	f.OK(err)
	f.Tenant = tenant
	f.BuildLog()
}

func checkpoint(f *nodetest.Fixture) string {
	f.Helper()
	c, err := f.AuditLog().Checkpoint(f.Context(), f.Tenant.ID, "id.example.com/tenants/acme")
	f.OK(err)
	return c.Note
}

// deletesOldest deletes the events up to the number as a person with access to the database can, with the leaf that
// makes the removal look like a regular one.
func deletesOldest(f *nodetest.Fixture, number int64) {
	f.Helper()
	var leaf []byte
	for _, e := range logged(f) {
		if e.Number == number {
			leaf = e.Event.Leaf(e.Salts)
		}
	}
	run(f, "delete from events where tenant_id = $1 and id in (select event_id from changes where tenant_id = $1 and number <= $2)", f.Tenant.ID, number)
	run(f, "delete from changes where tenant_id = $1 and number <= $2", f.Tenant.ID, number)
	run(f, "update logs set removed = $1, removed_leaf = $2 where tenant_id = $3", number, leaf, f.Tenant.ID)
}

// expectMissing fails the test unless the only problem is that the events up to the number were deleted too early.
func expectMissing(f *nodetest.Fixture, what string, number int64, report auditlog.Report) {
	f.Helper()
	if p := report.Problems; len(p) != 1 || p[0].Kind != auditlog.Missing || p[0].Number != number || !strings.Contains(p[0].Detail, "deleted") {
		f.Errorf("%s: the problems are %v", what, p)
	}
}

func expectVerified(f *nodetest.Fixture, what string, report auditlog.Report) {
	f.Helper()
	if len(report.Problems) > 0 {
		f.Errorf("%s: the problems are %v", what, report.Problems)
	}
}

func TestOldEventsThatAPersonHasDeletedAreFound(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		keepEvents(f, 10*nodetest.Day)
		daily(f, 5)
		kept := logged(f)
		number := kept[len(kept)-4].Number
		run(f, "update logs set removed = $1 where tenant_id = $2", number, f.Tenant.ID)
		expectMissing(f, "a number without a deletion", number, f.VerifyLog())
		run(f, "update logs set removed = 1000000 where tenant_id = $1", f.Tenant.ID)
		expectMissing(f, "more events than the log has", 1000000, f.VerifyLog())
		deletesOldest(f, number)
		expectMissing(f, "a deletion with the leaf", number, f.VerifyLog())
		run(f, "update logs set removed_leaf = $1 where tenant_id = $2", kept[0].Event.Leaf(kept[0].Salts), f.Tenant.ID)
		expectMissing(f, "a deletion with an older leaf", number, f.VerifyLog())
		run(f, "update logs set removed_leaf = null where tenant_id = $1", f.Tenant.ID)
		expectMissing(f, "a deletion without a leaf", number, f.VerifyLog())
		signed := checkpoint(f)
		f.Clock.Advance(20 * nodetest.Day)
		f.OK(f.Node.Purge(f.Context()))
		f.BuildLog()
		expectVerified(f, "a later removal", f.VerifyLog())
		expectMissing(f, "a checkpoint without the age", number, f.VerifyLog(signed))
	})
}

func TestARegularRemovalVerifies(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		keepEvents(f, 10*nodetest.Day)
		saved := []string{checkpoint(f)}
		for range 4 {
			saved = append(saved, daily(f, 6))
			f.OK(f.Node.Purge(f.Context()))
			saved = append(saved, checkpoint(f))
		}
		if f.VerifyLog().Log.Removed == 0 {
			t.Fatal("no event was deleted")
		}
		expectVerified(f, "after each purge", f.VerifyLog(saved...))
		expectVerified(f, "with the setting as the expectation", f.VerifyKept(10*nodetest.Day, saved...))
		expectMissing(f, "for more than the setting", f.VerifyLog().Log.Removed, f.VerifyKept(30*nodetest.Day))
		keepEvents(f, 100*nodetest.Day)
		expectVerified(f, "after a longer setting", f.VerifyLog(saved...))
		daily(f, 2)
		keepEvents(f, 3*nodetest.Day)
		f.OK(f.Node.Purge(f.Context()))
		removed := f.VerifyLog().Log.Removed
		expectVerified(f, "after a shorter setting", f.VerifyLog(append(saved, checkpoint(f))...))
		keepEvents(f, 100*nodetest.Day)
		expectVerified(f, "after the setting that followed", f.VerifyLog(saved...))
		expectMissing(f, "for an auditor who expects ten days", removed, f.VerifyKept(10*nodetest.Day, saved...))
	})
}

// TestACheckpointBoundsTheAgeOfDeletedEvents deletes recent events behind an event of an old time.
func TestACheckpointBoundsTheAgeOfDeletedEvents(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		keepEvents(f, 10*nodetest.Day)
		signed := daily(f, 3)
		fill(f, len(logged(f))+5) // of the start
		last := logged(f)[len(logged(f))-1].Number
		renameTenant(f)
		f.Clock.Advance(8 * nodetest.Day)
		deletesOldest(f, last)
		expectVerified(f, "without a checkpoint", f.VerifyLog())
		expectMissing(f, "with a checkpoint", last, f.VerifyLog(signed))
		f.Clock.Advance(nodetest.Day * 3)
		expectVerified(f, "once all events are old enough", f.VerifyLog(signed))
	})
}

// TestASettingWithoutItsEventAllowsNoRemoval changes the setting in the database, so that the program deletes events.
func TestASettingWithoutItsEventAllowsNoRemoval(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		keepEvents(f, 10*nodetest.Day)
		daily(f, 5)
		run(f, "update tenants set settings = '{\"eventsKeptSeconds\":86400}' where id = $1", f.Tenant.ID)
		f.OK(f.Node.Purge(f.Context()))
		removed := f.VerifyLog().Log.Removed
		if removed == 0 {
			t.Fatal("no event was deleted")
		}
		expectMissing(f, "a setting without its event", removed, f.VerifyLog())
		for _, seconds := range []string{"1", "-1", "9300000000"} {
			run(f, "update tenants set settings = '{\"eventsKeptSeconds\":"+seconds+"}' where id = $1", f.Tenant.ID)
			expectMissing(f, "a setting that the service does not store: "+seconds, removed, f.VerifyLog())
		}
		f.Clock.Advance(20 * nodetest.Day)
		f.OK(f.Node.Purge(f.Context()))
	})
}
