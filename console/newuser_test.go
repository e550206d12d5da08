package console

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// newUserForm returns the fields of the form for a new user.
func newUserForm(email, key string) url.Values {
	return url.Values{
		"idempotency-key": {key}, "name": {"Grace Hopper"}, "email": {email}, "department": {"Sales"}, "externalId": {""}, "invite": {"true"},
		"metadata-key": {"floor", "", "site"}, "metadata-value": {"3", "", `<b>"=1+1"`},
	}
}

func TestAUserIsCreatedAndInvitedOnce(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	shown := f.get("/console/acme/users/create", cookie).body
	key := regexp.MustCompile(`name="idempotency-key" value="([^"]+)"`).FindStringSubmatch(shown)[1]
	form := newUserForm("grace@example.com", key)
	var home string
	for range 2 {
		a := f.send(http.MethodPost, "/console/acme/users/create", cookie, form)
		if !strings.HasSuffix(a.Header.Get("Location"), "?done=user-invited") || home != "" && a.Header.Get("Location") != home {
			t.Fatalf("%d %s %s", a.StatusCode, a.Header.Get("Location"), a.body)
		}
		home = a.Header.Get("Location")
	}
	page, err := f.node.Directory.Users(t.Context(), f.asOwner(), directory.UserListing{Department: "sales", Limit: 10})
	if err != nil || len(page.Items) != 1 || page.Items[0].Metadata != rolecall.NewMetadata(map[string]string{"floor": "3", "site": `<b>"=1+1"`}) {
		t.Fatalf("%+v %v", page.Items, err)
	}
	for _, part := range []string{"was invited but hasn&#39;t set a password yet", "Resend invitation", "&lt;b&gt;&#34;=1+1&#34;", " was created. We&#39;ve emailed them an invitation.", `class="button button-small primary" href="/console/acme/users/` + page.Items[0].ID.String() + `/roles/give"`} {
		if a := f.get(home, cookie); !strings.Contains(a.body, part) {
			t.Errorf("lacks %s: %s", part, a.body)
		}
	}
	form.Set("name", "Grace Brewster Hopper")
	form.Set("email", "brewster@example.com")
	a := f.send(http.MethodPost, "/console/acme/users/create", cookie, form)
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "To save the current values too, submit it again.") {
		t.Errorf("the same key for another user: %d %s", a.StatusCode, a.body)
	}
	form.Set("idempotency-key", regexp.MustCompile(`name="idempotency-key" value="([^"]+)"`).FindStringSubmatch(a.body)[1])
	if a := f.send(http.MethodPost, "/console/acme/users/create", cookie, form); !strings.HasSuffix(a.Header.Get("Location"), "?done=user-invited") || a.Header.Get("Location") == home {
		t.Errorf("the form as it came back: %d %s", a.StatusCode, a.body)
	}
}

func TestWhatIsWrongWithANewUserIsSaidAtItsField(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for want, change := range map[string]url.Values{
		`id="fault-email">Another user of this tenant has this email address.`: {"email": {"Owner@Example.com"}},
		`id="fault-email">Must be an email address`:                            {"email": {"=cmd|'/c calc'!A1"}},
		`id="fault-name">Must have 3 to 255 characters.`:                       {"name": {"x"}},
		`id="fault-department">Must have 3`:                                    {"department": {"x"}},
		`class="fault">Appears more than once.`:                                {"metadata-key": {"floor", "floor"}, "metadata-value": {"1", "2"}},
		`role="alert">Each value must have a key`:                              {"metadata-key": {""}, "metadata-value": {"1"}},
	} {
		form := newUserForm("grace@example.com", "k")
		for name, values := range change {
			form[name] = values
		}
		a := f.send(http.MethodPost, "/console/acme/users/create", cookie, form)
		if a.StatusCode < 400 || a.StatusCode >= 500 || !strings.Contains(a.body, want) || !strings.Contains(a.body, "Not accepted. Correct the ") || !strings.Contains(a.body, `value="true" checked`) {
			t.Errorf("%s: %d %s", want, a.StatusCode, a.body)
		}
		if change.Has("metadata-key") && !strings.Contains(a.body, `<details class="more" open>`) {
			t.Errorf("%s: what is wrong is folded away", want)
		}
	}
	many := newUserForm("grace@example.com", "k")
	for range 60 {
		many.Add("metadata-key", many.Encode()[:rolecall.MetadataKeyMax+1])
	}
	if a := f.send(http.MethodPost, "/console/acme/users/create", cookie, many); a.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("%d", a.StatusCode)
	}
}

