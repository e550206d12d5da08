package webhooks_test

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
	"github.com/rolecall/rolecall/internal/nodetest"
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
func ofOperators(f *nodetest.Fixture) *nodetest.Fixture {
	f.Helper()
	operators := *f
	operators.Owner = webhooks.ForOperators(f.NewOperator(fmt.Sprintf("Operator %d", nodetest.Serial.Add(1))))
	return &operators
}

// hook creates a webhook of operators.
func hook(f *nodetest.Fixture, url string, change ...func(*rolecall.WebhookDraft)) webhooks.Webhook {
	f.Helper()
	return newWebhook(f, url, rolecall.ServiceAccountID{}, change...)
}

func disabled(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) }

// enable enables or disables the webhook.
func enable(f *nodetest.Fixture, id rolecall.WebhookID, on bool) {
	f.Helper()
	f.OK(nodetest.ErrorOf(f.Webhooks.UpdateWebhook(f.Context(), f.Owner, id, rolecall.WebhookPatch{Enabled: rolecall.Some(on)}, nil)))
}

func TestOperatorsReceiveTheChangesOfAllTenants(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		other, operators := f.InNewTenant("other"), ofOperators(f)
		f.NewUser("earlier")
		for _, of := range []*nodetest.Fixture{f, other} { // gives numbers, but no places
			f.OK(nodetest.ErrorOf(f.Access.Feed.End(f.Context(), of.Tenant.ID)))
		}
		w := hook(operators, r.url("/hook"))
		end, err := f.Directory.TenantsChangesEnd(f.Context(), operators.Owner)
		f.OK(err)
		users := []rolecall.User{f.NewUser("grace"), other.NewUser("grace")}
		rename(f, users[0].ID, "Rear Admiral Hopper")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendTenant(f.Context(), access.Command, "other", ""))) // operators receive the changes all the same
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		all := r.await("the changes", func(all []received) bool { return len(distinct(all)) >= 5 })
		page, err := f.Directory.TenantsChanges(f.Context(), operators.Owner, feed.TenantsQuery{After: &end.Next, Limit: 200})
		f.OK(err)
		want := map[string]string{}
		for i := range page.Changes {
			item := feed.NewItem(&page.Changes[i].Event, feed.SourceOf("https://id.example.com", page.Tenants[i]), page.Tenants[i])
			want[item.ID.String()] = string(wire.NewEncoder[feed.Item]().Append(nil, &item))
		}
		for _, got := range distinct(all) {
			if want[got.id] != string(got.body) {
				f.Errorf("sent was %s, want %s", got.body, want[got.id])
			}
			signature, err := secret.SignWebhook(w.Secret, got.id, int64(nodetest.Start/1e6), got.body)
			if f.OK(err); got.signatures != signature {
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
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		other, operators := f.InNewTenant("other"), ofOperators(f)
		w := hook(operators, r.url("/hook"), types(rolecall.EventRoleUpdated), disabled)
		roles := []rolecall.Role{f.NewRole("First"), other.NewRole("First")}
		change := func(of *nodetest.Fixture, role rolecall.Role, text string) {
			f.OK(nodetest.ErrorOf(f.Directory.UpdateRole(f.Context(), of.Owner, role.ID, rolecall.RolePatch{Description: rolecall.Some(text)}, nil)))
		}
		const each = 65
		for i := range each { // one place each
			for j, of := range []*nodetest.Fixture{f, other} {
				change(of, roles[j], fmt.Sprintf("Text %02d", i))
				_, err := f.Access.Feed.End(f.Context(), of.Tenant.ID)
				f.OK(err)
				f.OK(nodetest.ErrorOf(f.Access.Feed.GivePlaces(f.Context())))
			}
		}
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error { // one place with several pages
			for range 210 {
				tx.InsertEvent(rolecall.Event{ID: rolecall.NewID[rolecall.Event](nodetest.Start), Type: rolecall.EventRoleUpdated, OccurredAt: nodetest.Start, Members: []string{"description"},
					Actor: rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "http"}, Subject: rolecall.Subject{Type: rolecall.SubjectRole, ID: rolecall.AnyID(roles[0].ID)}})
			}
			return nil
		}))
		_, err := f.Access.Feed.End(f.Context(), f.Tenant.ID)
		f.OK(err)
		change(other, roles[1], "Text 99")
		enable(operators, w.ID, true)
		all := r.await("all changes", func(all []received) bool { return len(distinct(all)) >= 2*each+211 })
		if len(all) != len(distinct(all)) || len(all) != 2*each+211 {
			f.Errorf("%d requests with %d items", len(all), len(distinct(all)))
		}
		for _, of := range []*nodetest.Fixture{f, other} {
			var texts []string
			for _, got := range all {
				if text, _ := got.item.Data.After["description"].(string); got.item.Data.Tenant == of.Tenant.Name && text != "" {
					texts = append(texts, text)
				}
			}
			if !slices.IsSorted(texts) || len(texts) < each {
				f.Errorf("%s: the order is %q", of.Tenant.Name, texts)
			}
		}
	})
}

