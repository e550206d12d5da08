package timezone

import (
	"fmt"
	"testing"
	"time"
)

const layout = "2006-01-02T15:04"

// named returns the time zone with the name, and fails the test if Load does not find it.
func named(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, ok := Load(name)
	if !ok {
		t.Fatalf("%s is not known", name)
	}
	return zone
}

func TestCachedTimeZonesAreLimited(t *testing.T) {
	full := cache{loaded: map[string]*time.Location{}}
	for i := range zonesMax {
		full.loaded[fmt.Sprint(i)] = time.UTC
	}
	for _, name := range []string{"Nowhere", "Local", "Europe/Berlin"} {
		_, ok := full.load(name)
		if want := name == "Europe/Berlin"; ok != want || len(full.loaded) > zonesMax || (len(full.loaded) == 1) != want {
			t.Errorf("%s is known: %v, with %d in the cache", name, ok, len(full.loaded))
		}
	}
}

func TestMomentsOfWallTimes(t *testing.T) {
	for _, test := range []struct{ zone, wall, want string }{
		{"UTC", "2026-03-29T02:30", "2026-03-29T02:30"},
		{"Europe/Berlin", "2026-11-22T09:52", "2026-11-22T08:52"},
		{"Europe/Berlin", "2026-03-29T01:59", "2026-03-29T00:59"},
		{"Europe/Berlin", "2026-03-29T02:00", ""},
		{"Europe/Berlin", "2026-03-29T02:59", ""},
		{"Europe/Berlin", "2026-03-29T03:00", "2026-03-29T01:00"},
		{"Europe/Berlin", "2026-10-25T01:59", "2026-10-24T23:59"},
		{"Europe/Berlin", "2026-10-25T02:00", "2026-10-25T00:00"}, // clocks show this time again an hour later
		{"Europe/Berlin", "2026-10-25T02:59", "2026-10-25T00:59"},
		{"Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00"},
		{"America/New_York", "2026-03-08T02:30", ""},
		{"America/New_York", "2026-11-01T01:30", "2026-11-01T05:30"},
		{"Australia/Lord_Howe", "2026-10-04T02:15", ""},
		{"Australia/Lord_Howe", "2026-10-04T02:30", "2026-10-03T15:30"},
		{"Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45"},
		{"Asia/Kathmandu", "2026-01-01T00:00", "2025-12-31T18:15"},
		{"Pacific/Apia", "2011-12-30T12:00", ""},
		{"Pacific/Kiritimati", "2026-01-01T00:00", "2025-12-31T10:00"},
	} {
		wall, err := time.Parse(layout, test.wall)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if moment, ok := MomentAt(named(t, test.zone), wall); ok {
			got = moment.UTC().Format(layout)
		}
		if got != test.want {
			t.Errorf("%s in %s is %q, want %q", test.wall, test.zone, got, test.want)
		}
	}
}

func TestStartsOfDays(t *testing.T) {
	for _, test := range []struct{ zone, day, want string }{
		{"UTC", "2026-11-22", "2026-11-22T00:00"},
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00"},
		{"Asia/Beirut", "2026-03-29", "2026-03-28T22:00"},       // the day begins at 1:00
		{"America/Havana", "2026-11-01", "2026-11-01T04:00"},    // clocks show 0:00 twice
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00"}, // the day begins at 1:00
		{"America/Sao_Paulo", "2019-02-17", "2019-02-17T03:00"}, // clocks showed 23:00 of the day before twice
		{"Pacific/Apia", "2011-12-30", "2011-12-30T10:00"},      // this day did not exist
	} {
		day, err := time.Parse(time.DateOnly, test.day)
		if err != nil {
			t.Fatal(err)
		}
		if got := StartOfDay(named(t, test.zone), day).UTC().Format(layout); got != test.want {
			t.Errorf("%s in %s begins at %s, want %s", test.day, test.zone, got, test.want)
		}
	}
}

// MomentAt converts each local time to the first moment at which clocks show it.
func TestWallTimesAreReadAsTheirFirstMoment(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana", "Asia/Tehran", "Antarctica/Troll", "Pacific/Auckland"} {
		zone, first := named(t, name), map[string]time.Time{}
		for moment := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); moment.Year() == 2026; moment = moment.Add(15 * time.Minute) {
			text := moment.In(zone).Format(layout)
			if _, repeated := first[text]; !repeated {
				first[text] = moment
			}
			wall, err := time.Parse(layout, text)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := MomentAt(zone, wall); !ok || !got.Equal(first[text]) {
				t.Fatalf("%s in %s is read as %v (%v), want %v", text, name, got, ok, first[text])
			}
		}
	}
}
