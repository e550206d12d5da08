package e2e

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// testMailInjection invites users while the tenant and the user have names that look like
// headers, recipients, links, HTML or templates. The names must not add a header, a recipient,
// a link or HTML to the mails.
func testMailInjection(t *testing.T, p *program) {
	w := newWorld(t, p)
	for i, name := range []string{
		"Bcc: evil@example.com", `"quoted" <evil@example.com>`, "a, evil@example.com", "=?utf-8?q?=0D=0ABcc:_evil@example.com?=", "<script>alert(1)</script>",
		"{{.Link}} {{template \"x\"}}", "http://evil.example/", "evil.example", "Ask at www.evil.example now", strings.Repeat("long name ", 25), "Ünïcödé name",
	} {
		w.owner.do(t, "PATCH /tenant", `{"displayName":`+quoted(name)+`,"settings":{"mailSenderName":`+quoted(name[:min(len(name), 90)])+`}}`).expect(t, 200)
		email := address(fmt.Sprintf("o'injected+%d", i))
		id := w.owner.do(t, "POST /users", fmt.Sprintf(`{"email":%s,"name":%s,"invite":true}`, quoted(email), quoted(name))).expect(t, 201).text("/id")
		m := w.mailTo(t, email, rolecall.MailInvitation)
		headers := slices.Sorted(maps.Keys(m.Header))
		if want := []string{"Auto-Submitted", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "Subject", "To"}; !slices.Equal(headers, want) {
			t.Errorf("%q: the headers are %q", name, headers)
		}
		from, err := m.Header.AddressList("From")
		if err != nil || len(from) != 1 || from[0].Address != "rolecall@example.org" {
			t.Errorf("%q: it is from %v, %v", name, from, err)
		}
		if to, err := m.Header.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != email {
			t.Errorf("%q: it is to %v, %v", name, to, err)
		}
		if strings.Contains(m.HTML, "<script>") || strings.Contains(m.Subject+m.Text+m.HTML+m.Header.Get("From"), "evil.example") {
			t.Errorf("%q: the mail says %s%s%s", name, m.Subject, m.Text, m.HTML)
		}
		w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(m.Token(), password)).expect(t, 200)
		w.owner.do(t, "GET /users/"+id, "").expect(t, 200)
	}
	w.owner.do(t, "POST /users", `{"email":"ada@example.com\r\nBcc: evil@example.com","name":"Ada Lovelace","invite":true}`).refused(t, 422, "validation")
	w.owner.do(t, "POST /users", `{"email":"ada@example.com","name":"Ada\r\nBcc: evil@example.com","invite":true}`).refused(t, 422, "validation")
}

// TestCommandsSealWithTheKeyFile runs the program with its encryption key in a file. Commands
// that change credentials and get the same file must cause a mail to the user. Commands that
// do not get the file must fail.
func TestCommandsSealWithTheKeyFile(t *testing.T) {
	t.Parallel()
	binary := build(t)
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "keys")
			if err := os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			p := newProgram(t, binary, store.database(t), "--secret-key-file", file)
			p.start(t)
			t.Cleanup(func() { p.stop(t) })
			withoutFile := []string{"user", "set-password", "--tenant", "acme", "--email", owner, "--password-stdin"}
			withFile := append(slices.Clone(withoutFile), "--secret-key-file", file)
			p.run(t, password, "tenant", "create", "acme", "--owner-email", owner, "--owner-name", "Olga Owner", "--password-stdin", "--secret-key-file", file)

			p.run(t, newPassword, withFile...)
			w := &world{program: p, name: "acme"}
			w.mailTo(t, owner, rolecall.MailCredentialsChanged)
			p.run(t, "", "user", "set-email", "--tenant", "acme", "--email", owner, "--new-email", address("olga"), "--secret-key-file", file)
			w.mailTo(t, owner, rolecall.MailEmailChanged)

			output, err := p.try(t, password, withoutFile...)
			if err == nil || !strings.Contains(output, "--secret-key-file") {
				t.Errorf("without the file: %v: %q", err, output)
			}
			if output, err = p.try(t, "", "migrate"); err == nil || !strings.Contains(output, "--secret-key-file") {
				t.Errorf("a migration without the file: %v: %q", err, output)
			}
			if output, err = p.try(t, password, withoutFile...); err == nil || !strings.Contains(output, "--secret-key-file") {
				t.Errorf("without the file, after a migration: %v: %q", err, output)
			}
			if strings.Contains(p.Log(), "the instance key is in the database") {
				t.Error("the program warns of a key in the database")
			}
		})
	}
}

