package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rolecall/rolecall/internal/process"
	"github.com/rolecall/rolecall/internal/progress"
)

const (
	perSubscriber  = 20 // webhooks of a tenant, the maximum
	deadOfThem     = 2  // of which endpoints never answer
	rolesPerSecond = 10
	deliveryRounds = 8 // changes of each tenant

	p99OfDelivery = time.Second
	deliveryLimit = time.Minute
)

// deliveries measures the time from a change to its delivery to each live endpoint of 20 webhooks of its tenant,
// while a tenth of all endpoints accept requests and never answer. The program is built with a tag that lets
// webhooks reach this machine.
func (b *bench) deliveries(ctx context.Context) (err error) {
	e, err := b.listen()
	if err != nil {
		return err
	}
	defer e.close()
	usual := b.binary
	defer func() { b.binary = usual }()
	b.binary = filepath.Join(b.folder, "with-endpoints")
	if err := process.Build(ctx, b.binary, "-tags=loopback_endpoints"); err != nil {
		return err
	}
	for name, value := range map[string]string{"SSL_CERT_FILE": e.roots, "ROLECALL_TEST_LOOPBACK": "1"} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.Unsetenv(name)) }()
	}
	n, err := b.filled(ctx, "hooks", "--tenants", strconv.Itoa(b.subscribers), "--users", "2", "--passwords", "0", "--roles", "1", "--assignments", "1", "--holders", "1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	owners := ownersOf(n.sessions)
	if err := e.subscribe(ctx, n, owners); err != nil {
		return err
	}
	pace := time.NewTicker(time.Second / rolesPerSecond)
	defer pace.Stop()
	for round := range deliveryRounds {
		for _, owner := range owners {
			<-pace.C
			if err := e.change(ctx, n, owner, fmt.Sprintf("Round %d", round)); err != nil {
				return err
			}
		}
		if err := e.await(ctx, (round+1)*len(owners)*(perSubscriber-deadOfThem)); err != nil {
			return err
		}
		if round == 0 { // the first items decide which endpoints are fast
			e.forget()
		}
	}
	took := e.times()
	what := fmt.Sprintf("webhooks: %d, a tenth dead: ", len(owners)*perSubscriber)
	b.table.took(what+"the median until a delivery", took[len(took)/2], 0)
	b.table.took(what+"the p99", took[len(took)*99/100], p99OfDelivery)
	return nil
}

// endpoints are the endpoints of all webhooks, on one server.
type endpoints struct {
	server *httptest.Server
	roots  string // the file with its certificate
	over   chan struct{}
	news   chan struct{} // has a value after a delivery

	mu      sync.Mutex
	begun   map[string]time.Time   // by subject
	arrived map[string][]time.Time // of items that arrived before the response to their request, by subject
	took    []time.Duration
	n       int
}

func newEndpoints(roots string) *endpoints {
	return &endpoints{
		over: make(chan struct{}), news: make(chan struct{}, 1), roots: roots,
		begun: map[string]time.Time{}, arrived: map[string][]time.Time{},
	}
}

// listen starts the server of the endpoints.
func (b *bench) listen() (*endpoints, error) {
	e := newEndpoints(filepath.Join(b.folder, "endpoints.pem"))
	e.server = httptest.NewUnstartedServer(http.HandlerFunc(e.receive))
	e.server.EnableHTTP2, e.server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	e.server.StartTLS()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw})
	if err := os.WriteFile(e.roots, certificate, 0o600); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *endpoints) close() {
	close(e.over)
	e.server.Close()
}

func (e *endpoints) receive(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/dead" {
		select {
		case <-e.over:
		case <-r.Context().Done():
		}
		return
	}
	var item struct{ Subject string }
	if json.NewDecoder(r.Body).Decode(&item) != nil { // the test waits in vain for the item then
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.arrive(item.Subject, time.Now())
}

// arrive notes when an item arrived.
func (e *endpoints) arrive(subject string, arrived time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if begun, ok := e.begun[subject]; ok {
		e.count(arrived.Sub(begun))
	} else {
		e.arrived[subject] = append(e.arrived[subject], arrived)
	}
}

// begin notes when the change of a subject began, and counts the items that have already arrived.
func (e *endpoints) begin(subject string, begun time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun[subject] = begun
	for _, arrived := range e.arrived[subject] {
		e.count(arrived.Sub(begun))
	}
	delete(e.arrived, subject)
}

// count adds a delivery. The caller holds the mutex.
func (e *endpoints) count(took time.Duration) {
	e.took, e.n = append(e.took, took), e.n+1
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// subscribe creates the webhooks of each owner's tenant.
func (e *endpoints) subscribe(ctx context.Context, n *node, owners []session) error {
	bar := progress.Start(os.Stderr, "webhooks", len(owners)*perSubscriber)
	defer bar.End()
	for _, owner := range owners {
		var role, account struct{ ID string }
		if err := n.create(ctx, owner, "/roles", `{"name":"Sends changes","permissions":["changes:read"]}`, &role); err != nil {
			return err
		}
		if err := n.create(ctx, owner, "/service-accounts", `{"name":"Webhooks"}`, &account); err != nil {
			return err
		}
		if _, err := n.send(ctx, owner, http.MethodPut, "/service-accounts/"+account.ID+"/roles/"+role.ID, "{}"); err != nil {
			return err
		}
		for i := range perSubscriber {
			path := "/live"
			if i < deadOfThem {
				path = "/dead"
			}
			var hook struct{ ID string }
			if err := n.create(ctx, owner, "/webhooks", fmt.Sprintf(`{"url":%q,"serviceAccountId":%q,"types":["role.created"]}`, e.server.URL+path, account.ID), &hook); err != nil {
				return err
			}
			bar.Add(1)
		}
	}
	return nil
}

// create sends a POST request and decodes the response into the value into.
func (n *node) create(ctx context.Context, s session, path, body string, into any) error {
	answer, err := n.send(ctx, s, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

// change creates a role, and notes when.
func (e *endpoints) change(ctx context.Context, n *node, owner session, name string) error {
	begun := time.Now()
	var role struct{ ID string }
	if err := n.create(ctx, owner, "/roles", fmt.Sprintf(`{"name":%q}`, name), &role); err != nil {
		return err
	}
	e.begin("role/"+role.ID, begun)
	return nil
}

// await waits until the endpoints have received the number of items.
func (e *endpoints) await(ctx context.Context, wanted int) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryLimit)
	defer cancel()
	for {
		e.mu.Lock()
		n := e.n
		e.mu.Unlock()
		if n >= wanted {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d items were not delivered: %w", wanted-n, ctx.Err())
		case <-e.news:
		}
	}
}

// times returns the times of all deliveries in order.
func (e *endpoints) times() []time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(slices.Values(e.took))
}

// forget removes the times so far.
func (e *endpoints) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.took = nil
}
