package node_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/webhooks"
	"github.com/rolecall/rolecall/internal/wire"
)

// ofOperators returns the fixture with an operator as its owner, so that its methods about webhooks are
// about those of operators.
func (f *fixture) ofOperators() *fixture {
	f.Helper()
	operators := *f
	operators.owner = webhooks.ForOperators(f.operates(fmt.Sprintf("Operator %d", serial.Add(1))))
	return &operators
}

// also returns the fixture with another tenant.
func (f *fixture) also(name string) *fixture {
	f.Helper()
	other := *f
	other.tenant = f.newTenant(name)
	other.owner = other.call(other.signIn("owner"))
	return &other
}

// hook creates a webhook of operators.
func (f *fixture) hook(url string, change ...func(*rolecall.WebhookDraft)) webhooks.Webhook {
	f.Helper()
	return f.newWebhook(url, rolecall.ServiceAccountID{}, change...)
}

func disabled(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) }

// enable enables or disables the webhook.
func (f *fixture) enable(id rolecall.WebhookID, on bool) {
	f.Helper()
	f.ok(errorOf(f.Webhooks.UpdateWebhook(f.Context(), f.owner, id, rolecall.WebhookPatch{Enabled: rolecall.Some(on)}, nil)))
}

func TestOperatorsReceiveTheChangesOfAllTenants(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		other, operators := f.also("other"), f.ofOperators()
		f.user("earlier")
		for _, of := range []*fixture{f, other} { // gives numbers, but no places
			f.ok(errorOf(f.Access.Feed.End(f.Context(), of.tenant.ID)))
		}
		w := operators.hook(r.url("/hook"))
		end, err := f.Directory.TenantsChangesEnd(f.Context(), operators.owner)
		f.ok(err)
		users := []rolecall.User{f.user("grace"), other.user("grace")}
		f.rename(users[0].ID, "Rear Admiral Hopper")
		f.ok(errorOf(f.Directory.SuspendTenant(f.Context(), access.Command, "other", ""))) // operators receive the changes all the same
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		all := r.await("the changes", func(all []received) bool { return len(distinct(all)) >= 5 })
		page, err := f.Directory.TenantsChanges(f.Context(), operators.owner, feed.TenantsQuery{After: &end.Next, Limit: 200})
		f.ok(err)
		want := map[string]string{}
		for i := range page.Changes {
			item := feed.NewItem(&page.Changes[i].Event, feed.SourceOf("https://id.example.com", page.Tenants[i]), page.Tenants[i])
			want[item.ID.String()] = string(wire.NewEncoder[feed.Item]().Append(nil, &item))
		}
		for _, got := range distinct(all) {
			if want[got.id] != string(got.body) {
				f.Errorf("sent was %s, want %s", got.body, want[got.id])
			}
			signature, err := secret.SignWebhook(w.Secret, got.id, int64(start/1e6), got.body)
			if f.ok(err); got.signatures != signature {
				f.Errorf("the signature is %s, want %s", got.signatures, signature)
			}
		}
		if len(distinct(all)) != len(want) || len(want) != 5 {
			f.Errorf("%d items were sent, of %d changes", len(distinct(all)), len(want))
		}
		if got := ofType(all, rolecall.EventUserCreated); got[0].item.Data.After["email"] == nil || got[0].item.Data.Tenant == got[1].item.Data.Tenant {
			f.Errorf("sent was %s", got[0].body)
		}
		checkOrder(f, all, "user/"+users[0].ID.String())
	})
}

