package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
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
	rotated := f.send(http.MethodPost, path+"/rotate-secret", cookie, url.Values{})
	if strings.Count(rotated.body, "whsec_") != 1 || !strings.Contains(rotated.body, "also signed with the old secret") {
		t.Errorf("%d %s", rotated.StatusCode, rotated.body)
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
