package openapi_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/openapi"
)

func TestTheViewerIsTheOneThatItsReadmeNames(t *testing.T) {
	readme, err := os.ReadFile("reference/elements/README.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, asset := range openapi.Assets {
		if !asset.Gzipped {
			continue
		}
		checked++
		reader, err := gzip.NewReader(bytes.NewReader(asset.Content))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if !strings.Contains(string(readme), "| "+hex.EncodeToString(sum[:])+" |") {
			t.Errorf("the README does not name the sum of %s, %x", asset.Name, sum)
		}
	}
	if checked != 2 {
		t.Errorf("checked %d files, want 2", checked)
	}
}
