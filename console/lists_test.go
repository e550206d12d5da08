package console

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// settle creates n pending users of acme in the department.
func (f *fixture) settle(n int, department string) {
	f.t.Helper()
	c := f.asOwner()
	for i := range n {
		draft := rolecall.UserDraft{Email: fmt.Sprintf("%s%03d@example.com", strings.ReplaceAll(department, " ", "-"), i), Name: fmt.Sprintf("%s %03d", department, i), Department: &department}
		if _, err := f.node.Directory.CreateUser(context.Background(), c, idempotency.Key{Text: draft.Email, Fingerprint: []byte(draft.Email)}, draft); err != nil {
			f.t.Fatal(err)
		}
	}
}

var rowName = regexp.MustCompile(`<bdi class="cut">([^<]*)</bdi></a>`)

func namesOnPage(body string) (names []string) {
	_, rows, _ := strings.Cut(body, "<tbody>")
	rows, _, _ = strings.Cut(rows, "</tbody>")
	for _, match := range rowName.FindAllStringSubmatch(rows, -1) {
		names = append(names, match[1])
	}
	return names
}

// linkOf returns the address of the link with this relation. It returns an empty text if
// the page has no such link.
func linkOf(body, rel string) string {
	match := regexp.MustCompile(`href="([^"]*)" rel="` + rel + `"`).FindStringSubmatch(body)
	if match == nil {
		return ""
	}
	return html.UnescapeString(match[1])
}

func TestPreviousLeadsToThePagesBefore(t *testing.T) {
	f := newFixture(t)
	f.settle(3*rolecall.DefaultLimit, "Sales")
	cookie := f.signIn("acme", ownerEmail)
	address, pages := "/console/acme/users?sort=name&department=sales&view=Mine", [][]string{}
	for address != "" {
		a := f.get(address, cookie)
		pages, address = append(pages, namesOnPage(a.body)), linkOf(a.body, "next")
		if address != "" {
			continue
		}
		for at := len(pages) - 2; at >= 0; at-- {
			if a = f.get(linkOf(a.body, "prev"), cookie); !slices.Equal(namesOnPage(a.body), pages[at]) || !strings.Contains(a.body, "View: <bdi>Mine</bdi>") {
				t.Errorf("page %d shows %q", at+1, namesOnPage(a.body))
			}
		}
		if linkOf(a.body, "prev") != "" || strings.Contains(a.body, "First page") {
			t.Error("the first page has a link to a page before it")
		}
	}
	if len(pages) != 3 || len(pages[0]) != rolecall.DefaultLimit {
		t.Fatalf("%d pages", len(pages))
	}
}

func TestTheAddressOfAPageIsBounded(t *testing.T) {
	var visited []string
	for i := range 40 {
		visited = strings.Split(joinVisited(append(visited, fmt.Sprintf("%03d", i))), ".")
	}
	if len(visited) != previousMax || visited[previousMax-1] != "039" {
		t.Errorf("the address names %q", visited)
	}
	if got := joinVisited([]string{strings.Repeat("a", previousBytes), "b"}); got != "b" {
		t.Errorf("a long cursor stays: %d bytes", len(got))
	}
	f := newFixture(t)
	f.settle(2*rolecall.DefaultLimit, "Sales")
	cookie := f.signIn("acme", ownerEmail)
	next := linkOf(f.get("/console/acme/users", cookie).body, "next")
	u, err := url.Parse(next)
	if err != nil {
		t.Fatal(err)
	}
	for _, previous := range []string{"", ".", "a..b", strings.Repeat("a.", previousMax) + "a", strings.Repeat("a", previousBytes+1)} {
		query := u.Query()
		query.Set(fieldPrevious, previous)
		if a := f.get(u.Path+"?"+query.Encode(), cookie); a.StatusCode != http.StatusOK || linkOf(a.body, "prev") != "" || !strings.Contains(a.body, "First page") {
			t.Errorf("previous=%q: %d, %q", previous, a.StatusCode, linkOf(a.body, "prev"))
		}
	}
}

