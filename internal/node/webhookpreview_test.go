package node_test

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
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/webhooks"
)

func (f *fixture) preview(c access.Caller, id rolecall.WebhookID, event rolecall.EventID) webhooks.Preview {
	f.Helper()
	p, err := f.Webhooks.Preview(f.Context(), c, id, event)
	f.ok(err)
	return p
}

// membersIn returns the names of the members after the change in a body, in order.
func (f *fixture) membersIn(body []byte) (names []string) {
	f.Helper()
	var i item
	f.ok(json.Unmarshal(body, &i))
	for name := range i.Data.After {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestAPreviewIsTheRequestThatIsSent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		r := newReceiver(f, nil)
		f.delivering(r)
		account := f.aReader("users.name:read")
		w := f.newWebhook(r.url("/hook"), account.ID, types(rolecall.EventUserCreated, rolecall.EventUserUpdated))
		none := f.newWebhook(r.url("/none"), account.ID, types(rolecall.EventRoleDeleted))
		if p := f.preview(f.owner, none.ID, rolecall.EventID{}); !p.Event.IsZero() || p.Body != nil {
			f.Errorf("without an event, the preview is %+v", p)
		}
		grace := f.user("grace")
		sent := r.awaitItem(rolecall.EventUserCreated, 1)
		f.role("Not sent")
		id, err := rolecall.ParseID[rolecall.Event](sent.id)
		f.ok(err)
		for _, event := range []rolecall.EventID{{}, id} {
			p := f.preview(f.owner, w.ID, event)
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
		f.assignToAccount(account.ID, f.role("Reads addresses", "users.email:read").ID)
		f.rename(grace.ID, "Rear Admiral Hopper")
		if sent = r.awaitItem(rolecall.EventUserUpdated, 1); string(f.preview(f.owner, w.ID, rolecall.EventID{}).Body) != string(sent.body) {
			f.Errorf("the newest event is not %s", sent.body)
		}
	})
}

func TestAPreviewHasOnlyValuesThatAccountAndViewerMayRead(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.role("Reads some", "changes:read", "users.name:read", "users.email:read")
		account := f.account("Shop", role.ID)
		w := f.newWebhook("https://hooks.example.com/", account.ID, types(rolecall.EventUserCreated), func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		f.user("grace")
		f.ok(errorOf(f.Directory.Changes(f.Context(), f.owner, feed.Query{Limit: 1}))) // gives numbers
		for _, test := range []struct {
			permissions, members string
			redacted             bool
		}{
			{"users:read", "email,id,name", false},
			{"users.name:read users.status:read", "id,name", true},
			{"users.status:read", "id", true},
			{"users.name:read users.email:read", "email,id,name", false},
		} {
			viewer := f.caller(holding(append(strings.Fields(test.permissions), "webhooks:read", "changes:read")...))
			p := f.preview(viewer, w.ID, rolecall.EventID{})
			if got := strings.Join(f.membersIn(p.Body), ","); got != test.members || p.Redacted != test.redacted {
				f.Errorf("with %s, the preview has %s (redacted: %v), want %s", test.permissions, got, p.Redacted, test.members)
			}
		}
		for _, permissions := range [][]string{{"webhooks:read", "users:read", "events:read"}, {"changes:read", "users:read", "webhooks:update"}} {
			_, err := f.Webhooks.Preview(f.Context(), f.caller(holding(permissions...)), w.ID, rolecall.EventID{})
			f.is(err, rolecall.ErrPermissionDenied)
		}
		f.setPermissions(role.ID, "changes:read", "users.email:read")
		if got := strings.Join(f.membersIn(f.preview(f.owner, w.ID, rolecall.EventID{}).Body), ","); got != "email,id" {
			f.Errorf("after a permission was removed, the preview has %s", got)
		}
	})
}

func TestAPreviewSaysWhyNothingWouldBeSent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		role := f.role("Reads", "changes:read", "users:read")
		account := f.account("Shop", role.ID)
		w := f.newWebhook("https://hooks.example.com/", account.ID, types(rolecall.EventUserCreated), func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		f.user("grace")
		f.ok(errorOf(f.Directory.Changes(f.Context(), f.owner, feed.Query{Limit: 1}))) // gives numbers
		event := f.preview(f.owner, w.ID, rolecall.EventID{}).Event
		fails := func(code string) {
			f.Helper()
			if p := f.preview(f.owner, w.ID, event); p.Failure != code || p.Body != nil || p.Event != event {
				f.Errorf("the preview is %+v, want the failure %q", p, code)
			}
		}
		f.setPermissions(role.ID, "users:read")
		fails("permission-denied")
		f.setPermissions(role.ID, "changes:read", "users:read")
		f.ok(errorOf(f.Directory.SuspendServiceAccount(f.Context(), f.owner, account.ID, "")))
		fails("service-account-suspended")
		f.ok(f.Directory.DeleteServiceAccount(f.Context(), f.owner, account.ID, nil))
		fails("service-account-deleted")

		other := f.newWebhook("https://hooks.example.com/", f.aReader().ID, types(rolecall.EventRoleCreated))
		if p := f.preview(f.owner, other.ID, event); p.Selected || p.Body == nil {
			f.Errorf("the preview of an event that is not selected is %+v", p)
		}
		_, err := f.Webhooks.Preview(f.Context(), f.owner, other.ID, rolecall.NewID[rolecall.Event](start))
		f.is(err, rolecall.ErrNotFound)
		_, err = f.Webhooks.Preview(f.Context(), f.owner, rolecall.NewID[rolecall.Webhook](start), event)
		f.is(err, rolecall.ErrNotFound)
	})
}

