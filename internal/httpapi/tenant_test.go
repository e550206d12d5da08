package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTenant(t *testing.T) {
	s := newTestServer(t)
	read := s.as(s.owner, "GET", "/tenant", "")
	d, tag := read.document(t), read.Header.Get("Etag")
	const standard = "map[brandColor:<nil> eventsKeptSeconds:3.456e+07 idempotencyKeptSeconds:86400 invitationSeconds:259200 mailSenderName:<nil> passwordMinimum:15 passwordResetSeconds:3600 " +
		"reauthenticationSeconds:900 refreshGraceSeconds:10 secondFactor:map[required:none roles:[]] sessionAbsoluteSeconds:604800 sessionIdleSeconds:43200 sessionsPerUser:100]"
	if read.StatusCode != 200 || len(d) != 7 || d["name"] != tenantName || d["displayName"] != "Acme" || d["status"] != "active" || fmt.Sprint(d["settings"]) != standard {
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
	if all := s.as(s.owner, "PATCH", "/tenant", `{"settings":null}`); fmt.Sprint(all.document(t)["settings"]) != standard || all.document(t)["displayName"] != "ACME" {
		t.Errorf("null for all settings: %d %s", all.StatusCode, all.body)
	}
	last := s.as(s.owner, "PATCH", "/tenant", `{"settings":{"mailSenderName":"ACME & Söhne","secondFactor":{"required":"all"},"passwordMinimum":8,"refreshGraceSeconds":0}}`)
	const guarded = "mailSenderName:ACME & Söhne passwordMinimum:8 passwordResetSeconds:3600 reauthenticationSeconds:900 refreshGraceSeconds:0 secondFactor:map[required:all roles:[]] sessionAbsoluteSeconds:86400 sessionIdleSeconds:3600"
	if got := fmt.Sprint(last.document(t)["settings"]); !strings.Contains(got, guarded) {
		t.Errorf("%d %s", last.StatusCode, got)
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
