package e2e

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
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
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\b(rco?_)[A-Za-z0-9_-]{49}\b`), "${1}" + strings.Repeat("EXAMPLE", 7)},
	{regexp.MustCompile(`\brs_[A-Za-z0-9_-]{43}\b`), "rs_" + strings.Repeat("EXAMPLE", 6) + "A"},
	{regexp.MustCompile(`\bticket=[A-Za-z0-9_-]+`), "ticket=" + strings.Repeat("EXAMPLE", 3)},
	{regexp.MustCompile(`(["#])[A-Za-z0-9_-]{43}"`), "${1}" + strings.Repeat("EXAMPLE", 6) + `A"`},
	{regexp.MustCompile(`\bwhsec_[A-Za-z0-9+/]{43}=`), "whsec_" + strings.Repeat("EXAMPLE", 6) + "A="},
	{regexp.MustCompile(`\b[A-Z2-7]{32}\b`), "EXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAM"},
	{regexp.MustCompile(`"([0-9a-z]{4}-){6}[0-9a-z]{2}"`), `"exam-p1ee-xamp-1eex-amp1-eexa-mp"`},
	{regexp.MustCompile(`https://(localhost|127\.0\.0\.1):[0-9]+`), "https://login.acme.example"},
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
			body = r.pattern.ReplaceAll(body, []byte(r.replacement))
		}
		return body
	}
	return example{shown([]byte(request)), shown(a.body)}
}

var saving sync.Mutex // the tests of several stores can save their examples

// saveExamples adds the examples to the committed ones. It does not replace a committed example. To record one again,
// delete it first.
func saveExamples(t *testing.T, recorded map[string]example) {
	t.Helper()
	saving.Lock()
	defer saving.Unlock()
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
