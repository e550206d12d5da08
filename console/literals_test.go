package console

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// unconverted are the files whose texts are not in the catalog yet.
var unconverted = map[string]bool{
	"account.go":               true,
	"account_templ.go":         true,
	"actions.go":               true,
	"actions_templ.go":         true,
	"assignments.go":           true,
	"assignments_templ.go":     true,
	"components_templ.go":      true,
	"console.go":               true,
	"deleted.go":               true,
	"deleted_templ.go":         true,
	"events.go":                true,
	"events_templ.go":          true,
	"forms.go":                 true,
	"forms_templ.go":           true,
	"holders_templ.go":         true,
	"invitations.go":           true,
	"invitations_templ.go":     true,
	"layout_templ.go":          true,
	"lists_templ.go":           true,
	"metadata_templ.go":        true,
	"newuser_templ.go":         true,
	"page.go":                  true,
	"parameters.go":            true,
	"request.go":               true,
	"roleforms_templ.go":       true,
	"roles.go":                 true,
	"roles_templ.go":           true,
	"selected_templ.go":        true,
	"serviceaccounts.go":       true,
	"serviceaccounts_templ.go": true,
	"sessions_templ.go":        true,
	"settings.go":              true,
	"settings_templ.go":        true,
	"tokens.go":                true,
	"tokens_templ.go":          true,
	"user.go":                  true,
	"user_templ.go":            true,
	"useredit_templ.go":        true,
	"users.go":                 true,
	"users_templ.go":           true,
	"words.go":                 true,
}

var (
	// sentenceLike finds texts for people: two words, or a word with a capital letter.
	sentenceLike = regexp.MustCompile(`[A-Za-z’']{2,},? [A-Za-z]+|^[A-Z][a-z]+$|^[A-Z][a-z]+[,.:]? `)
	cssWord      = regexp.MustCompile(`\.([a-z][a-z-]*)`)
	spokenParts  = regexp.MustCompile(`\b(?:title|placeholder|alt|aria-label|aria-description|data-does|data-label|label)="[^"]*[A-Za-z]`)
	someMarkup   = regexp.MustCompile(`<[^>]*>|&[a-z]+;`)
)

// silent are texts in the source that people do not read, or that are the same in all languages.
var silent = map[string]bool{
	"Location": true, "Content-Type": true, "Referrer-Policy": true, "Origin": true,
	"Rolecall":          true, // the name of the product
	"Count":             true, // a placeholder
	"username webauthn": true, // for the browser
}

// isForPeople reports whether the text of a Go file is for people. classes are those of the style
// sheet.
func isForPeople(text, call string, classes map[string]bool) bool {
	if call == "panic" || call == "msg" || call == "say" || silent[text] || !sentenceLike.MatchString(text) || strings.ContainsAny(text, "<{;=") || strings.Contains(text, "Controller_") {
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
	css, err := os.ReadFile("assets/console.css")
	if err != nil {
		t.Fatal(err)
	}
	classes := map[string]bool{}
	for _, match := range cssWord.FindAllSubmatch(css, -1) {
		classes[string(match[1])] = true
	}
	return classes
}

func TestTextsForPeopleAreInTheCatalog(t *testing.T) {
	classes := styleClasses(t)
	set, files := sources(t)
	for name, file := range files {
		if unconverted[name] {
			continue
		}
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
			if line = strings.TrimSpace(line); regexp.MustCompile(`[A-Za-z]`).MatchString(line) {
				found = append(found, line)
			}
		}
		found = append(found, spokenParts.FindAllString(markup.String(), -1)...)
	}
	return found
}
