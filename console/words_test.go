package console

import (
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
		-47 * time.Hour:                 "1 day ago",
		-300 * 24 * time.Hour:           "10 months ago",
		-400 * 24 * time.Hour:           "17 Oct 2025",
		20 * time.Second:                "in less than a minute",
		59*time.Minute + 50*time.Second: "in 1 hour",
		72*time.Hour - time.Second:      "in 3 days",
		23*time.Hour + 40*time.Minute:   "in 1 day",
		26 * time.Hour:                  "in 1 day",
	} {
		if got := ago(now, now.Add(away)); got != want {
			t.Errorf("%v away is %q, want %q", away, got, want)
		}
	}
}