// Many places, and a place with many numbers, are read in several pages.
func TestOperatorsReceiveEachChangeOnceFromManyPages(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		other, operators := f.also("other"), f.ofOperators()
		w := operators.hook(r.url("/hook"), types(rolecall.EventRoleUpdated), disabled)
		roles := []rolecall.Role{f.role("First"), other.role("First")}
		change := func(of *fixture, role rolecall.Role, text string) {
			f.ok(errorOf(f.Directory.UpdateRole(f.Context(), of.owner, role.ID, rolecall.RolePatch{Description: rolecall.Some(text)}, nil)))
		}
		const each = 65
		for i := range each { // one place each
			for j, of := range []*fixture{f, other} {
				change(of, roles[j], fmt.Sprintf("Text %02d", i))
				_, err := f.Access.Feed.End(f.Context(), of.tenant.ID)
				f.ok(err)
				f.ok(errorOf(f.Access.Feed.GivePlaces(f.Context())))
			}
		}
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error { // one place with several pages
			for range 210 {
				tx.InsertEvent(rolecall.Event{ID: rolecall.NewID[rolecall.Event](start), Type: rolecall.EventRoleUpdated, OccurredAt: start, Members: []string{"description"},
					Actor: rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "http"}, Subject: rolecall.Subject{Type: rolecall.SubjectRole, ID: rolecall.AnyID(roles[0].ID)}})
			}
			return nil
		}))
		_, err := f.Access.Feed.End(f.Context(), f.tenant.ID)
		f.ok(err)
		change(other, roles[1], "Text 99")
		operators.enable(w.ID, true)
		all := r.await("all changes", func(all []received) bool { return len(distinct(all)) >= 2*each+211 })
		if len(all) != len(distinct(all)) || len(all) != 2*each+211 {
			f.Errorf("%d requests with %d items", len(all), len(distinct(all)))
		}
		for _, of := range []*fixture{f, other} {
			var texts []string
			for _, got := range all {
				if text, _ := got.item.Data.After["description"].(string); got.item.Data.Tenant == of.tenant.Name && text != "" {
					texts = append(texts, text)
				}
			}
			if !slices.IsSorted(texts) || len(texts) < each {
				f.Errorf("%s: the order is %q", of.tenant.Name, texts)
			}
		}
	})
}

func TestAFailingItemOfOperatorsBlocksOnlyItsPart(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		var mu sync.Mutex
		bad := ""
		r := newReceiver(f, func(got received) int {
			mu.Lock()
			defer mu.Unlock()
			if got.item.Subject == bad {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		})
		f.delivering(r)
		other, operators := f.also("other"), f.ofOperators()
		w := operators.hook(r.url("/hook"), types(rolecall.EventUserUpdated))
		var users []rolecall.User
		for i := range 6 {
			users = append(users, f.user(fmt.Sprintf("user%d", i)), other.user(fmt.Sprintf("user%d", i)))
		}
		setBad := func(subject string) {
			mu.Lock()
			defer mu.Unlock()
			bad = subject
		}
		setBad("user/" + users[0].ID.String())
		part := func(u *rolecall.User) byte { return u.ID[15] % rolecall.WebhookPartitions }
		for round := range 3 {
			for i, u := range users {
				[]*fixture{f, other}[i%2].rename(u.ID, fmt.Sprintf("Round %c of %c", 'a'+round, 'a'+i))
			}
		}
		unblocked := 0
		for _, u := range users {
			if part(&u) != part(&users[0]) {
				unblocked += 3
			}
		}
		r.await("the other parts", func(all []received) bool {
			return len(slices.DeleteFunc(distinct(all), func(got received) bool {
				return slices.ContainsFunc(users, func(u rolecall.User) bool {
					return got.item.Subject == "user/"+u.ID.String() && part(&u) == part(&users[0])
				})
			})) == unblocked
		})
		f.eventually(func() bool { return len(operators.failed(w.ID)) == 1 })
		setBad("none")
		f.clock.advance(5 * time.Second)
		all := r.await("all items", func(all []received) bool { return len(distinct(all)) == 36 })
		for _, u := range users {
			checkOrder(f, all, "user/"+u.ID.String())
		}
	})
}

