package console

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/store"
)

// makeWebhook creates a disabled webhook with the service account.
func (f *fixture) makeWebhook(account rolecall.ServiceAccount) rolecall.Webhook {
	f.t.Helper()
	created, err := f.node.Webhooks.CreateWebhook(f.t.Context(), f.asOwner(), idempotency.Key{Text: "hook", Fingerprint: []byte("hook")},
		rolecall.WebhookDraft{URL: "https://hooks.example.com/rolecall", ServiceAccountID: account.ID, Enabled: rolecall.Some(false)})
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Value.Webhook
}

func TestWebhooksInTheConsole(t *testing.T) {
	f := newFixture(t)
	account := f.makeAccount("Import", f.makeRole("Follower", "changes:read", "users:read"))
	cookie := f.signIn("acme", ownerEmail)
	if page := f.get("/console/acme/webhooks", cookie); !strings.Contains(page.body, "No webhooks") {
		t.Errorf("%d %s", page.StatusCode, page.body)
	}
	form := url.Values{
		"idempotency-key": {"k"}, "url": {"https://hooks.example.com/in"}, "serviceAccountId": {account.ID.String()},
		"types": {"user.created", "user.updated"}, "ignoreActors": {account.ID.String() + "\n"},
	}
	made := f.send(http.MethodPost, "/console/acme/webhooks/create", cookie, form)
	if made.StatusCode != http.StatusOK || strings.Count(made.body, "whsec_") != 1 {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	}
	if again := f.send(http.MethodPost, "/console/acme/webhooks/create", cookie, form); strings.Contains(again.body, "whsec_") {
		t.Errorf("the secret is shown twice: %s", again.body)
	}
	page, err := f.node.Webhooks.Webhooks(t.Context(), f.asOwner(), nil, 10)
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("%v %v", page, err)
	}
	w := page.Items[0]
	if len(w.Types) != 2 || len(w.IgnoreActors) != 1 || !w.Enabled {
		t.Errorf("the webhook is %+v", w)
	}
	path := "/console/acme/webhooks/" + w.ID.String()
	list := f.get("/console/acme/webhooks", cookie)
	for _, part := range []string{"https://hooks.example.com/in", "2 types of events", "Enabled", ">Import<"} {
		if !strings.Contains(list.body, part) {
			t.Errorf("the list does not show %q: %s", part, list.body)
		}
	}
	form = url.Values{
		"url": {"https://hooks.example.com/other"}, "was-url": {w.URL}, "serviceAccountId": {account.ID.String()}, "was-serviceAccountId": {account.ID.String()},
		"types": {"user.created"}, "was-types": {"user.created\nuser.updated"}, "ignoreActors": {""}, "was-ignoreActors": {account.ID.String()},
	}
	if a := f.send(http.MethodPost, path+"/edit", cookie, form); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if w, err = f.node.Webhooks.Webhook(t.Context(), f.asOwner(), w.ID); err != nil || w.URL != "https://hooks.example.com/other" || len(w.Types) != 1 || len(w.IgnoreActors) != 0 {
		t.Errorf("%+v %v", w, err)
	}
	for _, headers := range [][]string{nil, {"Hx-Request", "true", "Hx-Target", "confirm"}} { // without and with JavaScript
		rotated := f.send(http.MethodPost, path+"/rotate-secret", cookie, url.Values{}, headers...)
		if strings.Count(rotated.body, "whsec_") != 1 || !strings.Contains(rotated.body, "also signed with the old secret") {
			t.Errorf("%q: %d %s", headers, rotated.StatusCode, rotated.body)
		}
	}
	for _, below := range []string{"/disable", "/enable", "/test", "/skip"} {
		if a := f.send(http.MethodPost, path+below, cookie, url.Values{}); a.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: %d %s", below, a.StatusCode, a.body)
		}
	}
	if a := f.send(http.MethodPost, path+"/replay", cookie, url.Values{"from": {"2026-01-02T03:04"}, "to": {"2026-01-02T03:05"}}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.send(http.MethodPost, path+"/resend/"+w.ID.String(), cookie, url.Values{}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	shown := f.get(path, cookie)
	for _, part := range []string{"Deliveries", "Import", "User created", "You rotated the secret of a webhook"} {
		if !strings.Contains(strings.Join(strings.Fields(shown.body), " "), part) {
			t.Errorf("the page does not show %q: %s", part, shown.body)
		}
	}
	if failed := f.get(path+"/deliveries?result=bad", cookie); !strings.Contains(failed.body, "must be delivered or failed") {
		t.Errorf("%d %s", failed.StatusCode, failed.body)
	}
	if a := f.send(http.MethodPost, path+"/delete", cookie, url.Values{}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if gone := f.get(path, cookie); gone.StatusCode != http.StatusNotFound {
		t.Errorf("%d", gone.StatusCode)
	}
}

func TestTheFormOfAWebhookShowsItsErrors(t *testing.T) {
	f := newFixture(t)
	account := f.makeAccount("Import")
	cookie := f.signIn("acme", ownerEmail)
	form := url.Values{"idempotency-key": {"k"}, "url": {"http://127.0.0.1/"}, "serviceAccountId": {account.ID.String()}, "types": {"user.created"}}
	a := f.send(http.MethodPost, "/console/acme/webhooks/create", cookie, form)
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "https://") || !strings.Contains(a.body, `value="user.created" checked`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form = url.Values{"idempotency-key": {"k"}, "url": {"https://hooks.example.com/"}, "serviceAccountId": {""}, "ignoreActors": {"nobody"}}
	a = f.send(http.MethodPost, "/console/acme/webhooks/create", cookie, form)
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "Select a service account.") || !strings.Contains(a.body, "is not an ID") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// An empty selection must not select all types.
func TestAWebhookSendsAllEventsOnlyIfTheFormSaysSo(t *testing.T) {
	f := newFixture(t)
	account := f.makeAccount("Import", f.makeRole("Follower", "changes:read", "users:read"))
	cookie := f.signIn("acme", ownerEmail)
	const create, ticked = "/console/acme/webhooks/create", `value="*" checked`
	if page := f.get(create, cookie); !strings.Contains(page.body, ticked) {
		t.Errorf("the form does not select all events: %s", page.body)
	}
	form := url.Values{"idempotency-key": {"k"}, "url": {"https://hooks.example.com/in"}, "serviceAccountId": {account.ID.String()}}
	refused := func(path string, types []string, want string) {
		t.Helper()
		form["types"] = types
		a := f.send(http.MethodPost, path, cookie, form)
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, want) || strings.Contains(a.body, ticked) != (types != nil) {
			t.Errorf("%s %q: %d %s", path, types, a.StatusCode, a.body)
		}
	}
	refused(create, nil, "Select at least one type of event, or All events.")
	refused(create, []string{"*", "user.created"}, "Select either All events or some types of events.")
	form["types"] = []string{"*"}
	if a := f.send(http.MethodPost, create, cookie, form); a.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	page, err := f.node.Webhooks.Webhooks(t.Context(), f.asOwner(), nil, 10)
	if err != nil || len(page.Items) != 1 || !page.Items[0].SendsAllTypes() {
		t.Fatalf("%v %v", page, err)
	}
	edit := "/console/acme/webhooks/" + page.Items[0].ID.String() + "/edit"
	if page := f.get(edit, cookie); !strings.Contains(page.body, ticked) {
		t.Errorf("the form does not select all events: %s", page.body)
	}
	form = url.Values{"url": {page.Items[0].URL}, "was-url": {page.Items[0].URL}, "serviceAccountId": {account.ID.String()}, "was-serviceAccountId": {account.ID.String()}, "was-types": {"*"}}
	refused(edit, nil, "Select at least one type of event, or All events.")
}

// number gives numbers to the events of the tenant.
func (f *fixture) number() {
	f.t.Helper()
	if _, err := f.node.Directory.Changes(f.t.Context(), f.asOwner(), feed.Query{Limit: 1}); err != nil {
		f.t.Fatal(err)
	}
}

func TestThePreviewOfAWebhook(t *testing.T) {
	f := newFixture(t)
	account := f.makeAccount("Import", f.makeRole("Follower", "changes:read", "users:read"))
	w := f.makeWebhook(account)
	f.hire("grace@example.com", "Grace Hopper", nil)
	f.number()
	cookie, path := f.signIn("acme", ownerEmail), "/console/acme/webhooks/"+w.ID.String()
	page := f.get(path+"/preview", cookie)
	text := html.UnescapeString(page.body)
	for _, part := range []string{
		"POST https://hooks.example.com/rolecall\ncontent-type: application/cloudevents+json\n", "\nwebhook-id: ", "webhook-signature: (made with the secret)",
		`"specversion": "1.0"`, `"tenant": "acme"`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the preview does not show %q: %s", part, text)
		}
	}
	for _, part := range []string{"whsec_", "v1,"} {
		if strings.Contains(text, part) {
			t.Errorf("the preview shows %q", part)
		}
	}
	if a := f.get(path+"/preview/"+w.ID.String(), cookie); a.StatusCode != http.StatusNotFound {
		t.Errorf("the preview of an unknown event answers %d", a.StatusCode)
	}

	viewer := f.hire("viewer@example.com", "Vera Viewer", []string{"webhooks:read", "users.status:read"})
	follower := f.hire("follower@example.com", "Fred Follower", []string{"webhooks:read", "changes:read", "users.status:read"})
	f.number()
	if a := f.get(path+"/preview", f.signIn("acme", viewer.Email)); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "changes:read") {
		t.Errorf("without changes:read, the preview answers %d", a.StatusCode)
	}
	if a := f.get(path, f.signIn("acme", viewer.Email)); a.StatusCode != http.StatusOK || strings.Contains(a.body, "/preview") {
		t.Errorf("without changes:read, the page links to the preview: %d %s", a.StatusCode, a.body)
	}
	events, err := f.node.Directory.UserEvents(t.Context(), f.asOwner(), viewer.ID, directory.EventListing{Type: string(rolecall.EventUserCreated), Limit: 1})
	if err != nil || len(events.Items) != 1 {
		t.Fatalf("%v %v", events, err)
	}
	created := events.Items[0].ID
	if a := f.get(path+"/preview/"+created.String(), f.signIn("acme", follower.Email)); a.StatusCode != http.StatusOK ||
		!strings.Contains(a.body, "also receives values of this event that you may not read") || strings.Contains(html.UnescapeString(a.body), `"name"`) {
		t.Errorf("the preview shows values that the viewer may not read: %d %s", a.StatusCode, a.body)
	}
	if _, err := f.node.Directory.SuspendServiceAccount(t.Context(), f.asOwner(), account.ID, ""); err != nil {
		t.Fatal(err)
	}
	if a := f.get(path+"/preview/"+created.String(), cookie); !strings.Contains(a.body, "Nothing would be sent.") || !strings.Contains(a.body, "The service account is suspended") {
		t.Errorf("the preview does not say why nothing would be sent: %s", a.body)
	}
}

