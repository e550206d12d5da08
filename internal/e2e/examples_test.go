package e2e

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
)

var writeExamples = flag.Bool("examples", false, "write an example for each operation of the OpenAPI document that has none")

const examplesFile = "../../openapi/examples.json"

// example has the bodies of a request and its response.
type example struct {
	Request  json.RawMessage `json:"request,omitempty"`
	Response json.RawMessage `json:"response,omitempty"`
}

// replacements are patterns of texts that an example does not contain. The replacement of a secret has the same format,
// but secret scanners do not report it.
var replacements = []struct {
	form    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\b(rco?_)[A-Za-z0-9_-]{49}\b`), "${1}" + strings.Repeat("EXAMPLE", 7)},
	{regexp.MustCompile(`(["#])[A-Za-z0-9_-]{43}"`), "${1}" + strings.Repeat("EXAMPLE", 6) + `A"`},
	{regexp.MustCompile(`\bwhsec_[A-Za-z0-9+/]{43}=`), "whsec_" + strings.Repeat("EXAMPLE", 6) + "A="},
	{regexp.MustCompile(`\b[A-Z2-7]{32}\b`), "EXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAM"},
	{regexp.MustCompile(`"([0-9a-z]{4}-){6}[0-9a-z]{2}"`), `"exam-p1ee-xamp-1eex-amp1-eexa-mp"`},
	{regexp.MustCompile(regexp.QuoteMeta(password)), "a rather long password"},
	{regexp.MustCompile(`[a-z0-9-]+@` + canary + `\.example`), "ada@example.com"},
	{regexp.MustCompile(` key-[0-9]+\b`), ""},
	{regexp.MustCompile(`\bkey-[0-9]+\b`), "example"},
	{regexp.MustCompile(`\btenant-[0-9]+\b`), "acme"},
}

// exampleOf returns the bodies as an example. A body that is not JSON is left out.
func exampleOf(request string, a *answer) example {
	shown := func(body []byte) json.RawMessage {
		if !json.Valid(body) {
			return nil
		}
		for _, r := range replacements {
			body = r.form.ReplaceAll(body, []byte(r.instead))
		}
		return body
	}
	return example{shown([]byte(request)), shown(a.body)}
}

// saveExamples adds the examples to the committed ones. It does not replace a committed example. To record one again,
// delete it first.
func saveExamples(t *testing.T, recorded map[string]example) {
	t.Helper()
	var committed map[string]example
	text, err := os.ReadFile(examplesFile)
	if err == nil {
		err = json.Unmarshal(text, &committed)
	}
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(recorded, committed)
	if text, err = json.MarshalIndent(recorded, "", "  "); err == nil {
		err = os.WriteFile(examplesFile, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