func TestOperatorsTestReplayAndSkip(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		var mu sync.Mutex
		refuses := false
		r := newReceiver(f, func(got received) int {
			mu.Lock()
			defer mu.Unlock()
			if refuses && got.item.Type == string(rolecall.EventRoleDeleted) {
				return http.StatusTeapot
			}
			return http.StatusOK
		})
		f.delivering(r)
		other, operators := f.also("other"), f.ofOperators()
		w := operators.hook(r.url("/hook"), types(rolecall.EventRoleCreated, rolecall.EventRoleDeleted), disabled)
		test, err := f.Webhooks.TestWebhook(f.Context(), operators.owner, w.ID)
		f.ok(err)
		if got := r.awaitItem("webhook.test", 1); got.id != test.String() || got.item.Subject != "webhook/"+w.ID.String() || got.item.Source != "https://id.example.com/operators" || got.item.Data.Tenant != "" {
			f.Errorf("the test is %s", got.body)
		}
		f.eventually(func() bool { return len(operators.deliveries(w.ID)) == 1 })
		operators.enable(w.ID, true)
		var at []rolecall.Time
		for i := range 5 {
			f.clock.advance(time.Hour)
			at = append(at, f.clock.Now())
			[]*fixture{f, other}[i%2].role(fmt.Sprintf("Role %d", i))
			f.eventually(func() bool { return len(operators.deliveries(w.ID)) == 2+i }) // so that no claim expires
		}
		before := len(r.all())
		f.ok(f.Webhooks.ReplayWebhook(f.Context(), operators.owner, w.ID, webhooks.Replay{From: at[1], To: at[3]}))
		f.eventually(func() bool { return len(r.all()) >= before+2 })
		f.role("Another")
		all := r.await("the next item", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) == 6 })
		var again, roles []string
		for _, got := range all[before:] {
			again = append(again, got.item.Data.After["name"].(string))
		}
		slices.Sort(again)
		if roles = []string{"Another", "Role 1", "Role 2"}; !slices.Equal(again, roles) {
			f.Errorf("sent were %q, want %q", again, roles)
		}
		mu.Lock()
		refuses = true
		mu.Unlock()
		gone := other.role("Gone")
		f.ok(f.Directory.DeleteRole(f.Context(), other.owner, gone.ID, false, nil))
		f.eventually(func() bool { return len(operators.failed(w.ID)) == 1 })
		f.ok(f.Webhooks.SkipItems(f.Context(), operators.owner, w.ID, false))
		f.clock.advance(time.Hour)
		f.role("After")
		r.await("the item after the skipped one", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) == 8 })
		if n := len(ofType(r.all(), rolecall.EventRoleDeleted)); n != 1 {
			f.Errorf("the skipped item was sent %d times", n)
		}
		operators.enable(w.ID, false)
		skipped := f.role("Skipped")
		f.ok(f.Webhooks.SkipItems(f.Context(), operators.owner, w.ID, true))
		operators.enable(w.ID, true)
		f.role("Last")
		r.await("the item after the skipped ones", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) >= 9 })
		for _, got := range r.all() {
			if got.item.Subject == "role/"+skipped.ID.String() {
				f.Error("the skipped item was sent")
			}
		}
		want := []rolecall.EventType{"webhook.updated", "webhook.skipped", "webhook.updated", "webhook.skipped", "webhook.replayed", "webhook.updated", "webhook.created"}
		if got := f.operatorEvents(operators.owner); !slices.Equal(got[:len(want)], want) {
			f.Errorf("the operators' log has %q", got)
		}
	})
}

