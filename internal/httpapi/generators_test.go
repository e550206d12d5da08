package httpapi

import (
	"regexp"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/secret"
)

// TestPatchesHaveNoDefaults checks the bodies of all PATCH operations. Several code generators send the default
// of a schema for each absent member, so a patch of one member would reset the others.
func TestPatchesHaveNoDefaults(t *testing.T) {
	patches := 0
	for _, m := range requestMembers() {
		if m.operation.Method != "PATCH" {
			continue
		}
		patches++
		if m.schema.Default != nil {
			t.Errorf("%s %s has the default %v", m.operation.ID, m.pointer(), m.schema.Default)
		}
	}
	if patches < 40 {
		t.Errorf("found only %d members of patches", patches)
	}
}

// TestNamesSuitCodeGenerators checks names of which generators make types, functions and files.
func TestNamesSuitCodeGenerators(t *testing.T) {
	document := Document()
	schemas := document.Components.Schemas.Map()
	folded := map[string]string{}
	for name := range schemas {
		if other := folded[strings.ToLower(name)]; other != "" {
			t.Errorf("the schemas %s and %s differ only in case", name, other)
		}
		folded[strings.ToLower(name)] = name
		if rest, ok := strings.CutPrefix(name, "New"); ok {
			t.Errorf("%s is the name of the constructor of %s in Go", name, rest)
		}
		if strings.HasSuffix(name, "Test") {
			t.Errorf("the file of %s is a test in Go", name)
		}
	}
	bearers := 0
	for name, scheme := range document.Components.SecuritySchemes {
		if other := folded[strings.ToLower(name)]; other != "" {
			t.Errorf("the security scheme %s has the name of a schema", name)
		}
		if scheme.Scheme == "bearer" {
			bearers++
		}
	}
	if bearers != 1 {
		t.Errorf("%d security schemes are bearer tokens", bearers)
	}
}

// TestShortenedOperationIDsAreUnique shortens the IDs as docs/generated-clients.md does.
func TestShortenedOperationIDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range declared {
		id := strings.ToLower(strings.Replace(o.ID, "Controller_", "", 1))
		if seen[id] {
			t.Errorf("two operations have the ID %s", id)
		}
		seen[id] = true
	}
}

// memberNamed returns the schema of the member of the component.
func memberNamed(t *testing.T, component, member string) *huma.Schema {
	t.Helper()
	s := Document().Components.Schemas.Map()[component].Properties[member]
	if s == nil {
		t.Fatalf("%s has no %s", component, member)
	}
	return s
}

// TestPatternsStateTheRulesOfTheService compares patterns with the functions that check the values.
func TestPatternsStateTheRulesOfTheService(t *testing.T) {
	texts := []string{
		"", "https://", "https://a", "https://hooks.example.com/rolecall?a=b", "HTTPS://hooks.example.com", "http://hooks.example.com", "ftp://a",
		"https://hooks.example.com/#x", "https://hooks.example.com/#", `https://hooks.example.com\@a`, "https://hooks.example.com/a b", "https://ü.example", "hooks.example.com",
		"https://login.example.com/[x]~", "https://login.example.com/?",
	}
	url := regexp.MustCompile(memberNamed(t, "CreateWebhook", "url").Pattern)
	issuer := regexp.MustCompile(memberNamed(t, "CreateConnection", "issuer").Pattern)
	matched := 0
	for _, text := range texts {
		isURL := outbound.CheckURL(text) == nil
		if isURL && !url.MatchString(text) || isURL && !strings.Contains(text, "?") && !issuer.MatchString(text) {
			t.Errorf("%q is accepted, but does not match", text)
		}
		if url.MatchString(text) {
			matched++
		}
		if issuer.MatchString(text) && strings.Contains(text, "?") {
			t.Errorf("%q has a query, but matches", text)
		}
	}
	if matched != 5 {
		t.Errorf("%d texts match the pattern of URLs", matched)
	}

	challenge := regexp.MustCompile(memberNamed(t, "StartOidc", "codeChallenge").Pattern)
	base := strings.Repeat("a", 42)
	for _, last := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/" {
		text := base + string(last)
		if _, ok := secret.ParseToken(text); ok != challenge.MatchString(text) {
			t.Errorf("%q is accepted: %v", text, ok)
		}
	}

	kind := regexp.MustCompile(memberNamed(t, "CreateWebhook", "types").Items.Pattern)
	for _, d := range rolecall.EventDescriptions() {
		if !kind.MatchString(string(d.Type)) {
			t.Errorf("the type %s does not match", d.Type)
		}
	}
	if !kind.MatchString(string(rolecall.AllEventTypes)) || kind.MatchString("*.*") || kind.MatchString("user") {
		t.Error("the pattern of types is wrong")
	}
}
