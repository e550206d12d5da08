package webhooks_test

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
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/webhooks"
)

func TestWebhooksDeliverWhatTheirAccountMayRead(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		account := aReader(f, "users.name:read")
		w := newWebhook(f, r.url("/hook"), account.ID)
		u := f.NewUser("grace")
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
		signature, err := secret.SignWebhook(w.Secret, created.id, int64(nodetest.Start/1e6), created.body)
		f.OK(err)
		if created.signatures != signature || created.at != fmt.Sprint(int64(nodetest.Start/1e6)) {
			f.Errorf("the signature is %s, want %s", created.signatures, signature)
		}
		f.AssignToAccount(account.ID, f.NewRole("Reads addresses", "users.email:read").ID)
		rename(f, u.ID, "Rear Admiral Hopper")
		f.NewUser("katherine")
		if got := r.awaitItem(rolecall.EventUserCreated, 2).item.Data.After; got["email"] == nil {
			f.Errorf("the new permission has no effect: %v", got)
		}
	})
}

func TestAWebhookSelectsTypesAndActors(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		account := aReader(f, "users:read")
		newWebhook(f, r.url("/types"), account.ID, types(rolecall.EventUserUpdated, rolecall.EventUserDeleted))
		newWebhook(f, r.url("/others"), account.ID, types(rolecall.EventUserUpdated), func(d *rolecall.WebhookDraft) {
			d.IgnoreActors = []rolecall.AnyID{rolecall.AnyID(f.Owner.User.ID)}
		})
		newWebhook(f, r.url("/disabled"), account.ID, func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		other := f.CallerWith(nodetest.Holding("users:read", "users:update"))
		u := f.NewUser("grace")
		rename(f, u.ID, "Rear Admiral Hopper")
		_, err := f.Directory.UpdateUser(f.Context(), other, u.ID, rolecall.UserPatch{Name: rolecall.Some("Amazing Grace")}, nil)
		f.OK(err)
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
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
		delivering(f, r)
		w := newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventUserUpdated))
		var users []rolecall.UserID
		for i := range 12 {
			users = append(users, f.NewUser(fmt.Sprintf("user%d", i)).ID)
		}
		for round := range 3 {
			for i, u := range users {
				rename(f, u, fmt.Sprintf("Round %c of %c", 'a'+round, 'a'+i))
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
		f.Eventually(func() bool { return len(failedDeliveries(f, w.ID)) == 1 })
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
		f.Clock.Advance(5 * time.Second)
		f.Eventually(func() bool { return attempts() == 2 && len(failedDeliveries(f, w.ID)) == 2 })
		f.Clock.Advance(9 * time.Second)
		mu.Lock()
		bad = "none"
		mu.Unlock()
		f.Clock.Advance(time.Second)
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
func checkOrder(f *nodetest.Fixture, all []received, subject string) {
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

func failedDeliveries(f *nodetest.Fixture, id rolecall.WebhookID) []rolecall.WebhookDelivery {
	f.Helper()
	return slices.DeleteFunc(deliveries(f, id), func(d rolecall.WebhookDelivery) bool { return d.Error == "" })
}

func TestAWebhookIsDisabledAfterThreeDaysOfFailures(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, func(received) int { return http.StatusServiceUnavailable })
		delivering(f, r)
		w := newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventWebhookCreated))
		for n := 1; webhook(f, w.ID).Enabled; n++ {
			f.Eventually(func() bool { return len(failedDeliveries(f, w.ID)) >= n || !webhook(f, w.ID).Enabled })
			if n > 60 {
				f.Fatal("the webhook is not disabled")
			}
			f.Clock.Advance(2 * time.Hour)
		}
		after := f.Clock.Now().Sub(nodetest.Start)
		if n := len(failedDeliveries(f, w.ID)); after < 72*time.Hour || after > 78*time.Hour || n < 35 {
			f.Errorf("it was disabled after %v and %d attempts", after, n)
		}
		isDisabled(f, w.ID, rolecall.WebhookFailing)
		r.mu.Lock()
		r.answer = nil
		r.mu.Unlock()
		before := len(r.all())
		_, err := f.Webhooks.UpdateWebhook(f.Context(), f.Owner, w.ID, rolecall.WebhookPatch{Enabled: rolecall.Some(true)}, nil)
		f.OK(err)
		f.Eventually(func() bool { return len(r.all()) > before && deliveries(f, w.ID)[0].Error == "" })
		if got := webhook(f, w.ID); !got.Enabled || got.DisabledReason != nil {
			f.Errorf("got %+v", got)
		}
	})
}

