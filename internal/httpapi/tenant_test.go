package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestTenant(t *testing.T) {
	s := newTestServer(t)
	read := s.as(s.owner, "GET", "/tenant", "")
	d, tag := read.document(t), read.Header.Get("Etag")
	standard := map[string]any{"passwordSignIn": "all", "secondFactor": map[string]any{"required": "none", "roles": []any{}}}
	for _, n := range rolecall.NumberSettings {
		standard[n.Name] = float64(n.Default())
	}
	for _, t := range rolecall.TextSettings {
		standard[t.Name] = nil
	}
	if read.StatusCode != 200 || len(d) != 8 || d["logo"] != nil || d["name"] != tenantName || d["displayName"] != "Acme" || d["status"] != "active" || !reflect.DeepEqual(d["settings"], standard) {
		t.Fatalf("%d %s", read.StatusCode, read.body)
	}
	if r := s.as(s.owner, "GET", "/tenant", "", "If-None-Match", tag); r.StatusCode != 304 {
		t.Errorf("If-None-Match: %d", r.StatusCode)
	}
	if r := s.as(s.owner, "PATCH", "/tenant", `{}`); r.body != read.body || r.Header.Get("Etag") != tag {
		t.Errorf("an empty patch: %s", r.body)
	}
	changed := s.as(s.owner, "PATCH", "/tenant", `{"displayName":"ACME","settings":{"refreshGraceSeconds":0,"sessionIdleSeconds":3600}}`, "If-Match", tag)
	settings, _ := changed.document(t)["settings"].(map[string]any)
	if changed.StatusCode != 200 || changed.document(t)["displayName"] != "ACME" || settings["refreshGraceSeconds"] != 0.0 || settings["sessionIdleSeconds"] != 3600.0 {
		t.Errorf("%d %s", changed.StatusCode, changed.body)
	}
	expectProblem(t, s.as(s.owner, "PATCH", "/tenant", `{"displayName":"Other"}`, "If-Match", tag), 412, "precondition-failed")
	whole, err := json.Marshal(map[string]any{"settings": settings})
	if err != nil {
		t.Fatal(err)
	}
	changed = s.as(s.owner, "PATCH", "/tenant", string(whole))
	if fmt.Sprint(changed.document(t)["settings"]) != fmt.Sprint(settings) {
		t.Errorf("what was read, written back: %d %s", changed.StatusCode, changed.body)
	}
	one := s.as(s.owner, "PATCH", "/tenant", `{"settings":{"refreshGraceSeconds":null}}`, "If-Match", changed.Header.Get("Etag"))
	if settings, _ := one.document(t)["settings"].(map[string]any); settings["refreshGraceSeconds"] != 10.0 || settings["sessionIdleSeconds"] != 3600.0 {
		t.Errorf("null for one setting: %d %s", one.StatusCode, one.body)
	}
	defaults := s.as(s.owner, "PATCH", "/tenant", `{"settings":{"sessionIdleSeconds":null,"sessionAbsoluteSeconds":null}}`)
	if !reflect.DeepEqual(defaults.document(t)["settings"], standard) || defaults.document(t)["displayName"] != "ACME" {
		t.Errorf("null for two settings: %d %s", defaults.StatusCode, defaults.body)
	}
	expectProblem(t, s.as(s.owner, "PATCH", "/tenant", `{"settings":null}`), 422, "validation")
	last := s.as(s.owner, "PATCH", "/tenant", `{"settings":{"mailSenderName":"ACME & Söhne","secondFactor":{"required":"all"},"passwordMinimum":8,"refreshGraceSeconds":0}}`)
	guarded := maps.Clone(standard)
	maps.Copy(guarded, map[string]any{
		"mailSenderName": "ACME & Söhne", "passwordMinimum": 8.0, "refreshGraceSeconds": 0.0, "sessionAbsoluteSeconds": 86400.0,
		"sessionIdleSeconds": 3600.0, "secondFactor": map[string]any{"required": "all", "roles": []any{}},
	})
	if got := last.document(t)["settings"]; !reflect.DeepEqual(got, guarded) {
		t.Errorf("%d %v, want %v", last.StatusCode, got, guarded)
	}
}

