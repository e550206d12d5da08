package operation

import (
	"slices"
	"strings"
	"testing"
)

func TestAccept(t *testing.T) {
	for accept, want := range map[string]bool{
		"*/*": true, "application/json": true, "Application/JSON;q=0.5": true, "application/*": true, "text/html, */*;q=0.1": true,
		"": true, " , ,": true, "text/html": false, "application/json;q=0": false, "application/json;q=0.0, */*": false, "*/*;q=0": false,
		"application/problem+json": false,
	} {
		if got := accepts([]string{accept}, jsonType); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}

func TestContentTypes(t *testing.T) {
	for contentType, want := range map[string][2]bool{
		"application/json":                  {true, true},
		"application/json; charset=UTF-8":   {true, true},
		`APPLICATION/JSON;charset="utf-8"`:  {true, true},
		"application/json;":                 {true, true},
		"application/merge-patch+json":      {false, true},
		"application/json; charset=latin-1": {false, false},
		"application/json; version=2":       {false, false},
		"text/plain":                        {false, false},
		"multipart/form-data; boundary=x":   {false, false},
		"":                                  {false, false},
	} {
		if got := [2]bool{isJSON(contentType, false), isJSON(contentType, true)}; got != want {
			t.Errorf("%q: %v", contentType, got)
		}
	}
}

// FuzzAccept checks that the result does not depend on the order of the media ranges or on ranges
// of other types. It also checks that JSON is accepted if a further line has application/json.
func FuzzAccept(f *testing.F) {
	for _, line := range []string{"", "*/*", "application/json;q=0, */*", "text/html, application/*;q=0.0", "a/b;q=\"", ";;q=0,,", "application/json; q=0 ;q=1", ","} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		accepted := accepts([]string{line}, jsonType)
		ranges := strings.Split(line, ",")
		slices.Reverse(ranges)
		if accepts(ranges, jsonType) != accepted || accepts([]string{strings.Join(ranges, ",")}, jsonType) != accepted {
			t.Errorf("%q and its reverse differ", line)
		}
		if strings.Trim(line, ", \t") != "" && accepts([]string{line, "image/png"}, jsonType) != accepted || !accepts([]string{line, "application/json"}, jsonType) {
			t.Errorf("%q with another range is judged otherwise", line)
		}
	})
}