// isDisabled checks that Rolecall has disabled the webhook, with an event and a mail.
func isDisabled(f *nodetest.Fixture, id rolecall.WebhookID, reason string) {
	f.Helper()
	f.Eventually(func() bool { return !webhook(f, id).Enabled })
	if got := webhook(f, id).DisabledReason; got == nil || *got != reason {
		f.Errorf("disabled because of %v", got)
	}
	events := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventWebhookDisabled)})
	if len(events) == 0 || events[0].Reason != reason || events[0].Subject.ID != rolecall.AnyID(id) {
		f.Errorf("the events are %+v", events)
	}
	f.Eventually(func() bool { // the fixture notes mails after the commit
		return slices.ContainsFunc(f.Mails(), func(m rolecall.Mail) bool {
			return m.Kind == rolecall.MailWebhookDisabled && m.To == f.Owner.User.Email && m.What != ""
		})
	})
	n, err := f.Webhooks.Disabled(f.Context())
	if f.OK(err); n < 1 {
		f.Error("the disabled webhook is not counted")
	}
}

func TestAWebhookIsDisabledIfItsEndpointIsGone(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, func(received) int { return http.StatusGone })
		delivering(f, r)
		w := newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventWebhookCreated))
		isDisabled(f, w.ID, rolecall.WebhookGone)
		if n := len(failedDeliveries(f, w.ID)); n != 1 {
			f.Errorf("%d attempts", n)
		}
	})
}

func TestAWebhookIsDisabledIfItsAccountIsDeleted(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		account := aReader(f)
		w := newWebhook(f, r.url("/hook"), account.ID)
		r.awaitItem(rolecall.EventWebhookCreated, 1)
		f.OK(f.Directory.DeleteServiceAccount(f.Context(), f.Owner, account.ID, nil))
		isDisabled(f, w.ID, rolecall.WebhookUnattended)
		if got := ofType(r.all(), rolecall.EventServiceAccountDeleted); len(got) > 0 {
			f.Error("an item was sent without an account")
		}
		_, err := f.Webhooks.UpdateWebhook(f.Context(), f.Owner, w.ID, rolecall.WebhookPatch{Enabled: rolecall.Some(true)}, nil)
		isInvalid(f, err, "/serviceAccountId")
		_, err = f.Webhooks.UpdateWebhook(f.Context(), f.Owner, w.ID, rolecall.WebhookPatch{Enabled: rolecall.Some(true), ServiceAccountID: rolecall.Some(aReader(f, "roles:read").ID)}, nil)
		f.OK(err)
		r.awaitItem(rolecall.EventServiceAccountDeleted, 1)
	})
}