func TestOnlyWhoMayCreatesAndInvites(t *testing.T) {
	f := newFixture(t)
	f.hire("reader@example.com", "Rita Reader", []string{"users:read"})
	f.hire("creator@example.com", "Carl Creator", []string{"users:read", "users:create"}, "Sales")
	reader, creator := f.signIn("acme", "reader@example.com"), f.signIn("acme", "creator@example.com")
	if a := f.get("/console/acme/users", reader); strings.Contains(a.body, "/users/create") {
		t.Error("creating is offered to who may not")
	}
	if a := f.send(http.MethodPost, "/console/acme/users/create", reader, newUserForm("grace@example.com", "k")); a.StatusCode != http.StatusForbidden || strings.Contains(a.body, "<form method=\"post\" action=\"/console/acme/users/create") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get("/console/acme/users", creator); !strings.Contains(a.body, `href="/console/acme/users/create"`) {
		t.Error("creating is not offered to who may")
	}
	if a := f.get("/console/acme/users/create", creator); strings.Contains(a.body, `name="invite"`) || !strings.Contains(a.body, "users:invite") {
		t.Errorf("%s", a.body)
	}
	form := newUserForm("grace@example.com", "k")
	if a := f.send(http.MethodPost, "/console/acme/users/create", creator, form); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "users:invite") {
		t.Errorf("an invitation: %d %s", a.StatusCode, a.body)
	}
	form.Del("invite")
	form.Set("department", "Legal")
	if a := f.send(http.MethodPost, "/console/acme/users/create", creator, form); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, `id="fault-department"`) {
		t.Errorf("another department: %d %s", a.StatusCode, a.body)
	}
	form.Set("department", "sales")
	if a := f.send(http.MethodPost, "/console/acme/users/create", creator, form); !strings.HasSuffix(a.Header.Get("Location"), "?done=user-created") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestMetadataIsChangedPairByPair(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	draft := rolecall.UserDraft{Email: "eve@example.com", Name: "Eve Adams", Metadata: map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}}
	created, err := f.node.Directory.CreateUser(t.Context(), f.asOwner(), idempotency.Key{Text: "k", Fingerprint: []byte("k")}, draft)
	if err != nil {
		t.Fatal(err)
	}
	user, path := created.Value, "/console/acme/users/"+created.Value.ID.String()+"/edit"
	tagOf := func(body string) string {
		return html.UnescapeString(regexp.MustCompile(`name="if-match" value="([^"]+)"`).FindStringSubmatch(body)[1])
	}
	form := url.Values{ // a is changed, b is removed, c is unchanged, and e is added
		"if-match":         {tagOf(f.get(path, cookie).body)},
		"was-metadata-key": {"a", "b", "c", "d"}, "was-metadata-value": {"1", "2", "3", "4"},
		"metadata-key": {"a", "", "c", "d", "e"}, "metadata-value": {"one", "", "3", "4", "5"},
	}
	uno, zwei, drei, neu := "uno", "zwei", "drei", "neu"
	patch := rolecall.UserPatch{Metadata: rolecall.Some(map[string]*string{"a": &uno, "b": &zwei, "c": &drei, "d": nil, "f": &neu})}
	if _, err := f.node.Directory.UpdateUser(t.Context(), f.asOwner(), user.ID, patch, nil); err != nil {
		t.Fatal(err)
	}
	a := f.send(http.MethodPost, path, cookie, form)
	for _, part := range []string{"This was changed", `value="one"`, "Currently saved: <bdi>uno", "<code>b</code> to <bdi>zwei", `value="drei"`, `value="5"`, `value="neu"`} {
		if a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.body, part) {
			t.Errorf("%d, lacks %s: %s", a.StatusCode, part, a.body)
		}
	}
	if strings.Contains(a.body, `name="metadata-key" value="d"`) {
		t.Error("what somebody else has removed and nobody touched is back")
	}
	form = url.Values{ // the form as the conflict page shows it
		"if-match":         {tagOf(a.body)},
		"was-metadata-key": {"a", "b", "c", "f"}, "was-metadata-value": {"uno", "zwei", "drei", "neu"},
		"metadata-key": {"a", "c", "e", "f", ""}, "metadata-value": {"one", "drei", "5", "neu", ""},
	}
	if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	saved, err := f.node.Directory.User(t.Context(), f.asOwner(), user.ID)
	if want := rolecall.NewMetadata(map[string]string{"a": "one", "c": "drei", "e": "5", "f": "neu"}); err != nil || saved.Metadata != want {
		t.Errorf("%s %v", saved.Metadata, err)
	}
}

