package mail

import (
	"embed"
	"errors"
	"fmt"
	"html"
	htmltemplate "html/template"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	texttemplate "text/template"

	"github.com/rolecall/rolecall"
)

// Letter is what the templates know of a mail.
type Letter struct {
	Name    string // of the person
	Tenant  string // how the tenant calls itself
	Link    string // empty for a notice
	Expires string // when the link ends
	At      string // when it happened
	What    string // the changed thing, in a notice

	// Of a notice that a new address was requested.
	NewEmail        string // masked
	ByAdministrator bool   // an administrator requested it, not the user

	// Of a notice about a request or a session.
	Client string // the browser in words; empty: unknown
	Source string // the address that the session came from
}

// kinds are the mails there are, and whether they bear a link.
var kinds = map[rolecall.MailKind]bool{
	rolecall.MailInvitation:           true,
	rolecall.MailPasswordReset:        true,
	rolecall.MailEmailChange:          true,
	rolecall.MailEmailChanged:         false,
	rolecall.MailEmailChangeRequested: false,
	rolecall.MailCredentialsChanged:   false,
	rolecall.MailNewBrowser:           false,
	rolecall.MailTokenReused:          false,
}

//go:embed templates
var embedded embed.FS

// layout is the frame around the HTML of every mail.
const layout = "layout.html"

// Templates are the words of all mails.
type Templates struct {
	texts map[rolecall.MailKind]*texttemplate.Template // the first line is the subject
	pages map[rolecall.MailKind]*htmltemplate.Template
}

// LoadTemplates returns the templates of the program. A file of the same name in the folder replaces
// a template. An empty path means no folder. It renders each template, so that errors occur here and
// not when a mail is sent.
func LoadTemplates(folder string) (*Templates, error) {
	read := func(name string) (string, error) {
		content, err := embedded.ReadFile(path.Join("templates", name))
		return string(content), err
	}
	if folder != "" {
		own := os.DirFS(folder)
		if err := onlyKnown(own); err != nil {
			return nil, err
		}
		standard := read
		read = func(name string) (string, error) {
			content, err := fs.ReadFile(own, name)
			if errors.Is(err, fs.ErrNotExist) {
				return standard(name)
			}
			return string(content), err
		}
	}
	t := &Templates{texts: map[rolecall.MailKind]*texttemplate.Template{}, pages: map[rolecall.MailKind]*htmltemplate.Template{}}
	for kind := range kinds {
		if err := t.load(kind, read); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// onlyKnown returns an error if the folder has a file that would never be used.
func onlyKnown(folder fs.FS) error {
	files, err := fs.ReadDir(folder, ".")
	if err != nil {
		return err
	}
	known := []string{layout}
	for kind := range kinds {
		known = append(known, string(kind)+".txt", string(kind)+".html")
	}
	slices.Sort(known)
	for _, file := range files {
		if name := file.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(known, name) {
			return fmt.Errorf("%s is no template: they are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

func (t *Templates) load(kind rolecall.MailKind, read func(string) (string, error)) error {
	name := string(kind)
	text, err := read(name + ".txt")
	if err != nil {
		return err
	}
	if t.texts[kind], err = texttemplate.New(name + ".txt").Parse(text); err != nil {
		return err
	}
	page := htmltemplate.New("")
	for _, file := range []string{layout, name + ".html"} {
		content, err := read(file)
		if err != nil {
			return err
		}
		if _, err := page.New(file).Parse(content); err != nil {
			return err
		}
	}
	t.pages[kind] = page
	return t.try(kind)
}

// try renders a mail of the kind, and checks that it has the required content.
func (t *Templates) try(kind rolecall.MailKind) error {
	l := Letter{Name: "Ada Lovelace", Tenant: "Acme", Expires: "tomorrow", At: "today", What: "password", NewEmail: "a***@example.com", Client: "Firefox on Linux", Source: "192.0.2.1"}
	if kinds[kind] {
		l.Link = "https://id.example.com/console/acme/" + string(kind) + "#token"
	}
	_, text, page, err := t.write(kind, l)
	switch {
	case err != nil:
		return err
	case !strings.Contains(text, l.Link):
		return fmt.Errorf("%s.txt does not hold {{.Link}}", kind)
	case !strings.Contains(html.UnescapeString(page), l.Link):
		return fmt.Errorf("%s.html does not hold {{.Link}}", kind)
	}
	return nil
}

// write returns the letter in the words of its kind.
func (t *Templates) write(kind rolecall.MailKind, l Letter) (subject, text, page string, err error) {
	if t.texts[kind] == nil {
		return "", "", "", fmt.Errorf("there is no template for %q", kind)
	}
	var b strings.Builder
	if err := t.texts[kind].Execute(&b, l); err != nil {
		return "", "", "", err
	}
	first, text, _ := strings.Cut(b.String(), "\n")
	subject, ok := strings.CutPrefix(first, "Subject: ")
	if subject = strings.Join(strings.Fields(subject), " "); !ok || subject == "" {
		return "", "", "", fmt.Errorf("%s.txt must begin with a line such as Subject: Welcome", kind)
	}
	b.Reset()
	if err := t.pages[kind].ExecuteTemplate(&b, layout, l); err != nil {
		return "", "", "", err
	}
	return subject, strings.TrimSpace(text) + "\n", b.String(), nil
}
