package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/webhooks"
)

func TestWebhooksDeliverWhatTheirAccountMayRead(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		account := f.aReader("users.name:read")
		w := f.newWebhook(r.url("/hook"), account.ID)
		u := f.user("grace")
		created := r.awaitItem(rolecall.EventUserCreated, 1)
		if first := r.awaitItem(rolecall.EventWebhookCreated, 1); first.item.Data.After != nil {
			f.Errorf("the webhook is shown without webhooks:read: %s", first.body)
		}
		if got := created.item.Data.After; len(got) != 2 || got["name"] != "User grace" || got["id"] != u.ID.String() {
			f.Errorf("got %v", got)
		}
		if created.item.Source != "https://id.example.com/tenants/acme" || created.item.Subject != "user/"+u.ID.String() || created.item.Data.Tenant != "acme" || created.item.SpecVersion != "1.0" ||
			created.kind != "application/cloudevents+json" || created.id != created.item.ID {
			f.Errorf("got %+v", created)
		}
		signature, err := secret.SignWebhook(w.Secret, created.id, int64(start/1e6), created.body)
		f.ok(err)
		if created.signatures != signature || created.at != fmt.Sprint(int64(start/1e6)) {
			f.Errorf("the signature is %s, want %s", created.signatures, signature)
		}
		f.assignToAccount(account.ID, f.role("Reads addresses", "users.email:read").ID)
		f.rename(u.ID, "Rear Admiral Hopper")
		f.user("katherine")
		if got := r.awaitItem(rolecall.EventUserCreated, 2).item.Data.After; got["email"] == nil {
			f.Errorf("the new permission has no effect: %v", got)
		}
	})
}

func TestAWebhookSelectsTypesAndActors(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		account := f.aReader("users:read")
		f.newWebhook(r.url("/types"), account.ID, types(rolecall.EventUserUpdated, rolecall.EventUserDeleted))
		f.newWebhook(r.url("/others"), account.ID, types(rolecall.EventUserUpdated), func(d *rolecall.WebhookDraft) {
			d.IgnoreActors = []rolecall.AnyID{rolecall.AnyID(f.owner.User.ID)}
		})
		f.newWebhook(r.url("/disabled"), account.ID, func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		other := f.caller(holding("users:read", "users:update"))
		u := f.user("grace")
		f.rename(u.ID, "Rear Admiral Hopper")
		_, err := f.Directory.UpdateUser(f.Context(), other, u.ID, rolecall.UserPatch{Name: rolecall.Some("Amazing Grace")}, nil)
		f.ok(err)
		all := r.await("the change by another actor", func(all []received) bool {
			return len(ofType(all, rolecall.EventUserUpdated)) == 3
		})
		byPath := map[string]int{}
		for _, got := range all {
			byPath[got.path+" "+got.item.Type]++
		}
		if want := map[string]int{"/types user.updated": 2, "/others user.updated": 1}; fmt.Sprint(byPath) != fmt.Sprint(want) {
			f.Errorf("received %v, want %v", byPath, want)
		}
	})
}

