package conventions

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

// documents returns the texts of the module's Markdown files, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := walk(".md", func(path string) error {
		content, err := fs.ReadFile(root, path)
		texts[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts["README.md"]) == 0 || len(texts) < 15 {
		t.Fatalf("%d documents found, want all of them", len(texts))
	}
	return texts
}

var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

func TestLinksAreValid(t *testing.T) {
	for document, text := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			if _, err := fs.Stat(root, path.Join(path.Dir(document), match[1])); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
}

// largestPicture is the maximum size of a picture in bytes. It is small, because every clone of the
// repository has all pictures.
const largestPicture = 150_000

func TestPicturesAreSmallAndShown(t *testing.T) {
	all := documents(t)
	shown := 0
	for _, suffix := range []string{".png", ".jpg", ".jpeg", ".webp", ".gif"} {
		err := walk(suffix, func(name string) error {
			info, err := fs.Stat(root, name)
			switch {
			case err != nil || strings.HasPrefix(name, "console/e2e/results/"): // not part of the repository
				return err
			case path.Dir(name) != "docs/pictures":
				t.Errorf("%s: pictures are in docs/pictures", name)
			case !strings.Contains(all["README.md"], "("+name+")"):
				t.Errorf("README.md does not show %s", name)
			case info.Size() > largestPicture:
				t.Errorf("%s has %d bytes, want at most %d", name, info.Size(), largestPicture)
			}
			shown++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if shown == 0 {
		t.Error("there is no picture")
	}
}

func TestDecisionsAreListed(t *testing.T) {
	texts := documents(t)
	for document := range texts {
		if name := path.Base(document); path.Dir(document) == "docs/adr" && name != "README.md" && !strings.Contains(texts["docs/adr/README.md"], "("+name+")") {
			t.Errorf("docs/adr/README.md does not list %s", name)
		}
	}
}

// The patterns of the code in a document, and of the names in this code.
var (
	code       = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	makeTarget = regexp.MustCompile(`(?m)\bmake ([a-z]+(?:-[a-z]+)*)\b`)
	metric     = regexp.MustCompile(`\brolecall_http_[a-z_]+|\brolecall_[a-z_]+_total\b`)
)

func TestDocumentedMakeTargetsExist(t *testing.T) {
	makefile, err := fs.ReadFile(root, "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for document, text := range documents(t) {
		for _, match := range makeTarget.FindAllStringSubmatch(strings.Join(code.FindAllString(text, -1), "\n"), -1) {
			if !strings.Contains(string(makefile), "\n"+match[1]+":") {
				t.Errorf("%s: make %s is not there", document, match[1])
			}
		}
	}
}

func TestDocumentedMetricsExist(t *testing.T) {
	program := program(t)
	documented := metric.FindAllString(documents(t)["docs/operations.md"], -1)
	if len(documented) == 0 {
		t.Fatal("docs/operations.md names no metric")
	}
	for _, name := range documented {
		if !strings.Contains(program, `"`+name+`"`) {
			t.Errorf("docs/operations.md: there is no metric %s", name)
		}
	}
	for _, name := range metric.FindAllString(program, -1) {
		if !strings.Contains(strings.Join(documented, " "), name) {
			t.Errorf("docs/operations.md says nothing of the metric %s", name)
		}
	}
}

// program returns the source of the module without tests, without the client, and without bench/peers,
// which measures other services.
func program(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, f := range sources(t) {
		if f.isTest() || strings.HasPrefix(f.path, "bench/peers/") || strings.HasPrefix(f.path, "client/") {
			continue
		}
		content, err := fs.ReadFile(root, f.path)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(content)
	}
	return text.String()
}