func TestFaultsOfATenantPatch(t *testing.T) {
	s := newTestServer(t)
	before := s.as(s.owner, "GET", "/tenant", "").body
	for body, want := range map[string]string{
		`{"name":"other"}`:                                                       "/name immutable",
		`{"displayName":null}`:                                                   "/displayName type",
		`{"displayName":""}`:                                                     "/displayName length",
		`{"status":"suspended"}`:                                                 "/status unknown",
		`{"settings":[]}`:                                                        "/settings type",
		`{"settings":{"x":1}}`:                                                   "/settings/x unknown",
		`{"settings":{"sessionIdleSeconds":"60"}}`:                               "/settings/sessionIdleSeconds type",
		`{"settings":{"sessionIdleSeconds":60.5}}`:                               "/settings/sessionIdleSeconds type",
		`{"settings":{"sessionIdleSeconds":1e1}}`:                                "/settings/sessionIdleSeconds range",
		`{"settings":{"sessionIdleSeconds":1e-1}}`:                               "/settings/sessionIdleSeconds type",
		`{"settings":{"sessionIdleSeconds":99999999999999999999}}`:               "/settings/sessionIdleSeconds range",
		`{"settings":{"sessionIdleSeconds":1e400000000}}`:                        "/settings/sessionIdleSeconds range",
		`{"settings":{"sessionIdleSeconds":-1e400000000}}`:                       "/settings/sessionIdleSeconds range",
		`{"settings":{"sessionIdleSeconds":1e-400000000}}`:                       "/settings/sessionIdleSeconds type",
		`{"settings":{"sessionAbsoluteSeconds":1e30,"sessionIdleSeconds":3600}}`: "/settings/sessionAbsoluteSeconds range",
		`{"settings":{"sessionIdleSeconds":59,"refreshGraceSeconds":301}}`:       "/settings/sessionIdleSeconds range; /settings/refreshGraceSeconds range",
		`{"settings":{"sessionIdleSeconds":true,"refreshGraceSeconds":-1}}`:      "/settings/sessionIdleSeconds type; /settings/refreshGraceSeconds range",
		`{"settings":{"secondFactor":"all"}}`:                                    "/settings/secondFactor type",
		`{"settings":{"secondFactor":{"required":"","of":[]}}}`:                  "/settings/secondFactor/of unknown; /settings/secondFactor/required format",
		`{"settings":{"secondFactor":{"required":1,"roles":{}}}}`:                "/settings/secondFactor/required type; /settings/secondFactor/roles type",
		`{"settings":{"secondFactor":{"required":"roles","roles":["x",null]}}}`:  "/settings/secondFactor/roles/1 type; /settings/secondFactor/roles/0 format",
		`{"settings":{"mailSenderName":"a\r\nBcc: b@example.com"}}`:              "/settings/mailSenderName control-character",
		`{"settings":{"brandColor":"red"}}`:                                      "/settings/brandColor format",
		`{"settings":{"brandColor":7}}`:                                          "/settings/brandColor type",
		`{"settings":{"mailSenderName":""}}`:                                     "/settings/mailSenderName length",
		`{"settings":{"passwordMinimum":14,"sessionIdleSeconds":604801}}`:        "/settings/sessionIdleSeconds conflict; /settings/passwordMinimum conflict",
		`{"displayName":"\u0007","settings":{"sessionAbsoluteSeconds":299}}`:     "/displayName control-character; /settings/sessionAbsoluteSeconds range",
		`{"settings":{"eventsKeptSeconds":1,"idempotencyKeptSeconds":2592001}}`:  "/settings/idempotencyKeptSeconds range; /settings/eventsKeptSeconds range",
	} {
		if r := s.as(s.owner, "PATCH", "/tenant", body); r.StatusCode != 422 || r.faults(t) != want {
			t.Errorf("%s: %d %q, want %q", body, r.StatusCode, r.faults(t), want)
		}
	}
	if after := s.as(s.owner, "GET", "/tenant", "").body; after != before {
		t.Errorf("%s", after)
	}
}

func TestWholeNumbersInOtherSpellings(t *testing.T) {
	s := newTestServer(t)
	for _, number := range []string{"60", "60.0", "6e1", "6E+1", "600e-1", "0.6e2"} {
		r := s.as(s.owner, "PATCH", "/tenant", `{"settings":{"sessionIdleSeconds":null,"refreshGraceSeconds":`+number+`}}`)
		if r.StatusCode != 200 || !strings.Contains(r.body, `"refreshGraceSeconds":60,`) {
			t.Errorf("%s: %d %s", number, r.StatusCode, r.body)
		}
	}
	for limit, status := range map[string]int{"1e0": 200, "1.0": 200, "1e400000000": 200, "201": 200, "99999999999999999999": 200, "1e-1": 400, "0.0": 400, "-1e0": 400, "1e": 400} {
		if r := s.as(s.owner, "GET", "/users?limit="+limit, ""); r.StatusCode != status {
			t.Errorf("limit=%s: %d %s", limit, r.StatusCode, r.body)
		}
	}
}

