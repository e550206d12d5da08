package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/process"
)

const (
	password = "correct horse battery staple"

	// retryPause is how long a client waits after a request without a known outcome. While a server does
	// not run, its clients must leave the processor to the start of the server.
	retryPause = 20 * time.Millisecond
)

// load is many clients that use a server at once while faults happen. It records their
// histories and checks them afterwards.
type load struct {
	t        *testing.T
	server   *process.Server
	url      string // URL that the clients use: of the server, or of a relay in front of it
	inspect  string // the URL of the database for checks; empty: that of the server
	client   *http.Client
	tenants  []*tenant
	spread   int             // number of tenants that open creates
	follows  bool            // a client of each tenant follows its changes, and another client those of all tenants
	far      *process.Server // another node on the same database, on which the clients follow; nil: they follow on server
	feed     followed        // of all tenants; used by one client
	endpoint *endpoint       // receives the items of webhooks of each tenant; nil: there are no webhooks
	operator string          // the header with the key of this client
	over     chan struct{}
	running  sync.WaitGroup

	// stop ends the clients after their current requests. A request without a response delays stop
	// by up to patience.Limit.
	stop func()

	tried, acknowledged, refused, unknown atomic.Int64
	lost, doubled, histories, refuted     int
}

var loads atomic.Int64 // numbers tenants

// newLoad returns clients of the server that are not started.
func newLoad(t *testing.T, s *process.Server) *load {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	l := &load{t: t, server: s, url: s.URL(), spread: 2, client: &http.Client{Transport: transport, Timeout: patience.Limit}, stop: func() {}}
	t.Cleanup(func() {
		l.stop()
		transport.CloseIdleConnections()
	})
	return l
}

// open creates new tenants for this test. The server must work.
func (l *load) open() {
	l.t.Helper()
	l.tenants, l.over = nil, make(chan struct{})
	l.stop = sync.OnceFunc(func() {
		close(l.over)
		l.running.Wait()
	})
	if l.follows {
		if l.operator == "" {
			l.operator = newFounder(l, nil).operator
		}
		l.feed = followed{}
		of, _ := (caller{load: l}).insist("GET /operator/changes?at=now", "", l.operator)
		var page struct{ NextCursor string }
		of.decode(&page)
		l.feed.cursor = page.NextCursor
	}
	for range l.spread {
		l.tenants = append(l.tenants, newTenant(l))
	}
}

// start creates new tenants and starts the clients. The server must work.
func (l *load) start() {
	l.t.Helper()
	l.open()
	if l.follows {
		l.running.Go(func() {
			for !l.isOver() {
				if !l.followTenants("&wait=1") {
					l.pause()
				}
			}
		})
	}
	for _, tn := range l.tenants {
		for _, act := range tn.acts() {
			random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
			l.running.Go(func() {
				for !l.isOver() {
					act(random)
				}
			})
		}
	}
}

func (l *load) isOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// pause makes a client wait before it tries again. It returns false if the load has ended.
func (l *load) pause() bool {
	select {
	case <-l.over:
		return false
	case <-time.After(retryPause):
		return true
	}
}

// await waits until more further requests have been acknowledged.
func (l *load) await(more int64) {
	l.t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	late := time.NewTimer(patience.Limit)
	defer late.Stop()
	for now := l.acknowledged.Load(); more > 0; {
		select {
		case <-poll.C:
		case <-late.C:
			l.t.Fatalf("%d requests were not acknowledged, and none within %v", more, patience.Limit)
		}
		if next := l.acknowledged.Load(); next > now {
			more -= next - now
			now = next
			late.Reset(patience.Limit)
		}
	}
}

// finish stops the clients and checks everything that they did. The server must work.
func (l *load) finish() {
	l.t.Helper()
	l.stop()
	for _, tn := range l.tenants {
		tn.check()
	}
	if l.follows {
		l.checkTenantsFeed()
	}
	l.checkDatabase()
	l.tenants = nil
}

// report logs the numbers of requests by outcome.
func (l *load) report(what string) {
	l.t.Helper()
	l.t.Logf("%s: tried %d, acknowledged %d, refused %d, unknown %d; lost %d, doubled %d; histories %d, refuted %d",
		what, l.tried.Load(), l.acknowledged.Load(), l.refused.Load(), l.unknown.Load(), l.lost, l.doubled, l.histories, l.refuted)
}

// acts returns the actions that the clients of a tenant repeat.
func (tn *tenant) acts() []func(*rand.Rand) {
	acts := []func(*rand.Rand){tn.createUsers, tn.createUsers, tn.readEvents, tn.changeRoles, tn.comeAndGo, tn.comeAndGo}
	for range 4 {
		acts = append(acts, newEditor(tn).edit)
	}
	for range 3 {
		acts = append(acts, tn.contend)
	}
	if tn.load.follows {
		acts = append(acts, tn.follow)
	}
	return acts
}

// createUsers creates a user, one time in three by parallel duplicates of one request.
// Afterwards, it sometimes deletes the user, and sometimes sends the same request again.
func (tn *tenant) createUsers(random *rand.Rand) {
	c := tn.newCreation("")
	var users sync.WaitGroup
	var u user
	var ok bool
	for range random.IntN(3) / 2 * 3 {
		users.Go(func() { tn.create(c) })
	}
	u, ok = tn.create(c)
	users.Wait()
	if !ok {
		return
	}
	switch random.IntN(10) {
	case 0, 1:
		tn.delete(u.ID, c.address)
		tn.read(u.ID)
	case 2, 3:
		tn.create(c)
	default:
		tn.read(u.ID)
	}
}

func (tn *tenant) readEvents(*rand.Rand) {
	if of := tn.request("GET /events?limit=20", ""); !of.known || of.status == 0 {
		tn.load.pause()
	}
}

// contend creates, looks up and deletes users with few addresses, so that clients compete for an
// address. After a while, it uses other addresses, so that histories stay short.
func (tn *tenant) contend(random *rand.Rand) {
	const places, uses = 2, 25
	n := tn.contended.Add(1)
	address := fmt.Sprintf("wanted-%d-%d@faults.example", n/(places*uses), random.IntN(places))
	switch holder := tn.lookUp(address); {
	case holder == nil:
		tn.load.pause()
	case *holder == "":
		tn.create(tn.newCreation(address))
	case random.IntN(2) == 0:
		tn.delete(*holder, address)
	}
}

// editor is a client that changes users that other clients change too. For each user, it stores the
// state that it read last.
type editor struct {
	*tenant
	seen map[string]userState
}

func newEditor(tn *tenant) *editor { return &editor{tn, map[string]userState{}} }

func (e *editor) edit(random *rand.Rand) {
	u, ok := e.shared(random)
	if !ok {
		return
	}
	mark := fmt.Sprint(e.marks.Add(1))
	basis, known := e.seen[u.ID]
	var seen *userState
	switch n := random.IntN(20); {
	case n < 6 || !known:
		seen = e.read(u.ID)
	case n < 13:
		seen = e.patch(u.ID, &basis, `{"metadata":{"mark":`+quoted(mark)+`}}`, func(s *userState) { s.mark = mark })
	case n < 16:
		seen = e.patch(u.ID, nil, `{"name":`+quoted("Name "+mark)+`}`, func(s *userState) { s.name = "Name " + mark })
	case n < 18:
		e.suspend(u.ID)
	case n < 19:
		e.resume(u.ID, "pending")
	default:
		e.delete(u.ID, u.address)
	}
	if delete(e.seen, u.ID); seen != nil {
		e.seen[u.ID] = *seen
	}
}
