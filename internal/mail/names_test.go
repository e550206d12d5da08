package mail

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/mail/mailtest"
)

// awkward has unusual names of people and tenants. The value is true if a mail may show the name.
var awkward = map[string]bool{
	"Acme Inc.":                       true,
	"What now?":                       true,
	"Yahoo!":                          true,
	"O'Hara & <b>Sons":                true,
	"شركة المثال ٢٤":                  true,
	"חברת \"דוגמה\" (2024)":           true,
	"Ünïcödé 株式会社":                    true,
	strings.Repeat("long ", 50) + "o": true,
	strings.Repeat("ü", 255):          true,
	"{{.Link}} {{template \"x\"}}":    true,
	"evil.example":                    false,
	"Visit evil.example.":             false,
	"https://evil.example/":           false,
	"eve@evil.example":                false,
	"Acme \u202eelpmaxe.live":         false,
}

// arrived sends a mail of the kind with the names of the person and the tenant, and returns the
// received message.
func arrived(t *testing.T, kind rolecall.MailKind, person, tenant string) mailtest.Message {
	t.Helper()
	server := mailtest.Start(t, mailtest.Options{})
	templates, err := LoadTemplates("")
	if err != nil {
		t.Fatal(err)
	}
	now := rolecall.TimeOf(aMessage().Date)
	m := rolecall.Mail{ID: rolecall.NewID[rolecall.Mail](now), CreatedAt: now, Kind: kind, To: "hedy@example.com", Name: person, What: "the password was changed", ExpiresAt: now}
	if kinds[kind] {
		m.Token = "aB-_09"
	}
	mailer := NewMailer(templates, rolecall.ConsoleLinks("https://id.example.com"), through(t, server))
	if err := mailer.Send(t.Context(), rolecall.Tenant{Name: "acme", DisplayName: tenant}, m); err != nil {
		t.Fatalf("%s of %q: %v", kind, tenant, err)
	}
	return await(t, server, m.To)
}

// beforeDigit matches a text with a digit before its first letter. After the name of a tenant in a
// right-to-left script, mail programs would show such a digit on the wrong side of the name.
var beforeDigit = regexp.MustCompile(`^\P{L}*\d`)

func TestMailsKeepTheirFormWithAwkwardNames(t *testing.T) {
	for kind := range kinds {
		for name, shown := range awkward {
			m := arrived(t, kind, name, name)
			from, err := m.Header.AddressList("From")
			if err != nil || len(from) != 1 {
				t.Fatalf("%s of %q is from %v: %v", kind, name, from, err)
			}
			want := name
			if !shown {
				want = "acme"
			}
			page := html.UnescapeString(m.HTML)
			if !strings.Contains(m.Subject, want) || !strings.Contains(m.Text, want) || !strings.Contains(page, "<bdi>"+want+"</bdi>") || from[0].Name != want {
				t.Errorf("%s does not name %q: from %q\n%s\n%s\n%s", kind, want, from[0].Name, m.Subject, m.Text, m.HTML)
			}
			if greeting := "Hello " + name + ",\n"; strings.Contains(m.Text, greeting) != shown || !shown && !strings.Contains(m.Text, "Hello,\n") {
				t.Errorf("%s greets %q wrongly:\n%s", kind, name, m.Text)
			}
			all := m.Subject + "\n" + m.Text + page + from[0].Name
			if !shown && (strings.Contains(all, "evil") || strings.Contains(all, "\u202e")) {
				t.Errorf("%s shows %q:\n%s", kind, name, all)
			}
			for _, doubled := range []string{"..", "?.", "!.", ",,", "  "} {
				if strings.Contains(m.Subject+m.Text, doubled) && !strings.Contains(name, doubled) {
					t.Errorf("%s of %q holds %q:\n%s\n%s", kind, name, doubled, m.Subject, m.Text)
				}
			}
			for line := range strings.Lines(m.Subject + "\n" + m.Text) {
				if _, after, ok := strings.Cut(line, want); ok && (strings.HasPrefix(line, want) || beforeDigit.MatchString(after)) {
					t.Errorf("%s: the line depends on the direction of the name: %s", kind, line)
				}
			}
			if strings.Contains(m.HTML, "<b>") || strings.Count(m.Text, "http") != strings.Count(m.Text, "https://id.example.com/console/acme/"+string(kind)+"#aB-_09") {
				t.Errorf("%s of %q holds what is not its own:\n%s\n%s", kind, name, m.Text, m.HTML)
			}
		}
	}
}
