package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestResumeIsOfferedToThoseWhoMayGiveTheAccessBack(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	boss := f.hire("boss@example.com", "Bea Boss", []string{"events:read"})
	account := f.makeAccount("Import", f.makeRole("Auditor", "events:read"))
	for _, err := range []error{
		errorOf(f.node.Directory.SuspendUser(ctx, f.asOwner(), boss.ID, "")), errorOf(f.node.Directory.SuspendServiceAccount(ctx, f.asOwner(), account.ID, "")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "users:suspend", "service-accounts:read", "service-accounts:update"})
	f.hire("peer@example.com", "Paul Peer", []string{"users:read", "users:suspend", "service-accounts:read", "service-accounts:update", "events:read"})
	clerk, peer := f.signIn("acme", "clerk@example.com"), f.signIn("acme", "peer@example.com")
	pages := []string{"/console/acme/users/" + boss.ID.String(), "/console/acme/service-accounts/" + account.ID.String()}
	for _, page := range pages {
		if a := f.get(page, clerk); a.StatusCode != http.StatusOK || strings.Contains(a.body, page+"/resume") {
			t.Errorf("%s offers resume to a caller who lacks events:read: %d %s", page, a.StatusCode, a.body)
		}
		if a := f.send(http.MethodPost, page+"/resume", clerk, nil); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "events:read") {
			t.Errorf("%s: %d %s", page, a.StatusCode, a.body)
		}
	}
	if a := f.send(http.MethodPost, "/console/acme/users/selected/resume", clerk, selecting([]rolecall.UserID{boss.ID})); !strings.Contains(a.body, "1 user wasn&#39;t changed") || !strings.Contains(a.body, "events:read") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, page := range pages {
		if a := f.get(page, peer); !strings.Contains(a.body, page+"/resume") {
			t.Errorf("%s does not offer resume: %s", page, a.body)
		}
		if a := f.send(http.MethodPost, page+"/resume", peer, nil); a.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: %d %s", page, a.StatusCode, a.body)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }
