package storetest

import (
	"errors"
	"fmt"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var outboxCases = []testCase{
	{"A claimed mail reads back in every member, with its tenant and the attempt", func(f *fixture) {
		want := f.mail(start)
		got := f.claim(start, start+minute)
		want.TenantID, want.DueAt, want.Attempts = f.tenant, start+minute, 1
		same(f, got, want)
	}},
	{"A mail is claimed when it is due, and the mail that has been due longest is claimed first", func(f *fixture) {
		later, first, second := f.mail(start+2), f.mail(start), f.mail(start+1)
		f.is(f.tryClaim(start-1), rolecall.ErrNotFound)
		same(f, f.claim(start+1, start+minute).ID, first.ID)
		same(f, f.claim(start+1, start+minute).ID, second.ID)
		f.is(f.tryClaim(start+1), rolecall.ErrNotFound)
		same(f, f.claim(start+2, start+minute).ID, later.ID)
	}},
	{"One sender sees the mail of every tenant", func(f *fixture) {
		other := f.in(f.newTenant("other"))
		f.mail(start)
		other.mail(start + 1)
		nobody := f.in(rolecall.TenantID{})
		same(f, nobody.claim(start+1, start+minute).TenantID, f.tenant)
		same(f, nobody.claim(start+1, start+minute).TenantID, other.tenant)
		same(f, read(nobody, func(tx *store.Tx) (int, error) { return tx.CountMail(10) }), 2)
	}},
	{"A claimed mail is due again when the claim expires", func(f *fixture) {
		m := f.mail(start)
		f.claim(start, start+minute)
		f.is(f.tryClaim(start+minute-1), rolecall.ErrNotFound)
		again := f.claim(start+minute, start+2*minute)
		same(f, again.ID, m.ID)
		same(f, again.Attempts, 2)
	}},
	{"Only one of twenty concurrent claims of a mail succeeds", func(f *fixture) {
		f.mail(start)
		f.oneWins(parallel(20, func(int) error { return f.tryClaim(start) }), rolecall.ErrNotFound)
	}},
	{"Concurrent claims return each mail once", func(f *fixture) {
		const mails = 30
		for range mails {
			f.mail(start)
		}
		claimed := make([][]rolecall.MailID, 6)
		for _, err := range parallel(len(claimed), func(i int) error {
			for f.countDue(start) > 0 {
				m, err := f.claimed(start, start+minute)
				switch {
				case err == nil:
					claimed[i] = append(claimed[i], m.ID)
				case !errors.Is(err, rolecall.ErrNotFound):
					return err
				}
			}
			return nil
		}) {
			f.is(err, nil)
		}
		seen := map[rolecall.MailID]bool{}
		for _, ids := range claimed {
			for _, id := range ids {
				if seen[id] {
					f.Errorf("%v was claimed twice", id)
				}
				seen[id] = true
			}
		}
		same(f, len(seen), mails)
	}},
	{"Only the current claim of a mail can postpone it", func(f *fixture) {
		m := f.mail(start)
		f.claim(start, start+minute)
		f.write(func(tx *store.Tx) { tx.PostponeMail(m.ID, 1, start+hour) })
		f.is(f.tryClaim(start+hour-1), rolecall.ErrNotFound)
		f.claim(start+hour, start+2*hour)
		f.write(func(tx *store.Tx) { tx.PostponeMail(m.ID, 1, start) })
		f.is(f.tryClaim(start+2*hour-1), rolecall.ErrNotFound)
	}},
	{"A mail that was sent is deleted", func(f *fixture) {
		m, stays := f.mail(start), f.mail(start+1)
		same(f, f.deleteMail(m.ID), true)
		same(f, f.deleteMail(m.ID), false)
		same(f, f.claim(start+1, start+minute).ID, stays.ID)
	}},
	{"An expired mail is reported instead of claimed, unless it is claimed already", func(f *fixture) {
		m := f.mail(start)
		f.claim(start, m.ExpiresAt+minute)
		same(f, len(f.expired(m.ExpiresAt, 10)), 0)
		f.write(func(tx *store.Tx) { tx.PostponeMail(m.ID, 1, m.ExpiresAt) })
		f.is(f.tryClaim(m.ExpiresAt), rolecall.ErrNotFound)
		same(f, len(f.expired(m.ExpiresAt-1, 10)), 0)
		same(f, f.expired(m.ExpiresAt, 10)[0].ID, m.ID)
	}},
	{"Expired mails are reported in order up to the limit", func(f *fixture) {
		for i := range 5 {
			f.mail(start + rolecall.Time(i))
		}
		got := f.expired(start+day+5, 3)
		same(f, len(got), 3)
		same(f, got[0].CreatedAt, start)
		same(f, got[2].CreatedAt, start+2)
	}},
	{"The count of mails stops at the limit", func(f *fixture) {
		for range 5 {
			f.mail(start)
		}
		same(f, read(f, func(tx *store.Tx) (int, error) { return tx.CountMail(3) }), 3)
		same(f, read(f, func(tx *store.Tx) (int, error) { return tx.CountMail(10) }), 5)
	}},
	{"A failed update writes no mail", func(f *fixture) {
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			tx.InsertMail(aMail(start))
			return errRefused
		}), errRefused)
		f.is(f.tryClaim(start), rolecall.ErrNotFound)
	}},
	{"A purge of a tenant deletes only the mails of that tenant", func(f *fixture) {
		other := f.in(f.newTenant("other"))
		f.mail(start)
		stays := other.mail(start + 1)
		f.deleteTenant(f.tenantByName("acme"))
		for !change(f, func(tx *store.Tx) (bool, error) { return tx.PurgeTenant(10) }) {
		}
		same(f, other.claim(start+1, start+minute).ID, stays.ID)
		f.is(f.tryClaim(start+1), rolecall.ErrNotFound)
	}},
}

