package webhooks_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/webhooks"
)

func preview(f *nodetest.Fixture, c access.Caller, id rolecall.WebhookID, event rolecall.EventID) webhooks.Preview {
	f.Helper()
	p, err := f.Webhooks.Preview(f.Context(), c, id, event)
	f.OK(err)
	return p
}

// membersIn returns the names of the members after the change in a body, in order.
func membersIn(f *nodetest.Fixture, body []byte) (names []string) {
	f.Helper()
	var i item
	f.OK(json.Unmarshal(body, &i))
	for name := range i.Data.After {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestAPreviewIsTheRequestThatIsSent(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		r := newReceiver(f, nil)
		delivering(f, r)
		account := aReader(f, "users.name:read")
		w := newWebhook(f, r.url("/hook"), account.ID, types(rolecall.EventUserCreated, rolecall.EventUserUpdated))
		none := newWebhook(f, r.url("/none"), account.ID, types(rolecall.EventRoleDeleted))
		if p := preview(f, f.Owner, none.ID, rolecall.EventID{}); !p.Event.IsZero() || p.Body != nil {
			f.Errorf("without an event, the preview is %+v", p)
		}
		grace := f.NewUser("grace")
		sent := r.awaitItem(rolecall.EventUserCreated, 1)
		f.NewRole("Not sent")
		id, err := rolecall.ParseID[rolecall.Event](sent.id)
		f.OK(err)
		for _, event := range []rolecall.EventID{{}, id} {
			p := preview(f, f.Owner, w.ID, event)
			if p.Event.String() != sent.id || p.Type != rolecall.EventUserCreated || !p.Selected || p.Redacted || p.Failure != "" || string(p.Body) != string(sent.body) {
				f.Errorf("the preview is %+v with %s, and %s was sent", p, p.Body, sent.body)
			}
			want := http.Header{"Content-Type": {sent.kind}, "User-Agent": {"Rolecall"}, "Webhook-Id": {sent.id}, "Webhook-Timestamp": {sent.at}}
			for name := range want {
				if p.Header.Get(name) != want.Get(name) {
					f.Errorf("%s is %q, want %q", name, p.Header.Get(name), want.Get(name))
				}
			}
			if len(p.Header) != len(want) || strings.Contains(string(p.Body), w.Secret) {
				f.Errorf("the headers are %v", p.Header)
			}
		}
		f.AssignToAccount(account.ID, f.NewRole("Reads addresses", "users.email:read").ID)
		rename(f, grace.ID, "Rear Admiral Hopper")
		if sent = r.awaitItem(rolecall.EventUserUpdated, 1); string(preview(f, f.Owner, w.ID, rolecall.EventID{}).Body) != string(sent.body) {
			f.Errorf("the newest event is not %s", sent.body)
		}
	})
}

func TestAPreviewHasOnlyValuesThatAccountAndViewerMayRead(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.NewRole("Reads some", "changes:read", "users.name:read", "users.email:read")
		account := f.NewAccount("Shop", role.ID)
		w := newWebhook(f, "https://hooks.example.com/", account.ID, types(rolecall.EventUserCreated), func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		f.NewUser("grace")
		f.OK(nodetest.ErrorOf(f.Directory.Changes(f.Context(), f.Owner, feed.Query{Limit: 1}))) // gives numbers
		for _, test := range []struct {
			permissions, members string
			redacted             bool
		}{
			{"users:read", "email,id,name", false},
			{"users.name:read users.status:read", "id,name", true},
			{"users.status:read", "id", true},
			{"users.name:read users.email:read", "email,id,name", false},
		} {
			viewer := f.CallerWith(nodetest.Holding(append(strings.Fields(test.permissions), "webhooks:read", "changes:read")...))
			p := preview(f, viewer, w.ID, rolecall.EventID{})
			if got := strings.Join(membersIn(f, p.Body), ","); got != test.members || p.Redacted != test.redacted {
				f.Errorf("with %s, the preview has %s (redacted: %v), want %s", test.permissions, got, p.Redacted, test.members)
			}
		}
		for _, permissions := range [][]string{{"webhooks:read", "users:read", "events:read"}, {"changes:read", "users:read", "webhooks:update"}} {
			_, err := f.Webhooks.Preview(f.Context(), f.CallerWith(nodetest.Holding(permissions...)), w.ID, rolecall.EventID{})
			f.Is(err, rolecall.ErrPermissionDenied)
		}
		f.SetPermissions(role.ID, "changes:read", "users.email:read")
		if got := strings.Join(membersIn(f, preview(f, f.Owner, w.ID, rolecall.EventID{}).Body), ","); got != "email,id" {
			f.Errorf("after a permission was removed, the preview has %s", got)
		}
	})
}

