// Package mailtest is a mail server for tests. It speaks SMTP, stores the accepted messages, and
// simulates the failures that a test sets.
package mailtest

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running mail server.
type Server struct {
	listener net.Listener
	options  Options

	mu       sync.Mutex
	sessions sync.WaitGroup
	open     map[net.Conn]bool
	faults   map[string]fault // by the moment or command of the failure
	messages []*Message       // in the order of their arrival
	arrived  chan struct{}    // closed when the next mail arrives
}

// Options configure a server.
type Options struct {
	Address  string      // to listen on; empty: a free port of 127.0.0.1
	TLS      *tls.Config // for STARTTLS, or for Implicit; nil: no TLS
	Implicit bool        // TLS from the start of a connection
	User     string      // must authenticate with AUTH PLAIN to send; empty: no authentication
	Password string
	ASCII    bool // without SMTPUTF8
	Strict   bool // refuse an EHLO with a name that is not fully qualified, as Postfix can
}

// fault is the failure that a test has set for a moment or command. If reply is empty and drop is
// false, the server stops responding.
type fault struct {
	reply string // sent instead of the usual reply
	drop  bool   // close the connection
}

// Start starts a server that is closed when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{listener: listener, options: o, open: map[net.Conn]bool{}, faults: map[string]fault{}, arrived: make(chan struct{})}
	s.sessions.Go(s.accept)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Address returns the host and port on which the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// URL returns the URL of the server for the flag --smtp.
func (s *Server) URL() string {
	u := "smtp://"
	if s.options.Implicit {
		u = "smtps://"
	}
	if s.options.User != "" {
		u += s.options.User + ":" + s.options.Password + "@"
	}
	return u + s.Address()
}

// Close closes the server and its connections. Messages still returns the accepted messages.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.mu.Lock()
	for connection := range s.open {
		_ = connection.Close()
	}
	s.mu.Unlock()
	s.sessions.Wait()
	return err
}

// The moments at which Refuse, Hang and Drop can make the server fail. The argument can also be a
// command, such as EHLO, AUTH, RCPT or DATA. With "RCPT ada@example.com", the server fails for this
// recipient only.
const (
	Connect = "CONNECT" // before the greeting
	End     = "END"     // after the text of a message; the server then discards the message
	Taken   = "TAKEN"   // after a message is stored, before the reply to the client
)

// Refuse makes the server send the reply, such as 451 4.3.0 Later, at the moment or command.
func (s *Server) Refuse(at, reply string) { s.fail(at, fault{reply: reply}) }

// Hang makes the server stop responding at the moment or command.
func (s *Server) Hang(at string) { s.fail(at, fault{}) }

// Drop makes the server close the connection at the moment or command.
func (s *Server) Drop(at string) { s.fail(at, fault{drop: true}) }

// Heal removes all failures that were set.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
}

func (s *Server) fail(at string, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[at] = f
}

func (s *Server) fault(at string) (fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.faults[at]
	return f, ok
}

func (s *Server) fails(at string) bool {
	_, ok := s.fault(at)
	return ok
}

// Messages returns all accepted messages, in the order of their arrival.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Message, 0, len(s.messages))
	for _, m := range s.messages {
		all = append(all, *m)
	}
	return all
}

// Await returns the oldest matching message to the address that Await has not returned before. It
// waits for the message up to the limit, and then returns an error. If match is nil, every message
// matches.
func (s *Server) Await(to string, match func(*Message) bool, limit time.Duration) (Message, error) {
	timeout := time.After(limit)
	for {
		m, arrived := s.take(to, match)
		if m != nil {
			return *m, nil
		}
		select {
		case <-arrived:
		case <-timeout:
			return Message{}, fmt.Errorf("no such mail came to %s within %v", to, limit)
		}
	}
}

func (s *Server) take(to string, match func(*Message) bool) (*Message, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if !m.taken && strings.EqualFold(m.To, to) && (match == nil || match(m)) {
			m.taken = true
			return m, nil
		}
	}
	return nil, s.arrived
}

func (s *Server) keep(m *Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, m)
	close(s.arrived)
	s.arrived = make(chan struct{})
}
