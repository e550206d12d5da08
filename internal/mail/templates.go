package mail

import (
	"embed"
	"errors"
	"fmt"
	"html"
	htmltemplate "html/template"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	texttemplate "text/template"
	"time"

	"github.com/rolecall/rolecall"
)

// Letter has the values that the templates of a mail can use.
type Letter struct {
	Name    string // of the recipient; may be empty
	Tenant  string // display name of the tenant
	Link    string // empty for a notice
	Expires string // when the link expires
	At      string // when the mail was requested, or when the change happened
	What    string // for a notice: a sentence about the changed credential, or why a webhook was disabled

	// For a notice that a new address was requested.
	NewEmail        string // masked
	ByAdministrator bool   // an administrator requested it, not the user

	// For a notice. Both are empty if they are unknown, or if an administrator made the change.
	Client string // a description of the browser
	Source string // the IP address of the client
}

// kinds has all kinds of mail. The value is true if the mail has a link.
var kinds = map[rolecall.MailKind]bool{
	rolecall.MailInvitation:           true,
	rolecall.MailPasswordReset:        true,
	rolecall.MailEmailChange:          true,
	rolecall.MailEmailChanged:         false,
	rolecall.MailEmailChangeRequested: false,
	rolecall.MailCredentialsChanged:   false,
	rolecall.MailNewBrowser:           false,
	rolecall.MailTokenReused:          false,
	rolecall.MailWebhookDisabled:      false,
	rolecall.MailEventsKept:           false,
	rolecall.MailDirectory:            false,
	rolecall.MailNoticesPaused:        false,
}

//go:embed templates
var embedded embed.FS

// layout is the template that surrounds the HTML of every mail.
const layout = "layout.html"

// Templates are the templates of all mails.
type Templates struct {
	texts map[rolecall.MailKind]*texttemplate.Template // text templates; the first line is the subject
	pages map[rolecall.MailKind]*htmltemplate.Template
}

// LoadTemplates returns the built-in templates. A file in the folder replaces the template of the
// same name. If folder is empty, no template is replaced. LoadTemplates renders each template with
// sample data, so that mistakes are reported here and not when a mail is sent.
func LoadTemplates(folder string) (*Templates, error) {
	read := func(name string) (string, error) {
		content, err := embedded.ReadFile(path.Join("templates", name))
		return string(content), err
	}
	if folder != "" {
		own := os.DirFS(folder)
		if err := onlyKnown(own); err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
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

// onlyKnown returns an error if a file in the folder does not have the name of a template. It
// ignores hidden files.
func onlyKnown(folder fs.FS) error {
	files, err := fs.ReadDir(folder, ".")
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err // without the path, which is relative to the folder
	}
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
			return fmt.Errorf("%s is not the name of a template: use %s", name, strings.Join(known, ", "))
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

// Kinds returns the kinds of mail in alphabetical order.
func Kinds() []rolecall.MailKind { return slices.Sorted(maps.Keys(kinds)) }

// sample returns a letter of the kind with sample data.
func sample(kind rolecall.MailKind) Letter {
	at := time.Date(2026, time.November, 21, 8, 30, 0, 0, time.UTC)
	l := Letter{
		Name: "Ada Lovelace", Tenant: "Acme Inc.", Expires: moment(rolecall.TimeOf(at.AddDate(0, 0, 3))), At: moment(rolecall.TimeOf(at)),
		What: "the password was changed", NewEmail: rolecall.MaskEmail("ada@example.org"), Client: "Firefox on Linux", Source: "192.0.2.1",
	}
	switch kind {
	case rolecall.MailWebhookDisabled:
		l.What = "an item could not be delivered for three days"
	case rolecall.MailEventsKept:
		l.What = "90 days"
	case rolecall.MailDirectory:
		l.What = "The token Entra of the directory Acme Entra expires on 24 November 2026. Create another token and enter it at the identity provider."
	case rolecall.MailNoticesPaused:
		l.What = "changes of your sign-in settings"
	}
	if kinds[kind] {
		l.Link = "https://id.example.com/console/acme/" + string(kind) + "#sample-token"
	}
	return l
}

// Sample renders a mail of the kind with sample data. It returns the subject, the text and the
// HTML.
func (t *Templates) Sample(kind rolecall.MailKind) (subject, text, page string, err error) {
	return t.write(kind, sample(kind))
}

// try renders a mail of the kind with sample data. It returns an error if the text or the HTML does
// not contain the link.
func (t *Templates) try(kind rolecall.MailKind) error {
	l := sample(kind)
	_, text, page, err := t.write(kind, l)
	switch {
	case err != nil:
		return err
	case !strings.Contains(text, l.Link):
		return fmt.Errorf("%s.txt must contain {{.Link}}", kind)
	case !strings.Contains(html.UnescapeString(page), l.Link):
		return fmt.Errorf("%s.html must contain {{.Link}}", kind)
	}
	return nil
}

// write renders the letter with the templates of the kind. It returns the subject, the text and the
// HTML.
func (t *Templates) write(kind rolecall.MailKind, l Letter) (subject, text, page string, err error) {
	if t.texts[kind] == nil {
		return "", "", "", fmt.Errorf("no template exists for mail of kind %q", kind)
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
