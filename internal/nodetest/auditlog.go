package nodetest

import (
	"errors"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/auditlog"
	"github.com/rolecall/rolecall/internal/store"
)

// CheckLog fails the test if the audit log does not verify.
func (f *Fixture) CheckLog() {
	f.Helper()
	f.BuildLog()
	if found := f.VerifyLog().Problems; len(found) > 0 {
		f.Errorf("the audit log does not verify: %v", found)
	}
}

// BuildLog adds all events of the tenant to its log.
func (f *Fixture) BuildLog() {
	f.Helper()
	for more := true; more; {
		f.OK(store.New(f.DB.Database, nil).Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			numbered, err := tx.NumberEvents(Start)
			if err != nil {
				return err
			}
			built, err := tx.BuildLog(f.Clock.Now())
			more = numbered > 0 || built > 0
			return err
		}))
	}
}

// AuditLog returns the audit log on the database, without the recorder.
func (f *Fixture) AuditLog() *auditlog.Log {
	return auditlog.New(store.New(f.DB.Database, nil), f.Keys, f.Clock.Now, f.Access.Log, f.Access.Outages, f.Access.Feed.CatchUp)
}

// VerifyLog verifies the audit log of the tenant against the signed checkpoints, and returns the report.
func (f *Fixture) VerifyLog(signed ...string) auditlog.Report {
	f.Helper()
	return f.VerifyKept(0, signed...)
}

// VerifyKept verifies the log with the checkpoints, for an auditor who expects that events are kept for a time.
func (f *Fixture) VerifyKept(kept time.Duration, signed ...string) auditlog.Report {
	f.Helper()
	var notes [][]byte
	for _, text := range signed {
		notes = append(notes, []byte(text))
	}
	tenant := f.Tenant // its settings may have changed since
	f.OK(store.New(f.DB.Database, nil).View(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
		current, err := tx.TenantByID(f.Tenant.ID)
		if errors.Is(err, rolecall.ErrNotFound) { // it was deleted
			return nil
		}
		tenant = current
		return err
	}))
	report, err := f.AuditLog().Verify(f.Context(), auditlog.Verification{Tenant: tenant, Notes: notes, Kept: kept})
	f.OK(err)
	return report
}
