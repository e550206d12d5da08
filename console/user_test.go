package console

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
)

func TestWhoIsRefusedAfterTooManyFailuresIsNotShownAsAbleToSignIn(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", nil)
	f.hire("reader@example.com", "Rita Reader", []string{"users:read"})
	home := "/console/acme/users/" + user.ID.String()
	tenant, err := f.node.Directory.Tenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if a := f.get(home, f.signIn("acme", ownerEmail)); !strings.Contains(a.body, "Can sign in") {
		t.Errorf("before: %s", a.body)
	}
	for range 10 {
		if _, err := f.node.SignIn.Login(t.Context(), access.Anonymous{Tenant: tenant, TenantName: "acme", Source: "192.0.2.7"}, "eve@example.com", "wrong"); !errors.Is(err, rolecall.ErrWrongCredentials) {
			t.Fatal(err)
		}
	}
	if err := f.node.Access.Refusals.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	overview, err := f.node.Directory.Overview(t.Context(), f.asOwner(), user.ID)
	if err != nil {
		t.Fatal(err)
	}
	until := ">Until " + overview.SignIn.Reasons[0].Until.Add(time.Minute-time.Microsecond).Std().Format("15:04") + " UTC"
	for reader, words := range map[string]string{
		ownerEmail:           "Too many failed sign-ins from 192.0.2.7.",
		"reader@example.com": "To see the address, you need events:read.",
	} {
		a := f.get(home, f.signIn("acme", reader))
		for _, part := range []string{words, "Some sign-ins are blocked", until + " (in 15 minutes)."} {
			if !strings.Contains(a.body, part) {
				t.Errorf("%s is not shown %q", reader, part)
			}
		}
		if strings.Contains(a.body, "Can sign in") || reader != ownerEmail && strings.Contains(a.body, "192.0.2.7") {
			t.Errorf("%s is shown that the user can sign in, or the address", reader)
		}
	}
	f.ahead.Add(int64(16 * time.Minute))
	if a := f.get(home, f.signIn("acme", ownerEmail)); !strings.Contains(a.body, "Can sign in") {
		t.Errorf("afterwards: %s", a.body)
	}
}
