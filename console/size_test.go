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
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// largestPage is the maximum size of a page as it is sent, in bytes.
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
	long := func(length int) string { // random characters of three bytes each, which hardly compress
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

// largeTenant fills acme with data for full pages: users with different names, departments
// and roles, service accounts, tokens and events. It returns a user with many roles, a role
// with many permissions, a service account, and a group with many members.
func (f *fixture) largeTenant() (user rolecall.User, role rolecall.Role, account rolecall.ServiceAccount, group rolecall.Group) {
	f.t.Helper()
	ctx, c := f.t.Context(), f.asOwner()
	must := func(err error) {
		f.t.Helper()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	word := func(length int) string {
		letters := make([]byte, length)
		for i := range letters {
			letters[i] = 'a' + byte(random.IntN(26))
		}
		return string(letters)
	}
	key := func() idempotency.Key { id := word(20); return idempotency.Key{Text: id, Fingerprint: []byte(id)} }
	var roles []rolecall.Role
	for i := range rolecall.MaxLimit {
		draft := rolecall.RoleDraft{Name: word(12) + " " + word(12), Description: word(10) + " " + word(12) + " " + word(30), Permissions: []string{word(8) + "/" + word(10) + ":" + word(8)}}
		if i == 0 {
			for range 99 {
				draft.Permissions = append(draft.Permissions, word(8)+"/"+word(10)+":"+word(8))
			}
		}
		created, err := f.node.Directory.CreateRole(ctx, c, key(), draft)
		must(err)
		roles = append(roles, created.Value)
	}
	for i := range rolecall.DefaultLimit + 10 {
		department := word(12) + " " + word(8)
		created, err := f.node.Directory.CreateUser(ctx, c, key(), rolecall.UserDraft{Email: word(10) + "@" + word(10) + ".example", Name: word(8) + " " + word(12), Department: &department})
		must(err)
		if user = created.Value; i == 0 {
			continue
		}
		for _, r := range roles[:4] {
			_, _, err := f.node.Directory.AssignRole(ctx, c, rolecall.HolderOf(user.ID), r.ID, rolecall.AssignmentDraft{Departments: []string{department, word(12)}})
			must(err)
		}
		service, err := f.node.Directory.CreateServiceAccount(ctx, c, key(), rolecall.ServiceAccountDraft{Name: word(8) + " " + word(8)})
		must(err)
		account = service.Value
	}
	for _, holder := range []rolecall.Holder{rolecall.HolderOf(user.ID), rolecall.HolderOf(account.ID)} {
		for _, r := range roles[:60] {
			_, _, err := f.node.Directory.AssignRole(ctx, c, holder, r.ID, rolecall.AssignmentDraft{Departments: []string{word(12), word(12)}})
			must(err)
		}
	}
	for i := range rolecall.MaxLimit {
		created, err := f.node.Directory.CreateGroup(ctx, c, key(), rolecall.GroupDraft{Name: word(12) + " " + word(12), Description: word(10) + " " + word(30)})
		must(err)
		if group = created.Value; i < 40 {
			must(f.node.Directory.AddMember(ctx, c, group.ID, user.ID))
		}
	}
	page, err := f.node.Directory.Users(ctx, c, directory.UserListing{Limit: rolecall.MaxLimit})
	must(err)
	for i := range page.Items {
		must(f.node.Directory.AddMember(ctx, c, group.ID, page.Items[i].ID))
	}
	for _, r := range roles[40:100] {
		_, _, err := f.node.Directory.AssignRole(ctx, c, rolecall.HolderOf(group.ID), r.ID, rolecall.AssignmentDraft{Departments: []string{word(12), word(12)}})
		must(err)
	}
	return user, roles[0], account, group
}

func TestEveryPageOfALargeTenantIsLight(t *testing.T) {
	f := newFixture(t)
	user, role, account, group := f.largeTenant()
	cookie := f.signIn("acme", ownerEmail)
	const columns = "/console/acme/users?columns=lastLoginAt,roles,factors"
	paths := append(f.pathsAbout(&user, role.ID, account.ID, group.ID), columns, "/console/acme/access?permission=users:read", "/console/acme/users?department=a", "/console/acme/roles/"+role.ID.String()+"/compare?with="+role.ID.String())
	heaviest, most := "", 0
	for _, path := range paths {
		if strings.HasSuffix(path, exportPath) {
			continue // a file
		}
		sent, _ := f.get(path, cookie, browser...).sizes(t)
		if sent > largestPage {
			t.Errorf("%s: %d bytes are sent, want at most %d", path, sent, largestPage)
		}
		if sent > most {
			heaviest, most = path, sent
		}
	}
	t.Logf("%d pages, at most %d bytes: %s", len(paths), most, heaviest)
	if most < 10<<10 {
		t.Error("the pages are nearly empty")
	}
}