func TestTheLagOfAWebhookIsShown(t *testing.T) {
	f := newFixture(t)
	w := f.makeWebhook(f.makeAccount("Import", f.makeRole("Follower", "changes:read")))
	f.number()
	cookie, path := f.signIn("acme", ownerEmail), "/console/acme/webhooks/"+w.ID.String()
	f.number()
	shows := func(path string, parts ...string) {
		t.Helper()
		a := f.get(path, cookie)
		for _, part := range parts {
			if !strings.Contains(strings.Join(strings.Fields(a.body), " "), part) {
				t.Errorf("%s does not show %q: %s", path, part, a.body)
			}
		}
	}
	shows(path, " events</dd>", "The oldest", "Up to date")
	shows("/console/acme/webhooks", "Change feed: Up to date")
	f.hire("grace@example.com", "Grace Hopper", nil)
	f.ahead.Store(int64(10 * time.Second))
	shows(path, "Delayed. The oldest change:")
	shows("/console/acme/webhooks", "Delayed. The oldest change:")
}

// failWebhook stores that the endpoint of the only webhook has not accepted an item.
func (f *fixture) failWebhook() {
	f.t.Helper()
	now := f.node.Access.Now()
	err := f.node.Access.Store.Update(f.t.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
		parts, err := tx.ClaimWebhooks(rolecall.QueueNew, now, now.Add(time.Minute), 1)
		if err != nil || len(parts) == 0 {
			return errors.Join(err, errors.New("no webhook is due"))
		}
		part := parts[0]
		part.Attempts, part.Blocked, part.FailingSince = 1, part.Number+1, now
		_, err = tx.SettleWebhook(&part, rolecall.WebhookDue, now, rolecall.Never)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func TestAWebhookThatDeliversNothingIsNotShownAsEnabled(t *testing.T) {
	f := newFixture(t)
	role := f.makeRole("Follower", "changes:read")
	account := f.makeAccount("Import", role)
	created, err := f.node.Webhooks.CreateWebhook(t.Context(), f.asOwner(), idempotency.Key{Text: "hook", Fingerprint: []byte("hook")},
		rolecall.WebhookDraft{URL: "https://hooks.example.com/rolecall", ServiceAccountID: account.ID})
	if err != nil {
		t.Fatal(err)
	}
	w := created.Value.Webhook
	cookie, path := f.signIn("acme", ownerEmail), "/console/acme/webhooks"
	shows := func(state, verdict string) {
		t.Helper()
		for _, path := range []string{path, path + "/" + w.ID.String()} {
			page := f.get(path, cookie).body
			for _, known := range []string{"Enabled", "Failing", "Blocked", "Disabled"} {
				if shown := strings.Contains(page, `">`+known+"</span>"); shown != (known == state) {
					t.Errorf("%s shows %q: %t, want only %q", path, known, shown, state)
				}
			}
		}
		if page := f.get(path+"/"+w.ID.String(), cookie).body; !strings.Contains(page, verdict) {
			t.Errorf("the page does not show %q: %s", verdict, page)
		}
	}
	shows("Enabled", "")

	if _, err := f.node.Directory.SuspendServiceAccount(t.Context(), f.asOwner(), account.ID, ""); err != nil {
		t.Fatal(err)
	}
	shows("Blocked", "Events are not sent, but tests are. The service account is suspended.")
	if form := f.get(path+"/create", cookie).body; strings.Contains(form, account.ID.String()) {
		t.Errorf("the form offers a suspended service account: %s", form)
	}
	if form := f.get(path+"/"+w.ID.String()+"/edit", cookie).body; !strings.Contains(form, "Import (suspended)</option>") {
		t.Errorf("the form does not offer the present service account: %s", form)
	}
	other := f.send(http.MethodPost, path+"/create", cookie, url.Values{"idempotency-key": {"k"}, "url": {"https://hooks.example.com/"}, "types": {"*"}, "serviceAccountId": {account.ID.String()}})
	if other.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(other.body, "active service account") {
		t.Errorf("a webhook with a suspended service account: %d %s", other.StatusCode, other.body)
	}
	if _, err := f.node.Directory.ResumeServiceAccount(t.Context(), f.asOwner(), account.ID, ""); err != nil {
		t.Fatal(err)
	}
	shows("Enabled", "")

	f.failWebhook()
	shows("Failing", "The endpoint did not accept an event.")
	if a := f.send(http.MethodPost, path+"/"+w.ID.String()+"/disable", cookie, url.Values{}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	shows("Disabled", "")
}
