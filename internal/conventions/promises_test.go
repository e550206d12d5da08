package conventions

import (
	"io/fs"
	"regexp"
	"slices"
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
	"SCIM":         {"README.md", "docs/GLOSSARY.md", "docs/guides/scim.md", "docs/guides/scim-entra.md", "docs/guides/scim-okta.md"},
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
	"SAML": `saml`, "JWT": `jwt`, "SMS": `sms`,
	"CAPTCHA": `captcha`, "LDAP": `ldap`, "RADIUS": `radius`, "Kerberos": `kerberos`, "impersonation": `impersonat\w*`,
}

func TestDocumentedMissingFeaturesAreMissing(t *testing.T) {
	page, code := documents(t)["docs/what-rolecall-does-not-do.md"], program(t)
	code = strings.ReplaceAll(code, "application/jwt", "") // in which identity providers sign their responses
	for name, pattern := range missing {
		if !strings.Contains(page, name) {
			t.Errorf("the page says nothing of %s", name)
		}
		if found := regexp.MustCompile(`(?i)\b(` + pattern + `)\b`).FindString(code); found != "" {
			t.Errorf("the page says that %s is missing, and the code has %q", name, found)
		}
	}
}

// testTags are build tags that make the program unsafe, and the files that may name them. The tag
// cheap_hashes makes password hashes easy to crack, so that tests are fast. The tag loopback_endpoints lets
// the requests of tenants reach the machine of the program.
var testTags = map[string][]string{
	"cheap_hashes": {
		"internal/secret/cost.go", "internal/secret/cost_cheap.go", "cmd/rolecall/serve.go",
		"internal/e2e/siege_test.go", "internal/e2e/operators_test.go", "internal/faults/faults_test.go", "internal/process/process.go", "CONTRIBUTING.md", "Makefile",
	},
	"loopback_endpoints": {
		"internal/outbound/loopback.go", "internal/outbound/loopback_endpoints.go", "cmd/rolecall/serve.go",
		"internal/faults/faults_test.go", "internal/process/process.go", "Makefile", "bench/scale/webhooks.go", "docs/adr/0057-change-feed.md", "docs/performance.md",
	},
}

// Only tests and benchmarks may use an unsafe program, so no other file may name its tag. In particular,
// a file that builds releases must not.
func TestOnlyTestsBuildUnsafePrograms(t *testing.T) {
	for _, suffix := range []string{".go", ".md", ".yaml", ".yml", ".sh", "Makefile", "Dockerfile", "run"} {
		err := walk(suffix, func(path string) error {
			content, err := fs.ReadFile(root, path)
			for tag, may := range testTags {
				if strings.Contains(string(content), tag) && path != "internal/conventions/promises_test.go" && !slices.Contains(may, path) {
					t.Errorf("%s names the build tag %s", path, tag)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// languages has the language of each client, by its folder.
var languages = map[string]string{"client": "Go", "clients/typescript": "TypeScript", "clients/python": "Python"}

func TestDocumentedClientsAreThoseOfTheTree(t *testing.T) {
	texts, folders := documents(t), []string{"client"}
	found, err := fs.Glob(root, "clients/*")
	if err != nil || len(found) == 0 {
		t.Fatalf("%v %v", found, err)
	}
	for _, folder := range append(folders, found...) {
		language := languages[folder]
		if language == "" {
			t.Errorf("%s is the client of an unknown language", folder)
			continue
		}
		for document, pattern := range map[string]string{
			"README.md":                         `(?m)^\| ` + language + ` client \|`,
			"docs/what-rolecall-does-not-do.md": `\*\*Client libraries\*\* for languages other than [^|]*\b` + language + `\b`,
			"docs/README.md":                    `\[` + language + `\]\(\.\./` + folder,
		} {
			if !regexp.MustCompile(pattern).MatchString(texts[document]) {
				t.Errorf("%s does not name the client in %s", document, folder)
			}
		}
	}
}

func TestDocumentsNameOneVersionOfCurl(t *testing.T) {
	versions := map[string]string{}
	for document, text := range documents(t) {
		for _, match := range regexp.MustCompile(`curl (\d+(?:\.\d+)+) or newer`).FindAllStringSubmatch(text, -1) {
			versions[match[1]] = document
		}
	}
	if len(versions) != 1 {
		t.Errorf("the documents name these versions: %v", versions)
	}
}
