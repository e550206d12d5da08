package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/mail"
)

type mailCommands struct {
	Preview mailPreview `cmd:"" help:"Render mails with sample data, to check your own templates. Needs no database. Example: rolecall mail preview --out preview"`
}

type mailPreview struct {
	Kind          rolecall.MailKind `arg:"" optional:"" help:"Mail to render, such as invitation. Default: all mails"`
	Out           string            `placeholder:"FOLDER" help:"Write each mail to KIND.html and KIND.txt in this folder, and print the paths. Default: print the text versions"`
	MailTemplates string            `group:"Mail:" placeholder:"FOLDER" help:"Folder with your own mail templates, as for rolecall serve. Default: built-in templates"`
}

// Validate returns an error if the kind of mail is unknown, or if the preview would overwrite the
// templates.
func (c *mailPreview) Validate() error {
	switch kinds := mail.Kinds(); {
	case c.Kind != "" && !slices.Contains(kinds, c.Kind):
		return fmt.Errorf("unknown mail %q: use one of %s", c.Kind, joinKinds(kinds))
	case c.Out != "" && c.MailTemplates != "" && isSameFile(c.Out, c.MailTemplates):
		return fmt.Errorf("--out must not be the folder of --mail-templates: the preview would overwrite the templates")
	}
	return nil
}

// previewRow is the output for one rendered mail: either its content, or the paths of the files
// that contain it.
type previewRow struct {
	Kind     rolecall.MailKind `json:"kind"`
	Subject  string            `json:"subject"`
	Text     string            `json:"text,omitempty"`
	HTML     string            `json:"html,omitempty"`
	TextFile string            `json:"textFile,omitempty"`
	HTMLFile string            `json:"htmlFile,omitempty"`
}

// Run renders the mails.
func (c *mailPreview) Run(p *program) error {
	templates, err := mail.LoadTemplates(c.MailTemplates)
	if err != nil {
		return fmt.Errorf("--mail-templates: %w", err)
	}
	kinds := mail.Kinds()
	if c.Kind != "" {
		kinds = []rolecall.MailKind{c.Kind}
	}
	rows, lines := []previewRow{}, []string{}
	for _, kind := range kinds {
		row := previewRow{Kind: kind}
		if row.Subject, row.Text, row.HTML, err = templates.Sample(kind); err != nil {
			return err
		}
		text := "Subject: " + row.Subject + "\n\n" + row.Text
		switch {
		case c.Out != "":
			if err := c.write(&row, text); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			lines = append(lines, row.HTMLFile, row.TextFile)
		case c.Kind == "":
			lines = append(lines, "--- "+string(kind), text)
		default:
			lines = append(lines, strings.TrimSuffix(text, "\n"))
		}
		rows = append(rows, row)
	}
	return p.print(rows, lines...)
}

// write writes the mail to a text file and an HTML file. In the row, it replaces the content with
// the paths of these files.
func (c *mailPreview) write(row *previewRow, text string) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	path := filepath.Join(c.Out, string(row.Kind))
	row.TextFile, row.HTMLFile = path+".txt", path+".html"
	if err := os.WriteFile(row.TextFile, []byte(text), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(row.HTMLFile, []byte(row.HTML), 0o644); err != nil {
		return err
	}
	row.Text, row.HTML = "", ""
	return nil
}

func joinKinds(kinds []rolecall.MailKind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

func isSameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
