package mail

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var aLetter = Letter{
	Name: "Ada <b>Lovelace</b>", Tenant: `O'Hara & "Sons"`, Link: "https://id.example.com/console/acme/invitation#aB-_09",
	Expires: "November 24, 2026 at 08:30 UTC", At: "November 21, 2026 at 08:30 UTC", What: "the password was changed",
	Client: "Firefox <i>on Linux</i>", Source: "2001:db8::1",
}

// load returns the templates. The files replace templates of the same name.
func load(t *testing.T, files map[string]string) (*Templates, error) {
	t.Helper()
	folder := ""
	if files != nil {
		folder = t.TempDir()
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return LoadTemplates(folder)
}

var (
	element = regexp.MustCompile(`(?s)<head>.*</head>|<[^>]*>`)
	button  = regexp.MustCompile(`(?s)<table role="presentation" class="button".*?</table>|Or copy this link to your browser:`)
	foot    = regexp.MustCompile(`(?s)Sent automatically for.*`)
	inline  = strings.NewReplacer("<bdi>", "", "</bdi>", "")
)

// words returns the text of an HTML mail without its layout and its button.
func words(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(element.ReplaceAllString(inline.Replace(foot.ReplaceAllString(button.ReplaceAllString(page, ""), "")), " "))), " ")
}

func TestPagesSayWhatTextsSay(t *testing.T) {
	templates, err := load(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	for kind := range kinds {
		subject, text, page, err := templates.write(kind, aLetter)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(strings.Fields(subject+" "+text), " "); words(page) != want {
			t.Errorf("%s: the page says\n%s\nthe text says\n%s", kind, words(page), want)
		}
		if strings.Contains(page, "<b>") || strings.Contains(page, "O'Hara & \"") || !strings.HasPrefix(page, "<!doctype html>") {
			t.Errorf("%s: the page is\n%s", kind, page)
		}
		if hasButton := button.MatchString(page); hasButton != kinds[kind] || strings.Contains(page, ">Continue<") {
			t.Errorf("%s: the page has a labeled button: %v, want %v", kind, hasButton, kinds[kind])
		}
		if strings.Contains(page, "src=") || strings.Contains(page, "url(") {
			t.Errorf("%s: the page loads something", kind)
		}
	}
}

func TestOwnTemplatesReplaceTheDefaults(t *testing.T) {
	templates, err := load(t, map[string]string{
		"invitation.txt": "Subject:  Hej \n{{.Name}}, {{.Link}}", "layout.html": `<main>{{template "content" .}}</main>{{define "link"}}<a href="{{.Link}}">here</a>{{end}}`, ".hidden": "",
	})
	if err != nil {
		t.Fatal(err)
	}
	subject, text, page, err := templates.write("invitation", aLetter)
	if err != nil || subject != "Hej" || text != "Ada <b>Lovelace</b>, "+aLetter.Link+"\n" || !strings.HasPrefix(page, "<main>") || !strings.Contains(page, `<a href="`+aLetter.Link+`">`) {
		t.Errorf("%q %q %s %v", subject, text, page, err)
	}
	if subject, _, _, err := templates.write("password-reset", aLetter); err != nil || !strings.HasPrefix(subject, "Reset your password") {
		t.Errorf("another is %q, %v", subject, err)
	}
}

func TestUnfitTemplatesAreRefusedAtTheStart(t *testing.T) {
	for _, c := range []struct{ file, content, want string }{
		{"invitation.txt", "Subject: Hej\n{{.Nme}} {{.Link}}", "Nme"},
		{"invitation.txt", "Subject: Hej\n{{.Link", "invitation.txt"},
		{"invitation.txt", "Hej\n{{.Link}}", "Subject"},
		{"invitation.txt", "Subject: \n{{.Link}}", "Subject"},
		{"invitation.txt", "Subject: Hej\nno way in", "{{.Link}}"},
		{"invitation.txt", "", "Subject"},
		{"invitation.html", `{{define "content"}}no way in{{end}}`, "{{.Link}}"},
		{"invitation.html", `{{.Link}}`, "content"},
		{"invitation.html", `{{define "content"}}<a href="{{.Link}}>{{end}}`, ""},
		{"layout.html", `{{template "content" .}}`, "link"},
		{"invitatoin.txt", "Subject: Hej\n{{.Link}}", "invitatoin.txt"},
	} {
		if _, err := load(t, map[string]string{c.file: c.content}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v", c.file, c.content, err)
		}
	}
	if _, err := LoadTemplates(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("templates of no folder were loaded")
	}
}

func TestOwnPagesWithoutALabelHaveAButton(t *testing.T) {
	templates, err := load(t, map[string]string{"invitation.html": `{{define "content"}}{{template "link" .}}{{end}}`})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, page, err := templates.write("invitation", aLetter); err != nil || !strings.Contains(page, ">Continue</a>") {
		t.Errorf("%v, the page is\n%s", err, page)
	}
}

func TestUnknownKindsHaveNoWords(t *testing.T) {
	templates, err := load(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := templates.write("advertisement", aLetter); err == nil {
		t.Error("an unknown kind was written")
	}
}