func TestAFailingItemBlocksOnlyItsPart(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		var bad string
		var mu sync.Mutex
		r := newReceiver(f, func(got received) int {
			mu.Lock()
			defer mu.Unlock()
			if bad == "" && got.item.Type == string(rolecall.EventUserUpdated) {
				bad = got.item.Subject
			}
			if got.item.Subject == bad {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		})
		f.delivering(r)
		w := f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventUserUpdated))
		var users []rolecall.UserID
		for i := range 12 {
			users = append(users, f.user(fmt.Sprintf("user%d", i)).ID)
		}
		for round := range 3 {
			for i, u := range users {
				f.rename(u, fmt.Sprintf("Round %c of %c", 'a'+round, 'a'+i))
			}
		}
		blocked := func() int {
			mu.Lock()
			defer mu.Unlock()
			for _, u := range users {
				if "user/"+u.String() == bad {
					return int(u[15]) % rolecall.WebhookPartitions
				}
			}
			return -1
		}
		// All items of the other parts arrive, in the order of each user.
		r.await("the other parts", func(all []received) bool {
			part, want, got := blocked(), 0, 0
			for _, u := range users {
				if int(u[15])%rolecall.WebhookPartitions != part {
					want += 3
				}
			}
			seen := map[string]bool{}
			for _, one := range all {
				if id, err := rolecall.ParseID[rolecall.User](strings.TrimPrefix(one.item.Subject, "user/")); err == nil && int(id[15])%rolecall.WebhookPartitions != part && !seen[one.id] {
					seen[one.id], got = true, got+1
				}
			}
			return part >= 0 && got == want
		})
		f.eventually(func() bool { return len(f.failed(w.ID)) == 1 })
		attempts := func() (n int) {
			for _, one := range r.all() {
				if one.item.Subject == bad {
					n++
				}
			}
			return n
		}
		if n := attempts(); n != 1 {
			f.Errorf("%d attempts before the pause is over", n)
		}
		f.clock.advance(5 * time.Second)
		f.eventually(func() bool { return attempts() == 2 && len(f.failed(w.ID)) == 2 })
		f.clock.advance(9 * time.Second)
		mu.Lock()
		bad = "none"
		mu.Unlock()
		f.clock.advance(time.Second)
		all := r.await("the items after the failure", func(all []received) bool { return len(distinct(all)) == 36 })
		for _, u := range users {
			checkOrder(f, all, "user/"+u.String())
		}
	})
}

// distinct returns the first request for each item.
func distinct(all []received) (first []received) {
	seen := map[string]bool{}
	for _, got := range all {
		if !seen[got.id] {
			seen[got.id], first = true, append(first, got)
		}
	}
	return first
}

// checkOrder checks that the items about the subject came in the order of their events.
func checkOrder(f *fixture, all []received, subject string) {
	f.Helper()
	last := ""
	for _, got := range all {
		if got.item.Subject == subject {
			if got.id < last { // the ids of one process are in the order of the changes
				f.Errorf("%s: %s after %s", subject, got.id, last)
			}
			last = max(last, got.id)
		}
	}
}

func (f *fixture) failed(id rolecall.WebhookID) []rolecall.WebhookDelivery {
	f.Helper()
	return slices.DeleteFunc(f.deliveries(id), func(d rolecall.WebhookDelivery) bool { return d.Error == "" })
}

func TestAWebhookIsDisabledAfterThreeDaysOfFailures(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, func(received) int { return http.StatusServiceUnavailable })
		f.delivering(r)
		w := f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventWebhookCreated))
		for n := 1; f.webhook(w.ID).Enabled; n++ {
			f.eventually(func() bool { return len(f.failed(w.ID)) >= n || !f.webhook(w.ID).Enabled })
			if n > 60 {
				f.Fatal("the webhook is not disabled")
			}
			f.clock.advance(2 * time.Hour)
		}
		after := f.clock.Now().Sub(start)
		if n := len(f.failed(w.ID)); after < 72*time.Hour || after > 78*time.Hour || n < 35 {
			f.Errorf("it was disabled after %v and %d attempts", after, n)
		}
		f.isDisabled(w.ID, rolecall.WebhookFailing)
		r.mu.Lock()
		r.answer = nil
		r.mu.Unlock()
		before := len(r.all())
		_, err := f.Webhooks.UpdateWebhook(f.Context(), f.owner, w.ID, rolecall.WebhookPatch{Enabled: rolecall.Some(true)}, nil)
		f.ok(err)
		f.eventually(func() bool { return len(r.all()) > before && f.deliveries(w.ID)[0].Error == "" })
		if got := f.webhook(w.ID); !got.Enabled || got.DisabledReason != nil {
			f.Errorf("got %+v", got)
		}
	})
}

