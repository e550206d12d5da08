package faults

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
	"github.com/rolecall/rolecall/internal/process"
)

// endpoint receives the items of webhooks.
type endpoint struct {
	t      *testing.T
	server *httptest.Server
	news   chan struct{} // has a value after a delivery

	mu      sync.Mutex
	held    chan struct{}            // closed unless deliveries wait
	hooks   map[string]*subscription // by path
	repeats int
}

// subscription is a webhook with the items that the endpoint has received of it.
type subscription struct {
	tenant *tenant
	id     string
	types  []string // empty: all
	secret string
	first  []followedChange          // the first delivery of each item
	seen   map[string]followedChange // by the id of the item
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{t: t, hooks: map[string]*subscription{}, news: make(chan struct{}, 1), held: make(chan struct{})}
	close(e.held)
	e.server = outboundtest.Endpoint(t, "127.0.0.1:0", e.receive)
	return e
}

// trusted makes the program reach the endpoint and trust its certificate.
func (e *endpoint) trusted(s *process.Server) {
	file := filepath.Join(e.t.TempDir(), "endpoint.pem")
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw})
	if err := os.WriteFile(file, content, 0o600); err != nil {
		e.t.Fatal(err)
	}
	s.Env = append(s.Env, "SSL_CERT_FILE="+file, "ROLECALL_TEST_LOOPBACK=1")
}

// hold makes deliveries wait until release is called. Those of a process that is killed in the meantime have not
// arrived.
func (e *endpoint) hold() (release func()) {
	held := make(chan struct{})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held = held
	return func() { close(held) }
}

// arrives waits while deliveries are held. It returns false if the process was killed.
func (e *endpoint) arrives(r *http.Request) bool {
	e.mu.Lock()
	held := e.held
	e.mu.Unlock()
	select {
	case <-held:
		return r.Context().Err() == nil
	case <-r.Context().Done():
		return false
	}
}

func (e *endpoint) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !e.arrives(r) { // the program was killed
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.hooks[r.URL.Path]
	if h == nil {
		e.t.Errorf("a delivery to %s, where no webhook is", r.URL.Path)
		return
	}
	var item followedChange
	if err := json.Unmarshal(body, &item); err != nil {
		e.t.Errorf("%s: %v in %q", r.URL.Path, err, body)
	}
	if err := outboundtest.VerifyDelivery(h.secret, r.Header, body); err != nil || r.Header.Get("webhook-id") != item.ID {
		e.t.Errorf("%s: the item %s has the webhook-id %s (%v)", r.URL.Path, item.ID, r.Header.Get("webhook-id"), err)
	}
	if before, again := h.seen[item.ID]; !again {
		h.first, h.seen[item.ID] = append(h.first, item), item
	} else if e.repeats++; before.Subject != item.Subject || before.Type != item.Type {
		e.t.Errorf("%s: %s was %s of %s, and is %s of %s", r.URL.Path, item.ID, before.Type, before.Subject, item.Type, item.Subject)
	}
	select {
	case e.news <- struct{}{}:
	default:
	}
	w.WriteHeader(http.StatusNoContent)
}

// subscribe creates webhooks of the tenant: one for all types of events, and one for a few types.
func (e *endpoint) subscribe(tn *tenant) {
	tn.load.t.Helper()
	made := func(line, body, key string) (made struct{ ID, Secret string }) {
		tn.must(201, line, body, "idempotency-key: "+key).decode(&made)
		return made
	}
	role := made("POST /roles", `{"name":"Sends changes","permissions":["changes:read","users:read"]}`, "hook-role")
	account := made("POST /service-accounts", `{"name":"Webhooks"}`, "hook-account")
	tn.must(201, "PUT /service-accounts/"+account.ID+"/roles/"+role.ID, "{}")
	tn.allow("role.assigned", account.ID, bounds{1, 1})
	for name, types := range map[string][]string{"all": {"*"}, "few": {"user.updated", "user.deleted", "role.assigned"}} {
		path := "/" + tn.name + "/" + name
		selected, err := json.Marshal(types)
		if err != nil {
			tn.load.t.Fatal(err)
		}
		w := made("POST /webhooks", fmt.Sprintf(`{"url":%q,"serviceAccountId":%q,"types":%s,"enabled":false}`, e.server.URL+path, account.ID, selected), "hook-"+name)
		h := &subscription{tenant: tn, id: w.ID, secret: w.Secret, types: types, seen: map[string]followedChange{}}
		e.mu.Lock()
		e.hooks[path] = h
		e.mu.Unlock()
		tn.must(200, "PATCH /webhooks/"+w.ID, `{"enabled":true}`)
	}
}

