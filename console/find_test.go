package console

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
)

func TestFindShowsWhatTheCallerMayRead(t *testing.T) {
	f := newFixture(t)
	role := f.makeRole("Support agent", "users:read")
	externalID := "E-1001"
	hopper, err := f.node.Directory.CreateUser(t.Context(), f.asOwner(), idempotency.Key{Text: "hopper", Fingerprint: []byte("hopper")},
		rolecall.UserDraft{Email: "grace@navy.example", Name: "Grace Hopper", ExternalID: &externalID})
	if err != nil {
		t.Fatal(err)
	}
	f.hire("reader@example.com", "Reader", []string{"users.name:read"})
	result := regexp.MustCompile(`<a class="found-result" href="([^"]*)"`)
	user, roleAt := "/console/acme/users/"+hopper.Value.ID.String(), "/console/acme/roles/"+role.ID.String()
	for email, cases := range map[string]map[string][]string{
		ownerEmail: {
			"hopp": {user}, "grace@navy.example": {user}, "GRACE@navy.example": {user}, "E-1001": {user}, hopper.Value.ID.String(): {user},
			"support": {roleAt}, role.ID.String(): {roleAt}, "new role": {"/console/acme/roles/create"}, "service": {"/console/acme/service-accounts", "/console/acme/service-accounts/create"},
			"nobody is called so": nil, "01a20d90-0000-7000-8000-000000000000": nil, "%": nil,
		},
		"reader@example.com": {
			"hopp": {user}, "grace@navy.example": nil, "E-1001": nil, hopper.Value.ID.String(): {user},
			"support": nil, role.ID.String(): nil, "new role": nil, "settings": nil,
		},
	} {
		cookie := f.signIn("acme", email)
		for text, want := range cases {
			var got []string
			body := f.get("/console/acme/find?q="+url.QueryEscape(text), cookie).body
			for _, match := range result.FindAllStringSubmatch(body, -1) {
				got = append(got, match[1])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s finds %q at %q, want %q", email, got, text, want)
			}
			if want == nil && !strings.Contains(body, "Nothing found") {
				t.Errorf("%s is not told that %q has no results", email, text)
			}
		}
	}
}
