package conventions

import (
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestTheClientIsASeparateModule keeps the versions of the server's dependencies out of applications. The module of
// the server does not import the client, because it would need a replace directive.
func TestTheClientIsASeparateModule(t *testing.T) {
	client := moduleFile(t, "client/go.mod")
	if client.Module.Mod.Path != module+"/client" {
		t.Errorf("the module of the client is %s", client.Module.Mod.Path)
	}
	for _, r := range client.Require {
		t.Errorf("the client requires %s, want only the standard library", r.Mod)
	}
	server := moduleFile(t, "go.mod")
	for _, r := range server.Require {
		if r.Mod.Path == client.Module.Mod.Path {
			t.Error("the server requires the client")
		}
	}
}

// TestGoInstallAcceptsTheModule forbids the directives with which go install PACKAGE@VERSION refuses a module.
func TestGoInstallAcceptsTheModule(t *testing.T) {
	server := moduleFile(t, "go.mod")
	for _, r := range server.Replace {
		t.Errorf("the server replaces %s", r.Old)
	}
	for _, e := range server.Exclude {
		t.Errorf("the server excludes %s", e.Mod)
	}
}

// TestSQLiteHasItsLibrary compares the version of modernc.org/libc with that of the go.mod of modernc.org/sqlite, which
// works with no other version. Another dependency can require a newer one.
func TestSQLiteHasItsLibrary(t *testing.T) {
	const library = "modernc.org/libc"
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.GoMod}}", "modernc.org/sqlite").Output()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(strings.TrimSpace(string(output)))
	if err != nil {
		t.Fatal(err)
	}
	driver, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, want := versionOf(moduleFile(t, "go.mod"), library), versionOf(driver, library)
	if got != want || got == "" {
		t.Errorf("the server requires %s %s, and SQLite %s", library, got, want)
	}
}

// versionOf returns the version of the module that the file requires.
func versionOf(file *modfile.File, path string) string {
	for _, r := range file.Require {
		if r.Mod.Path == path {
			return r.Mod.Version
		}
	}
	return ""
}

func moduleFile(t *testing.T, path string) *modfile.File {
	t.Helper()
	content, err := fs.ReadFile(root, path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
