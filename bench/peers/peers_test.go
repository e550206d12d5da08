package peers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReportedVersionsAreInstalledVersions(t *testing.T) {
	for _, c := range []struct {
		peer Peer
		file string
		want string
	}{
		{pocketBase{}, "pocketbase/go.mod", "github.com/pocketbase/pocketbase v%\n"},
		{betterAuth{}, "betterauth/package.json", `"better-auth": "%"`},
		{betterAuth{}, "betterauth/package-lock.json", `"better-auth": "%"`},
	} {
		content, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(c.want, "%", c.peer.About().Version); !strings.Contains(string(content), want) {
			t.Errorf("%s has no %q", c.file, want)
		}
	}
}

// archived returns a .tar.gz file with these files.
func archived(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	for name, content := range files {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnArchiveWithAnotherHashIsRefused(t *testing.T) {
	right := archived(t, map[string]string{"p-1.0/bin/p": "#!/bin/sh", "p-1.0/README": "Hello"})
	outside := archived(t, map[string]string{"p-1.0/../../p": "Hello"})
	sum := func(content []byte) string {
		hash := sha256.Sum256(content)
		return hex.EncodeToString(hash[:])
	}
	for _, c := range []struct {
		name, sum string
		content   []byte
		want      string // part of the error; empty: no error
	}{
		{"right", sum(right), right, ""},
		{"another", sum(outside), right, "has the SHA-256"},
		{"outside", sum(outside), outside, "outside of its folder"},
		{"cut off", sum(right), right[:len(right)/2], "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(c.content) }))
			defer server.Close()
			cache := filepath.Join(t.TempDir(), "cache")
			folder, err := inCache(cache, "p", func(folder string) error { return unpack(t.Context(), server.URL, c.sum, folder) })
			entries, readErr := os.ReadDir(cache)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || len(entries) > 0 {
					t.Errorf("got %v and %v, want %q and no folder", err, entries, c.want)
				}
				return
			}
			program, statErr := os.Stat(filepath.Join(folder, "bin", "p"))
			if err != nil || statErr != nil || program.Mode().Perm() != 0o755 || len(entries) != 1 {
				t.Errorf("got %v, %v and %v", err, statErr, entries)
			}
		})
	}
}

func TestCachedProgramsAreNotFetchedAgain(t *testing.T) {
	cache := t.TempDir()
	made := 0
	for range 2 {
		if _, err := inCache(cache, "p", func(string) error { made++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if made != 1 {
		t.Errorf("it was made %d times", made)
	}
}