func TestAWebhookOfOperatorsIsDisabledIfItsEndpointIsGone(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, func(received) int { return http.StatusGone })
		f.delivering(r)
		operators := f.ofOperators()
		w := operators.hook(r.url("/hook"), types(rolecall.EventRoleCreated))
		f.role("First")
		f.eventually(func() bool { return !operators.webhook(w.ID).Enabled })
		if got := operators.webhook(w.ID).DisabledReason; got == nil || *got != rolecall.WebhookGone {
			f.Errorf("disabled because of %v", got)
		}
		page, err := f.Directory.OperatorEvents(f.Context(), operators.owner, directory.EventListing{Subject: rolecall.AnyID(w.ID), Limit: 9})
		f.ok(err)
		if len(page.Items) != 2 || page.Items[0].Type != rolecall.EventWebhookDisabled || page.Items[0].Reason != rolecall.WebhookGone {
			f.Errorf("the events are %+v", page.Items)
		}
		for _, e := range page.Items {
			f.checkEvent(&e)
			if text := string(e.Values.After); strings.Contains(text, "serviceAccountId") || strings.Contains(text, w.Secret) || !strings.Contains(text, w.ID.String()) {
				f.Errorf("the event has %s", text)
			}
		}
		if mails := f.mails(); len(mails) > 0 {
			f.Errorf("mails were sent: %+v", mails)
		}
		n, err := f.Webhooks.Disabled(f.Context())
		if f.ok(err); n != 1 {
			f.Errorf("%d disabled webhooks are counted", n)
		}
		r.mu.Lock()
		r.answer = nil
		r.mu.Unlock()
		operators.enable(w.ID, true)
		r.await("the first item again", func(all []received) bool { return len(all) == 2 && all[0].id == all[1].id })
	})
}

// The events of a purged tenant are not sent any more. Those of others remain, although the feed of all
// tenants begins after them.
func TestWebhooksOfOperatorsOutliveTenants(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		other, operators := f.also("other"), f.ofOperators()
		w := operators.hook(r.url("/hook"), types(rolecall.EventRoleCreated, rolecall.EventTenantDeleted))
		f.role("Before")
		r.awaitItem(rolecall.EventRoleCreated, 1)
		f.eventually(func() bool { return len(operators.deliveries(w.ID)) == 1 })
		operators.enable(w.ID, false)
		other.role("Purged")
		kept := f.role("Kept")
		f.ok(errorOf(f.Access.Feed.End(f.Context(), f.tenant.ID)))
		f.ok(errorOf(f.Access.Feed.End(f.Context(), other.tenant.ID)))
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		f.clock.advance(rolecall.TenantRestorable + access.SettleTime + time.Second)
		f.ok(f.Node.Purge(f.Context()))
		f.ok(f.Node.Purge(f.Context())) // deletes places
		operators.enable(w.ID, true)
		f.role("After")
		all := r.await("the changes of the other tenant", func(all []received) bool { return len(distinct(all)) >= 3 })
		if got := distinct(all); len(got) != 3 || !slices.ContainsFunc(got, func(one received) bool { return one.item.Subject == "role/"+kept.ID.String() }) {
			f.Errorf("received %d items, without the one that was not sent yet", len(got))
		}
	})
}

func TestOperatorsRotateTheSecret(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		operators := f.ofOperators()
		w := operators.hook(r.url("/hook"), types(rolecall.EventRoleCreated))
		rotated, err := f.Webhooks.RotateSecret(f.Context(), operators.owner, w.ID, nil)
		f.ok(err)
		f.role("First")
		got := r.awaitItem(rolecall.EventRoleCreated, 1)
		var want []string
		for _, key := range []string{rotated.Secret, w.Secret} {
			signature, err := secret.SignWebhook(key, got.id, int64(start/1e6), got.body)
			f.ok(err)
			want = append(want, signature)
		}
		if got.signatures != strings.Join(want, " ") || rotated.Secret == w.Secret {
			f.Errorf("the signatures are %s, want %s", got.signatures, want)
		}
	})
}

