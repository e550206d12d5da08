package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/mail"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/outbox"
)

// mailboxFrom is the default sender address of mail that --mailbox writes to a folder.
const mailboxFrom = "rolecall@localhost"

func (s *settings) readMail() (err error) {
	if s.templates, err = mail.LoadTemplates(s.MailTemplates); err != nil {
		return fmt.Errorf("--mail-templates: %w", err)
	}
	if s.Demo && s.Mailbox == "" {
		s.Mailbox = demoMailbox
	}
	if s.MailFrom != "" {
		if err := mail.CheckFrom(s.MailFrom); err != nil {
			return fmt.Errorf("--mail-from %w", err)
		}
	}
	switch {
	case s.SMTPHello != "" && s.SMTP == "":
		return errors.New("--smtp-hello requires --smtp")
	case s.MailWebhook != "":
		return s.readMailWebhook()
	case s.MailWebhookKey != "" || s.MailNetworks != nil:
		return errors.New("--mail-webhook-key-file and --mail-webhook-networks require --mail-webhook")
	case s.SMTP == "" && s.Mailbox != "" && !s.Demo:
		s.warn("--mailbox: mail is written to a folder and printed with its secrets, instead of being sent; use it for development only")
	case s.SMTP == "":
	case s.Mailbox != "":
		return errors.New("--smtp cannot be used with --mailbox or --demo, which write mail to a folder")
	case s.MailFrom == "":
		return errors.New("--smtp requires --mail-from, the sender address")
	case s.publicURL == nil:
		return errors.New("--smtp requires --public-url, the base URL of the links in mail")
	default:
		return s.readSMTP()
	}
	return nil
}

// readMailWebhook checks the settings of --mail-webhook.
func (s *settings) readMailWebhook() error {
	switch {
	case s.SMTP != "" || s.Mailbox != "":
		return errors.New("--mail-webhook cannot be used with --smtp, --mailbox or --demo")
	case s.publicURL == nil && s.MailWebhookKey == "":
		return errors.New("--mail-webhook requires --public-url, the base URL of the links in mail, and --mail-webhook-key-file")
	case s.publicURL == nil:
		return errors.New("--mail-webhook requires --public-url, the base URL of the links in mail")
	case s.MailWebhookKey == "":
		return errors.New("--mail-webhook requires --mail-webhook-key-file")
	}
	networks, err := readNetworks("--mail-webhook-networks", s.MailNetworks)
	if err != nil {
		return err
	}
	if err := mail.CheckWebhook(s.MailWebhook, networks); err != nil {
		return fmt.Errorf("--mail-webhook %w", err)
	}
	if networks != nil {
		s.warn("--mail-webhook-networks lets the requests with mail reach these private networks: " + strings.Join(s.MailNetworks, ", "))
	}
	s.mailNetworks = networks
	return nil
}

// mailWebhook returns the mailer of --mail-webhook.
func (s *settings) mailWebhook(links rolecall.MailLinks) (outbox.Mailer, error) {
	key, err := os.ReadFile(s.MailWebhookKey)
	if err != nil {
		return nil, fmt.Errorf("--mail-webhook-key-file: %w", err)
	}
	mailer, err := mail.NewWebhook(s.MailWebhook, strings.TrimSpace(string(key)), links, outbound.New(outbound.Options{Allowed: s.mailNetworks}))
	if err != nil {
		return nil, fmt.Errorf("--mail-webhook-key-file %s %w", s.MailWebhookKey, err)
	}
	return mailer, nil
}

func (s *settings) readSMTP() (err error) {
	hello := mail.Hello(s.publicURL.Hostname())
	if s.SMTPHello != "" {
		if err := mail.CheckHello(s.SMTPHello); err != nil {
			return fmt.Errorf("--smtp-hello %w", err)
		}
		hello = s.SMTPHello
	}
	if s.smtp, err = mail.NewSMTP(s.SMTP, s.MailFrom, hello); err != nil {
		return fmt.Errorf("--smtp %w", err)
	}
	if s.smtp.InClear() {
		s.warn("--smtp without smtps:// or a password: if the mail server or an attacker on the network offers no STARTTLS, mail is sent unencrypted, including its links; use smtps://")
	}
	return nil
}

// readMailLinks reads the addresses of an application's own pages.
func (s *settings) readMailLinks() error {
	s.mailLinks = rolecall.MailLinks{}
	for _, own := range []struct {
		flag, address string
		kind          rolecall.MailKind
	}{
		{"--invitation-url", s.InvitationURL, rolecall.MailInvitation},
		{"--password-reset-url", s.PasswordResetURL, rolecall.MailPasswordReset},
		{"--email-change-url", s.EmailChangeURL, rolecall.MailEmailChange},
	} {
		if own.address == "" {
			continue
		}
		if err := checkMailLink(own.address); err != nil {
			return fmt.Errorf("%s %w", own.flag, err)
		}
		if strings.HasPrefix(own.address, "http:") {
			s.warn(own.flag + " uses plain http: the network can read the pages on which users set their password; use an https URL")
		}
		s.mailLinks[own.kind] = own.address
	}
	return nil
}

// checkMailLink returns an error unless the address is an http or https URL with {token} once, in its
// fragment. Its other parts can have {tenant}.
func checkMailLink(address string) error {
	const tenant, token = "a-tenant", "a-token"
	u, err := url.Parse(strings.NewReplacer("{tenant}", tenant, "{token}", token).Replace(address))
	before, fragment, _ := strings.Cut(address, "#")
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil:
		return errors.New("must be an https URL, such as https://app.example.com/{tenant}/welcome#{token}")
	case strings.Contains(before, "{token}") || strings.Count(fragment, "{token}") != 1:
		return errors.New("must have {token} once, after the #: a fragment is in no log of a server")
	case strings.ContainsAny(strings.NewReplacer("{tenant}", "", "{token}", "").Replace(address), "{} \t"):
		return errors.New("can have only the placeholders {tenant} and {token}, and no spaces")
	}
	return nil
}

// mailer returns the mailer that the settings describe. It returns nil if neither a mail server nor
// a mailbox folder is set. Mail that goes to a mailbox folder is also printed to out. If no public
// URL is set, the links in mail begin with the address of the listener.
func (s *settings) mailer(out io.Writer, address net.Addr) (outbox.Mailer, error) {
	public := "http://" + address.String()
	if s.TLSCert != "" {
		public = "https://" + address.String()
	}
	if s.publicURL != nil {
		public = strings.TrimRight(s.publicURL.String(), "/")
	}
	links := rolecall.ConsoleLinks(public)
	maps.Copy(links, s.mailLinks)
	switch {
	case s.MailWebhook != "":
		return s.mailWebhook(links)
	case s.smtp != nil:
		return mail.NewMailer(s.templates, links, s.smtp), nil
	case s.Mailbox == "":
		return nil, nil
	}
	box, err := mail.NewMailbox(s.Mailbox, cmp.Or(s.MailFrom, mailboxFrom), out)
	if err != nil {
		return nil, fmt.Errorf("--mailbox: %w", err)
	}
	return mail.NewMailer(s.templates, links, box), nil
}
