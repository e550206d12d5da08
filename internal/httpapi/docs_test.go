package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/web"
)

// pagePaths are paths of the documentation pages.
var pagePaths = []string{"/docs", "/docs/operations/UsersController_createUser", "/docs/permissions", "/docs/events", "/problems", "/problems/last-owner"}

// atBase returns a server with the base path. The server has no services, because the
// documentation pages need none.
func atBase(t *testing.T, base string) *Server {
	t.Helper()
	publicURL, err := url.Parse("https://id.example.com" + base)
	if err != nil {
		t.Fatal(err)
	}
	return New(nil, nil, nil, nil, web.New(web.Options{PublicURL: publicURL, Logger: slog.New(slog.DiscardHandler)}), Options{})
}

// fetch sends a GET request for the page. The headers are alternating names and values.
func fetch(edge *Server, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	edge.ServeHTTP(w, r)
	return w
}

var (
	loaded   = regexp.MustCompile(`<(?:script|link|img)[^>]* (?:src|href)="([^"]*)"`)
	linked   = regexp.MustCompile(`<a[^>]* href="([^"]*)"`)
	inline   = regexp.MustCompile(`(?i)<script[^>]*>[^<]|<style| style=| on[a-z]+=|javascript:`)
	external = regexp.MustCompile(`^(?:[a-z]+:)?//`)
)

func TestPagesLoadAndLinkOnlyWhatIsServedHere(t *testing.T) {
	for _, base := range []string{"", "/id/rolecall"} {
		edge := atBase(t, base)
		for _, path := range pagePaths {
			page := fetch(edge, base+path)
			if page.Code != http.StatusOK || page.Header().Get("Content-Type") != "text/html; charset=utf-8" {
				t.Errorf("%s: %d %s", path, page.Code, page.Header().Get("Content-Type"))
			}
			content := page.Body.String()
			if found := inline.FindString(content); found != "" {
				t.Errorf("%s holds %q, which its policy forbids", path, found)
			}
			targets := slices.Concat(loaded.FindAllStringSubmatch(content, -1), linked.FindAllStringSubmatch(content, -1))
			if len(targets) < 7 {
				t.Errorf("%s loads and links only %d files", path, len(targets))
			}
			for _, target := range targets {
				address, _, _ := strings.Cut(target[1], "#")
				if external.MatchString(address) || !strings.HasPrefix(address, base+"/") {
					t.Errorf("%s leads to %s, which is not below %s", path, address, base)
				} else if got := fetch(edge, address); got.Code != http.StatusOK {
					t.Errorf("%s leads to %s, which answers %d", path, address, got.Code)
				}
			}
		}
	}
}

func TestEachPageHasItsPolicy(t *testing.T) {
	edge := atBase(t, "")
	for _, path := range pagePaths {
		policy := fetch(edge, path).Header().Get("Content-Security-Policy")
		if scripts := strings.Contains(policy, "script-src 'self'"); scripts != (path == "/docs") {
			t.Errorf("%s may run scripts: %v", path, scripts)
		}
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("the policy of %s lacks %s", path, want)
			}
		}
		if strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
			t.Errorf("the policy of %s is too wide: %s", path, policy)
		}
	}
}

func TestNoOtherPageKeepsAWindowOfADocument(t *testing.T) {
	edge := atBase(t, "")
	for _, path := range pagePaths {
		if got := fetch(edge, path).Header().Get("Cross-Origin-Opener-Policy"); got != "same-origin" {
			t.Errorf("%s has Cross-Origin-Opener-Policy %q", path, got)
		}
	}
}

func TestPagesAreRevalidatedAndTheirFilesAreCached(t *testing.T) {
	edge := atBase(t, "")
	paths := map[string]string{"/docs": "no-cache", "/openapi.yaml": "public, max-age=300"}
	for _, target := range loaded.FindAllStringSubmatch(fetch(edge, "/docs").Body.String(), -1) {
		paths[target[1]] = "public, max-age=31536000, immutable"
	}
	for path, caching := range paths {
		for _, coding := range []string{"", "gzip"} {
			first := fetch(edge, path, "Accept-Encoding", coding)
			if got := first.Header().Get("Cache-Control"); got != caching {
				t.Errorf("%s is cached as %q, want %q", path, got, caching)
			}
			second := fetch(edge, path, "Accept-Encoding", coding, "If-None-Match", first.Header().Get("ETag"))
			if second.Code != http.StatusNotModified || second.Body.Len() > 0 {
				t.Errorf("%s with its entity tag answers %d and %d bytes", path, second.Code, second.Body.Len())
			}
			if third := fetch(edge, path, "Accept-Encoding", coding, "If-None-Match", `"other"`); third.Code != http.StatusOK {
				t.Errorf("%s with another entity tag answers %d", path, third.Code)
			}
		}
	}
}