func TestAFailingItemOfOperatorsBlocksOnlyItsPart(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
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
		delivering(f, r)
		other, operators := f.InNewTenant("other"), ofOperators(f)
		w := hook(operators, r.url("/hook"), types(rolecall.EventUserUpdated))
		var users []rolecall.User
		for i := range 6 {
			users = append(users, f.NewUser(fmt.Sprintf("user%d", i)), other.NewUser(fmt.Sprintf("user%d", i)))
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
				rename([]*nodetest.Fixture{f, other}[i%2], u.ID, fmt.Sprintf("Round %c of %c", 'a'+round, 'a'+i))
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
		f.Eventually(func() bool { return len(failedDeliveries(operators, w.ID)) == 1 })
		setBad("none")
		f.Clock.Advance(5 * time.Second)
		all := r.await("all items", func(all []received) bool { return len(distinct(all)) == 36 })
		for _, u := range users {
			checkOrder(f, all, "user/"+u.ID.String())
		}
	})
}

func TestOperatorsTestReplayAndSkip(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
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
		delivering(f, r)
		other, operators := f.InNewTenant("other"), ofOperators(f)
		w := hook(operators, r.url("/hook"), types(rolecall.EventRoleCreated, rolecall.EventRoleDeleted), disabled)
		test, err := f.Webhooks.TestWebhook(f.Context(), operators.Owner, w.ID)
		f.OK(err)
		if got := r.awaitItem("webhook.test", 1); got.id != test.String() || got.item.Subject != "webhook/"+w.ID.String() || got.item.Source != "https://id.example.com/operators" || got.item.Data.Tenant != "" {
			f.Errorf("the test is %s", got.body)
		}
		f.Eventually(func() bool { return len(deliveries(operators, w.ID)) == 1 })
		enable(operators, w.ID, true)
		var at []rolecall.Time
		for i := range 5 {
			f.Clock.Advance(time.Hour)
			at = append(at, f.Clock.Now())
			[]*nodetest.Fixture{f, other}[i%2].NewRole(fmt.Sprintf("Role %d", i))
			f.Eventually(func() bool { return len(deliveries(operators, w.ID)) == 2+i }) // so that no claim expires
		}
		before := len(r.all())
		f.OK(f.Webhooks.ReplayWebhook(f.Context(), operators.Owner, w.ID, webhooks.Replay{From: at[1], To: at[3]}))
		f.Eventually(func() bool { return len(r.all()) >= before+2 })
		f.NewRole("Another")
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
		gone := other.NewRole("Gone")
		f.OK(f.Directory.DeleteRole(f.Context(), other.Owner, gone.ID, false, nil))
		f.Eventually(func() bool { return len(failedDeliveries(operators, w.ID)) == 1 })
		f.OK(f.Webhooks.SkipItems(f.Context(), operators.Owner, w.ID, false))
		f.Clock.Advance(time.Hour)
		f.NewRole("After")
		r.await("the item after the skipped one", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) == 8 })
		if n := len(ofType(r.all(), rolecall.EventRoleDeleted)); n != 1 {
			f.Errorf("the skipped item was sent %d times", n)
		}
		enable(operators, w.ID, false)
		skipped := f.NewRole("Skipped")
		f.OK(f.Webhooks.SkipItems(f.Context(), operators.Owner, w.ID, true))
		enable(operators, w.ID, true)
		f.NewRole("Last")
		r.await("the item after the skipped ones", func(all []received) bool { return len(distinct(ofType(all, rolecall.EventRoleCreated))) >= 9 })
		for _, got := range r.all() {
			if got.item.Subject == "role/"+skipped.ID.String() {
				f.Error("the skipped item was sent")
			}
		}
		want := []rolecall.EventType{"webhook.updated", "webhook.skipped", "webhook.updated", "webhook.skipped", "webhook.replayed", "webhook.updated", "webhook.created"}
		if got := f.OperatorEvents(operators.Owner); !slices.Equal(got[:len(want)], want) {
			f.Errorf("the operators' log has %q", got)
		}
	})
}

