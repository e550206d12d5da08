package e2e

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/client"
)

func TestACreationHasOneEffectIfTheConnectionIsCutAfterTheCommit(t *testing.T) {
	d := newDemo(t)
	owner, relay := d.signedIn(t), newRelay(t, d.Address)
	signedIn := client.New("http://"+relay.address(), d.Tenant, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}})
	if _, err := signedIn.Login(t.Context(), d.Email, d.Password); err != nil {
		t.Fatal(err)
	}
	relay.swallow.Store(true)
	user, err := signedIn.CreateUser(t.Context(), "", client.NewUser{Email: "once@demo.example", Name: "Only Once"})
	if err != nil || relay.swallow.Load() {
		t.Fatalf("%v; swallowed: %v", err, !relay.swallow.Load())
	}
	found := 0
	for one, err := range owner.Users(t.Context(), client.UserFilter{Query: "only once"}) {
		if err != nil || one.ID != user.ID {
			t.Errorf("found %+v, %v", one, err)
		}
		found++
	}
	if found != 1 {
		t.Errorf("%d users", found)
	}
}

// relay is a TCP proxy whose connections can be cut.
type relay struct {
	listener net.Listener
	running  sync.WaitGroup
	swallow  atomic.Bool // cuts the next connection after the service has answered
	refuses  atomic.Bool // cuts each connection

	mu   sync.Mutex
	held chan struct{} // not nil: no data passes until it is closed
	open map[net.Conn]bool
}

func newRelay(t *testing.T, target string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, open: map[net.Conn]bool{}}
	r.running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(target, "http://"))
			if err != nil || r.refuses.Load() {
				_ = near.Close() // the client can have closed it
				if far != nil {
					_ = far.Close()
				}
				continue
			}
			r.mu.Lock()
			r.open[near], r.open[far] = true, true
			r.mu.Unlock()
			r.running.Go(func() { r.pass(near, far, false) })
			r.running.Go(func() { r.pass(far, near, true) })
		}
	})
	t.Cleanup(func() {
		r.refuses.Store(true)
		r.hold(false)
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		r.cut()
		r.running.Wait()
	})
	return r
}

func (r *relay) address() string { return r.listener.Addr().String() }
func (r *relay) pass(from, to net.Conn, isAnswer bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		held := r.held
		r.mu.Unlock()
		if held != nil {
			<-held
		}
		if err != nil || isAnswer && r.swallow.Swap(false) {
			break
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, from)
	delete(r.open, to)
	_ = errors.Join(from.Close(), to.Close()) // either can be closed already
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.open {
		_ = conn.Close() // it can be closed already
	}
}

// hold keeps connections open and passes no data, until it is called with false.
func (r *relay) hold(holds bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held != nil {
		close(r.held)
		r.held = nil
	}
	if holds {
		r.held = make(chan struct{})
	}
}
