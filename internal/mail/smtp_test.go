package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http/httptest"
	"net/textproto"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/patience"
)

// aMessage returns a message whose headers and parts are all different.
func aMessage() Message {
	return Message{
		ID: "0193", Date: time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC), To: "hedy@example.com",
		FromName: "Acme, Inc.", Subject: "Grüße", Text: "A text: ü\n", HTML: "<p>A page: ü</p>\n",
	}
}

// through returns an SMTP sender that uses the server.
func through(t *testing.T, server *mailtest.Server) *SMTP {
	t.Helper()
	s, err := NewSMTP(server.URL(), "rolecall@example.org", "id.example.com")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// certificate returns the certificate of a server at 127.0.0.1, and a pool that trusts it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return &tls.Config{Certificates: server.TLS.Certificates}, pool
}

func send(t *testing.T, s *SMTP, m Message) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Limit)
	defer cancel()
	return s.Send(ctx, m)
}

func await(t *testing.T, server *mailtest.Server, to string) mailtest.Message {
	t.Helper()
	m, err := server.Await(to, nil, patience.Limit)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSendIsWhatArrives(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{})
	if err := send(t, through(t, server), aMessage()); err != nil {
		t.Fatal(err)
	}
	got := await(t, server, "hedy@example.com")
	if got.From != "rolecall@example.org" || got.To != "hedy@example.com" || got.Subject != "Grüße" || got.Text != "A text: ü\n" || got.HTML != "<p>A page: ü</p>\n" {
		t.Errorf("arrived: %+v", got)
	}
	for header, want := range map[string]string{
		"From": `"Acme, Inc." <rolecall@example.org>`, "To": "<hedy@example.com>", "Message-Id": "<0193@example.org>",
		"Date": "Sat, 21 Nov 2026 08:30:00 +0000", "Auto-Submitted": "auto-generated", "Mime-Version": "1.0", "User-Agent": "",
	} {
		if got := got.Header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
}

// An address with characters outside of ASCII needs a server with SMTPUTF8 (RFC 6531).
func TestAddressesBeyondASCII(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{})
	m := aMessage()
	m.To = "hédy@bücher.example"
	if err := send(t, through(t, server), m); err != nil {
		t.Fatal(err)
	}
	got := await(t, server, m.To)
	if to, err := got.Header.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != m.To {
		t.Errorf("it is to %v, %v", to, err)
	}
}

func TestAddressesBeyondASCIIWithoutSMTPUTF8(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{ASCII: true})
	for to, want := range map[string]string{
		"ada@bücher.example": "ada@xn--bcher-kva.example", "ada@BÜCHER.example": "ada@xn--bcher-kva.example", "ada@straße.example": "ada@xn--strae-oqa.example", "ada@xn--bcher-kva.example": "ada@xn--bcher-kva.example",
		"ada@例え.テスト": "ada@xn--r8jz45g.xn--zckzah", "ada@plain.example": "ada@plain.example",
	} {
		m := aMessage()
		m.To = to
		if err := send(t, through(t, server), m); err != nil {
			t.Errorf("%s: %v", to, err)
			continue
		}
		await(t, server, want)
	}
	sent := len(server.Messages())
	for _, to := range []string{"hédy@bücher.example", "hédy@plain.example", "ada@bü_cher.example"} {
		m := aMessage()
		m.To = to
		if err := send(t, through(t, server), m); !errors.Is(err, rolecall.ErrNoMailbox) || strings.Contains(err.Error(), "example") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if n := len(server.Messages()); n != sent {
		t.Errorf("%d mails arrived", n-sent)
	}
}

// A server with SMTPUTF8 gets the domain in ASCII too, because the next one may have no SMTPUTF8.
func TestADomainBeyondASCIINeedsNoSMTPUTF8(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{})
	m := aMessage()
	m.To = "ada@bücher.example"
	if err := send(t, through(t, server), m); err != nil {
		t.Fatal(err)
	}
	await(t, server, "ada@xn--bcher-kva.example")
}

func TestLinesOfATextAreNoCommands(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{})
	m := aMessage()
	m.Text = "one\n.\nQUIT\n..two\n\r.\r\n\r\n.\r\nMAIL FROM:<evil@example.com>\n"
	if err := send(t, through(t, server), m); err != nil {
		t.Fatal(err)
	}
	got := await(t, server, m.To)
	if want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(m.Text); got.Text != want || len(server.Messages()) != 1 {
		t.Errorf("arrived: %q, want %q, among %d", got.Text, want, len(server.Messages()))
	}
	for line := range bytes.SplitSeq(got.Raw, []byte("\r\n")) {
		if bytes.ContainsAny(line, "\r\n") {
			t.Errorf("a line holds half of a line end: %q", line)
		}
	}
}

