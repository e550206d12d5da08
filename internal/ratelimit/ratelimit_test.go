package ratelimit

import "testing"

func TestNetworkOf(t *testing.T) {
	for source, want := range map[string]string{
		"192.0.2.1":           "192.0.2.1",
		"::ffff:192.0.2.1":    "192.0.2.1",
		"2001:db8:1:2:3::4":   "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::": "2001:db8:1:2::/64",
		"2001:db8:1:3::1":     "2001:db8:1:3::/64",
		"somewhere":           "somewhere",
		"":                    "",
	} {
		if got := NetworkOf(source); got != want {
			t.Errorf("NetworkOf(%q) is %q, want %q", source, got, want)
		}
	}
}

func TestZeroLimitsAreTheDefaults(t *testing.T) {
	got := Limits{Account: 7}.orDefaults()
	if want := (Limits{10, 7, 100, 3, 30, 1000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