func TestNothingIsSentWithoutThePermission(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		account := f.NewAccount("Hooks", f.NewRole("Nothing").ID)
		w := newWebhook(f, r.url("/hook"), account.ID, types(rolecall.EventWebhookCreated))
		errorsAre := func(want ...string) {
			f.Helper()
			f.Eventually(func() bool {
				var got []string
				for _, d := range deliveries(f, w.ID) {
					got = append(got, d.Error)
				}
				return slices.Equal(got, want)
			})
		}
		errorsAre("permission-denied")
		f.OK(nodetest.ErrorOf3(f.Directory.AssignRole(f.Context(), f.Owner, rolecall.HolderOf(account.ID), f.NewRole("Follows in Sales", "changes:read").ID, rolecall.AssignmentDraft{Departments: []string{"Sales"}})))
		f.Clock.Advance(6 * time.Second)
		errorsAre("permission-denied", "permission-denied")
		_, err := f.Directory.SuspendServiceAccount(f.Context(), f.Owner, account.ID, "")
		f.OK(err)
		f.Clock.Advance(11 * time.Second)
		errorsAre("service-account-suspended", "permission-denied", "permission-denied")
		if n := len(r.all()); n != 0 {
			f.Errorf("%d requests were sent", n)
		}
		_, err = f.Directory.ResumeServiceAccount(f.Context(), f.Owner, account.ID, "")
		f.OK(err)
		f.AssignToAccount(account.ID, f.NewRole("Follows", "changes:read").ID)
		f.Clock.Advance(21 * time.Second)
		r.awaitItem(rolecall.EventWebhookCreated, 1)
	})
}

func TestTheOldSecretSignsForADay(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		w := newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventRoleCreated))
		rotated, err := f.Webhooks.RotateSecret(f.Context(), f.Owner, w.ID, nil)
		f.OK(err)
		if rotated.Secret == w.Secret {
			f.Error("the secret is the same")
		}
		signedBy := func(got received, secrets ...string) {
			f.Helper()
			var want []string
			for _, s := range secrets {
				var at int64
				_, err := fmt.Sscan(got.at, &at)
				f.OK(err)
				signature, err := secret.SignWebhook(s, got.id, at, got.body)
				f.OK(err)
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
		f.NewRole("First")
		signedBy(sent(1), rotated.Secret, w.Secret)
		f.Clock.Advance(24*time.Hour - time.Second)
		f.NewRole("Second")
		signedBy(sent(2), rotated.Secret, w.Secret)
		f.Clock.Advance(time.Second)
		f.NewRole("Third")
		signedBy(sent(3), rotated.Secret)
	})
}

func TestTestReplayAndSkip(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
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
		delivering(f, r)
		w := newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventRoleCreated, rolecall.EventRoleDeleted), func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		test, err := f.Webhooks.TestWebhook(f.Context(), f.Owner, w.ID)
		f.OK(err)
		if got := r.awaitItem("webhook.test", 1); got.id != test.String() || got.item.Subject != "webhook/"+w.ID.String() {
			f.Errorf("the test is %s", got.body)
		}
		f.Eventually(func() bool { return len(deliveries(f, w.ID)) == 1 })
		_, err = f.Webhooks.UpdateWebhook(f.Context(), f.Owner, w.ID, rolecall.WebhookPatch{Enabled: rolecall.Some(true)}, nil)
		f.OK(err)

		var at []rolecall.Time
		for i := range 5 {
			f.Clock.Advance(time.Hour)
			at = append(at, f.Clock.Now())
			f.NewRole(fmt.Sprintf("Role %d", i))
			f.Eventually(func() bool { return len(deliveries(f, w.ID)) == 2+i }) // so that no claim expires
		}
		r.awaitItem(rolecall.EventRoleCreated, 5)
		before := len(r.all())
		f.OK(f.Webhooks.ReplayWebhook(f.Context(), f.Owner, w.ID, webhooks.Replay{From: at[1], To: at[3]}))
		f.Eventually(func() bool { return len(r.all()) >= before+2 })
		f.NewRole("Another")
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
		isInvalid(f, f.Webhooks.ReplayWebhook(f.Context(), f.Owner, w.ID, webhooks.Replay{From: at[1], To: at[1]}), "/to")

		mu.Lock()
		bad[string(rolecall.EventRoleDeleted)] = true
		mu.Unlock()
		f.OK(f.Webhooks.SkipItems(f.Context(), f.Owner, w.ID, false)) // nothing fails yet
		gone := f.NewRole("Gone")
		f.OK(f.Directory.DeleteRole(f.Context(), f.Owner, gone.ID, false, nil))
		f.Eventually(func() bool { return len(failedDeliveries(f, w.ID)) == 1 })
		f.OK(f.Webhooks.SkipItems(f.Context(), f.Owner, w.ID, false))
		f.Clock.Advance(time.Hour)
		f.NewRole("After")
		r.await("the item after the skipped one", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) == 8 })
		if n := len(ofType(r.all(), rolecall.EventRoleDeleted)); n != 1 {
			f.Errorf("the skipped item was sent %d times", n)
		}
		skipsAll(f, w.ID, r)
	})
}

