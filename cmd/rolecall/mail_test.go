package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestMailSettings(t *testing.T) {
	const public, from = "https://id.example.com", "rolecall@example.com"
	const hook = "https://hooks.example.com/mail"
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "invitation.txt"), []byte("no subject"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		command serveCommand
		fault   string // part of the error, "" for no error
		warning string // "" for no warning
	}{
		{serveCommand{}, "", ""},
		{serveCommand{SMTP: "smtps://mail.example.com", MailFrom: from, PublicURL: public}, "", ""},
		{serveCommand{SMTP: "smtp://ada:secret@mail.example.com:587", MailFrom: from, PublicURL: public}, "", ""},
		{serveCommand{SMTP: "smtp://localhost:25", MailFrom: from, PublicURL: public}, "", ""},
		{serveCommand{SMTP: "smtp://mail.example.com", MailFrom: from, PublicURL: public}, "", "sent unencrypted"},
		{serveCommand{SMTP: "smtps://mail.example.com", MailFrom: from}, "--public-url", ""},
		{serveCommand{SMTP: "smtps://mail.example.com", SMTPHello: "node.example.com", MailFrom: from, PublicURL: public}, "", ""},
		{serveCommand{SMTP: "smtps://mail.example.com", SMTPHello: "node", MailFrom: from, PublicURL: public}, "--smtp-hello must be", ""},
		{serveCommand{SMTPHello: "node.example.com", PublicURL: public}, "--smtp-hello requires --smtp", ""},
		{serveCommand{SMTP: "smtps://mail.example.com", PublicURL: public}, "--mail-from", ""},
		{serveCommand{SMTP: "smtps://mail.example.com", MailFrom: "Rolecall", PublicURL: public}, "--mail-from", ""},
		{serveCommand{SMTP: "smtps://mail.example.com", MailFrom: from + "\r\nBcc: evil@example.com", PublicURL: public}, "--mail-from", ""},
		{serveCommand{SMTP: "mail.example.com", MailFrom: from, PublicURL: public}, "--smtp must be", ""},
		{serveCommand{SMTP: "smtp://ada:secret@", MailFrom: from, PublicURL: public}, "--smtp must be", ""},
		{serveCommand{SMTP: "smtps://mail.example.com", Mailbox: folder, MailFrom: from, PublicURL: public}, "cannot be used with --mailbox", ""},
		{serveCommand{SMTP: "smtps://mail.example.com", Demo: true, Listen: "127.0.0.1:0", MailFrom: from, PublicURL: public}, "cannot be used with --mailbox", ""},
		{serveCommand{Mailbox: "mail"}, "", "for development only"},
		{serveCommand{MailWebhook: hook, MailWebhookKey: "key", PublicURL: public}, "", ""},
		{serveCommand{MailWebhook: hook, MailWebhookKey: "key", PublicURL: public, SMTP: "smtps://mail.example.com", MailFrom: from}, "--mail-webhook cannot be used with --smtp", ""},
		{serveCommand{MailWebhook: hook, MailWebhookKey: "key", PublicURL: public, Demo: true, Listen: "127.0.0.1:0"}, "--mail-webhook cannot be used with --smtp, --mailbox or --demo", ""},
		{serveCommand{MailWebhook: hook, MailWebhookKey: "key"}, "--mail-webhook requires --public-url", ""},
		{serveCommand{MailWebhook: hook, PublicURL: public}, "requires --mail-webhook-key-file", ""},
		{serveCommand{MailWebhookKey: "key"}, "require --mail-webhook", ""},
		{serveCommand{MailWebhook: "http://hooks.example.com/", MailWebhookKey: "key", PublicURL: public}, "--mail-webhook must", ""},
		{serveCommand{MailWebhook: "https://10.0.0.1/mail", MailWebhookKey: "key", PublicURL: public}, "--mail-webhook must", ""},
		{serveCommand{MailWebhook: "https://10.0.0.1/mail", MailWebhookKey: "key", PublicURL: public, MailNetworks: []string{"10.0.0.0/8"}}, "", "--mail-webhook-networks lets"},
		{serveCommand{MailWebhook: "http://10.0.0.1/mail", MailWebhookKey: "key", PublicURL: public, MailNetworks: []string{"10.0.0.0/8"}}, "--mail-webhook must", ""},
		{serveCommand{MailWebhook: hook, MailWebhookKey: "key", PublicURL: public, MailNetworks: []string{"ten"}}, "--mail-webhook-networks", ""},
		{serveCommand{InvitationURL: "https://{tenant}.example.com/welcome?from={tenant}#token={token}"}, "", ""},
		{serveCommand{PasswordResetURL: "http://localhost:3000/#{token}"}, "", "--password-reset-url uses plain http"},
		{serveCommand{InvitationURL: "https://example.com/welcome"}, "--invitation-url must have {token} once", ""},
		{serveCommand{InvitationURL: "https://example.com/{token}"}, "--invitation-url must have {token} once", ""},
		{serveCommand{InvitationURL: "https://example.com/#{token}{token}"}, "--invitation-url must have {token} once", ""},
		{serveCommand{EmailChangeURL: "javascript:alert(1)#{token}"}, "--email-change-url must be an https URL", ""},
		{serveCommand{EmailChangeURL: "https://ada:secret@example.com/#{token}"}, "--email-change-url must be an https URL", ""},
		{serveCommand{EmailChangeURL: "/welcome#{token}"}, "--email-change-url must be an https URL", ""},
		{serveCommand{EmailChangeURL: "https://example.com/{user}#{token}"}, "only the placeholders", ""},
		{serveCommand{EmailChangeURL: "https://example.com/a b#{token}"}, "no spaces", ""},
		{serveCommand{MailTemplates: folder}, "--mail-templates: invitation.txt", ""},
		{serveCommand{MailTemplates: filepath.Join(folder, "nowhere")}, "--mail-templates", ""},
	} {
		s, err := test.command.settings(&globals{SecretKeyFile: "keys"})
		switch got := strings.Join(s.warnings, "\n"); {
		case test.fault == "" && err != nil, test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("%+v: %v, want %q", test.command, err, test.fault)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%+v: the error tells a password: %v", test.command, err)
		case err == nil && (got == "") != (test.warning == "") || !strings.Contains(got, test.warning):
			t.Errorf("%+v: warned %q, want %q", test.command, got, test.warning)
		}
	}
}