// TestMailServerConfiguredLater creates invitations without a mail server, and then restarts
// the program with a mail server. Only the link that is still valid may be mailed.
func TestMailServerConfiguredLater(t *testing.T) {
	t.Parallel()
	for _, store := range stores {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			p := newProgram(t, build(t), store.database(t))
			withMail := p.Flags
			p.Flags = []string{"--public-url", public}
			p.start(t)
			t.Cleanup(func() { p.stop(t) })
			w := newWorld(t, p)
			operator := p.operatorKey(t).of(w)
			founded := operator.do(t, "POST /operator/tenants", newTenant("founded")).expect(t, 201)
			operator.anonymous().in("founded").do(t, "POST /auths/invitations/accept", acceptance(founded.text("/invitation/token"), password)).expect(t, 200)
			replaced := w.user(t, "replaced", "")
			for range 2 {
				w.owner.do(t, "POST /users/"+replaced+"/invitations", "").expect(t, 201)
			}
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
			p.Flags = withMail
			p.start(t)
			m := w.mailTo(t, address("replaced"), rolecall.MailInvitation)
			w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(m.Token(), password)).expect(t, 200)
			if _, err := p.AwaitLog(t.Context(), regexp.MustCompile(`(?s)mail dropped.*mail dropped`)); err != nil {
				t.Error(err)
			}
			if n := len(p.mail.Messages()); n != 1 {
				t.Errorf("%d mails came, want one", n)
			}
		})
	}
}

// sendLimit is the time after which the program ends an attempt to send a mail.
const sendLimit = time.Minute

// TestSlowMailServerDelaysNoResponse checks that requests that cause mails do not wait for the mail
// server.
func TestSlowMailServerDelaysNoResponse(t *testing.T) {
	t.Parallel()
	p := serve(t, build(t), filepath.Join(t.TempDir(), "rolecall.db"))
	w := newWorld(t, p)
	p.mail.Hang(mailtest.Connect)
	guests := 0
	inLessThan(t, sendLimit, func() {
		for range 12 {
			guests++
			w.owner.do(t, "POST /users", fmt.Sprintf(`{"email":%s,"name":"A Guest","invite":true}`, quoted(address(fmt.Sprintf("slow-%d", guests))))).expect(t, 201)
		}
	})
	if n := len(p.mail.Messages()); n != 0 {
		t.Errorf("%d mails came", n)
	}
}

// TestTwoProgramsSendEachMailOnce checks that two programs on one database send each mail only
// once.
func TestTwoProgramsSendEachMailOnce(t *testing.T) {
	t.Parallel()
	binary, database := build(t), pgtest.URL(t)
	one := serve(t, binary, database)
	two := serve(t, binary, database)
	w := newWorld(t, one)
	const guests = 30
	for i := range guests {
		w.program = []*program{one, two}[i%2]
		w.owner.do(t, "POST /users", fmt.Sprintf(`{"email":%s,"name":"A Guest","invite":true}`, quoted(address(fmt.Sprintf("guest-%d", i))))).expect(t, 201)
	}
	w.program = one
	for i := range guests {
		w.mailTo(t, address(fmt.Sprintf("guest-%d", i)), rolecall.MailInvitation)
	}
	if n := len(one.mail.Messages()); n != guests {
		t.Errorf("%d mails came, want %d", n, guests)
	}
}
