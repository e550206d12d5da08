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
	public    string
	transport Transport
}

// NewMailer returns a mailer with the templates and the transport. public is the URL that links in
// mail begin with, without a slash at the end.
func NewMailer(templates *Templates, public string, transport Transport) *Mailer {
	return &Mailer{templates, public, transport}
}

// Send renders the mail and passes it to the transport. The tenant is the sender that the recipient
// sees.
func (s *Mailer) Send(ctx context.Context, tenant rolecall.Tenant, m rolecall.Mail) error {
	sender := plain(tenant.DisplayName, tenant.Name)
	subject, text, page, err := s.templates.write(m.Kind, Letter{
		Name: plain(m.Name, ""), Tenant: sender, Link: s.link(tenant, m),
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

// link returns the link with the token of the mail, or an empty text if the mail has no token. The
// token is in the fragment of the URL. Browsers do not send fragments to servers, so the token is
// in no server log.
func (s *Mailer) link(tenant rolecall.Tenant, m rolecall.Mail) string {
	if m.Token == "" {
		return ""
	}
	return s.public + "/console/" + tenant.Name + "/" + string(m.Kind) + "#" + m.Token
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