func TestTheLagOfAWebhook(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		var accepts atomic.Bool
		r := newReceiver(f, func(received) int {
			if accepts.Load() {
				return http.StatusOK
			}
			return http.StatusInternalServerError
		})
		f.delivering(r)
		w := f.newWebhook(r.url("/hook"), f.aReader().ID, types(rolecall.EventUserUpdated))
		lag := func() webhooks.Lag {
			f.Helper()
			lag, err := f.Webhooks.Lag(f.Context(), f.owner, w.ID)
			f.ok(err)
			return lag
		}
		u := f.user("grace")
		if got := lag(); got.Waiting != 0 || got.Oldest != 0 || got.More || got.Failing != nil {
			f.Errorf("before a change, the lag is %+v", got)
		}
		begun := f.clock.Now()
		f.rename(u.ID, "Rear Admiral Hopper")
		r.await("the failure", func(all []received) bool { return len(all) > 0 })
		f.clock.advance(1e9)
		f.rename(u.ID, "Amazing Grace")
		f.eventually(func() bool { got := lag(); return got.Waiting == 2 && len(got.Failing) == 1 })
		if got := lag(); got.Oldest != begun || got.Failing[0].Attempts != 1 || got.Failing[0].Item.String() != r.all()[0].id {
			f.Errorf("with a failing item, the lag is %+v", got)
		}
		accepts.Store(true)
		f.ok(f.Webhooks.SkipItems(f.Context(), f.owner, w.ID, false))
		f.eventually(func() bool { got := lag(); return got.Waiting == 0 && got.Failing == nil })
		_, err := f.Webhooks.Lag(f.Context(), f.caller(holding("changes:read")), w.ID)
		f.is(err, rolecall.ErrPermissionDenied)
	})
}

func TestTheLagSaysWhyNoEventsAreSent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		reader := f.aReader()
		w := f.newWebhook("https://hooks.example.com/", reader.ID)
		failure := func(want string) {
			f.Helper()
			lag, err := f.Webhooks.Lag(f.Context(), f.owner, w.ID)
			f.ok(err)
			if lag.Failure != want {
				f.Errorf("the reason is %q, want %q", lag.Failure, want)
			}
		}
		failure("")
		f.ok(errorOf(f.Directory.SuspendServiceAccount(f.Context(), f.owner, reader.ID, "")))
		failure("service-account-suspended")
		f.ok(errorOf(f.Directory.ResumeServiceAccount(f.Context(), f.owner, reader.ID, "")))
		weak := f.account("Import", f.role("Import", "users:read").ID)
		f.ok(errorOf(f.Webhooks.UpdateWebhook(f.Context(), f.owner, w.ID, rolecall.WebhookPatch{ServiceAccountID: rolecall.Some(weak.ID)}, nil)))
		failure("permission-denied")
	})
}

// A disabled webhook can be behind by more events than the retention has left, and than one page has.
func TestTheLagBeginsWithTheOldestEvent(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		w := f.newWebhook("https://hooks.example.com/", f.aReader().ID, types(rolecall.EventRoleCreated), func(d *rolecall.WebhookDraft) { d.Enabled = rolecall.Some(false) })
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			for range 1500 {
				tx.InsertEvent(rolecall.Event{ID: rolecall.NewID[rolecall.Event](start), Type: rolecall.EventRoleUpdated, OccurredAt: start, Members: []string{"description"},
					Actor: rolecall.Actor{Type: rolecall.ActorAnonymous, Via: "http"}, Subject: rolecall.About(w.ID)})
			}
			return nil
		}))
		f.ok(f.Access.Feed.Number(f.Context(), f.tenant.ID))
		f.clock.advance(f.tenant.Settings.EventLifetime() + time.Minute)
		f.ok(f.Node.Purge(f.Context()))
		f.owner = f.call(f.signIn("owner"))
		begun := f.clock.Now()
		f.role("Kept")
		f.ok(f.Access.Feed.Number(f.Context(), f.tenant.ID))
		lag, err := f.Webhooks.Lag(f.Context(), f.owner, w.ID)
		if f.ok(err); lag.Waiting != 1 || lag.Oldest != begun || lag.More {
			f.Errorf("the lag is %+v", lag)
		}
	})
}

func TestTheLagOfTheFeed(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		lag := func() rolecall.Time {
			f.Helper()
			oldest, err := f.Webhooks.FeedLag(f.Context(), f.owner)
			f.ok(err)
			return oldest
		}
		numbered := func() { f.ok(errorOf(f.Directory.Changes(f.Context(), f.owner, feed.Query{Limit: 1}))) }
		numbered()
		begun := f.clock.Now()
		f.user("grace")
		f.clock.advance(1e9)
		f.user("katherine")
		if got := lag(); got != begun {
			f.Errorf("the oldest change is from %v, want %v", got, begun)
		}
		if numbered(); lag() != 0 {
			f.Errorf("changes wait although all have a number: %v", lag())
		}
		_, err := f.Webhooks.FeedLag(f.Context(), f.caller(holding("changes:read")))
		f.is(err, rolecall.ErrPermissionDenied)
	})
}