// isDisabled checks that Rolecall has disabled the webhook, with an event and a mail.
func (f *fixture) isDisabled(id rolecall.WebhookID, reason string) {
	f.Helper()
	f.eventually(func() bool { return !f.webhook(id).Enabled })
	if got := f.webhook(id).DisabledReason; got == nil || *got != reason {
		f.Errorf("disabled because of %v", got)
	}
	events := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventWebhookDisabled)})
	if len(events) == 0 || events[0].Reason != reason || events[0].Subject.ID != rolecall.AnyID(id) {
		f.Errorf("the events are %+v", events)
	}
	f.eventually(func() bool { // the fixture notes mails after the commit
		return slices.ContainsFunc(f.mails(), func(m rolecall.Mail) bool {
			return m.Kind == rolecall.MailWebhookDisabled && m.To == f.owner.User.Email && m.What != ""
		})
	})
	n, err := f.Webhooks.Disabled(f.Context())
	if f.ok(err); n < 1 {
		f.Error("the disabled webhook is not counted")
	}
}

func TestAWebhookIsDisabledIfItsEndpointIsGone(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, func(received) int { return http.StatusGone })
		f.delivering(r)
		w := f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventWebhookCreated))
		f.isDisabled(w.ID, rolecall.WebhookGone)
		if n := len(f.failed(w.ID)); n != 1 {
			f.Errorf("%d attempts", n)
		}
	})
}

func TestAWebhookIsDisabledIfItsAccountIsDeleted(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		account := f.aReader()
		w := f.newWebhook(r.url("/hook"), account.ID)
		r.awaitItem(rolecall.EventWebhookCreated, 1)
		f.ok(f.Directory.DeleteServiceAccount(f.Context(), f.owner, account.ID, nil))
		f.isDisabled(w.ID, rolecall.WebhookUnattended)
		if got := ofType(r.all(), rolecall.EventServiceAccountDeleted); len(got) > 0 {
			f.Error("an item was sent without an account")
		}
		_, err := f.Webhooks.UpdateWebhook(f.Context(), f.owner, w.ID, rolecall.WebhookPatch{Enabled: rolecall.Some(true)}, nil)
		f.isInvalid(err, "/serviceAccountId")
		_, err = f.Webhooks.UpdateWebhook(f.Context(), f.owner, w.ID, rolecall.WebhookPatch{Enabled: rolecall.Some(true), ServiceAccountID: rolecall.Some(f.aReader("roles:read").ID)}, nil)
		f.ok(err)
		r.awaitItem(rolecall.EventServiceAccountDeleted, 1)
	})
}

func TestNothingIsSentWithoutThePermission(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		account := f.account("Hooks", f.role("Nothing").ID)
		w := f.newWebhook(r.url("/hook"), account.ID, types(rolecall.EventWebhookCreated))
		errorsAre := func(want ...string) {
			f.Helper()
			f.eventually(func() bool {
				var got []string
				for _, d := range f.deliveries(w.ID) {
					got = append(got, d.Error)
				}
				return slices.Equal(got, want)
			})
		}
		errorsAre("permission-denied")
		f.ok(errorOf3(f.Directory.AssignRole(f.Context(), f.owner, rolecall.HolderOf(account.ID), f.role("Follows in Sales", "changes:read").ID, rolecall.AssignmentDraft{Departments: []string{"Sales"}})))
		f.clock.advance(6 * time.Second)
		errorsAre("permission-denied", "permission-denied")
		_, err := f.Directory.SuspendServiceAccount(f.Context(), f.owner, account.ID, "")
		f.ok(err)
		f.clock.advance(11 * time.Second)
		errorsAre("service-account-suspended", "permission-denied", "permission-denied")
		if n := len(r.all()); n != 0 {
			f.Errorf("%d requests were sent", n)
		}
		_, err = f.Directory.ResumeServiceAccount(f.Context(), f.owner, account.ID, "")
		f.ok(err)
		f.assignToAccount(account.ID, f.role("Follows", "changes:read").ID)
		f.clock.advance(21 * time.Second)
		r.awaitItem(rolecall.EventWebhookCreated, 1)
	})
}

