package conventions

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// searchedWords are words that readers search for, and the documents that must contain them.
var searchedWords = map[string][]string{
	"MFA":          {"README.md", "docs/GLOSSARY.md", "docs/guides/second-factors.md"},
	"2FA":          {"README.md", "docs/GLOSSARY.md", "docs/guides/second-factors.md"},
	"SSO":          {"README.md", "docs/GLOSSARY.md", "docs/what-rolecall-does-not-do.md"},
	"audit log":    {"README.md", "docs/GLOSSARY.md", "docs/guides/events.md"},
	"API key":      {"README.md", "docs/GLOSSARY.md", "docs/guides/programs.md"},
	"organization": {"README.md", "docs/GLOSSARY.md"},
	"RBAC":         {"README.md", "docs/GLOSSARY.md", "docs/guides/permission-checks.md", "docs/what-rolecall-does-not-do.md"},
}

func TestDocumentsContainSearchedWords(t *testing.T) {
	texts := documents(t)
	for word, names := range searchedWords {
		for _, name := range names {
			if !strings.Contains(texts[name], word) {
				t.Errorf("%s does not mention %s", name, word)
			}
		}
	}
}

// missing has the features that docs/what-rolecall-does-not-do.md must name. The value is a pattern
// that the code of such a feature would match.
var missing = map[string]string{
	"SAML": `saml`, "SCIM": `scim`, "JWT": `jwt`, "SMS": `sms`,
	"CAPTCHA": `captcha`, "LDAP": `ldap`, "RADIUS": `radius`, "Kerberos": `kerberos`, "impersonation": `impersonat\w*`,
}

func TestDocumentedMissingFeaturesAreMissing(t *testing.T) {
	page, code := documents(t)["docs/what-rolecall-does-not-do.md"], program(t)
	for name, pattern := range missing {
		if !strings.Contains(page, name) {
			t.Errorf("the page says nothing of %s", name)
		}
		if found := regexp.MustCompile(`(?i)\b(` + pattern + `)\b`).FindString(code); found != "" {
			t.Errorf("the page says that %s is missing, and the code has %q", name, found)
		}
	}
}

// The build tag cheap_hashes makes password hashes easy to crack, so that tests are fast. Only
// black-box tests may use such a program, so no other file may name the tag. In particular, a file
// that builds releases must not.
func TestOnlyBlackBoxTestsBuildWithCheapHashes(t *testing.T) {
	may := map[string]bool{
		"internal/secret/cost.go": true, "internal/secret/cost_cheap.go": true, "cmd/rolecall/serve.go": true,
		"internal/e2e/program_test.go": true, "internal/e2e/siege_test.go": true, "internal/e2e/operators_test.go": true, "internal/faults/faults_test.go": true,
		"internal/conventions/promises_test.go": true, "CONTRIBUTING.md": true,
	}
	for _, suffix := range []string{".go", ".md", ".yaml", ".yml", ".sh", "Makefile", "Dockerfile", "run"} {
		err := walk(suffix, func(path string) error {
			content, err := fs.ReadFile(root, path)
			if strings.Contains(string(content), "cheap_hashes") && !may[path] {
				t.Errorf("%s names the build tag cheap_hashes", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
