package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
)

// root is the folder of the module. All tests read files through root, so that go test does not
// return a cached result after a file has changed.
var root = os.DirFS("../..")

// source is one Go file of the module.
type source struct {
	path   string // within the module
	syntax *ast.File
	files  *token.FileSet
}

func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) folder() string { return path.Dir(s.path) }

func (s source) lines(node ast.Node) int {
	return s.files.Position(node.End()).Line - s.files.Position(node.Pos()).Line + 1
}

var parseAll = sync.OnceValues(func() ([]source, error) {
	var list []source
	files := token.NewFileSet()
	err := walk(".go", func(path string) error {
		content, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(files, path, content, parser.ParseComments|parser.SkipObjectResolution)
		list = append(list, source{path, syntax, files})
		return err
	})
	return list, err
})

// sources returns every Go file of the module.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := parseAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 100 {
		t.Fatalf("%d files found, want those of the whole module", len(list))
	}
	return list
}

// walk calls visit for every file of the module whose name has the suffix. It skips hidden folders
// and folders with test data, dependencies, packed code or databases.
func walk(suffix string, visit func(path string) error) error {
	return fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "node_modules" || entry.Name() == "dist" || entry.Name() == "rolecall-data"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		return visit(path)
	})
}