// skipsAll skips the items that wait while the webhook is disabled.
func skipsAll(f *nodetest.Fixture, id rolecall.WebhookID, r *receiver) {
	f.Helper()
	enable := func(on bool) {
		_, err := f.Webhooks.UpdateWebhook(f.Context(), f.Owner, id, rolecall.WebhookPatch{Enabled: rolecall.Some(on)}, nil)
		f.OK(err)
	}
	enable(false)
	f.NewRole("Skipped")
	_, err := f.Access.Feed.End(f.Context(), f.Tenant.ID)
	f.OK(err)
	f.OK(f.Webhooks.SkipItems(f.Context(), f.Owner, id, true))
	enable(true)
	f.NewRole("Last")
	r.await("the item after the skipped ones", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) >= 9 })
	events := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventRoleCreated)})
	if last := ofType(r.all(), rolecall.EventRoleCreated); last[len(last)-1].id != events[0].ID.String() {
		f.Error("the skipped item was sent")
	}
}

func TestNoEscalationThroughWebhooks(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		strong := f.NewAccount("Strong", f.NewRole("Everything", "users:read", "changes:read", "roles:read").ID)
		weak := f.NewAccount("Weak", f.NewRole("Little", "changes:read").ID)
		caller := f.CallerWith(nodetest.Holding("webhooks:*"), nodetest.Holding("service-accounts:update"), nodetest.Holding("changes:read"))
		create := func(c access.Caller, account rolecall.ServiceAccountID) error {
			return nodetest.ErrorOf(f.Webhooks.CreateWebhook(f.Context(), c, nodetest.NewKey(), rolecall.WebhookDraft{URL: "https://hooks.example.org/", ServiceAccountID: account}))
		}
		f.OK(create(caller, weak.ID))
		f.Is(create(caller, strong.ID), rolecall.ErrBeyondOwnPermissions)
		f.Is(create(f.CallerWith(nodetest.Holding("webhooks:create"), nodetest.Holding("changes:read")), weak.ID), rolecall.ErrPermissionDenied)
		isInvalid(f, create(f.Owner, rolecall.NewID[rolecall.ServiceAccount](nodetest.Start)), "/serviceAccountId")
		w := newWebhook(f, "https://hooks.example.org/", strong.ID)
		patch := func(c access.Caller, id rolecall.WebhookID, p rolecall.WebhookPatch) error {
			return nodetest.ErrorOf(f.Webhooks.UpdateWebhook(f.Context(), c, id, p, nil))
		}
		f.Is(patch(caller, w.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://evil.example.org/")}), rolecall.ErrBeyondOwnPermissions)
		f.Is(nodetest.ErrorOf(f.Webhooks.RotateSecret(f.Context(), caller, w.ID, nil)), rolecall.ErrBeyondOwnPermissions)
		mine := newWebhook(f, "https://hooks.example.org/", weak.ID)
		f.OK(patch(caller, mine.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://other.example.org/")}))
		f.Is(patch(caller, mine.ID, rolecall.WebhookPatch{ServiceAccountID: rolecall.Some(strong.ID)}), rolecall.ErrBeyondOwnPermissions)
		isInvalid(f, patch(caller, mine.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://127.0.0.1/")}), "/url")
		f.OK(f.Webhooks.DeleteWebhook(f.Context(), caller, w.ID, nil))
		f.Is(f.Webhooks.DeleteWebhook(f.Context(), caller, w.ID, nil), rolecall.ErrNotFound)
	})
}

func TestATenantHasTwentyWebhooks(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		account := f.NewAccount("Hooks", f.NewRole("Nothing").ID)
		draft := rolecall.WebhookDraft{URL: "https://hooks.example.org/", ServiceAccountID: account.ID}
		var first rolecall.WebhookID
		for range rolecall.WebhooksMax {
			first = newWebhook(f, draft.URL, account.ID).ID
		}
		create := func() error {
			return nodetest.ErrorOf(f.Webhooks.CreateWebhook(f.Context(), f.Owner, nodetest.NewKey(), draft))
		}
		f.Is(create(), rolecall.ErrTooManyWebhooks)
		f.OK(f.Webhooks.DeleteWebhook(f.Context(), f.Owner, first, nil))
		f.OK(create())
		f.Is(create(), rolecall.ErrTooManyWebhooks)
	})
}

func TestASecretIsShownOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		draft, key := rolecall.WebhookDraft{URL: "https://hooks.example.org/", ServiceAccountID: f.NewAccount("Hooks", f.NewRole("Nothing").ID).ID}, nodetest.NewKey()
		first, err := f.Webhooks.CreateWebhook(f.Context(), f.Owner, key, draft)
		f.OK(err)
		again, err := f.Webhooks.CreateWebhook(f.Context(), f.Owner, key, draft)
		f.OK(err)
		if !strings.HasPrefix(first.Value.Secret, "whsec_") || again.Value.Secret != "" || !again.Replayed || again.Value.ID != first.Value.ID || again.Value.URL != draft.URL {
			f.Errorf("got %+v, then %+v", first, again)
		}
		var w rolecall.Webhook
		f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
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
		delivering(f, r)
		work(f, node.New(f.Open(), reaching(f, r)))
		account := aReader(f)
		for i := range 4 {
			newWebhook(f, r.url(fmt.Sprintf("/%d", i)), account.ID, types(rolecall.EventRoleCreated))
		}
		for i := range 30 {
			f.NewRole(fmt.Sprintf("Role %d", i))
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventRoleCreated))
		f.NewRole("First")
		r.awaitItem(rolecall.EventRoleCreated, 1)
		f.DB.FailOnce("update webhook_cursors set queue = ", rolecall.ErrUnavailable)
		const more = 20 // so that each part of the webhook has an item
		for i := range more {
			f.NewRole(fmt.Sprintf("Role %d", i))
		}
		r.awaitItem(rolecall.EventRoleCreated, 1+more)
		if n := len(r.all()); n != 1+more || f.DB.FailsOnce() {
			f.Errorf("%d requests", n)
		}
	})
}

