package console

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

func TestEverySettingIsSaidInWords(t *testing.T) {
	grouped := 0
	for _, g := range settingGroups {
		grouped += len(g.settings)
	}
	if grouped != len(rolecall.NumberSettings) {
		t.Errorf("there are %d settings, and %d in groups", len(rolecall.NumberSettings), grouped)
	}
	for _, n := range rolecall.NumberSettings {
		w, ok := settingTexts[n.Name]
		if !ok {
			t.Errorf("%s is in no group of settings.go", n.Name)
		}
		for _, value := range []int64{n.Min, n.Max, n.Default(), n.Min + 1, (n.Min + n.Max) / 2} {
			if read, ok := w.read(w.of(value)); !ok || read != value {
				t.Errorf("%s: %d is said %q and read %d", n.Name, value, w.of(value), read)
			}
		}
	}
}

func TestEachTextSettingHasAField(t *testing.T) {
	f := newFixture(t)
	form := f.get("/console/acme/settings/edit", f.signIn("acme", ownerEmail)).body
	for _, s := range rolecall.TextSettings {
		if !strings.Contains(form, ` name="settings/`+s.Name+`"`) {
			t.Errorf("the form of settings.templ has no field for %s", s.Name)
		}
	}
}

func TestLengthsOfTimeAreReadAsPeopleSayThem(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "0 seconds": 0, "90s": 90, "90 sec": 90, "15 min": 900, "15m": 900, "12 hours": 43200, "1 Hour": 3600, "1 day 12 hours": 129600,
		" 7  days ": 604800, "3,660 days": 3660 * 86400, "1d12h": 129600,
	} {
		if got, ok := readLifetime(text); !ok || got != want {
			t.Errorf("%q: %d %v", text, got, ok)
		}
	}
	for _, text := range []string{"", " ", "12", "hours", "1 fortnight", "-1 day", "1.5 days", "1 day and", "1e3 days", "99999999999999999999 days", "1 dayss"} {
		if got, ok := readLifetime(text); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestSettingsAreChangedAndWhatProtectsLessIsSaidFirst(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	const path = "/console/acme/settings/edit"
	shown := f.get(path, cookie).body
	form := url.Values{"if-match": {fieldOf(t, shown, "if-match", "value")}}
	for name, typed := range map[string]string{"settings/sessionIdleSeconds": "2 days", "settings/passwordMinimum": "20", "settings/mailSenderName": "People"} {
		form.Set("was-"+name, fieldOf(t, shown, "was-"+name, "value"))
		form.Set(name, typed)
	}
	asked := f.send(http.MethodPost, path, cookie, form)
	for _, part := range []string{"These changes reduce security", "end after 2 days instead of 12 hours.", `value="2 days"`, `value="20"`, "Save anyway"} {
		if asked.StatusCode != http.StatusOK || !strings.Contains(asked.body, part) {
			t.Errorf("%d, lacks %s: %s", asked.StatusCode, part, asked.body)
		}
	}
	if strings.Contains(asked.body, "not at least") {
		t.Errorf("a longer password is no less: %s", asked.body)
	}
	form.Set("accepted", fieldOf(t, asked.body, "accepted", "value"))
	further := url.Values{}
	for name, values := range form {
		further[name] = values
	}
	further.Set("settings/sessionIdleSeconds", "3 days") // the accepted warnings do not include this value
	if a := f.send(http.MethodPost, path, cookie, further); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "after 3 days instead of 12 hours.") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.send(http.MethodPost, path, cookie, form); a.Header.Get("Location") != "/console/acme/settings?done=saved" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	saved, err := f.node.Directory.Tenant(t.Context(), "acme")
	if s := saved.Settings; err != nil || *s.SessionIdle != 2*86400 || *s.PasswordMin != 20 || *s.MailSender != "People" || s.SessionAbsolute != nil {
		t.Errorf("%+v %v", saved, err)
	}
	if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.body, "This was changed") {
		t.Errorf("sent twice: %d %s", a.StatusCode, a.body)
	}
	again := url.Values{"was-settings/sessionIdleSeconds": {"2 days"}, "settings/sessionIdleSeconds": {""}}
	if a := f.send(http.MethodPost, path, cookie, again); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if saved, err = f.node.Directory.Tenant(t.Context(), "acme"); err != nil || saved.Settings.SessionIdle != nil {
		t.Errorf("not the default again: %+v %v", saved, err)
	}
}

