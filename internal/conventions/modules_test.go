package conventions

import (
	"io/fs"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestTheClientIsASeparateModule keeps the versions of the server's dependencies out of applications. The module of
// the server does not import the client: it would need a replace directive, and go install refuses modules that
// have one.
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
	for _, r := range server.Replace {
		t.Errorf("the server replaces %s", r.Old)
	}
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
