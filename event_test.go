package rolecall

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEachTypeOfEventIsDescribed(t *testing.T) {
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared, described []EventType
	for _, match := range regexp.MustCompile(`EventType += "([a-z_.]+)"`).FindAllStringSubmatch(string(source), -1) {
		declared = append(declared, EventType(match[1]))
	}
	for _, d := range EventDescriptions() {
		described = append(described, d.Type)
		if d.Written == "" || len(d.Subjects) == 0 {
			t.Errorf("%s is described as %+v", d.Type, d)
		}
	}
	for _, kind := range declared {
		if !slices.Contains(described, kind) {
			t.Errorf("%s has no description in event.go; add one and run make openapi", kind)
		}
	}
	if len(declared) < 40 || len(described) != len(declared) {
		t.Errorf("%d types are declared, and %d described", len(declared), len(described))
	}
}

// TestClientsIgnoreEventsThatKeepAccess compares the lists in the memory of the clients, which treat webhooks by their
// subject.
func TestClientsIgnoreEventsThatKeepAccess(t *testing.T) {
	want := map[string]bool{}
	for _, d := range EventDescriptions() {
		isAboutWebhooks := slices.Contains(d.Subjects, SubjectWebhook)
		if isAboutWebhooks && (len(d.Subjects) > 1 || !d.KeepsAccess) {
			t.Errorf("the clients ignore %s, because its subject is a webhook", d.Type)
		}
		if d.KeepsAccess && !isAboutWebhooks {
			want[string(d.Type)] = true
		}
	}
	for path, list := range map[string]string{
		"client/memory.go": `var harmless = map\[string\]bool\{([^}]*)\}`, "clients/python/src/rolecall/_memory.py": `HARMLESS = frozenset\(\{([^}]*)\}`,
		"clients/typescript/src/memory.ts": `const harmless = new Set\(\[([^\]]*)\]`,
	} {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, match := range regexp.MustCompile(`"([a-z_.]+)"`).FindAllString(strings.Join(regexp.MustCompile(list).FindStringSubmatch(string(source)), ""), -1) {
			got[strings.Trim(match, `"`)] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s ignores %v, want the types with KeepsAccess in event.go: %v", path, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}
