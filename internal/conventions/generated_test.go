package conventions

import (
	"io/fs"
	"path"
	"strings"
	"testing"
)

// TestGeneratedGoIsMarked checks that .gitattributes marks the generated Go files, and no other Go file.
func TestGeneratedGoIsMarked(t *testing.T) {
	attributes, err := fs.ReadFile(root, ".gitattributes")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for line := range strings.Lines(string(attributes)) {
		if pattern, generated := strings.CutSuffix(strings.TrimSpace(line), " linguist-generated"); generated {
			patterns = append(patterns, pattern)
		}
	}
	err = walk(".go", func(name string) error {
		content, err := fs.ReadFile(root, name)
		marked := false
		for _, pattern := range patterns {
			if matched, _ := path.Match(pattern, path.Base(name)); matched {
				marked = true
			}
		}
		if first, _, _ := strings.Cut(string(content), "\n"); strings.HasPrefix(first, "// Code generated ") != marked {
			t.Errorf("%s: marked as generated: %v", name, marked)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