func TestADepartmentFilterMatchesTheBeginning(t *testing.T) {
	f := newFixture(t)
	for _, department := range []string{"Sales", "Sales EMEA", "Support", "Ops"} {
		f.settle(1, department)
	}
	cookie := f.signIn("acme", ownerEmail)
	for typed, want := range map[string][]string{
		"Sal": {"Sales 000", "Sales EMEA 000"}, "sales": {"Sales 000"}, "S": {"Sales 000", "Sales EMEA 000", "Support 000"}, "OP": {"Ops 000"}, "alse": nil,
	} {
		a := f.get("/console/acme/users?sort=name&department="+typed, cookie)
		if got := namesOnPage(a.body); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, not %q", typed, got, want)
		}
		if len(want) == 1 {
			link := regexp.MustCompile(`href="([^"]*/export[^"]*)"`).FindStringSubmatch(a.body)
			if link == nil {
				t.Fatalf("%q: no link to the export: %s", typed, a.body)
			}
			file := f.get(html.UnescapeString(link[1]), cookie, "Sec-Fetch-Site", "same-origin")
			if got := strings.Count(file.body, " 000"); got != len(want) {
				t.Errorf("%q exports %d users: %s", typed, got, file.body)
			}
		}
	}
	if a := f.get("/console/acme/users?department=S", cookie); !strings.Contains(a.body, "Sales, Sales EMEA and Support") {
		t.Errorf("the departments are not named: %s", a.body)
	} else if strings.Contains(a.body, "/export") || !strings.Contains(a.body, "enter the whole name of one department") {
		t.Errorf("several departments can be exported: %s", a.body)
	}
	f.settle(2, "Ops") // a second page
	a := f.get("/console/acme/users?department=op&limit=1&sort=name", cookie)
	if next := linkOf(a.body, "next"); !strings.Contains(next, "department=Ops") || !slices.Equal(namesOnPage(f.get(next, cookie).body), []string{"Ops 001"}) {
		t.Errorf("the next page is %q", next)
	}
	if !strings.Contains(a.body, `name="return" value="/users?department=Ops`) || !strings.Contains(a.body, `name="department" value="Ops"`) || !strings.Contains(a.body, "data-select-matching") {
		t.Errorf("the page does not name the department: %s", a.body)
	}
	if a := f.get("/console/acme/users?department=S&limit=1", cookie); strings.Contains(a.body, "data-select-matching") {
		t.Errorf("a job can be started for several departments: %s", a.body)
	}
	of := f.hire("ops@example.com", "Reader", []string{"users:read"}, "Ops")
	if a := f.get("/console/acme/users?department=Sal", f.signIn("acme", of.Email)); strings.Contains(a.body, "Sales EMEA") || !strings.Contains(a.body, "is unknown") {
		t.Errorf("a reader of another department gets %s", a.body)
	}
}

func TestAdditionalColumnsShowWhatTheCallerMayRead(t *testing.T) {
	f := newFixture(t)
	f.hire("grace@example.com", "Grace Hopper", []string{"users.status:read", "users.name:read"})
	owner, partly := f.signIn("acme", ownerEmail), f.signIn("acme", "grace@example.com")
	const all = "/console/acme/users?columns=lastLoginAt,roles,factors"
	a := f.get(all, owner)
	for _, want := range []string{">Last sign-in</th>", ">Roles</th>", ">Second factors</th>", `title="Role of grace@example.com"`, ">None</td>", "Hide roles", "columns=lastLoginAt%2Cfactors"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the list does not have %q: %s", want, a.body)
		}
	}
	if a := f.get("/console/acme/users", owner); strings.Contains(a.body, "Last sign-in</th>") || !strings.Contains(a.body, "Show last sign-in") {
		t.Errorf("without a choice: %s", a.body)
	}
	a = f.get(all, partly)
	if strings.Contains(a.body, "Role of grace") || !strings.Contains(a.body, "You need roles:read to see this") || !strings.Contains(a.body, "Hide last sign-in") || strings.Contains(a.body, "Hide roles") {
		t.Errorf("a reader without the permissions gets %s", a.body)
	}
}

func TestTheAddressNamesAView(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for _, list := range []string{"/users?q=ada", "/roles?q=own", "/service-accounts?sort=name", "/events?type=user.created"} {
		a := f.get("/console/acme"+list+"&view=%3Cb%3EMine", cookie)
		if !strings.Contains(a.body, "<title>&lt;b&gt;Mine · ") || !strings.Contains(a.body, "View: <bdi>&lt;b&gt;Mine</bdi>") || !strings.Contains(a.body, "data-save-view") {
			t.Errorf("%s: %s", list, a.body)
		}
	}
	if a := f.get("/console/acme/users?view="+strings.Repeat("a", viewNameMax+1), cookie); !strings.Contains(a.body, `role="alert"`) {
		t.Errorf("a long name is shown: %s", a.body)
	}
}
