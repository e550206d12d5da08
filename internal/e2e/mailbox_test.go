package e2e

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/patience"
)

// mailServers are the mail servers of the databases in use.
var mailServers struct {
	sync.Mutex
	of map[string]*mailtest.Server // by the path in the URL of the database
}

// mailServer returns the mail server of all programs that use the database. Each of them sends the mails of all.
func mailServer(t testing.TB, database string) *mailtest.Server {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	mailServers.Lock()
	defer mailServers.Unlock()
	if server := mailServers.of[u.Path]; server != nil {
		return server
	}
	server := mailtest.Start(t, mailtest.Options{})
	if mailServers.of == nil {
		mailServers.of = map[string]*mailtest.Server{}
	}
	mailServers.of[u.Path] = server
	t.Cleanup(func() {
		mailServers.Lock()
		defer mailServers.Unlock()
		delete(mailServers.of, u.Path)
	})
	return server
}

// receiveMail configures the program to use the mail server of its database.
func (p *program) receiveMail(t testing.TB) {
	t.Helper()
	p.mail = mailServer(t, p.Database)
	p.Flags = append(p.Flags[:len(p.Flags):len(p.Flags)], "--smtp", p.mail.URL(), "--mail-from", "rolecall@example.org")
	if !slices.Contains(p.Flags, "--public-url") {
		p.Flags = append(p.Flags, "--public-url", public)
	}
}

// noticeSubjects are the beginnings of the subjects of mails that contain no link, by kind.
var noticeSubjects = map[rolecall.MailKind]string{
	rolecall.MailEmailChanged:         "Your email address for ",
	rolecall.MailEmailChangeRequested: "A new email address for ",
	rolecall.MailCredentialsChanged:   "Your sign-in settings for ",
	rolecall.MailNewBrowser:           "New sign-in to your account at ",
	rolecall.MailWebhookDisabled:      "A webhook of ",
	rolecall.MailEventsKept:           "Events of ",
	rolecall.MailDirectory:            "A directory of ",
	rolecall.MailNoticesPaused:        "Further notices from ",
	rolecall.MailTokenReused:          "A session of your account at ",
}

// mailTo waits for a mail of the kind from the tenant to the address. It returns the oldest
// such mail that mailTo has not returned before.
func (w *world) mailTo(t testing.TB, address string, kind rolecall.MailKind) mailtest.Message {
	t.Helper()
	m, err := w.program.mail.Await(address, func(m *mailtest.Message) bool { return w.isMail(m, kind) }, 2*patience.Limit) // the mail of a node that lost its database after the claim is sent half a minute later
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	if token := m.Token(); token != "" {
		w.program.secret(token)
	}
	return m
}

// isMail reports whether the mail has the kind and belongs to the tenant.
func (w *world) isMail(m *mailtest.Message, kind rolecall.MailKind) bool {
	if subject, notice := noticeSubjects[kind]; notice {
		return strings.HasPrefix(m.Subject, subject+w.name+" ")
	}
	link := m.Link()
	return link != nil && strings.HasSuffix(link.Path, "/console/"+w.name+"/"+string(kind))
}

// mailsTo returns the number of mails from the tenant to the address.
func (w *world) mailsTo(address string) int {
	n := 0
	for _, m := range w.program.mail.Messages() {
		if m.To == address && strings.Contains(m.Header.Get("From"), `"`+w.name+`"`) {
			n++
		}
	}
	return n
}
