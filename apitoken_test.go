package rolecall_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestAPITokenDraft(t *testing.T) {
	latest := aMoment.Add(rolecall.TokenLifetimeMax)
	one := []string{"users:read"}
	type d = rolecall.APITokenDraft
	for name, test := range map[string]struct {
		draft d
		want  []string
	}{
		"shortest":            {d{"CI1", one, aMoment + 1}, nil},
		"longest":             {d{strings.Repeat("名", 100), manyPermissions(256), latest}, nil},
		"too short":           {d{"CI", nil, aMoment}, []string{"/name length", "/permissions too-few", "/expiresAt past"}},
		"too long":            {d{strings.Repeat("n", 101), manyPermissions(257), latest + 1}, []string{"/name length", "/permissions too-many", "/expiresAt range"}},
		"no permissions":      {d{"Nightly", []string{"users", "users:fly", "users:read"}, latest}, []string{"/permissions/0 format", "/permissions/1 unknown-permission"}},
		"no end, and control": {d{Name: "Night\nly", Permissions: one}, []string{"/name control-character", "/expiresAt past"}},
	} {
		if got := codes(test.draft.Check(aMoment)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	draft := d{"Nightly", []string{"users:read", "shop/a:b", "users:read"}, latest}
	token := draft.APIToken(aMoment)
	if got, want := texts(token.Permissions), []string{"shop/a:b", "users:read"}; !slices.Equal(got, want) || token.ID.IsZero() {
		t.Errorf("%s with %q, want %q", token.ID, got, want)
	}
	if !token.Live(latest-1) || token.Live(latest) {
		t.Error("the token does not end with its last moment")
	}
}

func TestAPITokenDraftCannotExceedItsHolder(t *testing.T) {
	held := []rolecall.Assignment{
		{Role: rolecall.Role{Permissions: permissions("users:read", "roles:*")}, Reach: rolecall.Within("Sales"), ExpiresAt: rolecall.Never},
		{Role: rolecall.Role{Permissions: permissions("users.email:update"), Grants: permissions("shop/*:*")}, ExpiresAt: rolecall.Never},
		{Role: rolecall.Role{Permissions: permissions("tenant:read")}, ExpiresAt: aMoment},
	}
	draft := rolecall.APITokenDraft{Permissions: []string{"users.name:read", "shop/a:b", "users:update", "roles:assign", "*:*", "tenant:read", "*/*:*", "users:*"}}
	want := []string{"/permissions/2 not-held", "/permissions/4 not-held", "/permissions/5 not-held", "/permissions/6 not-held", "/permissions/7 not-held"}
	if got := codes(draft.CheckHolder(held, aMoment)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
