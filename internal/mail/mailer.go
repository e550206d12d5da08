package mail

import (
	"cmp"
	"context"
	"regexp"

	"github.com/rolecall/rolecall"
)

// Transport sends messages.
type Transport interface {
	// Send returns nil as soon as the mail server is responsible for the message. After any error
	// except rolecall.ErrNoMailbox, the caller may send the message again unchanged.
	Send(ctx context.Context, m Message) error
}

// Mailer renders mails and passes them to a transport.
type Mailer struct {
	templates *Templates
	links     rolecall.MailLinks
	transport Transport
}

// NewMailer returns a mailer with the templates, the addresses of the links, and the transport.
func NewMailer(templates *Templates, links rolecall.MailLinks, transport Transport) *Mailer {
	return &Mailer{templates, links, transport}
}

// Send renders the mail and passes it to the transport. The tenant is the sender that the recipient
// sees.
func (s *Mailer) Send(ctx context.Context, tenant rolecall.Tenant, m rolecall.Mail) error {
	sender := plain(tenant.DisplayName, tenant.Name)
	link := ""
	if m.Token != "" {
		link = s.links.Link(m.Kind, tenant.Name, m.Token)
	}
	subject, text, page, err := s.templates.write(m.Kind, Letter{
		Name: plain(m.Name, ""), Tenant: sender, Link: link,
		Expires: moment(m.ExpiresAt), At: moment(m.CreatedAt), What: m.What,
		NewEmail: m.NewEmail, Client: plain(m.Client, ""), Source: m.Source, ByAdministrator: m.ByAdministrator,
	})
	if err != nil {
		return err
	}
	if name := tenant.Settings.MailSender; name != nil {
		sender = plain(*name, sender)
	}
	return s.transport.Send(ctx, Message{
		ID: m.ID.String(), Date: m.CreatedAt.Std(), To: m.To, FromName: sender, Subject: subject, Text: text, HTML: page,
	})
}

// notPlain matches texts that mail programs turn into a link or an address, such as example.com. It
// also matches characters that change the direction of the text next to them.
var notPlain = regexp.MustCompile(`[:/@]|[\pL\pN][.\x{3002}\x{FF0E}\x{FF61}]\pL{2}|[\x{202A}-\x{202E}\x{2066}-\x{2069}]`)

// plain returns the text. It returns other if the text is empty, or if mail programs could show the
// text as more than plain words. Names need this check, because any user can choose them.
func plain(text, other string) string {
	if notPlain.MatchString(text) {
		return other
	}
	return cmp.Or(text, other)
}

func moment(t rolecall.Time) string { return t.Std().UTC().Format("January 2, 2006 at 15:04 UTC") }
