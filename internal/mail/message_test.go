package mail

import (
	"bytes"
	"maps"
	"mime"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/mail/mailtest"
)

var headers = []string{"Auto-Submitted", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To"}

// checkWhole renders the message and fails the test unless the result has exactly the expected
// headers with the expected values. A message that writeTo refuses also passes.
func checkWhole(t *testing.T, m Message) {
	t.Helper()
	var b bytes.Buffer
	if err := m.writeTo(&b, "rolecall@example.org"); err != nil {
		return // refused
	}
	for line := range bytes.Lines(b.Bytes()) {
		if len(line) > 1000 { // RFC 5322, 2.1.1
			t.Errorf("%+v has a line of %d bytes", m, len(line))
		}
	}
	parsed, err := netmail.ReadMessage(&b)
	if err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	if got := slices.Sorted(maps.Keys(parsed.Header)); !slices.Equal(got, headers) {
		t.Errorf("%+v has the headers %q", m, got)
	}
	for name, values := range parsed.Header {
		if len(values) != 1 {
			t.Errorf("%+v has %s %d times", m, name, len(values))
		}
	}
	to, err := parsed.Header.AddressList("To")
	if err != nil || len(to) != 1 || to[0].Address != m.To {
		t.Errorf("%+v is to %v, %v", m, to, err)
	}
	from, err := parsed.Header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Address != "rolecall@example.org" {
		t.Errorf("%+v is from %v, %v", m, from, err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if err != nil || subject != m.Subject && strings.TrimSpace(m.Subject) == m.Subject && !strings.Contains(m.Subject, "=?") {
		t.Errorf("%+v is about %q, %v", m, subject, err)
	}
}

var injections = []string{
	"\r\nBcc: evil@example.com", "\nBcc: evil@example.com", "\rBcc: evil@example.com", "a\r\n\r\nbody", "\x00", "\x0b\x0c", "\u0085Bcc: evil@example.com",
	"\u2028Bcc: evil@example.com", "%0d%0aBcc: evil@example.com", "=?utf-8?q?=0d=0aBcc:_evil@example.com?=", `"; evil@example.com`,
	"<evil@example.com>", "evil@example.com, ", "evil@example.com>", "a:evil@example.com;", "(comment)", strings.Repeat("long ", 400), strings.Repeat("l", 255), strings.Repeat("ü", 400), "\xff\xfe",
}

func TestInjectionsAreRefusedOrText(t *testing.T) {
	for _, text := range injections {
		for _, set := range []func(*Message){
			func(m *Message) { m.To = text }, func(m *Message) { m.To += text }, func(m *Message) { m.To = text + m.To },
			func(m *Message) { m.FromName = text }, func(m *Message) { m.Subject = text }, func(m *Message) { m.ID = text },
			func(m *Message) { m.Text = text }, func(m *Message) { m.HTML = text },
		} {
			m := aMessage()
			set(&m)
			checkWhole(t, m)
		}
	}
}

func TestControlCharactersAreRefused(t *testing.T) {
	server := mailtest.Start(t, mailtest.Options{})
	s := through(t, server)
	for _, set := range []func(*Message){
		func(m *Message) { m.To = "hedy@example.com\r\nBcc: evil@example.com" }, func(m *Message) { m.To = "hedy@example.com> RCPT TO:<evil@example.com" },
		func(m *Message) { m.To = "hedy@example.com, evil@example.com" }, func(m *Message) { m.To = "" }, func(m *Message) { m.To = "Hedy <hedy@example.com>" },
		func(m *Message) { m.FromName = "Acme\r\nBcc: evil@example.com" }, func(m *Message) { m.Subject = "a\nb" }, func(m *Message) { m.ID = "a\rb" },
	} {
		m := aMessage()
		set(&m)
		if err := send(t, s, m); err == nil {
			t.Errorf("%+v was sent", m)
		}
	}
	if n := len(server.Messages()); n != 0 {
		t.Errorf("%d arrived", n)
	}
}

func TestCheckFrom(t *testing.T) {
	for from, want := range map[string]bool{
		"rolecall@example.org": true, "no-reply@localhost": true, "": false, "rolecall": false, "Rolecall <rolecall@example.org>": false,
		"rolecall@example.org\r\n": false, "a@b, c@d": false, `"a@b"@example.org`: false,
	} {
		if err := CheckFrom(from); (err == nil) != want {
			t.Errorf("%q: %v", from, err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, text := range injections {
		f.Add(text, text, text, text)
	}
	f.Fuzz(func(t *testing.T, to, fromName, subject, text string) {
		m := aMessage()
		m.To, m.FromName, m.Subject, m.Text = to, fromName, subject, text
		checkWhole(t, m)
	})
}