func TestWhatIsWrongWithASettingIsSaidInItsUnit(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for typed, c := range map[string]struct{ name, fault string }{
		"soon":         {"settings/sessionIdleSeconds", "Must be a duration with its unit, such as 12 hours."},
		"1 second":     {"settings/sessionIdleSeconds", "Must be from 1 minute to 30 days."},
		"8 days":       {"settings/sessionIdleSeconds", "Can&#39;t exceed the maximum session length"},
		"8":            {"settings/passwordMinimum", "Must be at least 15 characters unless"},
		"65":           {"settings/passwordMinimum", "Must be from 8 to 64 characters."},
		"a\u0000":      {"displayName", "ust"},
		"roles":        {"settings/secondFactor/required", "Choose at least one role"},
		"<b>of</b> me": {"settings/invitationSeconds", "Must be a duration with its unit, such as 3 days."},
	} {
		form := url.Values{"was-" + c.name: {"none"}, c.name: {typed}, "was-settings/secondFactor/roles": {""}}
		if a := f.send(http.MethodPost, "/console/acme/settings/edit", cookie, form); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, c.fault) || strings.Contains(a.body, "<b>of") {
			t.Errorf("%q: %d %s", typed, a.StatusCode, a.body)
		}
	}
}

func TestAConflictOfSettingsIsDescribedAtTheFieldThatHasIt(t *testing.T) {
	day, short := int64(86400), int64(8)
	idle := 2 * day
	for name, c := range map[string]struct {
		old   rolecall.TenantSettings
		patch rolecall.SettingsPatch
		want  rolecall.FieldError
	}{
		"session length": {
			rolecall.TenantSettings{SessionIdle: &idle},
			rolecall.SettingsPatch{Numbers: map[string]*int64{"sessionAbsoluteSeconds": &day}},
			rolecall.FieldError{Pointer: "/settings/sessionAbsoluteSeconds", Detail: msg("settings.idle-conflict")},
		},
		"second factor": {
			rolecall.TenantSettings{PasswordMin: &short, SecondFactor: rolecall.SecondFactorRule{Required: rolecall.SecondFactorOfAll}},
			rolecall.SettingsPatch{SecondFactor: rolecall.SecondFactorPatch{Required: rolecall.Some(string(rolecall.SecondFactorOfNobody))}},
			rolecall.FieldError{Pointer: "/settings/secondFactor/required", Detail: msg("settings.password-conflict")},
		},
	} {
		faults := (&rolecall.TenantPatch{Settings: c.patch}).CheckOn(c.old)
		shown, _ := errors.AsType[*rolecall.Error](inSettingWords(faults.Err()))
		if shown == nil || len(shown.FieldErrors) != 1 || shown.FieldErrors[0].Pointer != c.want.Pointer || shown.FieldErrors[0].Detail != c.want.Detail {
			t.Errorf("%s: %+v", name, shown)
		}
	}
}

