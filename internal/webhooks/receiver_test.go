package webhooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/webhooks"
)

// receiver is an endpoint that records what it receives.
type receiver struct {
	*nodetest.Fixture
	server *httptest.Server
	mu     sync.Mutex
	got    []received
	news   chan struct{}
	answer func(received) int // the status; 0: the connection breaks
	limit  time.Duration      // of an attempt
}

// received is a request to a receiver.
type received struct {
	path, id, at, signatures, kind string
	body                           []byte
	item                           item
}

type item struct {
	SpecVersion, ID, Source, Type, Subject string
	Data                                   struct {
		Tenant        string
		Before, After map[string]any
	}
}

func newReceiver(f *nodetest.Fixture, answer func(received) int) *receiver {
	f.Helper()
	r := &receiver{Fixture: f, news: make(chan struct{}, 1), answer: answer, limit: patience.Limit}
	r.server = outboundtest.Endpoint(f.T, "127.0.0.1:0", r.receive)
	return r
}

func (r *receiver) receive(w http.ResponseWriter, q *http.Request) {
	got := received{path: q.URL.Path, id: q.Header.Get("webhook-id"), at: q.Header.Get("webhook-timestamp"), signatures: q.Header.Get("webhook-signature"), kind: q.Header.Get("content-type")}
	var err error
	if got.body, err = io.ReadAll(q.Body); err == nil {
		err = json.Unmarshal(got.body, &got.item)
	}
	if err != nil {
		r.Error(err)
	}
	r.mu.Lock()
	r.got = append(r.got, got)
	answer := r.answer
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
	status := http.StatusNoContent
	if answer != nil {
		status = answer(got)
	}
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
}

func (r *receiver) url(path string) string {
	return "https://example.com:" + outboundtest.Port(r.server) + path
}

// all returns the requests so far.
func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// await waits until the requests so far fulfill the condition, and returns them. It gives up when no new
// item has come within the limit of patience.
func (r *receiver) await(what string, is func([]received) bool) []received {
	r.Helper()
	items := 0
	var late <-chan time.Time
	for {
		all := r.all()
		if is(all) {
			return all
		}
		if n := len(distinct(all)); n > items || late == nil {
			items, late = n, time.After(patience.Limit)
		}
		select {
		case <-r.news:
		case <-late:
			var list []string
			for _, got := range r.all() {
				list = append(list, got.path+" "+got.item.Type+" "+got.id)
			}
			r.Fatalf("%s: received only\n%s", what, strings.Join(list, "\n"))
		}
	}
}

// awaitItem waits for a request with an item.
func (r *receiver) awaitItem(kind rolecall.EventType, n int) received {
	r.Helper()
	all := r.await(string(kind), func(all []received) bool { return len(ofType(all, kind)) >= n })
	return ofType(all, kind)[n-1]
}

func ofType(all []received, kind rolecall.EventType) []received {
	return slices.DeleteFunc(slices.Clone(all), func(got received) bool { return got.item.Type != string(kind) })
}

// reaching returns options of nodes whose webhooks reach the receiver.
func reaching(f *nodetest.Fixture, r *receiver) access.Options {
	f.Helper()
	o := f.Options()
	o.PublicURL = "https://id.example.com"
	o.Outbound = outbound.New(outbound.Options{
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: outboundtest.Roots(r.server),
		Resolver: outboundtest.Resolver(f.T, map[string][]string{"example.com": {"127.0.0.1"}}), Timeout: r.limit,
	})
	o.OperatorOutbound = o.Outbound
	return o
}

// delivering replaces the node of the fixture by one that delivers to the receiver, until the test ends or
// stop is called.
func delivering(f *nodetest.Fixture, r *receiver) (stop func()) {
	f.Helper()
	f.Node = node.New(f.DB, reaching(f, r))
	return work(f, f.Node)
}

// work runs the feed and the webhooks of the node.
func work(f *nodetest.Fixture, n *node.Node) (stop func()) {
	f.Clock.Wake(n.Access.Deliver)
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	var working sync.WaitGroup
	working.Go(func() { n.Access.Feed.Run(ctx) })
	working.Go(func() { n.Webhooks.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		working.Wait()
	})
	f.Cleanup(stop)
	return stop
}

// aReader returns a service account that may follow changes, with the permissions.
func aReader(f *nodetest.Fixture, permissions ...string) rolecall.ServiceAccount {
	f.Helper()
	name := fmt.Sprintf("Reader %d", nodetest.Serial.Add(1))
	return f.NewAccount(name, f.NewRole(name, append([]string{"changes:read"}, permissions...)...).ID)
}

func newWebhook(f *nodetest.Fixture, url string, account rolecall.ServiceAccountID, change ...func(*rolecall.WebhookDraft)) webhooks.Webhook {
	f.Helper()
	draft := rolecall.WebhookDraft{URL: url, ServiceAccountID: account}
	for _, c := range change {
		c(&draft)
	}
	created, err := f.Webhooks.CreateWebhook(f.Context(), f.Owner, nodetest.NewKey(), draft)
	f.OK(err)
	return created.Value
}

func webhook(f *nodetest.Fixture, id rolecall.WebhookID) rolecall.Webhook {
	f.Helper()
	w, err := f.Webhooks.Webhook(f.Context(), f.Owner, id)
	f.OK(err)
	return w
}

func deliveries(f *nodetest.Fixture, id rolecall.WebhookID) []rolecall.WebhookDelivery {
	f.Helper()
	page, err := f.Webhooks.Deliveries(f.Context(), f.Owner, rolecall.WebhookDeliveryQuery{Webhook: id, Limit: rolecall.MaxLimit})
	f.OK(err)
	return page.Items
}

// rename changes the name of a user.
func rename(f *nodetest.Fixture, id rolecall.UserID, name string) {
	f.Helper()
	f.OK(nodetest.ErrorOf(f.Directory.UpdateUser(f.Context(), f.Owner, id, rolecall.UserPatch{Name: rolecall.Some(name)}, nil)))
}

// isInvalid checks that the error is a field error of the member.
func isInvalid(f *nodetest.Fixture, err error, pointer string) {
	f.Helper()
	var e *rolecall.Error
	if !errors.As(err, &e) || len(e.FieldErrors) != 1 || e.FieldErrors[0].Pointer != pointer {
		f.Errorf("the error is %v, not one of %s", err, pointer)
	}
}

func types(t ...rolecall.EventType) func(*rolecall.WebhookDraft) {
	return func(d *rolecall.WebhookDraft) { d.Types = t }
}