func TestWhoMayUseTheWebhooksOfOperators(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		operators := f.ofOperators()
		w := operators.hook("https://hooks.example.org/")
		scoped := func(scopes ...rolecall.OperatorScope) access.Caller {
			_, token, err := f.Directory.CreateOperatorKey(f.Context(), rolecall.OperatorKeyDraft{Name: "Scoped", Scopes: scopes, Lifetime: time.Hour})
			f.ok(err)
			p, err := f.SignIn.AuthenticateOperator(f.Context(), string(token), "")
			f.ok(err)
			return access.Caller{Principal: p}
		}
		reads := map[string]func(access.Caller) error{
			"list": func(c access.Caller) error { return errorOf(f.Webhooks.Webhooks(f.Context(), c, nil, 9)) },
			"get":  func(c access.Caller) error { return errorOf(f.Webhooks.Webhook(f.Context(), c, w.ID)) },
			"deliveries": func(c access.Caller) error {
				return errorOf(f.Webhooks.Deliveries(f.Context(), c, rolecall.WebhookDeliveryQuery{Webhook: w.ID, Limit: 9}))
			},
			"test": func(c access.Caller) error { return errorOf(f.Webhooks.TestWebhook(f.Context(), c, w.ID)) },
			"skip": func(c access.Caller) error { return f.Webhooks.SkipItems(f.Context(), c, w.ID, true) },
			"replay": func(c access.Caller) error {
				return f.Webhooks.ReplayWebhook(f.Context(), c, w.ID, webhooks.Replay{From: start, To: start + 1})
			},
		}
		writes := map[string]func(access.Caller) error{
			"create": func(c access.Caller) error {
				return errorOf(f.Webhooks.CreateWebhook(f.Context(), c, newKey(), rolecall.WebhookDraft{URL: "https://hooks.example.org/"}))
			},
			"update": func(c access.Caller) error {
				return errorOf(f.Webhooks.UpdateWebhook(f.Context(), c, w.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://other.example.org/")}, nil))
			},
			"rotate": func(c access.Caller) error { return errorOf(f.Webhooks.RotateSecret(f.Context(), c, w.ID, nil)) },
			"delete": func(c access.Caller) error {
				err := f.Webhooks.DeleteWebhook(f.Context(), c, rolecall.NewID[rolecall.Webhook](start), nil)
				if errors.Is(err, rolecall.ErrNotFound) { // it was allowed
					err = nil
				}
				return err
			},
		}
		for name, c := range map[string]struct {
			caller      access.Caller
			read, write error
		}{
			"a key for all":  {operators.owner, nil, nil},
			"a follower":     {webhooks.ForOperators(scoped(rolecall.ScopeChanges)), nil, rolecall.ErrScopeMissing},
			"a sign-up form": {webhooks.ForOperators(scoped(rolecall.ScopeTenants, rolecall.ScopeLookup)), rolecall.ErrScopeMissing, rolecall.ErrScopeMissing},
			"a key for some": {webhooks.ForOperators(f.operates("Some", "acme")), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
		} {
			for what, do := range reads {
				if err := do(c.caller); !errors.Is(err, c.read) {
					f.Errorf("%s, %s: %v, want %v", name, what, err, c.read)
				}
			}
			for what, do := range writes {
				if err := do(c.caller); !errors.Is(err, c.write) {
					f.Errorf("%s, %s: %v, want %v", name, what, err, c.write)
				}
			}
		}
		for name, c := range map[string]access.Caller{"an owner": f.owner, "an operator in a tenant": f.operatorInside()} {
			if page, err := f.Webhooks.Webhooks(f.Context(), c, nil, 9); err != nil || len(page.Items) != 0 {
				f.Errorf("%s lists %+v, %v", name, page.Items, err)
			}
			f.is(errorOf(f.Webhooks.Webhook(f.Context(), c, w.ID)), rolecall.ErrNotFound)
			f.is(f.Webhooks.DeleteWebhook(f.Context(), c, w.ID, nil), rolecall.ErrNotFound)
		}
		f.is(errorOf(f.Webhooks.Webhook(f.Context(), f.operates("Without a tenant"), w.ID)), rolecall.ErrNotFound)
	})
}

func TestTheInstanceHasTwentyWebhooksOfOperators(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		operators := f.ofOperators()
		draft, key := rolecall.WebhookDraft{URL: "https://hooks.example.org/"}, newKey()
		first, err := f.Webhooks.CreateWebhook(f.Context(), operators.owner, key, draft)
		f.ok(err)
		again, err := f.Webhooks.CreateWebhook(f.Context(), operators.owner, key, draft)
		f.ok(err)
		if !strings.HasPrefix(first.Value.Secret, "whsec_") || again.Value.Secret != "" || !again.Replayed || again.Value.ID != first.Value.ID || again.Value.URL != draft.URL {
			f.Errorf("got %+v, then %+v", first, again)
		}
		create := func() error {
			return errorOf(f.Webhooks.CreateWebhook(f.Context(), operators.owner, newKey(), draft))
		}
		for range rolecall.WebhooksMax - 1 {
			f.ok(create())
		}
		f.is(create(), rolecall.ErrTooManyWebhooks)
		f.newWebhook(draft.URL, f.aReader().ID) // that of a tenant does not count
		f.ok(f.Webhooks.DeleteWebhook(f.Context(), operators.owner, first.Value.ID, nil))
		f.ok(create())
		f.is(create(), rolecall.ErrTooManyWebhooks)
		f.clock.advance(365 * aDay)
		f.ok(f.Node.Purge(f.Context())) // deletes the idempotency keys
		f.ok(f.db.View(f.Context(), rolecall.OperatorsTenant, func(q store.Querier) error {
			for _, table := range []string{"idempotency_keys", "operator_requests"} {
				n, err := q.Query("select 1 from "+table, nil, func(func(...any) error) error { return nil })
				if err != nil || n > 0 {
					f.Errorf("%s has %d keys: %v", table, n, err)
				}
			}
			return nil
		}))
	})
}

