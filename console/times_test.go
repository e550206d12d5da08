package console

import (
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

func TestTimesInWords(t *testing.T) {
	now := rolecall.TimeOf(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	for away, want := range map[time.Duration]string{
		0:                               "just now",
		-59 * time.Second:               "just now",
		-119 * time.Minute:              "1 hour ago",
		-23*time.Hour - 59*time.Minute:  "23 hours ago",
		-24 * time.Hour:                 "20 Nov 2026",
		-400 * 24 * time.Hour:           "17 Oct 2025",
		20 * time.Second:                "in less than a minute",
		59*time.Minute + 50*time.Second: "in 1 hour",
		23*time.Hour + 20*time.Minute:   "in 23 hours",
		23*time.Hour + 40*time.Minute:   "22 Nov 2026",
		26 * time.Hour:                  "22 Nov 2026",
	} {
		if got := (&pageContext{zone: time.UTC}).ago(now, now.Add(away)); got != want {
			t.Errorf("%v away is %q, want %q", away, got, want)
		}
	}
}

// assigned returns the only assignment of the user.
func (f *fixture) assigned(user rolecall.User) rolecall.Assignment {
	f.t.Helper()
	held, _, err := f.node.Directory.Assignments(f.t.Context(), f.asOwner(), rolecall.HolderOf(user.ID))
	if err != nil || len(held) != 1 {
		f.t.Fatalf("%v %v", held, err)
	}
	return held[0]
}

// lastSunday returns the last Sunday of the month in a year far in the future, with the time of day.
func lastSunday(month time.Month, clock string) string {
	day := time.Date(2199, month+1, 0, 0, 0, 0, 0, time.UTC)
	return day.AddDate(0, 0, -int(day.Weekday())).Format(time.DateOnly) + "T" + clock
}

func TestTimesAreShownInTheZoneOfTheReader(t *testing.T) {
	f := newFixture(t)
	user, role := f.hire("eve@example.com", "Eve Adams", nil), f.makeRole("Helper", "users:read")
	end := rolecall.TimeOf(time.Date(2199, 7, 1, 22, 30, 45, 0, time.UTC))
	if _, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID), role.ID, rolecall.AssignmentDraft{ExpiresAt: &end}); err != nil {
		t.Fatal(err)
	}
	cookie, home := f.signIn("acme", ownerEmail), "/console/acme/users/"+user.ID.String()
	form := home + "/roles/" + role.ID.String()
	for zone, want := range map[string]struct{ minute, full, input string }{
		"":                  {"1 Jul 2199, 22:30 UTC", "Monday, 1 July 2199, 22:30:45 UTC", "2199-07-01T22:30"},
		"Europe/Nowhere":    {"1 Jul 2199, 22:30 UTC", "Monday, 1 July 2199, 22:30:45 UTC", "2199-07-01T22:30"},
		"Europe/Berlin":     {"2 Jul 2199, 00:30 CEST", "Tuesday, 2 July 2199, 00:30:45 CEST (Europe/Berlin) = 1 Jul 2199, 22:30:45 UTC", "2199-07-02T00:30"},
		"America/New_York":  {"1 Jul 2199, 18:30 EDT", "Monday, 1 July 2199, 18:30:45 EDT (America/New_York) = 1 Jul 2199, 22:30:45 UTC", "2199-07-01T18:30"},
		"America/Sao_Paulo": {"1 Jul 2199, 19:30 UTC-03:00", "Monday, 1 July 2199, 19:30:45 UTC-03:00 (America/Sao_Paulo) = 1 Jul 2199, 22:30:45 UTC", "2199-07-01T19:30"},
		"Asia/Kathmandu":    {"2 Jul 2199, 04:15 UTC+05:45", "Tuesday, 2 July 2199, 04:15:45 UTC+05:45 (Asia/Kathmandu) = 1 Jul 2199, 22:30:45 UTC", "2199-07-02T04:15"},
	} {
		named := zone
		if strings.HasPrefix(want.minute, "1 Jul 2199, 22:30") {
			named = "UTC"
		}
		cookie := cookie + "; " + zoneCookie + "=" + zone
		for path, parts := range map[string][]string{
			home + "/roles":  {`<time datetime="2199-07-01T22:30:45.000Z" title="` + want.full + `">` + want.minute + "</time>"},
			home + "/events": {`until <time datetime="2199-07-01T22:30:45.000Z" title="` + want.full + `">` + want.minute[:strings.Index(want.minute, ",")] + "</time>", "<bdi>" + strings.SplitAfter(want.full, " (")[0][:len(want.minute)]},
			form:             {`value="` + want.input + `"`, `name="timeZone" value="` + named + `"`, "Time zone: " + named + "<"},
		} {
			a := f.get(path, cookie)
			page := html.UnescapeString(a.body)
			for _, part := range parts {
				if !strings.Contains(page, part) {
					t.Errorf("%q: %s lacks %q", zone, path, part)
				}
			}
		}
	}
}

