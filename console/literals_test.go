package console

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

var (
	// sentenceLike finds texts for people: two words, or a word with a capital letter.
	sentenceLike = regexp.MustCompile(`[A-Za-z’']{2,},? [A-Za-z]+|^[A-Z][a-z]+$|^[A-Z][a-z]+[,.:]? `)
	cssWord      = regexp.MustCompile(`\.([a-z][a-z-]*)`)
	spokenParts  = regexp.MustCompile(`\b(?:title|placeholder|alt|aria-label|aria-description|data-does|data-label|label)="[^"]*[A-Za-z]`)
	someMarkup   = regexp.MustCompile(`<[^>]*>|&[a-z]+;`)
)

// productName is the same in all languages.
const productName = "Rolecall"

// silent has texts in the source that people do not read, or that are the same in all
// languages.
var silent = map[string]bool{
	"Location": true, "Content-Type": true, "Referrer-Policy": true, "Origin": true,
	"Session": true, "Session, Bearer": true, // schemes of authentication
	productName:         true,
	"Count":             true, // a placeholder
	"username webauthn": true, // for the browser
	requestedScopes:     true,
}

// isForPeople reports whether a text in a Go file is for people. call is the function that
// receives the text, and classes are the CSS classes.
func isForPeople(text, call string, classes map[string]bool) bool {
	if call == "panic" || call == "msg" || call == "say" || strings.HasPrefix(text, "console: ") || silent[text] || !sentenceLike.MatchString(text) || strings.ContainsAny(text, "<{;=") || strings.Contains(text, "Controller_") {
		return false
	}
	for word := range strings.FieldsSeq(text) {
		if !classes[word] {
			return true
		}
	}
	return false
}

func styleClasses(t *testing.T) map[string]bool {
	t.Helper()
	classes := map[string]bool{}
	for _, match := range cssWord.FindAllSubmatch(styleSheet(), -1) {
		classes[string(match[1])] = true
	}
	return classes
}

func TestTextsForPeopleAreInTheCatalog(t *testing.T) {
	classes := styleClasses(t)
	set, files := sources(t)
	for name, file := range files {
		if strings.HasSuffix(name, "_templ.go") {
			for _, found := range markupTexts(file) {
				t.Errorf("%s: the text %q belongs to the catalog", strings.Replace(name, "_templ.go", ".templ", 1), found)
			}
		}
		literals(file, func(text, call string, at token.Pos) {
			if call != "WriteString" && isForPeople(text, call, classes) {
				t.Errorf("%s: the text %q belongs to the catalog", set.Position(at), text)
			}
		})
	}
}

// markupTexts returns the texts for people in the markup of a generated file.
func markupTexts(file *ast.File) (found []string) {
	for _, declaration := range file.Decls {
		var markup strings.Builder
		literals(declaration, func(text, call string, _ token.Pos) {
			if call == "WriteString" {
				markup.WriteString(text)
			}
		})
		for _, line := range someMarkup.Split(markup.String(), -1) {
			if line = strings.TrimSpace(line); line != productName && regexp.MustCompile(`[A-Za-z]`).MatchString(line) {
				found = append(found, line)
			}
		}
		found = append(found, spokenParts.FindAllString(markup.String(), -1)...)
	}
	return found
}

func TestTextsForPeopleAreFound(t *testing.T) {
	classes := styleClasses(t)
	for text, want := range map[string]bool{
		"Delete the user": true, "Cancel": true, "must be a date": true, "Removed. Sign in": true,
		"button primary": false, "UsersController_listUsers": false, "Content-Type": false, "users.title": false, "2006-01-02": false,
	} {
		if got := isForPeople(text, "", classes); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	const source = "package x\nfunc f() { WriteString(w, 1, `<p class=\"note\" title=\"Some words\">Delete`); WriteString(w, 2, ` <b>it</b></p>`) }"
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := markupTexts(file); strings.Join(found, ",") != `Delete,it,title="Some words` {
		t.Errorf("%q", found)
	}
}
