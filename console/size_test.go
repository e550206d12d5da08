package console

import (
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// largestPage is in bytes, as a page is sent.
const largestPage = 60 << 10

// browser has the headers that a browser sends when a user follows a link of a page.
var browser = []string{"Accept-Encoding", "gzip, deflate, br, zstd", "Sec-Fetch-Site", "same-origin"}

// sizes returns the number of bytes in the response, and in the page.
func (a reply) sizes(t *testing.T) (sent, shown int) {
	t.Helper()
	if a.Header.Get("Content-Encoding") != "gzip" {
		return len(a.body), len(a.body)
	}
	unpacked, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return len(a.body), int(n)
}

func TestAPageOfTheLongestNamesIsLight(t *testing.T) {
	f := newFixture(t)
	call := f.asOwner()
	random := rand.New(rand.NewPCG(1, 2))
	long := func(length int) string { // of three bytes each, with nothing to compress but that
		letters := make([]rune, length)
		for i := range letters {
			letters[i] = '一' + rune(random.IntN(3000))
		}
		return string(letters)
	}
	for i := range rolecall.DefaultLimit {
		department := long(rolecall.DepartmentMax)
		draft := rolecall.UserDraft{Email: fmt.Sprintf("%d@example.com", i), Name: long(rolecall.UserNameMax), Department: &department}
		if _, err := f.node.Directory.CreateUser(t.Context(), call, idempotency.Key{Text: draft.Email, Fingerprint: []byte(draft.Email)}, draft); err != nil {
			t.Fatal(err)
		}
	}
	cookie := f.signIn("acme", ownerEmail)
	for _, query := range []string{"", "?status=pending", "?sort=-name"} {
		sent, shown := f.get("/console/acme/users"+query, cookie, browser...).sizes(t)
		t.Logf("%q: %d bytes sent of %d", query, sent, shown)
		if sent > largestPage*9/10 || shown < 50*rolecall.UserNameMax {
			t.Errorf("%q: %d bytes are sent of %d, want at most nine tenths of %d", query, sent, shown, largestPage)
		}
	}
}

// The length of a compressed page reveals its content (BREACH). So pages are compressed only if no other
// site made the request, and responses to forms are never compressed.
func TestPagesAreCompressedForOurOwnAlone(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for _, test := range []struct {
		headers []string
		packed  bool
	}{
		{browser, true},
		{[]string{"Accept-Encoding", "gzip", "Sec-Fetch-Site", "none"}, true},
		{[]string{"Accept-Encoding", "gzip", "Sec-Fetch-Site", "cross-site"}, false},
		{[]string{"Accept-Encoding", "gzip", "Sec-Fetch-Site", "same-site"}, false},
		{[]string{"Accept-Encoding", "gzip"}, false},
		{[]string{"Accept-Encoding", "br", "Sec-Fetch-Site", "same-origin"}, false},
	} {
		a := f.get("/console/acme/users", cookie, test.headers...)
		if packed := a.Header.Get("Content-Encoding") == "gzip"; packed != test.packed || a.StatusCode != http.StatusOK {
			t.Errorf("%v: %d, compressed: %v", test.headers, a.StatusCode, packed)
		}
	}
	a := f.send(http.MethodPost, "/console/acme/users/create", cookie, nil, browser...)
	if a.StatusCode < http.StatusBadRequest || a.Header.Get("Content-Encoding") != "" {
		t.Errorf("a form is answered with %d, compressed: %q", a.StatusCode, a.Header.Get("Content-Encoding"))
	}
}