func TestLinksLeadToThePublicURL(t *testing.T) {
	served := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	for _, test := range []struct {
		command serveCommand
		link    string
	}{
		{serveCommand{}, "http://127.0.0.1:8080/console/acme/invitation#token"},
		{serveCommand{PublicURL: "https://id.example.com"}, "https://id.example.com/console/acme/invitation#token"},
		{serveCommand{PublicURL: "https://id.example.com/people/"}, "https://id.example.com/people/console/acme/invitation#token"},
		{serveCommand{PublicURL: "https://id.example.com", InvitationURL: "https://{tenant}.example.com/welcome#{token}"}, "https://acme.example.com/welcome#token"},
		{serveCommand{PublicURL: "https://id.example.com", PasswordResetURL: "https://app.example.com/#{token}"}, "https://id.example.com/console/acme/invitation#token"},
	} {
		test.command.Mailbox = t.TempDir()
		s, err := test.command.settings(&globals{SecretKeyFile: "keys"})
		if err != nil {
			t.Fatal(err)
		}
		var printed bytes.Buffer
		mailer, err := s.mailer(&printed, served)
		if err != nil {
			t.Fatal(err)
		}
		m := rolecall.Mail{ID: rolecall.NewID[rolecall.Mail](1), Kind: rolecall.MailInvitation, To: "hedy@example.com", Name: "Hedy", Token: "token"}
		if err := mailer.Send(t.Context(), rolecall.Tenant{Name: "acme", DisplayName: "Acme"}, m); err != nil || !strings.Contains(printed.String(), "\n    "+test.link+"\n") {
			t.Errorf("%v, printed %s, want %s", err, printed.String(), test.link)
		}
	}
}
