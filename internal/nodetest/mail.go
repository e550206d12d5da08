package nodetest

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/mail"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Mails returns the committed mails, decrypted with the keys of the instance.
func (f *Fixture) Mails() (mails []rolecall.Mail) {
	f.Helper()
	f.DB.mu.Lock()
	defer f.DB.mu.Unlock()
	for _, row := range f.DB.mails {
		plain, err := f.Keys.Open("mail", string(row.Sealed), slices.Concat(row.TenantID[:], row.ID[:]))
		f.OK(err)
		var m rolecall.Mail
		f.OK(json.Unmarshal(plain, &m))
		if m.ExpiresAt != row.ExpiresAt || row.CreatedAt != row.DueAt {
			f.Errorf("the mail %+v waits as %+v", m, row)
		}
		mails = append(mails, m)
	}
	return mails
}

// Mailed returns the kinds and recipients of the mails that fn sends.
func (f *Fixture) Mailed(fn func()) (mails []string) {
	f.Helper()
	before := len(f.Mails())
	fn()
	for _, m := range f.Mails()[before:] {
		name, _, _ := strings.Cut(m.To, "@")
		mails = append(mails, strings.TrimSpace(string(m.Kind)+" "+name))
	}
	return mails
}

// ExpectMailed fails the test unless fn sends these mails, such as
// "password-reset ada".
func (f *Fixture) ExpectMailed(fn func(), want ...string) {
	f.Helper()
	if got := f.Mailed(fn); !slices.Equal(got, want) {
		f.Errorf("mailed were %q, not %q", got, want)
	}
}

// LastToken returns the token in the link of the newest mail of this kind to the user.
func (f *Fixture) LastToken(kind rolecall.MailKind, name string) secret.Token {
	f.Helper()
	for _, m := range slices.Backward(f.Mails()) {
		if m.Kind == kind && m.To == Address(name) {
			token, ok := secret.ParseToken(m.Token)
			if !ok {
				f.Fatalf("%q is no token", m.Token)
			}
			return token
		}
	}
	f.Fatalf("no %s was mailed to %s", kind, name)
	return ""
}

// NewSender returns a node of another process on the same database that sends mail to the
// server, and a function that stops it.
func (f *Fixture) NewSender(server *mailtest.Server) (peer *node.Node, stop func()) {
	f.Helper()
	templates, err := mail.LoadTemplates("")
	f.OK(err)
	smtp, err := mail.NewSMTP(server.URL(), "rolecall@example.org", "id.example.com")
	f.OK(err)
	peer = node.New(f.Open(), access.Options{
		Clock: f.Clock.Now, Passwords: f.Hashes, Keys: f.Keys, Logger: slog.New(slog.DiscardHandler),
		Mailer: mail.NewMailer(templates, rolecall.ConsoleLinks("https://id.example.com"), smtp),
	})
	f.Clock.Wake(peer.Access.Outbox.Wake)
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(ctx) }()
	stop = func() {
		if ctx.Err() == nil {
			cancel()
			f.OK(<-ended)
		}
	}
	f.Cleanup(stop)
	return peer, stop
}

// WaitingMails returns how many mails wait in the outbox.
func (f *Fixture) WaitingMails() int {
	f.Helper()
	n, err := f.Access.Outbox.Waiting(f.Context())
	f.OK(err)
	return n
}

// DueIn returns the time until the only waiting mail is due.
func (f *Fixture) DueIn() (pause time.Duration) {
	f.Helper()
	f.OK(f.Store.View(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
		waiting, err := tx.ExpiredMail(rolecall.Never-1, 2)
		if err == nil && len(waiting) == 1 {
			pause = waiting[0].DueAt.Sub(f.Clock.Now())
		}
		return err
	}))
	return pause
}

// MailAbout returns the last mail of the kind that is about the user.
func (f *Fixture) MailAbout(id rolecall.UserID, kind rolecall.MailKind) rolecall.Mail {
	f.Helper()
	for _, m := range slices.Backward(f.Mails()) {
		if m.UserID == id && m.Kind == kind {
			return m
		}
	}
	f.Fatalf("there is no mail %s about %s", kind, id)
	return rolecall.Mail{}
}
