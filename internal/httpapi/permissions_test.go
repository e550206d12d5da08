package httpapi

import (
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestPermissionsPageIsDocumentPermissions(t *testing.T) {
	const written, shown = "../../docs/permissions.md", "../../openapi/reference/permissions-text.html"
	source, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	page := string(source)
	for head, table := range map[string]string{ownHead: ownTable(), needsHead: needsTable()} {
		before, rest, _ := strings.Cut(page, head)
		_, after, found := strings.Cut(rest, "\n\n")
		if !found {
			t.Fatalf("%s has no table that begins with %q", written, head)
		}
		page = before + head + table + "\n" + after
	}
	if *update {
		if err := os.WriteFile(written, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if page != string(source) {
		t.Errorf("%s does not say what the policies say; run: make openapi", written)
	}
	want, err := renderMarkdown(page)
	if err != nil {
		t.Fatalf("%s: %v", written, err)
	}
	if *update {
		if err := os.WriteFile(shown, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(shown)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what %s says; run: go test ./internal/httpapi -run PermissionsPage -update", shown, written)
	}
	if strings.Count(want, "<tr>") < 40 {
		t.Errorf("%s has lost its tables", written)
	}
}

// ownHead is the head of the table of Rolecall's own permissions.
const ownHead = "| permission | allows |\n|---|---|\n"

// ownTable returns Rolecall's own permissions as rows of a Markdown table. Those on one member of users are one row for
// each action.
func ownTable() string {
	members := map[string][]string{} // by action
	for _, p := range rolecall.OwnPermissions() {
		if p.Field != "" {
			members[p.Action] = append(members[p.Action], "`"+p.Field+"`")
		}
	}
	var b strings.Builder
	for _, p := range append(rolecall.OwnPermissions(), rolecall.AllOwn, rolecall.AllApplications) {
		if p.Field != "" {
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", p, p.Opens())
		if names := members[p.Action]; p.Resource == "users" && names != nil {
			fmt.Fprintf(&b, "| `users.<member>:%s` | %s one member: %s |\n", p.Action, p.Action, strings.Join(names, ", "))
		}
	}
	return b.String()
}

// needsHead is the head of the table with the requirements of each operation.
const needsHead = "| operation | what it needs |\n|---|---|\n"

// needsTable returns the requirements of the policy of each operation for tenants, as rows of a Markdown table.
func needsTable() string {
	var b strings.Builder
	for _, op := range declared {
		if needs := op.Policy.Requirements(); needs != "" && !op.Policy.Operators {
			fmt.Fprintf(&b, "| `%s %s` | %s |\n", op.Method, op.Path, needs)
		}
	}
	return b.String()
}

// renderMarkdown renders Markdown as HTML. It supports the subset that docs/permissions.md uses:
// headings, paragraphs, lists with one line per item, fenced code and tables. For any other
// Markdown, it returns an error that names the line.
func renderMarkdown(source string) (string, error) {
	var b strings.Builder
	open := "" // the HTML element that is not closed yet
	enter := func(element string) {
		if open == element {
			return
		}
		if open == "table" {
			b.WriteString("</tbody></table></div>\n")
		} else if open != "" {
			b.WriteString("</" + open + ">\n")
		}
		open = element
		if element == "table" {
			b.WriteString(`<div class="wide" tabindex="0"><table>` + "\n")
		} else if element != "" {
			b.WriteString("<" + element + ">\n")
		}
	}
	fenced, rows := false, 0
	for line := range strings.Lines(source) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			if fenced = !fenced; fenced {
				enter("")
				b.WriteString(`<pre tabindex="0" role="region" aria-label="Example"><code>`)
			} else {
				b.WriteString("</code></pre>\n")
			}
		case fenced:
			b.WriteString(html.EscapeString(line) + "\n")
		case line == "":
			enter("")
		case headingMark.MatchString(line):
			enter("")
			mark := headingMark.FindString(line)
			level := len(mark) - 1
			fmt.Fprintf(&b, "<h%d>%s</h%d>\n", level, renderInline(line[len(mark):]), level)
		case strings.HasPrefix(line, "- "):
			enter("ul")
			b.WriteString("<li>" + renderInline(line[2:]) + "</li>\n")
		case numberMark.MatchString(line):
			enter("ol")
			b.WriteString("<li>" + renderInline(line[len(numberMark.FindString(line)):]) + "</li>\n")
		case strings.HasPrefix(line, "|"):
			if open != "table" {
				rows = 0
			}
			enter("table")
			b.WriteString(renderRow(line, rows))
			rows++
		case strings.ContainsAny(line[:1], "<>!=#*+~ \t"):
			return "", fmt.Errorf("cannot be rendered: %s", line)
		case open == "" || open == "p":
			enter("p")
			b.WriteString(renderInline(line) + "\n")
		default:
			return "", fmt.Errorf("cannot continue a %s: %s", open, line)
		}
	}
	enter("")
	rendered := b.String()
	for _, left := range []string{"{{", "**", "]("} { // {{ would begin a template action; the others are Markdown that was not rendered
		if strings.Contains(rendered, left) {
			return "", fmt.Errorf("%s is left over", left)
		}
	}
	return rendered, nil
}

var (
	headingMark = regexp.MustCompile(`^#{1,3} `)
	numberMark  = regexp.MustCompile(`^[0-9]+\. `)
	codeMark    = regexp.MustCompile("`([^`]+)`")
	strongMark  = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	linkMark    = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
	emphasis    = regexp.MustCompile(`\*([^*]+)\*`)
)

// renderRow renders a line of a table. Line 0 is the head, and line 1 is the delimiter below the
// head.
func renderRow(line string, row int) string {
	if row == 1 {
		return "<tbody>\n"
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	var b strings.Builder
	b.WriteString("<tr>")
	for _, cell := range cells {
		if cell = renderInline(strings.TrimSpace(cell)); row == 0 {
			b.WriteString(`<th scope="col">` + cell + "</th>")
		} else {
			b.WriteString("<td>" + cell + "</td>")
		}
	}
	b.WriteString("</tr>\n")
	if row == 0 {
		return "<thead>" + strings.TrimSuffix(b.String(), "\n") + "</thead>\n"
	}
	return b.String()
}

// renderInline renders the inline marks of a text: code, links and emphasis. It does not change the
// text within code.
func renderInline(text string) string {
	var b strings.Builder
	for text != "" {
		at := codeMark.FindStringSubmatchIndex(text)
		if at == nil {
			at = []int{len(text), len(text), len(text), len(text)}
		}
		plain := html.EscapeString(text[:at[0]])
		plain = linkMark.ReplaceAllString(plain, `<a href="$2">$1</a>`)
		plain = strongMark.ReplaceAllString(plain, "<strong>$1</strong>")
		b.WriteString(emphasis.ReplaceAllString(plain, "<em>$1</em>"))
		if at[0] < at[1] {
			b.WriteString("<code>" + html.EscapeString(text[at[2]:at[3]]) + "</code>")
		}
		text = text[at[1]:]
	}
	return b.String()
}
