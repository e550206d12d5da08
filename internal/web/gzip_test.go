package web

import "testing"

func TestGzipNeedsAnExplicitName(t *testing.T) {
	for line, want := range map[string]bool{
		"": false, "gzip": true, "GZip": true, "br, gzip;q=0.1": true, "gzip;q=0": false, "gzip; q=0.000": false,
		"br": false, "*": false, "identity": false, "xgzip": false,
	} {
		if got := acceptsGzip([]string{line}); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
	if acceptsGzip(nil) || !acceptsGzip([]string{"br", "gzip"}) {
		t.Error("lines are not read one by one")
	}
}