func TestAWebhookOfOperatorsIsDisabledIfItsEndpointIsGone(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, func(received) int { return http.StatusGone })
		delivering(f, r)
		operators := ofOperators(f)
		w := hook(operators, r.url("/hook"), types(rolecall.EventRoleCreated))
		f.NewRole("First")
		f.Eventually(func() bool { return !webhook(operators, w.ID).Enabled })
		if got := webhook(operators, w.ID).DisabledReason; got == nil || *got != rolecall.WebhookGone {
			f.Errorf("disabled because of %v", got)
		}
		page, err := f.Directory.OperatorEvents(f.Context(), operators.Owner, directory.EventListing{Subject: rolecall.AnyID(w.ID), Limit: 9})
		f.OK(err)
		if len(page.Items) != 2 || page.Items[0].Type != rolecall.EventWebhookDisabled || page.Items[0].Reason != rolecall.WebhookGone {
			f.Errorf("the events are %+v", page.Items)
		}
		for _, e := range page.Items {
			f.CheckEvent(&e)
			if text := string(e.Values.After); strings.Contains(text, "serviceAccountId") || strings.Contains(text, w.Secret) || !strings.Contains(text, w.ID.String()) {
				f.Errorf("the event has %s", text)
			}
		}
		if mails := f.Mails(); len(mails) > 0 {
			f.Errorf("mails were sent: %+v", mails)
		}
		n, err := f.Webhooks.Disabled(f.Context())
		if f.OK(err); n != 1 {
			f.Errorf("%d disabled webhooks are counted", n)
		}
		r.mu.Lock()
		r.answer = nil
		r.mu.Unlock()
		enable(operators, w.ID, true)
		r.await("the first item again", func(all []received) bool { return len(all) == 2 && all[0].id == all[1].id })
	})
}

// The events of a purged tenant are not sent any more. Those of others remain, although the feed of all
// tenants begins after them.
func TestWebhooksOfOperatorsOutliveTenants(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		other, operators := f.InNewTenant("other"), ofOperators(f)
		w := hook(operators, r.url("/hook"), types(rolecall.EventRoleCreated, rolecall.EventTenantDeleted))
		f.NewRole("Before")
		r.awaitItem(rolecall.EventRoleCreated, 1)
		f.Eventually(func() bool { return len(deliveries(operators, w.ID)) == 1 })
		enable(operators, w.ID, false)
		other.NewRole("Purged")
		kept := f.NewRole("Kept")
		f.OK(nodetest.ErrorOf(f.Access.Feed.End(f.Context(), f.Tenant.ID)))
		f.OK(nodetest.ErrorOf(f.Access.Feed.End(f.Context(), other.Tenant.ID)))
		f.OK(f.Directory.DeleteTenant(f.Context(), access.Command, "other", nil))
		f.Clock.Advance(rolecall.TenantRestorable + access.SettleTime + time.Second)
		f.OK(f.Node.Purge(f.Context()))
		f.OK(f.Node.Purge(f.Context())) // deletes places
		enable(operators, w.ID, true)
		f.NewRole("After")
		all := r.await("the changes of the other tenant", func(all []received) bool { return len(distinct(all)) >= 3 })
		if got := distinct(all); len(got) != 3 || !slices.ContainsFunc(got, func(one received) bool { return one.item.Subject == "role/"+kept.ID.String() }) {
			f.Errorf("received %d items, without the one that was not sent yet", len(got))
		}
	})
}