func TestTheOldSecretSignsForADay(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		w := f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventRoleCreated))
		rotated, err := f.Webhooks.RotateSecret(f.Context(), f.owner, w.ID, nil)
		f.ok(err)
		if rotated.Secret == w.Secret {
			f.Error("the secret is the same")
		}
		signedBy := func(got received, secrets ...string) {
			f.Helper()
			var want []string
			for _, s := range secrets {
				var at int64
				_, err := fmt.Sscan(got.at, &at)
				f.ok(err)
				signature, err := secret.SignWebhook(s, got.id, at, got.body)
				f.ok(err)
				want = append(want, signature)
			}
			if got.signatures != strings.Join(want, " ") {
				f.Errorf("the signatures are %s, want %s", got.signatures, want)
			}
		}
		// sent returns the first request with the nth item. When the clock advances, an item can be sent again.
		sent := func(n int) received {
			f.Helper()
			all := r.await("a role", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) >= n })
			return distinct(ofType(all, rolecall.EventRoleCreated))[n-1]
		}
		f.role("First")
		signedBy(sent(1), rotated.Secret, w.Secret)
		f.clock.advance(24*time.Hour - time.Second)
		f.role("Second")
		signedBy(sent(2), rotated.Secret, w.Secret)
		f.clock.advance(time.Second)
		f.role("Third")
		signedBy(sent(3), rotated.Secret)
	})
}

func TestTestReplayAndSkip(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		var mu sync.Mutex
		bad := map[string]bool{}
		r := newReceiver(f, func(got received) int {
			mu.Lock()
			defer mu.Unlock()
			if bad[got.item.Type] {
				return http.StatusTeapot
			}
			return http.StatusOK
		})
		f.delivering(r)
		w := f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventRoleCreated, rolecall.EventRoleDeleted), func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		test, err := f.Webhooks.TestWebhook(f.Context(), f.owner, w.ID)
		f.ok(err)
		if got := r.awaitItem("webhook.test", 1); got.id != test.String() || got.item.Subject != "webhook/"+w.ID.String() {
			f.Errorf("the test is %s", got.body)
		}
		f.eventually(func() bool { return len(f.deliveries(w.ID)) == 1 })
		_, err = f.Webhooks.UpdateWebhook(f.Context(), f.owner, w.ID, rolecall.WebhookPatch{Enabled: rolecall.Some(true)}, nil)
		f.ok(err)

		var at []rolecall.Time
		for i := range 5 {
			f.clock.advance(time.Hour)
			at = append(at, f.clock.Now())
			f.role(fmt.Sprintf("Role %d", i))
			f.eventually(func() bool { return len(f.deliveries(w.ID)) == 2+i }) // so that no claim expires
		}
		r.awaitItem(rolecall.EventRoleCreated, 5)
		before := len(r.all())
		f.ok(f.Webhooks.ReplayWebhook(f.Context(), f.owner, w.ID, webhooks.Replay{From: at[1], To: at[3]}))
		f.eventually(func() bool { return len(r.all()) >= before+2 })
		f.role("Another")
		all := r.await("the next item", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) == 6 })
		var again []string
		for _, got := range all[before:] {
			if name, _ := got.item.Data.After["name"].(string); name != "" {
				f.Errorf("the name %s is shown", name)
			}
			again = append(again, got.id)
		}
		var roles []string
		for _, got := range distinct(ofType(all, rolecall.EventRoleCreated)) {
			roles = append(roles, got.id)
		}
		slices.Sort(roles)
		slices.Sort(again)
		if want := []string{roles[1], roles[2], roles[5]}; !slices.Equal(again, want) {
			f.Errorf("sent were %v, want %v", again, want)
		}
		f.isInvalid(f.Webhooks.ReplayWebhook(f.Context(), f.owner, w.ID, webhooks.Replay{From: at[1], To: at[1]}), "/to")

		mu.Lock()
		bad[string(rolecall.EventRoleDeleted)] = true
		mu.Unlock()
		f.ok(f.Webhooks.SkipItems(f.Context(), f.owner, w.ID, false)) // nothing fails yet
		gone := f.role("Gone")
		f.ok(f.Directory.DeleteRole(f.Context(), f.owner, gone.ID, false, nil))
		f.eventually(func() bool { return len(f.failed(w.ID)) == 1 })
		f.ok(f.Webhooks.SkipItems(f.Context(), f.owner, w.ID, false))
		f.clock.advance(time.Hour)
		f.role("After")
		r.await("the item after the skipped one", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) == 8 })
		if n := len(ofType(r.all(), rolecall.EventRoleDeleted)); n != 1 {
			f.Errorf("the skipped item was sent %d times", n)
		}
		f.skipsAll(w.ID, r)
	})
}

