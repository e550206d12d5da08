package storetest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

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
		claimed := map[rolecall.TenantID]bool{nobody.claim(start+1, start+minute).TenantID: true, nobody.claim(start+1, start+minute).TenantID: true}
		same(f, claimed, map[rolecall.TenantID]bool{f.tenant: true, other.tenant: true})
		same(f, read(nobody, func(tx *store.Tx) (int, error) { return tx.CountMail(10) }), 2)
	}},
	{"Tenants with due mail take turns", func(f *fixture) {
		tenants := []*fixture{f, f.in(f.newTenant("second")), f.in(f.newTenant("third"))}
		slices.SortFunc(tenants, func(a, b *fixture) int { return bytes.Compare(a.tenant[:], b.tenant[:]) })
		for i := range 3 {
			tenants[0].mail(start + rolecall.Time(i))
		}
		tenants[2].mail(start + 3)
		tenants[2].mail(start + 4)
		tenants[1].mail(start + hour)
		for _, c := range []struct {
			after, want int
			due         rolecall.Time
		}{{0, 2, start + 3}, {2, 0, start}, {0, 2, start + 4}, {2, 0, start + 1}, {0, 0, start + 2}} {
			m := change(f.in(rolecall.TenantID{}), func(tx *store.Tx) (rolecall.OutboxMail, error) {
				return tx.ClaimMail(tenants[c.after].tenant, start+minute, start+hour)
			})
			same(f, m.TenantID, tenants[c.want].tenant)
			same(f, m.CreatedAt, c.due)
		}
		f.is(f.tryClaim(start+minute), rolecall.ErrNotFound)
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
		for !change(f, func(tx *store.Tx) (bool, error) { return tx.PurgeTenant(start, 10) }) {
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
		m, err = tx.ClaimMail(rolecall.TenantID{}, now, until)
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

var webhookCases = []testCase{
	{"A webhook reads back in every member", func(f *fixture) {
		want := f.newWebhook(start)
		same(f, f.webhook(want.ID), want)
		changed := want
		changed.URL, changed.Types, changed.IgnoreActors = "https://other.example.com/ä", []rolecall.EventType{rolecall.EventUserCreated}, []rolecall.AnyID{rolecall.AnyID(f.tenant)}
		changed.Enabled, changed.DisabledReason, changed.ServiceAccountID = false, new("failing"), rolecall.NewID[rolecall.ServiceAccount](start)
		changed.Secret = rolecall.WebhookSecret{Sealed: []byte("new"), Old: []byte("old"), OldUntil: start + day}
		changed.UpdatedAt, changed.Version = start+1, 2
		same(f, f.updateWebhook(want, changed), true)
		same(f, f.webhook(want.ID), changed)
		same(f, f.updateWebhook(want, changed), false)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Webhook, error) {
			return tx.Webhook(rolecall.NewID[rolecall.Webhook](start))
		})
		f.is(err, rolecall.ErrNotFound)
	}},
	{"Webhooks are listed in pages and counted", func(f *fixture) {
		var want []rolecall.WebhookID
		for i := range 5 {
			want = append(want, f.newWebhook(start+rolecall.Time(i)*1000).ID)
		}
		listed := everyPage(f, 2, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.Webhook], error) {
			return tx.Webhooks(after, 2)
		}, nil)
		var got []rolecall.WebhookID
		for _, w := range listed {
			got = append(got, w.ID)
		}
		same(f, got, want)
		same(f, f.webhooks(), 5)
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteWebhook(f.webhook(want[0])) }), true)
		same(f, change(f, func(tx *store.Tx) (bool, error) { return tx.DeleteWebhook(listed[0]) }), false)
		same(f, f.webhooks(), 4)
		same(f, len(f.claimWebhooks(rolecall.QueueNew, start+minute, 50)), 16)
	}},
	{"Parts at the same place are claimed together, once until the claim expires", func(f *fixture) {
		f.newWebhook(start)
		other := f.in(f.newTenant("other"))
		other.newWebhook(start + 1)
		nobody := f.in(rolecall.TenantID{})
		same(f, len(nobody.claimWebhooks(rolecall.QueueNew, start-1, 1)), 0)
		same(f, len(nobody.claimWebhooks(rolecall.QueueFast, start+1, 1)), 0)
		claimed := nobody.claimWebhooks(rolecall.QueueNew, start+1, 1)
		same(f, len(claimed), 4)
		for _, c := range claimed {
			same(f, c.TenantID, f.tenant)
			same(f, c.Lease, 1)
		}
		same(f, read(nobody, func(tx *store.Tx) (bool, error) { return tx.IsWebhookDue(rolecall.QueueNew, start+1) }), true)
		same(f, len(nobody.claimWebhooks(rolecall.QueueNew, start+1, 5)), 4)
		same(f, read(nobody, func(tx *store.Tx) (bool, error) { return tx.IsWebhookDue(rolecall.QueueNew, start+1) }), false)
		same(f, len(nobody.claimWebhooks(rolecall.QueueNew, start+1+minute, 5)), 8)
	}},
	{"Concurrent claims return each part once", func(f *fixture) {
		for range 8 {
			f.newWebhook(start)
		}
		claimed := make([]int, 4)
		for _, err := range parallel(len(claimed), func(i int) error {
			for range 4 {
				if err := f.tryUpdate(func(tx *store.Tx) error {
					parts, err := tx.ClaimWebhooks(rolecall.QueueNew, start, start+minute, 4)
					claimed[i] += len(parts)
					return err
				}); err != nil {
					return err
				}
			}
			return nil
		}) {
			f.is(err, nil)
		}
		same(f, claimed[0]+claimed[1]+claimed[2]+claimed[3], 32)
	}},
	{"A part reads back in every member after its claim is settled", func(f *fixture) {
		w := f.newWebhook(start)
		c := f.claimWebhooks(rolecall.QueueNew, start, 1)[0]
		c.Queue, c.Number, c.Attempts, c.FailingSince, c.Blocked, c.Item, c.Slot = rolecall.QueueSlow, 7, 3, start+1, 9, rolecall.NewID[rolecall.Event](start), 12
		same(f, f.settleWebhook(c, rolecall.WebhookDue, start+5), true)
		same(f, f.settleWebhook(c, rolecall.WebhookDue, start+5), false)
		same(f, len(f.claimWebhooks(rolecall.QueueSlow, start+4, 9)), 0)
		again := f.claimWebhooks(rolecall.QueueSlow, start+5, 9)
		c.Lease++
		same(f, again, []rolecall.WebhookCursor{c})
		same(f, change(f, func(tx *store.Tx) ([]rolecall.EventID, error) { return tx.SkipBlocked(w.ID, start+6) }), []rolecall.EventID{c.Item})
		same(f, f.settleWebhook(c, rolecall.WebhookDue, start+5), false) // the claim has ended
		skipped := f.claimWebhooks(rolecall.QueueSlow, start+6, 9)[0]
		same(f, []int64{skipped.Number, int64(skipped.Attempts), skipped.Blocked}, []int64{9, 0, 0})
	}},
	{"New numbers wake idle parts, and not those that failed", func(f *fixture) {
		w := f.newWebhook(start)
		parts := f.claimWebhooks(rolecall.QueueNew, start, 1)
		for i, c := range parts {
			if i == 0 {
				c.Attempts, c.Blocked = 1, 5
				same(f, f.settleWebhook(c, rolecall.WebhookDue, start+day), true)
			} else {
				same(f, f.settleWebhook(c, rolecall.WebhookIdle, start+day), true)
			}
		}
		f.in(f.newTenant("other")).numberAnEvent()
		same(f, len(f.claimWebhooks(rolecall.QueueNew, start, 9)), 0)
		f.numberAnEvent()
		same(f, len(f.claimWebhooks(rolecall.QueueNew, start, 9)), 3)
		f.write(func(tx *store.Tx) { tx.RetryWebhook(w.ID, start) })
		same(f, len(f.claimWebhooks(rolecall.QueueNew, start, 9)), 1)
	}},
	{"A change of a webhook makes its parts due, also those in progress", func(f *fixture) {
		w := f.newWebhook(start)
		parts := f.claimWebhooks(rolecall.QueueNew, start, 1)
		same(f, f.settleWebhook(parts[0], rolecall.WebhookIdle, start+day), true)
		same(f, f.settleWebhook(parts[1], rolecall.WebhookDue, start+day), true)
		changed := w
		changed.URL, changed.Version = "https://other.example.com/", 2
		same(f, f.updateWebhook(w, changed), true)
		same(f, len(f.claimWebhooks(rolecall.QueueNew, start, 9)), 2)
		same(f, f.settleWebhook(parts[2], rolecall.WebhookDue, start+day), true)
		same(f, len(f.claimWebhooks(rolecall.QueueNew, start, 9)), 1)
	}},
	{"A disabled webhook is not due until it is enabled, except for a test", func(f *fixture) {
		w := f.newWebhook(start)
		parts := f.claimWebhooks(rolecall.QueueNew, start, 1)
		off, on := w, w
		off.Enabled, off.Version, on.Version = false, 2, 3
		same(f, f.updateWebhook(w, off), true)
		same(f, f.settleWebhook(parts[0], rolecall.WebhookDue, start), false)
		same(f, read(f, func(tx *store.Tx) (int, error) { return tx.CountDisabledWebhooks(10) }), 1)
		f.numberAnEvent()
		test := rolecall.NewID[rolecall.Event](start)
		f.write(func(tx *store.Tx) {
			tx.TestWebhook(w.ID, test, start)
			tx.ReplayWebhook(&off, 3, 8, start, start+1, start)
		})
		claimed := f.claimWebhooks(rolecall.QueueNew, start+day, 9)
		same(f, len(claimed), 1)
		same(f, claimed[0].Item, test)
		same(f, claimed[0].Part, rolecall.WebhookTestPart)
		same(f, f.updateWebhook(off, on), true)
		replayed := map[int64]int{}
		for _, c := range f.claimWebhooks(rolecall.QueueNew, start, 50) {
			replayed[c.Until]++
			if c.Until > 0 {
				same(f, []rolecall.Time{rolecall.Time(c.Number), c.From, c.To}, []rolecall.Time{3, start, start + 1})
			}
		}
		same(f, replayed, map[int64]int{0: 4, 8: 4})
		f.write(func(tx *store.Tx) { tx.SkipAll(w.ID, 20, start) })
		for _, c := range f.claimWebhooks(rolecall.QueueNew, start, 50) {
			same(f, []int64{c.Number, c.Until}, []int64{20, 0})
		}
	}},
	{"Attempts replace older ones in their slot", func(f *fixture) {
		w := f.newWebhook(start)
		var all []rolecall.WebhookDelivery
		for i := range 5 {
			d := rolecall.WebhookDelivery{ID: rolecall.NewID[rolecall.WebhookDelivery](start), Slot: i % 3, Item: rolecall.NewID[rolecall.Event](start), Type: rolecall.EventUserCreated,
				Attempt: i, Status: 200 + i, Duration: 1500 * time.Microsecond}
			if i%2 == 1 {
				d.Error = "status"
			}
			all = append(all, d)
			f.write(func(tx *store.Tx) { tx.UpsertDelivery(w.ID, d) })
		}
		list := func(result string) []rolecall.WebhookDelivery {
			return everyPage(f, 2, func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[rolecall.WebhookDelivery], error) {
				return tx.WebhookDeliveries(rolecall.WebhookDeliveryQuery{Webhook: w.ID, Result: result, After: after, Limit: 2})
			}, nil)
		}
		same(f, list(""), []rolecall.WebhookDelivery{all[4], all[3], all[2]})
		same(f, list("failed"), []rolecall.WebhookDelivery{all[3]})
		same(f, list("delivered"), []rolecall.WebhookDelivery{all[4], all[2]})
	}},
	{"Parts of a new webhook enter the fast queue together", func(f *fixture) {
		w := f.newWebhook(start)
		for _, c := range f.claimWebhooks(rolecall.QueueNew, start, 1)[:1] {
			c.Queue = rolecall.QueueFast
			same(f, f.settleWebhook(c, rolecall.WebhookIdle, start), true)
		}
		f.write(func(tx *store.Tx) { tx.PromoteWebhook(w.ID) })
		same(f, len(f.claimWebhooks(rolecall.QueueFast, start+minute, 9)), 4)
		f.write(func(tx *store.Tx) { tx.DropWebhook(w.ID) })
		same(f, len(f.claimWebhooks(rolecall.QueueFast, start+day, 9)), 0)
	}},
}