func TestEncryptedWhenOffered(t *testing.T) {
	shown, pool := certificate(t)
	cases := []struct {
		name    string
		options mailtest.Options
		change  func(*SMTP) // simulates a server on another machine
		sent    bool
		secure  bool
	}{
		{"nothing is offered", mailtest.Options{}, nil, true, false},
		{"this machine offers STARTTLS, for nobody's name", mailtest.Options{TLS: shown}, nil, true, true},
		{"STARTTLS, trusted", mailtest.Options{TLS: shown}, func(s *SMTP) { s.local, s.tls.InsecureSkipVerify, s.tls.RootCAs = false, false, pool }, true, true},
		{"STARTTLS, not trusted", mailtest.Options{TLS: shown}, func(s *SMTP) { s.local, s.tls.InsecureSkipVerify = false, false }, false, false},
		{"from the start, trusted", mailtest.Options{TLS: shown, Implicit: true}, func(s *SMTP) { s.tls.RootCAs = pool }, true, true},
		{"from the start, not trusted", mailtest.Options{TLS: shown, Implicit: true}, nil, false, false},
		{"a password, here", mailtest.Options{User: "rolecall", Password: "secret"}, nil, true, false},
		{"a password, here, encrypted", mailtest.Options{User: "rolecall", Password: "secret", TLS: shown}, nil, true, true},
		{"a password, elsewhere, nothing offered", mailtest.Options{User: "rolecall", Password: "secret"}, func(s *SMTP) { s.local = false }, false, false},
		{"a password, elsewhere, encrypted", mailtest.Options{User: "rolecall", Password: "secret", TLS: shown},
			func(s *SMTP) { s.local, s.tls.InsecureSkipVerify, s.tls.RootCAs = false, false, pool }, true, true},
		{"a password, from the start", mailtest.Options{User: "rolecall", Password: "secret", TLS: shown, Implicit: true}, func(s *SMTP) { s.tls.RootCAs = pool }, true, true},
		{"a wrong password", mailtest.Options{User: "rolecall", Password: "secret"}, func(s *SMTP) { s.password = "guess" }, false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := mailtest.Start(t, c.options)
			s := through(t, server)
			if c.change != nil {
				c.change(s)
			}
			err := send(t, s, aMessage())
			if (err == nil) != c.sent || len(server.Messages()) == 1 != c.sent {
				t.Fatalf("sent: %v, %d arrived, want %t", err, len(server.Messages()), c.sent)
			}
			if c.sent {
				if got := await(t, server, "hedy@example.com"); got.TLS != c.secure || got.User != c.options.User {
					t.Errorf("arrived encrypted %t from %q", got.TLS, got.User)
				}
			} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "guess") {
				t.Errorf("the error tells a password: %v", err)
			}
		})
	}
}

func TestFailuresAreReported(t *testing.T) {
	faults := map[string]func(*mailtest.Server, string){
		"later":   func(s *mailtest.Server, at string) { s.Refuse(at, "451 4.3.0 hedy@example.com, later") },
		"never":   func(s *mailtest.Server, at string) { s.Refuse(at, "550 5.1.1 no hedy@example.com") },
		"nothing": func(s *mailtest.Server, at string) { s.Drop(at) },
	}
	for _, at := range []string{mailtest.Connect, "EHLO", "MAIL", "RCPT", "DATA", mailtest.End} {
		for name, fail := range faults {
			t.Run(at+" "+name, func(t *testing.T) {
				server := mailtest.Start(t, mailtest.Options{})
				s := through(t, server)
				fail(server, at)
				if err := send(t, s, aMessage()); err == nil || strings.Contains(err.Error(), "hedy") {
					t.Errorf("got %v", err)
				}
				server.Heal()
				if err := send(t, s, aMessage()); err != nil || len(server.Messages()) != 1 {
					t.Errorf("after it was healed: %v, %d arrived", err, len(server.Messages()))
				}
			})
		}
	}
}

func TestAnUnknownMailboxIsDistinguished(t *testing.T) {
	for reply, want := range map[string]bool{
		"550 5.1.1 no hedy@example.com": true, "556 5.1.10 null MX": true, "551 5.1.6 moved": true,
		"450 4.1.1 not yet": false, "550 5.7.1 blocked": false, "550 no such user": false, "553 5.1.8 your address": false,
	} {
		server := mailtest.Start(t, mailtest.Options{})
		server.Refuse("RCPT", reply)
		if err := send(t, through(t, server), aMessage()); errors.Is(err, rolecall.ErrNoMailbox) != want {
			t.Errorf("%s: %v", reply, err)
		}
	}
	server := mailtest.Start(t, mailtest.Options{})
	server.Refuse("MAIL", "550 5.1.1 who are you")
	if err := send(t, through(t, server), aMessage()); err == nil || errors.Is(err, rolecall.ErrNoMailbox) {
		t.Errorf("a refused sender: %v", err)
	}
}