// skipsAll skips the items that wait while the webhook is disabled.
func (f *fixture) skipsAll(id rolecall.WebhookID, r *receiver) {
	f.Helper()
	enable := func(on bool) {
		_, err := f.Webhooks.UpdateWebhook(f.Context(), f.owner, id, rolecall.WebhookPatch{Enabled: rolecall.Some(on)}, nil)
		f.ok(err)
	}
	enable(false)
	f.role("Skipped")
	_, err := f.Access.Feed.End(f.Context(), f.tenant.ID)
	f.ok(err)
	f.ok(f.Webhooks.SkipItems(f.Context(), f.owner, id, true))
	enable(true)
	f.role("Last")
	r.await("the item after the skipped ones", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) >= 9 })
	events := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventRoleCreated)})
	if last := ofType(r.all(), rolecall.EventRoleCreated); last[len(last)-1].id != events[0].ID.String() {
		f.Error("the skipped item was sent")
	}
}

func TestNoEscalationThroughWebhooks(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		strong := f.account("Strong", f.role("Everything", "users:read", "changes:read", "roles:read").ID)
		weak := f.account("Weak", f.role("Little", "changes:read").ID)
		caller := f.caller(holding("webhooks:*"), holding("service-accounts:update"), holding("changes:read"))
		create := func(c access.Caller, account rolecall.ServiceAccountID) error {
			return errorOf(f.Webhooks.CreateWebhook(f.Context(), c, newKey(), rolecall.WebhookDraft{URL: "https://hooks.example.org/", ServiceAccountID: account}))
		}
		f.ok(create(caller, weak.ID))
		f.is(create(caller, strong.ID), rolecall.ErrBeyondOwnPermissions)
		f.is(create(f.caller(holding("webhooks:create"), holding("changes:read")), weak.ID), rolecall.ErrPermissionDenied)
		f.isInvalid(create(f.owner, rolecall.NewID[rolecall.ServiceAccount](start)), "/serviceAccountId")
		w := f.newWebhook("https://hooks.example.org/", strong.ID)
		patch := func(c access.Caller, id rolecall.WebhookID, p rolecall.WebhookPatch) error {
			return errorOf(f.Webhooks.UpdateWebhook(f.Context(), c, id, p, nil))
		}
		f.is(patch(caller, w.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://evil.example.org/")}), rolecall.ErrBeyondOwnPermissions)
		f.is(errorOf(f.Webhooks.RotateSecret(f.Context(), caller, w.ID, nil)), rolecall.ErrBeyondOwnPermissions)
		mine := f.newWebhook("https://hooks.example.org/", weak.ID)
		f.ok(patch(caller, mine.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://other.example.org/")}))
		f.is(patch(caller, mine.ID, rolecall.WebhookPatch{ServiceAccountID: rolecall.Some(strong.ID)}), rolecall.ErrBeyondOwnPermissions)
		f.isInvalid(patch(caller, mine.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://127.0.0.1/")}), "/url")
		f.ok(f.Webhooks.DeleteWebhook(f.Context(), caller, w.ID, nil))
		f.is(f.Webhooks.DeleteWebhook(f.Context(), caller, w.ID, nil), rolecall.ErrNotFound)
	})
}

func TestATenantHasTwentyWebhooks(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		account := f.account("Hooks", f.role("Nothing").ID)
		draft := rolecall.WebhookDraft{URL: "https://hooks.example.org/", ServiceAccountID: account.ID}
		var first rolecall.WebhookID
		for range rolecall.WebhooksMax {
			first = f.newWebhook(draft.URL, account.ID).ID
		}
		create := func() error {
			return errorOf(f.Webhooks.CreateWebhook(f.Context(), f.owner, newKey(), draft))
		}
		f.is(create(), rolecall.ErrTooManyWebhooks)
		f.ok(f.Webhooks.DeleteWebhook(f.Context(), f.owner, first, nil))
		f.ok(create())
		f.is(create(), rolecall.ErrTooManyWebhooks)
	})
}

func TestASecretIsShownOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		draft, key := rolecall.WebhookDraft{URL: "https://hooks.example.org/", ServiceAccountID: f.account("Hooks", f.role("Nothing").ID).ID}, newKey()
		first, err := f.Webhooks.CreateWebhook(f.Context(), f.owner, key, draft)
		f.ok(err)
		again, err := f.Webhooks.CreateWebhook(f.Context(), f.owner, key, draft)
		f.ok(err)
		if !strings.HasPrefix(first.Value.Secret, "whsec_") || again.Value.Secret != "" || !again.Replayed || again.Value.ID != first.Value.ID || again.Value.URL != draft.URL {
			f.Errorf("got %+v, then %+v", first, again)
		}
		var w rolecall.Webhook
		f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
			w, err = tx.Webhook(first.Value.ID)
			return err
		}))
		if strings.Contains(string(w.Secret.Sealed), first.Value.Secret) {
			f.Error("the secret is not encrypted")
		}
	})
}

