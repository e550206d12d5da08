package faults

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// tap is a proxy between a client and a server. Its hooks see all data. If a hook does not forward
// a piece completely, the tap closes the connection.
type tap struct {
	network, target string
	listener        net.Listener

	mu       sync.Mutex
	forth    hook // for data of clients
	back     hook // for data of the server
	open     map[net.Conn]bool
	relaying sync.WaitGroup
}

// hook sees a piece of data and returns how many bytes of it to forward. A nil hook
// forwards all.
type hook func(piece []byte) (pass int)

// newTap starts a tap for the server at the target, until the test ends.
func newTap(t *testing.T, network, target string) *tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{network: network, target: target, listener: listener, open: map[net.Conn]bool{}}
	p.relaying.Go(p.accept)
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		p.closeAll()
		p.relaying.Wait()
	})
	return p
}

func (p *tap) address() string { return p.listener.Addr().String() }

// watch sets the hooks.
func (p *tap) watch(forth, back hook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forth, p.back = forth, back
}

func (p *tap) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.target)
		if err != nil {
			p.close(client)
			continue
		}
		p.mu.Lock()
		p.open[client], p.open[server] = true, true
		p.mu.Unlock()
		p.relaying.Go(func() { p.relay(server, client, func() hook { return p.forth }) })
		p.relaying.Go(func() { p.relay(client, server, func() hook { return p.back }) })
	}
}

// relay forwards data from one side to the other until one side closes.
func (p *tap) relay(to, from net.Conn, current func() hook) {
	defer p.close(to)
	defer p.close(from)
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if err != nil {
			return
		}
		p.mu.Lock()
		see := current()
		p.mu.Unlock()
		pass := n
		if see != nil {
			pass = see(piece[:n])
		}
		if _, err := to.Write(piece[:pass]); err != nil || pass < n {
			return
		}
	}
}

// close closes a connection, which the other direction may have closed already.
func (p *tap) close(conn net.Conn) {
	p.mu.Lock()
	delete(p.open, conn)
	p.mu.Unlock()
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
		panic(err)
	}
}

func (p *tap) closeAll() {
	p.mu.Lock()
	var all []net.Conn
	for conn := range p.open {
		all = append(all, conn)
	}
	p.mu.Unlock()
	for _, conn := range all {
		p.close(conn)
	}
}