func TestMetadataIsHeldBackAndYetChanged(t *testing.T) {
	f := newFixture(t)
	secret := "s3cret"
	user := f.hire("eve@example.com", "Eve Adams", nil)
	if _, err := f.node.Directory.UpdateUser(t.Context(), f.asOwner(), user.ID, rolecall.UserPatch{Metadata: rolecall.Some(map[string]*string{"a": &secret})}, nil); err != nil {
		t.Fatal(err)
	}
	f.hire("clerk@example.com", "Clara Clerk", []string{"users.name:read", "users.metadata:update"})
	cookie, path := f.signIn("acme", "clerk@example.com"), "/console/acme/users/"+user.ID.String()+"/edit"
	if a := f.get(path, cookie); strings.Contains(a.body, secret) || strings.Contains(a.body, `name="department"`) || !strings.Contains(a.body, "users.metadata:read") || !strings.Contains(a.body, `name="metadata-key"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path, cookie, url.Values{"metadata-key": {"b"}, "metadata-value": {"2"}}); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	saved, err := f.node.Directory.User(t.Context(), f.asOwner(), user.ID)
	if want := rolecall.NewMetadata(map[string]string{"a": secret, "b": "2"}); err != nil || saved.Metadata != want {
		t.Errorf("%s %v", saved.Metadata, err)
	}
}

func TestANewAddressIsAskedOnce(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", nil)
	cookie, home := f.signIn("acme", ownerEmail), "/console/acme/users/"+user.ID.String()
	if a := f.get(home, cookie); !strings.Contains(a.body, home+"/email") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, home+"/email", cookie, url.Values{"idempotency-key": {"a"}, "email": {"nowhere"}}); !strings.Contains(a.body, `id="fault-email"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form := url.Values{"idempotency-key": {"a"}, "email": {"eve.adams@example.com"}}
	for range 2 {
		if a := f.send(http.MethodPost, home+"/email", cookie, form); a.Header.Get("Location") != home+"?done=email-asked" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	events, err := f.node.Directory.UserEvents(t.Context(), f.asOwner(), user.ID, directory.EventListing{Limit: 50})
	asked := 0
	for _, e := range events.Items {
		if e.Type == rolecall.EventEmailRequested {
			asked++
		}
	}
	if err != nil || asked != 1 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	if saved, err := f.node.Directory.User(t.Context(), f.asOwner(), user.ID); err != nil || saved.Email != "eve@example.com" {
		t.Errorf("%s %v", saved.Email, err)
	}
}

func TestDepartmentsAreSuggestedToWhoMayReadThem(t *testing.T) {
	f := newFixture(t)
	for i, department := range []string{"Sales", `Le"gal`, "sales"} {
		email := fmt.Sprintf("user%d@example.com", i)
		draft := rolecall.UserDraft{Email: email, Name: "Somebody", Department: &department}
		if _, err := f.node.Directory.CreateUser(t.Context(), f.asOwner(), idempotency.Key{Text: email, Fingerprint: []byte(email)}, draft); err != nil {
			t.Fatal(err)
		}
	}
	role := f.makeRole("Helper", "users:read")
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read", "users:create", "roles:read", "roles:assign"}, "Sales")
	f.hire("namer@example.com", "Nora Namer", []string{"users.name:read", "users:create"})
	owner, clerk, namer := f.signIn("acme", ownerEmail), f.signIn("acme", "clerk@example.com"), f.signIn("acme", "namer@example.com")
	give := "/console/acme/users/" + f.owner.ID.String() + "/roles/" + role.ID.String()
	for _, c := range []struct {
		cookie, path string
		shown        []string
	}{
		{owner, "/console/acme/users", []string{"Sales", "Le&#34;gal"}},
		{owner, "/console/acme/users/create", []string{"Sales", "Le&#34;gal"}},
		{owner, "/console/acme/users/" + f.owner.ID.String() + "/edit", []string{"Sales", "Le&#34;gal"}},
		{owner, give, []string{"Sales", "Le&#34;gal"}},
		{clerk, "/console/acme/users", []string{"Sales"}},
		{clerk, "/console/acme/users/create", []string{"Sales"}},
		{namer, "/console/acme/users", nil},
		{namer, "/console/acme/users/create", nil},
	} {
		body := f.get(c.path, c.cookie).body
		for _, department := range []string{"Sales", "Le&#34;gal"} {
			if strings.Contains(body, `value="`+department+`"`) != slices.Contains(c.shown, department) || strings.Contains(body, `value="sales"`) {
				t.Errorf("%s: %s, expected %v: %s", c.path, department, c.shown, body)
			}
		}
	}
	if a := f.get("/console/acme/users/create", clerk); !strings.Contains(a.body, "only in these departments: Sales.") {
		t.Errorf("%s", a.body)
	}
	form := url.Values{"where": {"departments"}, "reach/departments": {"Sales", "x\u202e\r\nOps & Co"}}
	if a := f.send(http.MethodPost, give, owner, form); !strings.Contains(a.body, "x\u202e must") || !strings.Contains(a.body, `value="Sales" checked`) || !strings.Contains(a.body, "x\u202e\nOps &amp; Co</textarea>") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestThePermissionForMetadataComesBeforeItsValues(t *testing.T) {
	f := newFixture(t)
	user := f.hire("plain@example.com", "Plain", nil)
	path := "/console/acme/users/" + user.ID.String() + "/edit"
	form := url.Values{fieldPairKey: {"\x7f", "\x7f"}, fieldPairValue: {"a", "b"}}
	if r := f.send(http.MethodPost, path, f.signIn("acme", "plain@example.com"), form); r.StatusCode != http.StatusForbidden || !strings.Contains(r.body, "users.metadata:update") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := f.send(http.MethodPost, path, f.signIn("acme", ownerEmail), form); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