func TestAPreviewSaysWhyNothingWouldBeSent(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		role := f.NewRole("Reads", "changes:read", "users:read")
		account := f.NewAccount("Shop", role.ID)
		w := newWebhook(f, "https://hooks.example.com/", account.ID, types(rolecall.EventUserCreated), func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		f.NewUser("grace")
		f.OK(nodetest.ErrorOf(f.Directory.Changes(f.Context(), f.Owner, feed.Query{Limit: 1}))) // gives numbers
		event := preview(f, f.Owner, w.ID, rolecall.EventID{}).Event
		fails := func(code string) {
			f.Helper()
			if p := preview(f, f.Owner, w.ID, event); p.Failure != code || p.Body != nil || p.Event != event {
				f.Errorf("the preview is %+v, want the failure %q", p, code)
			}
		}
		f.SetPermissions(role.ID, "users:read")
		fails("permission-denied")
		f.SetPermissions(role.ID, "changes:read", "users:read")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendServiceAccount(f.Context(), f.Owner, account.ID, "")))
		fails("service-account-suspended")
		f.OK(f.Directory.DeleteServiceAccount(f.Context(), f.Owner, account.ID, nil))
		fails("service-account-deleted")

		other := newWebhook(f, "https://hooks.example.com/", aReader(f).ID, types(rolecall.EventRoleCreated))
		if p := preview(f, f.Owner, other.ID, event); p.Selected || p.Body == nil {
			f.Errorf("the preview of an event that is not selected is %+v", p)
		}
		_, err := f.Webhooks.Preview(f.Context(), f.Owner, other.ID, rolecall.NewID[rolecall.Event](nodetest.Start))
		f.Is(err, rolecall.ErrNotFound)
		_, err = f.Webhooks.Preview(f.Context(), f.Owner, rolecall.NewID[rolecall.Webhook](nodetest.Start), event)
		f.Is(err, rolecall.ErrNotFound)
	})
}

func TestTheLagOfAWebhook(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		var accepts atomic.Bool
		r := newReceiver(f, func(received) int {
			if accepts.Load() {
				return http.StatusOK
			}
			return http.StatusInternalServerError
		})
		delivering(f, r)
		w := newWebhook(f, r.url("/hook"), aReader(f).ID, types(rolecall.EventUserUpdated))
		lag := func() webhooks.Lag {
			f.Helper()
			lag, err := f.Webhooks.Lag(f.Context(), f.Owner, w.ID)
			f.OK(err)
			return lag
		}
		u := f.NewUser("grace")
		if got := lag(); got.Waiting != 0 || got.Oldest != 0 || got.More || got.Failing != nil {
			f.Errorf("before a change, the lag is %+v", got)
		}
		begun := f.Clock.Now()
		rename(f, u.ID, "Rear Admiral Hopper")
		r.await("the failure", func(all []received) bool { return len(all) > 0 })
		f.Clock.Advance(1e9)
		rename(f, u.ID, "Amazing Grace")
		f.Eventually(func() bool { got := lag(); return got.Waiting == 2 && len(got.Failing) == 1 })
		if got := lag(); got.Oldest != begun || got.Failing[0].Attempts != 1 || got.Failing[0].Item.String() != r.all()[0].id {
			f.Errorf("with a failing item, the lag is %+v", got)
		}
		accepts.Store(true)
		f.OK(f.Webhooks.SkipItems(f.Context(), f.Owner, w.ID, false))
		f.Eventually(func() bool { got := lag(); return got.Waiting == 0 && got.Failing == nil })
		_, err := f.Webhooks.Lag(f.Context(), f.CallerWith(nodetest.Holding("changes:read")), w.ID)
		f.Is(err, rolecall.ErrPermissionDenied)
	})
}

