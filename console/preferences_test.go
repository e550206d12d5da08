package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/timezone"
)

// zoneNamed returns the time zone.
func zoneNamed(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, ok := timezone.Load(name)
	if !ok {
		t.Fatalf("%s is not known", name)
	}
	return zone
}

func TestTimeZoneOfTheCookie(t *testing.T) {
	for cookie, want := range map[string]string{
		"":                                                     "UTC",
		"rolecall_time_zone=":                                  "UTC",
		"rolecall_time_zone=Europe/Berlin":                     "Europe/Berlin",
		"rolecall_time_zone=UTC":                               "UTC",
		"rolecall_time_zone=Etc/GMT+5":                         "Etc/GMT+5",
		"rolecall_time_zone=Asia/Calcutta":                     "Asia/Calcutta",
		"rolecall_time_zone=Local":                             "UTC",
		"rolecall_time_zone=Europe/Nowhere":                    "UTC",
		"rolecall_time_zone=europe/berlin":                     "UTC",
		"rolecall_time_zone=/etc/localtime":                    "UTC",
		"rolecall_time_zone=Europe/../UTC":                     "UTC",
		"rolecall_time_zone=+02:00":                            "UTC",
		"rolecall_time_zone=A" + strings.Repeat("/Berlin", 20): "UTC",
		"rolecall_time_zone=A" + strings.Repeat("a", 64):       "UTC",
		"other=1; rolecall_time_zone=Africa/Cairo; x=y":        "Africa/Cairo",
		"rolecall_time_zone=America/Argentina/Ushuaia":         "America/Argentina/Ushuaia",
	} {
		r := &http.Request{Header: http.Header{"Cookie": {cookie}}}
		if got := zoneOf(r).String(); got != want {
			t.Errorf("%s is %s, want %s", cookie, got, want)
		}
	}
}

func TestThemeOfTheCookie(t *testing.T) {
	f := newFixture(t)
	for cookie, want := range map[string]string{"": "", "; rolecall_theme=dark": ` data-theme="dark"`, "; rolecall_theme=light": ` data-theme="light"`, `; rolecall_theme="><script>`: "", "; rolecall_theme=": ""} {
		body := f.get("/console/acme/sign-in", "x=1"+cookie).body
		tag, _, _ := strings.Cut(body[strings.Index(body, "<html"):], ">")
		if tag != `<html lang="en"`+want {
			t.Errorf("%s gives %s", cookie, tag)
		}
	}
}