// Events without followers have no places. Their number is not limited, so a transaction that locks the feed of
// all tenants gives places only to a few of them.
func TestAWebhookOfOperatorsIsCreatedAfterAllEventsHavePlaces(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		operators := f.ofOperators()
		for range rolecall.WebhooksMax {
			operators.hook("https://hooks.example.org/", disabled)
		}
		news := func() (n int) {
			f.Helper()
			f.ok(f.db.View(f.Context(), rolecall.TenantID{}, func(q store.Querier) (err error) {
				n, err = q.Query("select n from feed_news where n > 0 order by n", nil, func(func(...any) error) error { return nil })
				return err
			}))
			return n
		}
		f.ok(f.db.Update(f.Context(), f.tenant.ID, func(q store.Querier) error {
			for i := range 2*store.NumbersAtOnce + 1 {
				q.Exec("insert into feed_news (tenant, first_number, last_number) values ($1, $2, $3)", f.tenant.ID, 1000+2*i, 1000+2*i)
			}
			return nil
		}))
		before := news()
		_, err := f.Webhooks.CreateWebhook(f.Context(), operators.owner, newKey(), rolecall.WebhookDraft{URL: "https://hooks.example.org/"})
		f.is(err, rolecall.ErrTooManyWebhooks) // so the transaction had no effect
		if left := news(); before <= 2*store.NumbersAtOnce || left > 0 {
			f.Errorf("of %d batches, %d have no place", before, left)
		}
	})
}

// TestTwoNodesDeliverEachItemOfOperatorsOnce runs two nodes on the database. The endpoint is slow, so that
// the nodes would overlap.
func TestTwoNodesDeliverEachItemOfOperatorsOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, func(received) int {
			<-time.After(20 * time.Millisecond)
			return http.StatusOK
		})
		f.delivering(r)
		f.work(node.New(f.open(), f.reaching(r)))
		other, operators := f.also("other"), f.ofOperators()
		for i := range 4 {
			operators.hook(r.url(fmt.Sprintf("/%d", i)), types(rolecall.EventRoleCreated))
		}
		for i := range 15 {
			f.role(fmt.Sprintf("Role %d", i))
			other.role(fmt.Sprintf("Role %d", i))
		}
		all := r.await("all items", func(all []received) bool { return len(all) >= 120 })
		times := map[string]int{}
		for _, got := range all {
			if times[got.path+got.id]++; times[got.path+got.id] > 1 {
				f.Errorf("%s was sent twice to %s", got.id, got.path)
			}
		}
	})
}