// newWebhook inserts an enabled webhook that was created at the time.
func (f *fixture) newWebhook(at rolecall.Time) rolecall.Webhook {
	f.Helper()
	draft := rolecall.WebhookDraft{URL: "https://hooks.example.com/", ServiceAccountID: rolecall.NewID[rolecall.ServiceAccount](start)}
	w := draft.Webhook(at)
	w.Secret.Sealed = []byte("sealed")
	f.is(f.tryUpdate(func(tx *store.Tx) error {
		last, _, err := tx.LockFeed()
		tx.InsertWebhook(w, last)
		return err
	}), nil)
	return w
}

func (f *fixture) webhook(id rolecall.WebhookID) rolecall.Webhook {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Webhook, error) { return tx.Webhook(id) })
}

// webhooks returns the number of webhooks of the tenant.
func (f *fixture) webhooks() int {
	f.Helper()
	return change(f, func(tx *store.Tx) (int, error) {
		_, n, err := tx.LockFeed()
		return n, err
	})
}

func (f *fixture) updateWebhook(old, changed rolecall.Webhook) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateWebhook(old, changed, start) })
}

// claimWebhooks claims parts for a minute.
func (f *fixture) claimWebhooks(queue rolecall.WebhookQueue, now rolecall.Time, n int) []rolecall.WebhookCursor {
	f.Helper()
	claimed := change(f, func(tx *store.Tx) ([]rolecall.WebhookCursor, error) {
		return tx.ClaimWebhooks(queue, now, now+minute, n)
	})
	slices.SortFunc(claimed, func(a, b rolecall.WebhookCursor) int { return cmp.Compare(a.Part, b.Part) })
	return claimed
}

func (f *fixture) settleWebhook(c rolecall.WebhookCursor, state rolecall.WebhookState, due rolecall.Time) bool {
	f.Helper()
	return change(f, func(tx *store.Tx) (bool, error) { return tx.SettleWebhook(&c, state, start, due) })
}

// numberAnEvent inserts an event and gives it a number.
func (f *fixture) numberAnEvent() {
	f.Helper()
	f.write(func(tx *store.Tx) { tx.InsertEvent(anEvent(rolecall.NewID[rolecall.User](start))) })
	same(f, change(f, func(tx *store.Tx) (int, error) { return tx.NumberEvents(start) }), 1)
}
