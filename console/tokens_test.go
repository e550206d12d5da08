package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// secretOf matches the secret of an API token.
var secretOf = regexp.MustCompile(`rc_[A-Za-z0-9_-]{40,}`)

// tokenFields returns the fields of the form for a new API token with the permissions.
func tokenFields(key, name string, permissions ...string) url.Values {
	return url.Values{"idempotency-key": {key}, "name": {name}, "permissions": permissions, "expiresAt": {time.Now().UTC().Add(48 * time.Hour).Format(inputLayout)}}
}

func TestATokenIsShownOnceAndMadeOnce(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	account := f.makeAccount("Import", f.makeRole("Helper", "users:read"))
	homes := []string{"/console/acme/service-accounts/" + account.ID.String(), "/console/acme/users/" + f.owner.ID.String()}
	for _, home := range homes {
		form := tokenFields("k", "<b>Nightly", "users:read")
		made := f.send(http.MethodPost, home+"/tokens/create", cookie, form)
		secret := secretOf.FindString(made.body)
		if made.StatusCode != http.StatusOK || secret == "" || strings.Count(made.body, secret) != 1 || !strings.Contains(made.body, "You won&#39;t see it again.") || !strings.Contains(made.body, "&lt;b&gt;Nightly") {
			t.Fatalf("%d %s", made.StatusCode, made.body)
		}
		if made.Header.Get("Cache-Control") != "no-store" || made.Header.Get("Location") != "" || strings.Contains(made.body, "href=\""+secret) {
			t.Errorf("%v", made.Header)
		}
		if api := f.get("/users?limit=1", "", "Authorization", "Bearer "+secret, "X-Tenant-Schema", "acme"); api.StatusCode != http.StatusOK {
			t.Errorf("the API does not know it: %d %s", api.StatusCode, api.body)
		}

		again := f.send(http.MethodPost, home+"/tokens/create", cookie, form)
		if again.StatusCode != http.StatusOK || secretOf.MatchString(again.body) || !strings.Contains(again.body, "This token was already created") {
			t.Errorf("%d %s", again.StatusCode, again.body)
		}
		form.Set("name", "Another")
		if reused := f.send(http.MethodPost, home+"/tokens/create", cookie, form); reused.StatusCode != http.StatusUnprocessableEntity || secretOf.MatchString(reused.body) {
			t.Errorf("%d %s", reused.StatusCode, reused.body)
		}
		list := f.get(home+"/tokens", cookie)
		if strings.Count(list.body, "&lt;b&gt;Nightly") != 2 || secretOf.MatchString(list.body) || strings.Contains(list.body, "<b>Nightly") { // the name, and the label of the Revoke link
			t.Errorf("%s", list.body)
		}

		revoke := regexp.MustCompile(`href="([^"]+/revoke)"`).FindStringSubmatch(list.body)[1]
		if a := f.get(revoke, cookie); !strings.Contains(a.body, "Revoke <bdi>&lt;b&gt;Nightly") {
			t.Errorf("%s", a.body)
		}
		if a := f.send(http.MethodPost, revoke, cookie, nil); a.Header.Get("Location") != home+"/tokens?done=token-revoked" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		if api := f.get("/users?limit=1", "", "Authorization", "Bearer "+secret, "X-Tenant-Schema", "acme"); api.StatusCode != http.StatusUnauthorized {
			t.Errorf("the API still knows it: %d", api.StatusCode)
		}
		if a := f.get(revoke, cookie); a.StatusCode != http.StatusNotFound {
			t.Errorf("%d", a.StatusCode)
		}
	}
}