func TestTheLagSaysWhyNoEventsAreSent(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		reader := aReader(f)
		w := newWebhook(f, "https://hooks.example.com/", reader.ID)
		failure := func(want string) {
			f.Helper()
			lag, err := f.Webhooks.Lag(f.Context(), f.Owner, w.ID)
			f.OK(err)
			if lag.Failure != want {
				f.Errorf("the reason is %q, want %q", lag.Failure, want)
			}
		}
		failure("")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendServiceAccount(f.Context(), f.Owner, reader.ID, "")))
		failure("service-account-suspended")
		f.OK(nodetest.ErrorOf(f.Directory.ResumeServiceAccount(f.Context(), f.Owner, reader.ID, "")))
		weak := f.NewAccount("Import", f.NewRole("Import", "users:read").ID)
		f.OK(nodetest.ErrorOf(f.Webhooks.UpdateWebhook(f.Context(), f.Owner, w.ID, rolecall.WebhookPatch{ServiceAccountID: rolecall.Some(weak.ID)}, nil)))
		failure("permission-denied")
	})
}

// A disabled webhook can be behind by more events than the retention has left, and than one page has.
func TestTheLagBeginsWithTheOldestEvent(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		w := newWebhook(f, "https://hooks.example.com/", aReader(f).ID, types(rolecall.EventRoleCreated), func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for range 1500 {
				tx.InsertEvent(rolecall.Event{ID: rolecall.NewID[rolecall.Event](nodetest.Start), Type: rolecall.EventRoleUpdated, OccurredAt: nodetest.Start, Members: []string{"description"},
					Actor: rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "http"}, Subject: rolecall.About(w.ID)})
			}
			return nil
		}))
		f.OK(f.Access.Feed.Number(f.Context(), f.Tenant.ID))
		f.Clock.Advance(f.Tenant.Settings.EventLifetime() + time.Minute)
		f.OK(f.Node.Purge(f.Context()))
		f.Owner = f.CallerOf(f.LogIn("owner"))
		begun := f.Clock.Now()
		f.NewRole("Kept")
		f.OK(f.Access.Feed.Number(f.Context(), f.Tenant.ID))
		lag, err := f.Webhooks.Lag(f.Context(), f.Owner, w.ID)
		if f.OK(err); lag.Waiting != 1 || lag.Oldest != begun || lag.More {
			f.Errorf("the lag is %+v", lag)
		}
	})
}

func TestTheLagOfTheFeed(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		lag := func() rolecall.Time {
			f.Helper()
			oldest, err := f.Webhooks.FeedLag(f.Context(), f.Owner)
			f.OK(err)
			return oldest
		}
		numbered := func() { f.OK(nodetest.ErrorOf(f.Directory.Changes(f.Context(), f.Owner, feed.Query{Limit: 1}))) }
		numbered()
		begun := f.Clock.Now()
		f.NewUser("grace")
		f.Clock.Advance(1e9)
		f.NewUser("katherine")
		if got := lag(); got != begun {
			f.Errorf("the oldest change is from %v, want %v", got, begun)
		}
		if numbered(); lag() != 0 {
			f.Errorf("changes wait although all have a number: %v", lag())
		}
		_, err := f.Webhooks.FeedLag(f.Context(), f.CallerWith(nodetest.Holding("changes:read")))
		f.Is(err, rolecall.ErrPermissionDenied)
	})
}