func TestPermissionsToReadAndChangeTheTenant(t *testing.T) {
	s := newTestServer(t)
	reader, _ := s.member("reader", []string{"tenant:read"})
	writer, _ := s.member("writer", []string{"tenant:update"})
	scoped, _ := s.member("scoped", []string{"tenant:read", "tenant:update"}, "Sales")
	for _, c := range []struct {
		cookie, method string
		status         int
	}{
		{reader, "GET", 200}, {reader, "PATCH", 403}, {writer, "GET", 403}, {writer, "PATCH", 200}, {scoped, "GET", 403}, {scoped, "PATCH", 403}, {"", "GET", 401}, {"", "PATCH", 401},
	} {
		body := ""
		if c.method == "PATCH" {
			body = `{"displayName":"Changed"}`
		}
		r := s.as(c.cookie, c.method, "/tenant", body)
		if r.StatusCode != c.status {
			t.Errorf("%s: %d %s", c.method, r.StatusCode, r.body)
		}
		if c.cookie == writer && c.status == 200 && (len(r.document(t)) != 1 || r.id(t) == "" || r.Header.Get("Etag") != "") {
			t.Errorf("who may not read it sees %s", r.body)
		}
	}
}

// aLogo returns a PNG with the width and a height of 32 pixels.
func aLogo(t testing.TB, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 32))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestLogo(t *testing.T) {
	s := newTestServer(t)
	const path = "/tenant/logo"
	put := func(content string, headers ...string) reply {
		t.Helper()
		return s.as(s.owner, "PUT", path, content, append([]string{"Content-Type", "image/png"}, headers...)...)
	}
	expectProblem(t, s.as(s.owner, "GET", path, ""), 404, "not-found")
	expectProblem(t, s.as(s.owner, "DELETE", path, ""), 404, "not-found")
	expectProblem(t, put(aLogo(t, 64), "If-Match", "*"), 412, "precondition-failed")
	tenantTag := s.as(s.owner, "GET", "/tenant", "").Header.Get("Etag")

	set := put(aLogo(t, 64))
	tag := set.Header.Get("Etag")
	if d := set.document(t); set.StatusCode != 200 || tag == "" || d["mediaType"] != "image/png" || d["width"] != 64.0 || d["height"] != 32.0 || d["size"] != float64(len(aLogo(t, 64))) {
		t.Fatalf("%d %v %s", set.StatusCode, set.Header, set.body)
	}
	got := s.as(s.owner, "GET", path, "")
	if got.StatusCode != 200 || got.body != aLogo(t, 64) || got.Header.Get("Content-Type") != "image/png" || got.Header.Get("Etag") != tag || got.Header.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.Contains(got.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
	if r := s.as(s.owner, "HEAD", path, ""); r.StatusCode != 200 || r.Header.Get("Etag") != tag || r.body != "" {
		t.Errorf("HEAD: %d %v", r.StatusCode, r.Header)
	}
	if r := s.as(s.owner, "GET", path, "", "If-None-Match", tag); r.StatusCode != 304 || r.body != "" {
		t.Errorf("If-None-Match: %d", r.StatusCode)
	}
	expectProblem(t, s.as(s.owner, "GET", path, "", "Accept", "application/json"), 406, "not-acceptable")
	expectProblem(t, s.as(s.owner, "GET", path, "", "Accept", "image/webp"), 406, "not-acceptable")
	if r := s.as(s.owner, "GET", path, "", "Accept", "image/webp,image/*;q=0.5"); r.StatusCode != 200 {
		t.Errorf("Accept: %d", r.StatusCode)
	}
	tenant := s.as(s.owner, "GET", "/tenant", "")
	if logo := tenant.document(t)["logo"]; fmt.Sprint(logo) != fmt.Sprint(set.document(t)) || tenant.Header.Get("Etag") == tenantTag {
		t.Errorf("the tenant has %v, want %s", logo, set.body)
	}
	expectProblem(t, s.as(s.owner, "PATCH", "/tenant", `{"displayName":"Other"}`, "If-Match", tenantTag), 412, "precondition-failed")

	if r := put(aLogo(t, 64)); r.StatusCode != 200 || r.body != set.body || s.as(s.owner, "GET", "/tenant", "").body != tenant.body {
		t.Errorf("the same logo again: %d %s", r.StatusCode, r.body)
	}
	expectProblem(t, put(aLogo(t, 65), "If-Match", `"other"`), 412, "precondition-failed")
	next := put(aLogo(t, 65), "If-Match", tag)
	if next.StatusCode != 200 || next.document(t)["width"] != 65.0 || next.Header.Get("Etag") == tag {
		t.Errorf("%d %s", next.StatusCode, next.body)
	}
	expectProblem(t, s.as(s.owner, "DELETE", path, "", "If-Match", tag), 412, "precondition-failed")
	if r := s.as(s.owner, "DELETE", path, "", "If-Match", next.Header.Get("Etag")); r.StatusCode != 204 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.as(s.owner, "GET", path, ""), 404, "not-found")
	if r := s.as(s.owner, "GET", "/tenant", ""); r.document(t)["logo"] != nil {
		t.Errorf("%s", r.body)
	}
}

