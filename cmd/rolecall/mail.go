package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/rolecall/rolecall/internal/mail"
	"github.com/rolecall/rolecall/internal/outbox"
)

// mailboxFrom is the sender address of mail that is not sent to a mail server.
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
	case s.SMTP == "" && s.Mailbox != "" && !s.Demo:
		s.warn("--mailbox: mail is kept in a folder and printed, secrets included, instead of being sent; this is to develop with")
	case s.SMTP == "":
	case s.Mailbox != "":
		return errors.New("--smtp sends mail, and --mailbox and --demo keep it: give one of them")
	case s.MailFrom == "":
		return errors.New("--smtp needs --mail-from, the address that mail is sent from")
	case s.publicURL == nil:
		return errors.New("--smtp needs --public-url, with which the links in mail begin")
	default:
		return s.readSMTP()
	}
	return nil
}

func (s *settings) readSMTP() (err error) {
	if s.smtp, err = mail.NewSMTP(s.SMTP, s.MailFrom); err != nil {
		return fmt.Errorf("--smtp %w", err)
	}
	if s.smtp.InClear() {
		s.warn("--smtp without a user, and not smtps://: where the mail server offers no encryption, or somebody in between makes it seem so, mail passes in clear, with the links in it")
	}
	return nil
}

// mailer returns what sends mail, nil if there is nothing to send it with. A mailbox
// prints to out; without a public URL its links lead to the address that is served.
func (s *settings) mailer(out io.Writer, address net.Addr) (outbox.Mailer, error) {
	public := "http://" + address.String()
	if s.TLSCert != "" {
		public = "https://" + address.String()
	}
	if s.publicURL != nil {
		public = strings.TrimRight(s.publicURL.String(), "/")
	}
	switch {
	case s.smtp != nil:
		return mail.NewMailer(s.templates, public, s.smtp), nil
	case s.Mailbox == "":
		return nil, nil
	}
	box, err := mail.NewMailbox(s.Mailbox, cmp.Or(s.MailFrom, mailboxFrom), out)
	if err != nil {
		return nil, fmt.Errorf("--mailbox: %w", err)
	}
	return mail.NewMailer(s.templates, public, box), nil
}
