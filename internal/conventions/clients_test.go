package conventions

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strings"
	"testing"
)

// TestGeneratedClientsAreCurrent compares the hash in each generated file with the OpenAPI
// document. make clients-test generates the files again, which needs Node.js and Python.
func TestGeneratedClientsAreCurrent(t *testing.T) {
	document, err := fs.ReadFile(root, "openapi/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(document)
	want := hex.EncodeToString(sum[:])
	const typeScript, python = "cd clients/typescript && npm ci && npm run generate", "clients/python/.venv/bin/python clients/python/generate.py"
	for file, command := range map[string]string{
		"clients/typescript/src/openapi.ts":          typeScript,
		"clients/python/src/rolecall/models.py":      python,
		"clients/python/src/rolecall/_operations.py": python,
	} {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		header, _, _ := strings.Cut(string(text), "\n\n")
		if !strings.Contains(header, want) {
			t.Errorf("%s was generated from another OpenAPI document: run %s", file, command)
		}
	}
}