// TestTwoNodesDeliverEachItemOnce runs two nodes on the database. The endpoint is slow, so that the nodes
// would overlap.
func TestTwoNodesDeliverEachItemOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		var mu sync.Mutex
		running := map[string]int{}
		r := newReceiver(f, func(got received) int {
			mu.Lock()
			running[got.path+got.id]++
			if running[got.path+got.id] > 1 {
				f.Errorf("%s is delivered twice", got.id)
			}
			mu.Unlock()
			<-time.After(20 * time.Millisecond)
			mu.Lock()
			running[got.path+got.id]--
			mu.Unlock()
			return http.StatusOK
		})
		f.delivering(r)
		f.work(node.New(f.open(), f.reaching(r)))
		account := f.aReader()
		for i := range 4 {
			f.newWebhook(r.url(fmt.Sprintf("/%d", i)), account.ID, types(rolecall.EventRoleCreated))
		}
		for i := range 30 {
			f.role(fmt.Sprintf("Role %d", i))
		}
		all := r.await("all items", func(all []received) bool { return len(all) >= 120 })
		if len(all) != 120 {
			f.Errorf("%d requests", len(all))
		}
	})
}

// The database does not answer when the node stores the result of an attempt. The node tries again while it has the
// claim, so the item is not sent twice, and the next one does not wait for the end of the lease.
func TestTheResultOfAnAttemptOutlastsAnOutage(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventRoleCreated))
		f.role("First")
		r.awaitItem(rolecall.EventRoleCreated, 1)
		f.db.failOnce("update webhook_cursors set queue = ", rolecall.ErrUnavailable)
		const more = 20 // so that each part of the webhook has an item
		for i := range more {
			f.role(fmt.Sprintf("Role %d", i))
		}
		r.awaitItem(rolecall.EventRoleCreated, 1+more)
		if n := len(r.all()); n != 1+more || f.db.failsOnce() {
			f.Errorf("%d requests", n)
		}
	})
}

func TestAttemptsInProgressEndWithTheProcess(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		release := make(chan struct{})
		r := newReceiver(f, func(received) int {
			<-release
			return http.StatusOK
		})
		defer close(release)
		r.limit = 2 * time.Second
		stop := f.delivering(r)
		w := f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventWebhookCreated))
		r.awaitItem(rolecall.EventWebhookCreated, 1)
		stop() // the attempt fails after the limit
		if n := len(f.failed(w.ID)); n != 1 {
			f.Errorf("%d attempts are stored", n)
		}
	})
}

func TestWebhooksOfASuspendedTenantWait(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventTenantSuspended, rolecall.EventTenantResumed))
		f.ok(errorOf(f.Directory.SuspendTenant(f.Context(), f.operates("Support"), f.tenant.Name, "")))
		_, err := f.Access.Feed.End(f.Context(), f.tenant.ID)
		f.ok(err)
		f.ok(errorOf(f.Directory.ResumeTenant(f.Context(), f.operates("Again"), f.tenant.Name, "")))
		f.clock.advance(2 * time.Minute)
		r.awaitItem(rolecall.EventTenantResumed, 1)
		if n := len(distinct(r.all())); n != 2 {
			f.Errorf("%d items", n)
		}
	})
}