func TestFilesAreTheSameCompressedAndPlain(t *testing.T) {
	edge := atBase(t, "")
	compressed := 0
	paths := []string{"/openapi.json", "/openapi.yaml"}
	for _, a := range edge.newDocs().assets {
		paths = append(paths, a.Path)
	}
	for _, path := range paths {
		plain, packed := fetch(edge, path), fetch(edge, path, "Accept-Encoding", "br, GZIP;q=0.5")
		if plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s is compressed unasked", path)
		}
		if packed.Header().Get("Content-Encoding") != "gzip" {
			if packed.Header().Get("ETag") != plain.Header().Get("ETag") {
				t.Errorf("%s is not what was asked for", path)
			}
			continue
		}
		compressed++
		if packed.Header().Get("Vary") != "Accept-Encoding" || plain.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s does not say that it varies", path)
		}
		if packed.Header().Get("ETag") == plain.Header().Get("ETag") {
			t.Errorf("%s has one strong entity tag for two representations", path)
		}
		if packed.Body.Len() > plain.Body.Len()/2 {
			t.Errorf("%s has %d bytes compressed and %d plain", path, packed.Body.Len(), plain.Body.Len())
		}
		reader, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(unpacked, plain.Body.Bytes()) {
			t.Errorf("%s differs when it is compressed", path)
		}
	}
	if compressed != 3 {
		t.Errorf("%d files are compressed, want 3", compressed)
	}
}

func TestAPathOfAnotherVersionIsNotServed(t *testing.T) {
	if got := fetch(atBase(t, ""), "/docs/reference.AAAAAAAAAAAAAAAAAAAAAA.js"); got.Code != http.StatusNotFound {
		t.Errorf("answers %d", got.Code)
	}
}

func TestProblemsAreListedOnceByStatus(t *testing.T) {
	page := fetch(atBase(t, ""), "/problems").Body.String()
	seen := map[int]bool{}
	last := 0
	for _, known := range catalogue {
		status, _ := web.StatusOf(known)
		if status != last && seen[status] || status < last {
			t.Errorf("%s is out of the order of statuses", known.Code)
		}
		seen[status], last = true, status
		if strings.Count(page, `/problems/`+known.Code+`"`) != 1 {
			t.Errorf("%s is not listed once", known.Code)
		}
	}
	if strings.Count(page, "<h2>") != len(seen) {
		t.Errorf("%d headings for %d statuses", strings.Count(page, "<h2>"), len(seen))
	}
}

// TestEachProblemSaysWhatToDo checks that each explanation has at least two sentences: the cause
// and a remedy.
func TestEachProblemSaysWhatToDo(t *testing.T) {
	for _, known := range catalogue {
		if !strings.HasSuffix(known.Detail, ".") || !strings.Contains(known.Detail, ". ") {
			t.Errorf("%s says only %q", known.Code, known.Detail)
		}
	}
}

func TestAProblemNamesTheOperationsThatAnswerIt(t *testing.T) {
	page := fetch(atBase(t, "/id"), "/id/problems/"+rolecall.ErrRoleInUse.Code).Body.String()
	if !strings.Contains(page, `<a href="/id/docs/operations/RolesController_deleteRole">`) {
		t.Error("does not name the deletion of a role")
	}
	if strings.Contains(page, "UsersController_") {
		t.Error("names operations of users")
	}
}

func TestABrowserAtTheRootIsSentToTheConsole(t *testing.T) {
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, test := range []struct {
		base, path, accept string
		status             int
		location           string
	}{
		{"", "/", browser, http.StatusSeeOther, "/console/"},
		{"/id", "/id", browser, http.StatusSeeOther, "/id/console/"},
		{"/id", "/id/", browser, http.StatusSeeOther, "/id/console/"},
		{"", "/", "application/json", http.StatusNotFound, ""},
		{"", "/", "", http.StatusNotFound, ""},
		{"", "/nowhere", browser, http.StatusNotFound, ""},
	} {
		response := fetch(atBase(t, test.base), test.path, "Accept", test.accept)
		if got := response.Header().Get("Location"); response.Code != test.status || got != test.location {
			t.Errorf("%s for %q: %d %q, want %d %q", test.path, test.accept, response.Code, got, test.status, test.location)
		}
	}
}

func TestPagesHaveTheThemeOfTheCookie(t *testing.T) {
	edge := atBase(t, "")
	for cookie, want := range map[string]string{"": "", "rolecall_theme=dark": ` data-theme="dark"`, "rolecall_theme=light": ` data-theme="light"`, `rolecall_theme="><script>`: ""} {
		for _, path := range pagePaths {
			page := fetch(edge, path, "Cookie", cookie)
			if tag := `<html lang="en"` + want + `>`; !strings.Contains(page.Body.String(), tag) || !slices.Contains(page.Header().Values("Vary"), "Cookie") {
				t.Errorf("%s with the cookie %q does not contain %s, or does not vary by it", path, cookie, tag)
			}
		}
	}
}