func TestAttemptsInProgressEndWithTheProcess(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		release := make(chan struct{})
		r := newReceiver(f, func(received) int {
			<-release
			return http.StatusOK
		})
		defer close(release)
		r.limit = 2 * time.Second
		stop := delivering(f, r)
		w := newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventWebhookCreated))
		r.awaitItem(rolecall.EventWebhookCreated, 1)
		stop() // the attempt fails after the limit
		if n := len(failedDeliveries(f, w.ID)); n != 1 {
			f.Errorf("%d attempts are stored", n)
		}
	})
}

func TestWebhooksOfASuspendedTenantWait(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventTenantSuspended, rolecall.EventTenantResumed))
		f.OK(nodetest.ErrorOf(f.Directory.SuspendTenant(f.Context(), f.NewOperator("Support"), f.Tenant.Name, "")))
		_, err := f.Access.Feed.End(f.Context(), f.Tenant.ID)
		f.OK(err)
		f.OK(nodetest.ErrorOf(f.Directory.ResumeTenant(f.Context(), f.NewOperator("Again"), f.Tenant.Name, "")))
		f.Clock.Advance(2 * time.Minute)
		r.awaitItem(rolecall.EventTenantResumed, 1)
		if n := len(distinct(r.all())); n != 2 {
			f.Errorf("%d items", n)
		}
	})
}