func TestFilesThatAreNoLogo(t *testing.T) {
	s := newTestServer(t)
	const svg, page = `<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"/>`, "<!DOCTYPE html><script>alert(1)</script>"
	small := aLogo(t, 64)
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 64, 64)), nil); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		mediaType, content string
		status             int
		want               string // the field errors, or the code
	}{
		"a truncated PNG":           {"image/png", small[:len(small)-20], 422, "format"},
		"an SVG that is called PNG": {"image/png", svg, 422, "format"},
		"a page that is called PNG": {"image/png", page, 422, "format"},
		"a JPEG that is called PNG": {"image/png", photo.String(), 422, "type"},
		"a PNG that is too wide":    {"image/png", aLogo(t, 1025), 422, "range"},
		"an empty body":             {"image/png", "", 400, "required"},
		"a body of a space":         {"image/png", " ", 422, "format"},
		"a PNG that is too large":   {"image/png", small + strings.Repeat("x", rolecall.LogoSizeMax), 413, "content-too-large"},
		"an SVG":                    {"image/svg+xml", svg, 415, "unsupported-media-type"},
		"a GIF":                     {"image/gif", "GIF89a", 415, "unsupported-media-type"},
		"JSON":                      {"application/json", `{}`, 415, "unsupported-media-type"},
		"no media type":             {"image/", small, 415, "unsupported-media-type"},
		"several media types":       {"image/png, image/webp", small, 415, "unsupported-media-type"},
	} {
		r := s.as(s.owner, "PUT", "/tenant/logo", test.content, "Content-Type", test.mediaType)
		got := fmt.Sprint(r.document(t)["code"])
		if r.StatusCode == 422 || r.StatusCode == 400 {
			got = r.faults(t)
		}
		if r.StatusCode != test.status || got != test.want {
			t.Errorf("%s: %d %q, want %d %q: %s", name, r.StatusCode, got, test.status, test.want, r.body)
		}
		if accept := r.Header.Get("Accept"); r.StatusCode == 415 && accept != "image/png, image/jpeg, image/webp" {
			t.Errorf("%s: accepted is %q", name, accept)
		}
	}
	r := s.as(s.owner, "PUT", "/tenant/logo", small, "Content-Type", "image/png", "Content-Encoding", "gzip")
	if r.StatusCode != 415 || r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("Accept") != "" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if r := s.as(s.owner, "PUT", "/tenant/logo", small, "Content-Type", `IMAGE/PNG; name="a.png"`); r.StatusCode != 200 {
		t.Errorf("a media type with a parameter: %d %s", r.StatusCode, r.body)
	}
	if r := s.as(s.owner, "GET", "/tenant/logo", ""); r.body != small {
		t.Error("the logo was changed")
	}
}

func TestPermissionsToReadAndChangeTheLogo(t *testing.T) {
	s := newTestServer(t)
	reader, _ := s.member("reader", []string{"tenant:read"})
	writer, _ := s.member("writer", []string{"tenant:update"})
	scoped, _ := s.member("scoped", []string{"tenant:read", "tenant:update"}, "Sales")
	callers := map[string]map[string]int{
		reader: {"PUT": 403, "GET": 200, "DELETE": 403}, writer: {"PUT": 200, "GET": 403, "DELETE": 204},
		scoped: {"PUT": 403, "GET": 403, "DELETE": 403}, "": {"PUT": 401, "GET": 401, "DELETE": 401},
	}
	for cookie, want := range callers {
		if r := s.as(s.owner, "PUT", "/tenant/logo", aLogo(t, 32), "Content-Type", "image/png"); r.StatusCode != 200 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		for _, method := range slices.Sorted(maps.Keys(want)) {
			body := ""
			if method == "PUT" {
				body = aLogo(t, 64)
			}
			if r := s.as(cookie, method, "/tenant/logo", body, "Content-Type", "image/png"); r.StatusCode != want[method] {
				t.Errorf("%s: %d %s, want %d", method, r.StatusCode, r.body, want[method])
			}
			if method == "DELETE" && want[method] == 204 {
				s.as(s.owner, "PUT", "/tenant/logo", aLogo(t, 32), "Content-Type", "image/png")
			}
		}
	}
}