// check waits until each webhook has delivered all changes that it had to, and checks their order. A webhook
// delivers the changes from the one about its creation on. Those about the same subject must come in the order of
// the feed. The server must work.
func (e *endpoint) check() {
	e.t.Helper()
	wanted := map[*subscription][]followedChange{}
	delivered, missed := 0, 0
	for _, h := range e.hooks {
		h.tenant.readRest()
		wanted[h] = h.wanted()
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(e.t.Context()), claimedLimit)
	defer cancel()
	for h, want := range wanted {
		missing := e.await(late, h, want)
		missed += len(missing)
		for _, c := range missing {
			e.t.Errorf("%s: the webhook %s has missed %s of %s (%s)", h.tenant.name, h.id, c.Type, c.Subject, c.ID)
		}
		delivered += len(want) - len(missing)
	}
	received, repeats := e.received()
	for h := range wanted { // events can follow, such as those of refused requests
		h.tenant.readRest()
	}
	for h, want := range wanted {
		h.checkOrder(want, received[h])
	}
	if delivered == 0 {
		e.t.Error("nothing was delivered")
	}
	e.t.Logf("webhooks: %d, delivered %d, missed %d, repeated %d", len(wanted), delivered, missed, repeats)
}

// received returns the first deliveries of each item so far, and the number of repeated ones.
func (e *endpoint) received() (first map[*subscription][]followedChange, repeats int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first = map[*subscription][]followedChange{}
	for _, h := range e.hooks {
		first[h] = slices.Clone(h.first)
	}
	return first, e.repeats
}

// wanted returns the changes that the tenant's follower has read and the webhook must deliver.
func (h *subscription) wanted() (want []followedChange) {
	begun := false
	for _, c := range h.tenant.feed.items {
		begun = begun || c.Type == "webhook.created" && c.Subject == "webhook/"+h.id
		if begun && (slices.Contains(h.types, "*") || slices.Contains(h.types, c.Type)) {
			want = append(want, c)
		}
	}
	return want
}

// await waits until the endpoint has received the items. It returns those that it has not received at the end
// of the context.
func (e *endpoint) await(late context.Context, h *subscription, want []followedChange) (missing []followedChange) {
	for {
		e.mu.Lock()
		missing = slices.DeleteFunc(slices.Clone(want), func(c followedChange) bool {
			_, delivered := h.seen[c.ID]
			return delivered
		})
		e.mu.Unlock()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-e.news:
		case <-late.Done():
			return missing
		}
	}
}

// checkOrder compares the first deliveries about each subject with the changes of the feed, which were read after
// these deliveries.
func (h *subscription) checkOrder(want, received []followedChange) {
	t := h.tenant.load.t
	known := map[string]bool{}
	for _, c := range h.tenant.feed.items {
		known[c.ID] = true
	}
	for _, c := range received {
		if !known[c.ID] {
			t.Errorf("%s: the webhook %s has delivered %s, which is not in the feed", h.tenant.name, h.id, c.ID)
		}
	}
	first, fed := bySubject(received), bySubject(want)
	for subject, ids := range fed {
		if got := first[subject]; len(got) < len(ids) || !slices.Equal(got[:len(ids)], ids) {
			t.Errorf("%s: the webhook %s has delivered the changes about %s as %q, and the feed has %q", h.tenant.name, h.id, subject, got, ids)
		}
	}
}

// bySubject returns the ids of the changes about each subject.
func bySubject(changes []followedChange) map[string][]string {
	ids := map[string][]string{}
	for _, c := range changes {
		ids[c.Subject] = append(ids[c.Subject], c.ID)
	}
	return ids
}