func TestSendingEndsAtTheTimeLimit(t *testing.T) {
	for _, at := range []string{mailtest.Connect, "EHLO", "MAIL", "RCPT", "DATA", mailtest.End} {
		t.Run(at, func(t *testing.T) {
			server := mailtest.Start(t, mailtest.Options{})
			server.Hang(at)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := through(t, server).Send(ctx, aMessage()); err == nil || !strings.Contains(err.Error(), "in time") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// If the server does not confirm a message, the sender sends the same content again.
func TestARepeatedMessageIsTheSame(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{})
	s := through(t, server)
	server.Drop(mailtest.Taken)
	if err := send(t, s, aMessage()); err == nil {
		t.Error("it was sent, though nobody said so")
	}
	server.Heal()
	if err := send(t, s, aMessage()); err != nil {
		t.Fatal(err)
	}
	first, second := await(t, server, "hedy@example.com"), await(t, server, "hedy@example.com")
	if !reflect.DeepEqual(first.Header["Message-Id"], second.Header["Message-Id"]) || !reflect.DeepEqual(first.Header["Date"], second.Header["Date"]) {
		t.Errorf("%v is not %v", first.Header, second.Header)
	}
}

// A slow response to QUIT is not a failure, because the server has already accepted the message.
func TestASlowQuitIsNoFailure(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{})
	server.Hang("QUIT")
	if err := send(t, through(t, server), aMessage()); err != nil {
		t.Error(err)
	}
}

func TestUnfitURLs(t *testing.T) {
	for _, server := range []string{
		"", "localhost:25", "http://localhost", "smtp://", "smtp://host/path", "smtp://host?x=1", "smtp://host#x", "smtp://secret@host", "smtp://:secret@host",
		"smtp://host:0", "smtp://host:65536", "smtp://host:x", "smtp://us er:secret@host:25 ",
	} {
		if _, err := NewSMTP(server, "rolecall@example.org", "id.example.com"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", server, err)
		}
	}
	for server, want := range map[string]struct {
		port  int
		clear bool
	}{
		"smtp://mail.example.com":                 {587, true},
		"smtp://mail.example.com:25":              {25, true},
		"smtp://user:secret@mail.example.com/":    {587, false},
		"smtp://user:p%40%3A%2F@mail.example.com": {587, false},
		"smtps://mail.example.com":                {465, false},
		"smtp://localhost:1025":                   {1025, false},
		"smtp://[::1]:1025":                       {1025, false},
	} {
		s, err := NewSMTP(server, "rolecall@example.org", "id.example.com")
		if err != nil || s.port != want.port || s.InClear() != want.clear {
			t.Errorf("%s: %+v, %v", server, s, err)
		}
	}
}

// eavesdropper starts a malicious server that tries to get a password. It answers EHLO with the
// greeting, and each other command with the reply. heard returns all lines that the server
// received.
func eavesdropper(t *testing.T, greeting, reply string) (address string, heard func() string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1)
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		text := textproto.NewConn(connection)
		defer func() { _ = text.Close() }()
		var all strings.Builder
		defer func() { lines <- all.String() }()
		_ = text.PrintfLine("220 mail ESMTP")
		for line, err := text.ReadLine(); err == nil; line, err = text.ReadLine() {
			all.WriteString(line + "\n")
			if strings.HasPrefix(line, "EHLO") {
				_ = text.PrintfLine("%s", greeting)
			} else {
				_ = text.PrintfLine("%s", reply)
			}
		}
	}()
	return listener.Addr().String(), func() string {
		_ = listener.Close()
		return <-lines
	}
}

func TestNoPasswordIsSentUnencrypted(t *testing.T) {
	for name, greeting := range map[string]string{
		"STARTTLS is not offered": "250-mail\r\n250 AUTH PLAIN LOGIN CRAM-MD5 XOAUTH2",
		"STARTTLS is refused":     "250-mail\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN CRAM-MD5 XOAUTH2",
	} {
		t.Run(name, func(t *testing.T) {
			address, heard := eavesdropper(t, greeting, "454 4.7.0 not now")
			s, err := NewSMTP("smtp://rolecall:secret@"+address, "rolecall@example.org", "id.example.com")
			if err != nil {
				t.Fatal(err)
			}
			s.local = false // simulates a server on another machine
			if err := send(t, s, aMessage()); err == nil {
				t.Error("it was sent")
			}
			if got := heard(); !strings.HasPrefix(got, "EHLO") || strings.Contains(got, "AUTH") || strings.Contains(got, "hedy") {
				t.Errorf("heard was %q", got)
			}
		})
	}
}

func TestAStrictServerAcceptsTheName(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{Strict: true})
	for host, want := range map[string]string{"id.example.com": "id.example.com", "192.0.2.1": "[192.0.2.1]", "2001:db8::1": "[IPv6:2001:db8::1]"} {
		hello := Hello(host)
		s, err := NewSMTP(server.URL(), "rolecall@example.org", hello)
		if err != nil {
			t.Fatal(err)
		}
		if err := send(t, s, aMessage()); err != nil || hello != want {
			t.Errorf("with the name %s for %s: %v", hello, host, err)
		}
	}
	for name, valid := range map[string]bool{"mail.example.com": true, "a-b.c": true, "mail": false, "": false, "a..b": false, "-a.b": false, "a b.c": false, "a.b\r\n": false, "bücher.example": false} {
		if err := CheckHello(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}