// aMail returns an unstored mail that expires after a day.
func aMail(due rolecall.Time) rolecall.OutboxMail {
	return rolecall.OutboxMail{
		ID: rolecall.NewID[rolecall.Mail](due), UserID: rolecall.NewID[rolecall.User](due), Sealed: fmt.Appendf(nil, "sealed %d", serial.Add(1)), DueAt: due, CreatedAt: due, ExpiresAt: due + day,
	}
}

// mail inserts a mail into the outbox.
func (f *fixture) mail(due rolecall.Time) rolecall.OutboxMail {
	f.Helper()
	m := aMail(due)
	f.write(func(tx *store.Tx) { tx.InsertMail(m) })
	return m
}

// claimed returns the result of ClaimMail.
func (f *fixture) claimed(now, until rolecall.Time) (m rolecall.OutboxMail, err error) {
	err = f.tryUpdate(func(tx *store.Tx) (err error) {
		m, err = tx.ClaimMail(now, until)
		return err
	})
	return m, err
}

func (f *fixture) tryClaim(now rolecall.Time) error {
	_, err := f.claimed(now, now+minute)
	return err
}

func (f *fixture) claim(now, until rolecall.Time) rolecall.OutboxMail {
	f.Helper()
	m, err := f.claimed(now, until)
	if err != nil {
		f.Fatalf("claim: %v", err)
	}
	return m
}

func (f *fixture) deleteMail(id rolecall.MailID) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteMail(id) })
}

func (f *fixture) expired(now rolecall.Time, limit int) []rolecall.OutboxMail {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.OutboxMail, error) { return tx.ExpiredMail(now, limit) })
}

// countDue returns the number of mails in the outbox that are due, including expired ones.
// It does not count mails that a process has claimed.
func (f *fixture) countDue(now rolecall.Time) int {
	f.Helper()
	n := 0
	for _, m := range f.expired(now+30*day, 100) {
		if m.DueAt <= now {
			n++
		}
	}
	return n
}