func TestFormsAreReadInTheirZone(t *testing.T) {
	f := newFixture(t)
	user, role := f.hire("eve@example.com", "Eve Adams", nil), f.makeRole("Helper", "users:read")
	session, path := f.signIn("acme", ownerEmail), "/console/acme/users/"+user.ID.String()+"/roles/"+role.ID.String()
	skipped, repeated := lastSunday(time.March, "02:30"), lastSunday(time.October, "02:30")
	for _, test := range []struct{ cookie, page, text, want string }{
		{"", "", "2199-07-01T12:00", "2199-07-01T12:00:00.000000Z"},
		{"Europe/Berlin", "", "2199-07-01T12:00", "2199-07-01T10:00:00.000000Z"},
		{"Europe/Berlin", "Europe/Berlin", "2199-01-01T00:30", "2198-12-31T23:30:00.000000Z"},
		{"Europe/Berlin", "America/New_York", "2199-07-01T12:00", "2199-07-01T16:00:00.000000Z"}, // the time zone of the browser has changed
		{"Europe/Berlin", "UTC", "2199-07-01T12:00", "2199-07-01T12:00:00.000000Z"},
		{"Europe/Berlin", "Europe/Nowhere", "2199-07-01T12:00", "Must be checked: the server doesn't know the time zone Europe/Nowhere, so it now reads this time in the time zone below."},
		{"Europe/Berlin", "Europe/Berlin", repeated, strings.Replace(repeated, "T02:30", "T00:30:00.000000Z", 1)},
		{"Europe/Berlin", "Europe/Berlin", skipped, "Must be another time, because the clocks in Europe/Berlin skip this one."},
		{"America/New_York", "America/New_York", skipped, strings.Replace(skipped, "T02:30", "T06:30:00.000000Z", 1)}, // in this time zone, clocks change earlier
		{"America/New_York", "America/New_York", "9999-12-31T23:59", "Must be a date and a time."},
		{"Europe/Berlin", "Europe/Berlin", "tomorrow", "Must be a date and a time."},
	} {
		cookie := session + "; " + zoneCookie + "=" + test.cookie
		a := f.send(http.MethodPost, path, cookie, url.Values{"where": {"everywhere"}, "expiresAt": {test.text}, "timeZone": {test.page}})
		if strings.HasPrefix(test.want, "Must") {
			shown := []string{test.want, `value="` + test.text + `"`}
			if page := html.UnescapeString(a.body); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(page, shown[0]) || !strings.Contains(page, shown[1]) {
				t.Errorf("%+v: %d %s", test, a.StatusCode, page)
			}
			continue
		}
		if got := f.assigned(user).ExpiresAt.String(); a.StatusCode != http.StatusSeeOther || got != test.want {
			t.Errorf("%+v: %d, is saved as %s", test, a.StatusCode, got)
		}
	}
	// A form with an error is shown again in the time zone in which it was filled in.
	a := f.send(http.MethodPost, path, session+"; "+zoneCookie+"=Europe/Berlin", url.Values{"expiresAt": {"2199-07-01T12:00"}, "timeZone": {"Asia/Tokyo"}})
	if !strings.Contains(a.body, "Time zone: Asia/Tokyo<") || !strings.Contains(a.body, `value="2199-07-01T12:00"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// hiddenFields returns the hidden fields of the page.
func hiddenFields(page string) url.Values {
	fields := url.Values{}
	for _, match := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		fields.Add(match[1], html.UnescapeString(match[2]))
	}
	return fields
}

// A form shows times without seconds. A local time exists twice when clocks are set back.
func TestAnUnchangedEndIsSavedUnchanged(t *testing.T) {
	f := newFixture(t)
	user, role := f.hire("eve@example.com", "Eve Adams", nil), f.makeRole("Helper", "users:read")
	repeated, err := time.Parse(inputLayout, lastSunday(time.October, "01:30")) // Berlin shows this time as 2:30, for the second time in that night
	if err != nil {
		t.Fatal(err)
	}
	cookie := f.signIn("acme", ownerEmail) + "; " + zoneCookie + "=Europe/Berlin"
	path := "/console/acme/users/" + user.ID.String() + "/roles/" + role.ID.String()
	for _, end := range []rolecall.Time{rolecall.TimeOf(repeated), rolecall.TimeOf(repeated.Add(-41*time.Minute - 15*time.Second))} {
		if _, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID), role.ID, rolecall.AssignmentDraft{ExpiresAt: &end}); err != nil {
			t.Fatal(err)
		}
		form := hiddenFields(f.get(path, cookie).body)
		form.Set("where", whereEverywhere)
		form.Set("expiresAt", end.Std().In(zoneNamed(t, "Europe/Berlin")).Format(inputLayout))
		if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusSeeOther {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		if got := f.assigned(user).ExpiresAt; got != end {
			t.Errorf("%v is saved as %v", end, got)
		}
		form.Set("expiresAt", "2199-01-01T10:00")
		if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusSeeOther || f.assigned(user).ExpiresAt.String() != "2199-01-01T09:00:00.000000Z" {
			t.Errorf("%d, a new end is saved as %v", a.StatusCode, f.assigned(user).ExpiresAt)
		}
	}
}

func TestDaysOfFiltersAreInTheZoneOfTheirAddress(t *testing.T) {
	f := newFixture(t)
	session := f.signIn("acme", ownerEmail)
	for _, test := range []struct{ cookie, query, from, note string }{
		{"", "", "2026-11-22T00:00:00.000000Z", "Time zone: UTC<"},
		{"Europe/Berlin", "", "2026-11-21T23:00:00.000000Z", "Time zone: Europe/Berlin<"},
		{"Europe/Berlin", "&timeZone=Europe/Berlin", "2026-11-21T23:00:00.000000Z", "Time zone: Europe/Berlin<"},
		{"Europe/Berlin", "&timeZone=Asia/Tokyo", "2026-11-21T15:00:00.000000Z", "Time zone of these days: Asia/Tokyo<"},
		{"", "&timeZone=America/New_York", "2026-11-22T05:00:00.000000Z", "Time zone of these days: America/New_York<"},
	} {
		query := "?from=2026-11-22" + test.query
		v := &pageContext{page: &page{query: eventsQuery}, zone: time.UTC, request: httptest.NewRequest(http.MethodGet, "/"+query, nil)}
		if test.cookie != "" {
			v.zone = zoneNamed(t, test.cookie)
		}
		if v.readQuery(); v.from.String() != test.from || v.faults != nil {
			t.Errorf("%s%s is from %v", test.cookie, query, v.from)
		}
		a := f.get("/console/acme/events"+query, session+"; "+zoneCookie+"="+test.cookie)
		if !strings.Contains(a.body, test.note) || !strings.Contains(a.body, `name="from" value="2026-11-22"`) {
			t.Errorf("%s%s: %d %s", test.cookie, query, a.StatusCode, a.body)
		}
	}
	htmx := []string{"Hx-Request", "true", "Hx-Target", "results"}
	for query, want := range map[string]string{
		"?from=2026-01-01&timeZone=Europe%2FBerlin": "/console/acme/events?from=2026-01-01&timeZone=Europe%2FBerlin",
		"?from=&to=&timeZone=Europe%2FBerlin":       "/console/acme/events",
	} {
		if a := f.get("/console/acme/events"+query, session, htmx...); a.Header.Get("Hx-Replace-Url") != want {
			t.Errorf("%s is shown as %s", query, a.Header.Get("Hx-Replace-Url"))
		}
	}
	if a := f.get("/console/acme/events?timeZone=Europe/Nowhere", session); !strings.Contains(a.body, "must be the name of a time zone, such as Europe/Berlin") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestThePageHasTheAttributesOfTheZoneCookie(t *testing.T) {
	f, below := newFixture(t), newFixtureAt(t, "/people")
	for page, want := range map[string]string{
		f.get("/console/acme/sign-in", "").body:            `data-zone-cookie="; Path=/console; Secure; SameSite=Lax"`,
		below.get("/people/console/acme/sign-in", "").body: `data-zone-cookie="; Path=/people/console; Secure; SameSite=Lax"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("lacks %s: %s", want, page)
		}
	}
}
