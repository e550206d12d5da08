package rolecall

import (
	"os"
	"regexp"
	"slices"
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