func TestWhatIsWrongWithATokenIsSaidAtTheField(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	account := f.makeAccount("Import", f.makeRole("Helper", "users:read", "shop/*:read"))
	path := "/console/acme/service-accounts/" + account.ID.String() + "/tokens/create"
	for field, wrong := range map[string]struct{ value, words string }{
		"name":        {"x", `id="fault-name"`},
		"expiresAt":   {"soon", `id="fault-expiresAt">Must be a date and a time.`},
		"permissions": {"users:read\r\nusers:delete", "users:delete is not a permission that the holder of the token has or may assign."},
	} {
		form := tokenFields("key-"+field, "Nightly", "users:read")
		form.Set(field, wrong.value)
		if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, wrong.words) || field != "permissions" && !strings.Contains(a.body, `value="users:read" checked`) {
			t.Errorf("%s: %d %s", field, a.StatusCode, a.body)
		}
	}
	form := tokenFields("late", "Nightly", "users:read")
	form.Set("expiresAt", time.Now().UTC().Add(400*24*time.Hour).Format(inputLayout))
	if a := f.send(http.MethodPost, path, cookie, form); !strings.Contains(a.body, `id="fault-expiresAt">Must be at most 366 days from now.`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form = tokenFields("none", "Nightly")
	if a := f.send(http.MethodPost, path, cookie, form); !strings.Contains(a.body, "Must have at least one permission.") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestOnlyWhatTheHolderHasIsOfferedForAToken(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	account := f.makeAccount("Import", f.makeRole("Helper", "users:read", "shop/tills:open"))
	path := "/console/acme/service-accounts/" + account.ID.String() + "/tokens/create"
	a := f.get(path, cookie)
	for _, permission := range []string{"users:read", "users.name:read", "shop/tills:open"} {
		if strings.Count(a.body, `value="`+permission+`"`) != 1 {
			t.Errorf("%s is not offered once: %s", permission, a.body)
		}
	}
	if strings.Contains(a.body, `value="users:delete"`) || strings.Contains(a.body, "<textarea") {
		t.Errorf("%s", a.body)
	}
	bare := f.makeAccount("Bare")
	if a := f.get("/console/acme/service-accounts/"+bare.ID.String()+"/tokens/create", cookie); !strings.Contains(a.body, "No permissions to give to a token") || strings.Contains(a.body, `name="expiresAt"`) {
		t.Errorf("%s", a.body)
	}
	f.hire("clerk@example.com", "Clara Clerk", []string{"service-accounts:*", "users:suspend"})
	clerk := f.signIn("acme", "clerk@example.com")
	if a := f.get(path, clerk); !strings.Contains(a.body, "You need ") || strings.Contains(a.body, `name="expiresAt"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path, clerk, tokenFields("k", "Mine", "users:read")); a.StatusCode != http.StatusForbidden || secretOf.MatchString(a.body) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestUsersCannotCreateTokensForOtherUsers(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", []string{"users:read"})
	own := f.signIn("acme", "eve@example.com")
	home := "/console/acme/users/" + user.ID.String()
	if a := f.send(http.MethodPost, home+"/tokens/create", own, tokenFields("k", "Laptop", "users:read")); !secretOf.MatchString(a.body) {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	cookie := f.signIn("acme", ownerEmail)
	page, list := f.get(home, cookie), f.get(home+"/tokens", cookie)
	if !strings.Contains(page.body, `href="`+home+`/tokens">1 token`) || !strings.Contains(list.body, "Laptop") || !strings.Contains(list.body, "/revoke") || strings.Contains(list.body, "/tokens/create") {
		t.Errorf("%s %s", page.body, list.body)
	}
	for _, a := range []reply{f.get(home+"/tokens/create", cookie), f.send(http.MethodPost, home+"/tokens/create", cookie, tokenFields("k", "Theirs", "users:read"))} {
		if a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "Users can create API tokens only for themselves") {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "sessions:read"})
	if a := f.get(home+"/tokens", f.signIn("acme", "clerk@example.com")); a.StatusCode != http.StatusOK || strings.Contains(a.body, "/revoke") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestOnesOwnTokensAreOnTheAccount(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", []string{"shop/tills:open"})
	cookie := f.signIn("acme", "eve@example.com")
	home := "/console/acme/users/" + user.ID.String()
	if a := f.get("/console/acme/account", cookie); !strings.Contains(a.body, "tokens/create") || !strings.Contains(a.body, home+"/tokens/create") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, home+"/tokens/create", cookie, tokenFields("k", "Laptop", "shop/tills:open")); !secretOf.MatchString(a.body) {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get("/console/acme/account", cookie); !strings.Contains(a.body, "Laptop") || !strings.Contains(a.body, `href="`+home+`/tokens"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.get(home+"/tokens", cookie); !strings.Contains(a.body, "Laptop") || strings.Contains(a.body, `href="/console/acme/users"`) {
		t.Errorf("%s", a.body)
	}
}

func TestRiskyTokensAreMarked(t *testing.T) {
	const now = rolecall.Time(2_000_000_000_000_000)
	day := 24 * time.Hour
	for want, token := range map[string]rolecall.APIToken{
		"Expired":            {CreatedAt: now.Add(-9 * day), ExpiresAt: now},
		"Expires soon":       {CreatedAt: now.Add(-90 * day), ExpiresAt: now.Add(6 * day)},
		"Never used":         {CreatedAt: now.Add(-31 * day), ExpiresAt: now.Add(60 * day)},
		"Unused for 90 days": {CreatedAt: now.Add(-200 * day), LastUsedAt: now.Add(-91 * day), ExpiresAt: now.Add(60 * day)},
		"":                   {CreatedAt: now.Add(-200 * day), LastUsedAt: now.Add(-2 * day), ExpiresAt: now.Add(60 * day)},
	} {
		if got := concernOf(&token, now); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestLongListsOfTokensHavePages(t *testing.T) {
	f := newFixture(t)
	cookie, c := f.signIn("acme", ownerEmail), f.asOwner()
	account := f.makeAccount("Import", f.makeRole("Helper", "users:read"))
	for i := range 51 {
		key := "token " + string(rune('A'+i))
		draft := rolecall.APITokenDraft{Name: key, Permissions: []string{"users:read"}, ExpiresAt: rolecall.Time(time.Now().Add(time.Hour).UnixMicro())}
		if _, err := f.node.Directory.CreateToken(t.Context(), c, idempotency.Key{Text: key, Fingerprint: []byte(key)}, rolecall.HolderOf(account.ID), draft); err != nil {
			t.Fatal(err)
		}
	}
	home := "/console/acme/service-accounts/" + account.ID.String()
	if a := f.get(home, cookie); strings.Count(a.body, "Not used yet") != cardTokens || !strings.Contains(a.body, ">All tokens (51)<") {
		t.Errorf("%s", a.body)
	}
	first := f.get(home+"/tokens", cookie)
	next := regexp.MustCompile(`href="([^"]+cursor=[^"]+)" rel="next"`).FindStringSubmatch(first.body)
	if strings.Count(first.body, "Expires soon") != rolecall.DefaultLimit || next == nil {
		t.Fatalf("%s", first.body)
	}
	if a := f.get(strings.ReplaceAll(next[1], "&amp;", "&"), cookie); strings.Count(a.body, "Expires soon") != 51-rolecall.DefaultLimit {
		t.Errorf("%s", a.body)
	}
}
