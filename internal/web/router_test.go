package web

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzPath checks that decoding unreserved characters changes neither what a path means
// nor where its segments end, and that it is done once for all.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"/users", "/%75sers", "/users%2Fx", "/%2e%2E/users", "/%2575sers", "/%75%2fa%20b", "/a%7eb%5F", "/%c3%a9%41", "/%00%41", "/a;b%3B%41"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || u.Host != "" {
			return
		}
		decoded := decodeUnreserved(u)
		if decoded.Path != u.Path || strings.Count(decoded.EscapedPath(), "/") != strings.Count(u.EscapedPath(), "/") {
			t.Fatalf("%q becomes %q, which is %q and not %q", path, decoded.EscapedPath(), decoded.Path, u.Path)
		}
		if again := decodeUnreserved(decoded); *again != *decoded {
			t.Fatalf("%q becomes %+v, and that %+v", path, decoded, again)
		}
		if isCanonical(decoded) != (decoded.RawPath == "" && isCanonical(&url.URL{Path: u.Path})) {
			t.Fatalf("%q is one path: %v", path, isCanonical(decoded))
		}
	})
}