func TestOperatorsRotateTheSecret(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		operators := ofOperators(f)
		w := hook(operators, r.url("/hook"), types(rolecall.EventRoleCreated))
		rotated, err := f.Webhooks.RotateSecret(f.Context(), operators.Owner, w.ID, nil)
		f.OK(err)
		f.NewRole("First")
		got := r.awaitItem(rolecall.EventRoleCreated, 1)
		var want []string
		for _, key := range []string{rotated.Secret, w.Secret} {
			signature, err := secret.SignWebhook(key, got.id, int64(nodetest.Start/1e6), got.body)
			f.OK(err)
			want = append(want, signature)
		}
		if got.signatures != strings.Join(want, " ") || rotated.Secret == w.Secret {
			f.Errorf("the signatures are %s, want %s", got.signatures, want)
		}
	})
}

func TestWhoMayUseTheWebhooksOfOperators(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		operators := ofOperators(f)
		w := hook(operators, "https://hooks.example.org/")
		scoped := func(scopes ...rolecall.OperatorScope) access.Caller {
			_, token, err := f.Directory.CreateOperatorKey(f.Context(), rolecall.OperatorKeyDraft{Name: "Scoped", Scopes: scopes, Lifetime: time.Hour})
			f.OK(err)
			p, err := f.SignIn.AuthenticateOperator(f.Context(), string(token), "")
			f.OK(err)
			return access.Caller{Principal: p}
		}
		reads := map[string]func(access.Caller) error{
			"list": func(c access.Caller) error { return nodetest.ErrorOf(f.Webhooks.Webhooks(f.Context(), c, nil, 9)) },
			"get":  func(c access.Caller) error { return nodetest.ErrorOf(f.Webhooks.Webhook(f.Context(), c, w.ID)) },
			"deliveries": func(c access.Caller) error {
				return nodetest.ErrorOf(f.Webhooks.Deliveries(f.Context(), c, rolecall.WebhookDeliveryQuery{Webhook: w.ID, Limit: 9}))
			},
			"test": func(c access.Caller) error { return nodetest.ErrorOf(f.Webhooks.TestWebhook(f.Context(), c, w.ID)) },
			"skip": func(c access.Caller) error { return f.Webhooks.SkipItems(f.Context(), c, w.ID, true) },
			"replay": func(c access.Caller) error {
				return f.Webhooks.ReplayWebhook(f.Context(), c, w.ID, webhooks.Replay{From: nodetest.Start, To: nodetest.Start + 1})
			},
		}
		writes := map[string]func(access.Caller) error{
			"create": func(c access.Caller) error {
				return nodetest.ErrorOf(f.Webhooks.CreateWebhook(f.Context(), c, nodetest.NewKey(), rolecall.WebhookDraft{URL: "https://hooks.example.org/"}))
			},
			"update": func(c access.Caller) error {
				return nodetest.ErrorOf(f.Webhooks.UpdateWebhook(f.Context(), c, w.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://other.example.org/")}, nil))
			},
			"rotate": func(c access.Caller) error {
				return nodetest.ErrorOf(f.Webhooks.RotateSecret(f.Context(), c, w.ID, nil))
			},
			"delete": func(c access.Caller) error {
				err := f.Webhooks.DeleteWebhook(f.Context(), c, rolecall.NewID[rolecall.Webhook](nodetest.Start), nil)
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
			"a key for all":  {operators.Owner, nil, nil},
			"a follower":     {webhooks.ForOperators(scoped(rolecall.ScopeChanges)), nil, rolecall.ErrScopeMissing},
			"a sign-up form": {webhooks.ForOperators(scoped(rolecall.ScopeTenants, rolecall.ScopeLookup)), rolecall.ErrScopeMissing, rolecall.ErrScopeMissing},
			"a key for some": {webhooks.ForOperators(f.NewOperator("Some", "acme")), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
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
		for name, c := range map[string]access.Caller{"an owner": f.Owner, "an operator in a tenant": f.OperatorInTenant()} {
			if page, err := f.Webhooks.Webhooks(f.Context(), c, nil, 9); err != nil || len(page.Items) != 0 {
				f.Errorf("%s lists %+v, %v", name, page.Items, err)
			}
			f.Is(nodetest.ErrorOf(f.Webhooks.Webhook(f.Context(), c, w.ID)), rolecall.ErrNotFound)
			f.Is(f.Webhooks.DeleteWebhook(f.Context(), c, w.ID, nil), rolecall.ErrNotFound)
		}
		f.Is(nodetest.ErrorOf(f.Webhooks.Webhook(f.Context(), f.NewOperator("Without a tenant"), w.ID)), rolecall.ErrNotFound)
	})
}

func TestTheInstanceHasTwentyWebhooksOfOperators(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		operators := ofOperators(f)
		draft, key := rolecall.WebhookDraft{URL: "https://hooks.example.org/"}, nodetest.NewKey()
		first, err := f.Webhooks.CreateWebhook(f.Context(), operators.Owner, key, draft)
		f.OK(err)
		again, err := f.Webhooks.CreateWebhook(f.Context(), operators.Owner, key, draft)
		f.OK(err)
		if !strings.HasPrefix(first.Value.Secret, "whsec_") || again.Value.Secret != "" || !again.Replayed || again.Value.ID != first.Value.ID || again.Value.URL != draft.URL {
			f.Errorf("got %+v, then %+v", first, again)
		}
		create := func() error {
			return nodetest.ErrorOf(f.Webhooks.CreateWebhook(f.Context(), operators.Owner, nodetest.NewKey(), draft))
		}
		for range rolecall.WebhooksMax - 1 {
			f.OK(create())
		}
		f.Is(create(), rolecall.ErrTooManyWebhooks)
		newWebhook(f, draft.URL, aReader(f).ID) // that of a tenant does not count
		f.OK(f.Webhooks.DeleteWebhook(f.Context(), operators.Owner, first.Value.ID, nil))
		f.OK(create())
		f.Is(create(), rolecall.ErrTooManyWebhooks)
		f.Clock.Advance(365 * nodetest.Day)
		f.OK(f.Node.Purge(f.Context())) // deletes the idempotency keys
		f.OK(f.DB.View(f.Context(), rolecall.OperatorsTenant, func(q store.Querier) error {
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		operators := ofOperators(f)
		for range rolecall.WebhooksMax {
			hook(operators, "https://hooks.example.org/", disabled)
		}
		news := func() (n int) {
			f.Helper()
			f.OK(f.DB.View(f.Context(), rolecall.TenantID{}, func(q store.Querier) (err error) {
				n, err = q.Query("select n from feed_news where n > 0 order by n", nil, func(func(...any) error) error { return nil })
				return err
			}))
			return n
		}
		f.OK(f.DB.Update(f.Context(), f.Tenant.ID, func(q store.Querier) error {
			for i := range 2*store.NumbersAtOnce + 1 {
				q.Exec("insert into feed_news (tenant, first_number, last_number) values ($1, $2, $3)", f.Tenant.ID, 1000+2*i, 1000+2*i)
			}
			return nil
		}))
		before := news()
		_, err := f.Webhooks.CreateWebhook(f.Context(), operators.Owner, nodetest.NewKey(), rolecall.WebhookDraft{URL: "https://hooks.example.org/"})
		f.Is(err, rolecall.ErrTooManyWebhooks) // so the transaction had no effect
		if left := news(); before <= 2*store.NumbersAtOnce || left > 0 {
			f.Errorf("of %d batches, %d have no place", before, left)
		}
	})
}

// TestTwoNodesDeliverEachItemOfOperatorsOnce runs two nodes on the database. The endpoint is slow, so that
// the nodes would overlap.
func TestTwoNodesDeliverEachItemOfOperatorsOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, func(received) int {
			<-time.After(20 * time.Millisecond)
			return http.StatusOK
		})
		delivering(f, r)
		work(f, node.New(f.Open(), reaching(f, r)))
		other, operators := f.InNewTenant("other"), ofOperators(f)
		for i := range 4 {
			hook(operators, r.url(fmt.Sprintf("/%d", i)), types(rolecall.EventRoleCreated))
		}
		for i := range 15 {
			f.NewRole(fmt.Sprintf("Role %d", i))
			other.NewRole(fmt.Sprintf("Role %d", i))
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		operators := ofOperators(f)
		hook(operators, r.url("/hook"), types(rolecall.EventRoleCreated))
		f.NewRole("First")
		r.awaitItem(rolecall.EventRoleCreated, 1)
		killed := f.NewNode()
		f.OK(nodetest.ErrorOf(killed.Directory.CreateRole(f.Context(), f.Owner, nodetest.NewKey(), rolecall.RoleDraft{Name: "Second"})))
		f.OK(nodetest.ErrorOf(killed.Access.Feed.End(f.Context(), f.Tenant.ID)))
		f.Eventually(func() bool {
			f.Clock.Advance(time.Minute)
			return len(distinct(r.all())) == 2
		})
	})
}

// The networks of operators are those of their webhooks only.
func TestOnlyOperatorsReachTheirNetworks(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		o := reaching(f, r)
		o.Outbound = outbound.New(outbound.Options{
			Roots: outboundtest.Roots(r.server), Resolver: outboundtest.Resolver(f.T, map[string][]string{"example.com": {"127.0.0.1"}}), Timeout: patience.Limit,
		})
		o.OperatorOutbound = outbound.New(outbound.Options{
			Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/31")}, Roots: outboundtest.Roots(r.server), Timeout: patience.Limit,
			Resolver: outboundtest.Resolver(f.T, map[string][]string{"example.com": {"127.0.0.1"}, "www.example.com": {"127.0.0.2"}}),
		})
		f.Node = node.New(f.DB, o)
		work(f, f.Node)
		operators := ofOperators(f)
		refused := func(of *nodetest.Fixture, url string) {
			f.Helper()
			w := newWebhook(of, url, aReader(f).ID, types(rolecall.EventRoleCreated))
			f.NewRole(fmt.Sprintf("Role %d", nodetest.Serial.Add(1)))
			f.Eventually(func() bool {
				failed := failedDeliveries(of, w.ID)
				return len(failed) > 0 && failed[0].Error == outbound.CodeAddress
			})
			enable(of, w.ID, false)
		}
		refused(f, r.url("/tenant"))
		refused(operators, strings.Replace(r.url("/other"), "example.com", "www.example.com", 1))
		create := func(of *nodetest.Fixture, url string) error {
			return nodetest.ErrorOf(f.Webhooks.CreateWebhook(f.Context(), of.Owner, nodetest.NewKey(), rolecall.WebhookDraft{URL: url, ServiceAccountID: aReader(f).ID}))
		}
		isInvalid(f, create(f, "https://127.0.0.1/"), "/url")
		isInvalid(f, create(operators, "https://127.0.0.2/"), "/url")
		isInvalid(f, create(operators, "http://127.0.0.1/"), "/url")
		isInvalid(f, create(operators, "https://[::ffff:127.0.0.2]/"), "/url")
		f.OK(create(operators, "https://127.0.0.1/"))
		w := hook(operators, r.url("/hook"), types(rolecall.EventRoleCreated))
		f.NewRole("Reached")
		all := r.await("the role", func(all []received) bool {
			return slices.ContainsFunc(all, func(got received) bool { return got.item.Data.After["name"] == "Reached" })
		})
		if slices.ContainsFunc(all, func(got received) bool { return got.path != "/hook" }) {
			f.Error("a request reached an address that is not allowed")
		}
		isInvalid(f, nodetest.ErrorOf(f.Webhooks.UpdateWebhook(f.Context(), operators.Owner, w.ID, rolecall.WebhookPatch{URL: rolecall.Some("https://169.254.169.254/")}, nil)), "/url")
	})
}