func TestWhoseSecondFactorIsAskedForIsChosen(t *testing.T) {
	f := newFixture(t)
	f.hire("eve@example.com", `<i>Eve</i>`, []string{"users:read"})
	cookie := f.signIn("acme", ownerEmail)
	page, err := f.node.Directory.Roles(t.Context(), f.asOwner(), directory.RoleListing{Words: rolecall.Words("Role of eve"), Limit: 2})
	if err != nil || len(page.Items) != 1 {
		t.Fatal(page, err)
	}
	id := page.Items[0].ID.String()
	form := url.Values{
		"was-settings/secondFactor/required": {"none"}, "settings/secondFactor/required": {"roles"},
		"was-settings/secondFactor/roles": {""}, "settings/secondFactor/roles": {id},
	}
	a := f.send(http.MethodPost, "/console/acme/settings/edit", cookie, form)
	if !strings.Contains(a.body, "Affected users who are signed in without a second factor will be signed out immediately.") || strings.Contains(a.body, "You are one of them.") {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	form.Set("accepted", fieldOf(t, a.body, "accepted", "value"))
	if a := f.send(http.MethodPost, "/console/acme/settings/edit", cookie, form); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get("/console/acme/settings", cookie); !strings.Contains(a.body, "/console/acme/roles/"+id) || !strings.Contains(a.body, "Role of eve") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	back := url.Values{"was-settings/secondFactor/required": {"roles"}, "settings/secondFactor/required": {"none"}, "was-settings/secondFactor/roles": {id}, "settings/secondFactor/roles": {id}}
	if a := f.send(http.MethodPost, "/console/acme/settings/edit", cookie, back); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "No user needs a second factor anymore") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestRequiringSecondFactorsOfAllSaysWhoIsSignedOut(t *testing.T) {
	f := newFixture(t)
	f.hire("eve@example.com", "Eve Adams", nil)
	f.signIn("acme", "eve@example.com")
	f.signIn("acme", ownerEmail)
	cookie := f.signIn("acme", ownerEmail)
	form := url.Values{"was-settings/secondFactor/required": {"none"}, "settings/secondFactor/required": {"all"}, "was-settings/secondFactor/roles": {""}}
	const path = "/console/acme/settings/edit"
	asked := f.send(http.MethodPost, path, cookie, form)
	for _, part := range []string{"2 users are signed in without a second factor and will be signed out immediately.", "You are one of them.", "API tokens of affected users", "Save anyway", "Idle timeout becomes 1 hour (now 12 hours).", "Maximum session length becomes 1 day (now 7 days)."} {
		if asked.StatusCode != http.StatusOK || !strings.Contains(asked.body, part) {
			t.Errorf("%d, lacks %s: %s", asked.StatusCode, part, asked.body)
		}
	}
	kept := maps.Clone(form) // the form has the new values now, so that the old ones can be entered
	if value := fieldOf(t, asked.body, "was-settings/sessionIdleSeconds", "value"); value != "1 hour" {
		t.Errorf("the form has %q", value)
	}
	kept.Set("was-settings/sessionIdleSeconds", "1 hour")
	kept.Set("settings/sessionIdleSeconds", "12 hours")
	if a := f.send(http.MethodPost, path, cookie, kept); strings.Contains(a.body, "Idle timeout becomes") || !strings.Contains(a.body, "Maximum session length becomes") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if saved, err := f.node.Directory.Tenant(t.Context(), "acme"); err != nil || saved.Settings.RequireFactor() {
		t.Fatalf("saved before the confirmation: %+v %v", saved, err)
	}
	f.hire("dan@example.com", "Dan Dated", nil)
	f.signIn("acme", "dan@example.com") // changes the number of users, and not what was accepted
	form.Set("accepted", fieldOf(t, asked.body, "accepted", "value"))
	a := f.send(http.MethodPost, path, cookie, form)
	if a.StatusCode != http.StatusSeeOther || !strings.Contains(a.Header.Get("Set-Cookie"), "console-acme=; ") {
		t.Fatalf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	if a := f.get(a.Header.Get("Location"), ""); !strings.Contains(a.body, "this tenant now requires a second factor") {
		t.Errorf("the sign-in page gives no reason: %d %s", a.StatusCode, a.body)
	}
	if a := f.get("/console/acme/settings", cookie); a.StatusCode != http.StatusSeeOther {
		t.Errorf("still signed in: %d", a.StatusCode)
	}
}

func TestSettingsAreForWhoMayReadAndChangeThem(t *testing.T) {
	f := newFixture(t)
	f.hire("eve@example.com", "Eve Adams", []string{"users:read"})
	f.hire("rea@example.com", "Rea Reader", []string{"tenant:read"})
	eve, rea := f.signIn("acme", "eve@example.com"), f.signIn("acme", "rea@example.com")
	if a := f.get("/console/acme/users", eve); strings.Contains(a.body, "/settings") {
		t.Error("the navigation offers the settings without tenant:read")
	}
	if a := f.get("/console/acme/settings", eve); a.StatusCode != http.StatusForbidden {
		t.Errorf("%d", a.StatusCode)
	}
	if a := f.get("/console/acme/settings", rea); a.StatusCode != http.StatusOK || strings.Contains(a.body, "/settings/edit") || !strings.Contains(a.body, "tenant:update") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form := url.Values{"was-displayName": {"Tenant acme"}, "displayName": {"Mine"}}
	if a := f.send(http.MethodPost, "/console/acme/settings/edit", rea, form); a.StatusCode != http.StatusForbidden {
		t.Errorf("%d", a.StatusCode)
	}
	owner := f.signIn("acme", ownerEmail)
	f.await()
	if a := f.send(http.MethodPost, "/console/acme/settings/edit", owner, form); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, `name="current-password"`) || fieldOf(t, a.body, "displayName", "value") != "Mine" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form.Set("current-password", password)
	if a := f.send(http.MethodPost, "/console/acme/settings/edit", owner, form); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestTheTagOfATenantHasEachText(t *testing.T) {
	for name, settings := range map[string]rolecall.TenantSettings{"mailSenderName": {MailSender: orNil("People")}, "brandColor": {BrandColor: orNil("#09afbc")}} {
		if tenantTag(&rolecall.Tenant{Settings: settings}) == tenantTag(&rolecall.Tenant{}) {
			t.Errorf("the tag of a tenant is the same with and without %s", name)
		}
	}
}