// The process that has written the event gives it a number, but no place, and wakes no webhooks.
func TestWebhooksOfOperatorsFindWhatAKilledProcessHasLeft(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		operators := f.ofOperators()
		operators.hook(r.url("/hook"), types(rolecall.EventRoleCreated))
		f.role("First")
		r.awaitItem(rolecall.EventRoleCreated, 1)
		killed := f.node()
		f.ok(errorOf(killed.Directory.CreateRole(f.Context(), f.owner, newKey(), rolecall.RoleDraft{Name: "Second"})))
		f.ok(errorOf(killed.Access.Feed.End(f.Context(), f.tenant.ID)))
		f.eventually(func() bool {
			f.clock.advance(time.Minute)
			return len(distinct(r.all())) == 2
		})
	})
}

// The networks of operators are those of their webhooks only.
func TestOnlyOperatorsReachTheirNetworks(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		o := f.reaching(r)
		o.Outbound = outbound.New(outbound.Options{
			Roots: outboundtest.Roots(r.server), Resolver: outboundtest.Resolver(f.T, map[string][]string{"example.com": {"127.0.0.1"}}), Timeout: patience.Limit,
		})
		o.OperatorOutbound = outbound.New(outbound.Options{
			Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/31")}, Roots: outboundtest.Roots(r.server), Timeout: patience.Limit,
			Resolver: outboundtest.Resolver(f.T, map[string][]string{"example.com": {"127.0.0.1"}, "www.example.com": {"127.0.0.2"}}),
		})
		f.Node = node.New(f.db, o)
		f.work(f.Node)
		operators := f.ofOperators()
		refused := func(of *fixture, url string) {
			f.Helper()
			w := of.newWebhook(url, f.aReader().ID, types(rolecall.EventRoleCreated))
			f.role(fmt.Sprintf("Role %d", serial.Add(1)))
			f.eventually(func() bool {
				failed := of.failed(w.ID)
				return len(failed) > 0 && failed[0].Error == outbound.CodeAddress
			})
			of.enable(w.ID, false)
		}
		refused(f, r.url("/tenant"))
		refused(operators, strings.Replace(r.url("/other"), "example.com", "www.example.com", 1))
		create := func(of *fixture, url string) error {
			return errorOf(f.Webhooks.CreateWebhook(f.Context(), of.owner, newKey(), rolecall.WebhookDraft{URL: url, ServiceAccountID: f.aReader().ID}))
		}
		f.isInvalid(create(f, "https://127.0.0.1/"), "/url")
		f.isInvalid(create(operators, "https://127.0.0.2/"), "/url")
		f.isInvalid(create(operators, "http://127.0.0.1/"), "/url")
		f.isInvalid(create(operators, "https://[::ffff:127.0.0.2]/"), "/url")
		f.ok(create(operators, "https://127.0.0.1/"))
		w := operators.hook(r.url("/hook"), types(rolecall.EventRoleCreated))
		f.role("Reached")
		all := r.await("the role", func(all []received) bool {
			return slices.ContainsFunc(all, func(got received) bool { return got.item.Data.After["name"] == "Reached" })
		})
		if slices.ContainsFunc(all, func(got received) bool { return got.path != "/hook" }) {
			f.Error("a request reached an address that is not allowed")
		}
		f.isInvalid(errorOf(f.Webhooks.UpdateWebhook(f.Context(), operators.owner, w.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://169.254.169.254/")}, nil)), "/url")
	})
}
