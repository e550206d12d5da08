package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/secret"
)

func TestOriginsAreWhatBrowsersSend(t *testing.T) {
	for origin, ok := range map[string]bool{
		"https://app.example.com":       true,
		"https://app.example.com:8443":  true,
		"http://localhost:3000":         true,
		"http://127.0.0.1:3000":         true,
		"https://[2001:db8::1]:8443":    true,
		"https://xn--bcher-kva.example": true,
		"https://my_app.example.com":    true,
		"":                              false,
		"*":                             false,
		"null":                          false,
		"app.example.com":               false,
		"https://":                      false,
		"https://*.example.com":         false,
		"https://App.example.com":       false,
		"HTTPS://app.example.com":       false,
		"https://app.example.com/":      false,
		"https://app.example.com/x":     false,
		"https://app.example.com?x":     false,
		"https://app.example.com#x":     false,
		"https://app.example.com:":      false,
		"https://app.example.com:443":   false,
		"http://app.example.com:80":     false,
		"https://ada@app.example.com":   false,
		"https://bücher.example":        false,
		"https://app..example.com":      false,
		"https://[2001:DB8::1]":         false,
		"ftp://app.example.com":         false,
		"file://":                       false,
	} {
		_, err := (&serveCommand{AllowOrigin: []string{origin}}).settings(&globals{SecretKeyFile: "keys"})
		if (err == nil) != ok {
			t.Errorf("%q: %v, want it allowed: %v", origin, err, ok)
		}
	}
}

func TestCookieDomainIsAParentOfThePublicHost(t *testing.T) {
	for _, test := range []struct {
		public, domain string
		ok             bool
	}{
		{"https://id.example.com", "example.com", true},
		{"https://a.id.example.com:8443/people", "example.com", true},
		{"https://a.id.example.com", "id.example.com", true},
		{"", "example.com", false},
		{"https://example.com", "example.com", false},
		{"https://id.example.com", "id.example.com", false},
		{"https://id.example.com", ".example.com", false},
		{"https://id.example.com", "com", false},
		{"https://id.example.com", "ample.com", false},
		{"https://id.example.com", "example.org", false},
		{"https://id.example.com", "Example.com", false},
		{"https://id.example.com", "example.com; Secure", false},
		{"https://10.0.0.1", "0.0.1", false},
	} {
		s, err := (&serveCommand{PublicURL: test.public, CookieDomain: test.domain}).settings(&globals{SecretKeyFile: "keys"})
		if (err == nil) != test.ok {
			t.Errorf("%q for %q: %v, want it accepted: %v", test.domain, test.public, err, test.ok)
		}
		if err == nil && (len(s.warnings) != 1 || !strings.Contains(s.warnings[0], "every host under "+test.domain)) {
			t.Errorf("%q for %q: warned %q", test.domain, test.public, s.warnings)
		}
	}
}

func TestTheHostPrefixNeedsHTTPSAndOneHost(t *testing.T) {
	const https, http = "https://id.example.com", "http://127.0.0.1:8080"
	for _, test := range []struct {
		command serveCommand
		says    string // part of the error; empty if the value is accepted
	}{
		{serveCommand{PublicURL: https}, ""},
		{serveCommand{PublicURL: https + "/people"}, ""},
		{serveCommand{}, "requires an https --public-url"},
		{serveCommand{PublicURL: http}, "requires an https --public-url"},
		{serveCommand{PublicURL: https, Demo: true, Listen: "127.0.0.1:0"}, "cannot be used with --demo"},
		{serveCommand{PublicURL: https, CookieDomain: "example.com"}, "--cookie-domain cannot be used together"},
	} {
		test.command.HostPrefix = true
		_, err := test.command.settings(&globals{})
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test.command, err)
		}
	}
}

func TestReturnAddressesAreURLsOfPagesAndApps(t *testing.T) {
	for address, says := range map[string]string{
		"https://app.example.com/signed-in":                      "",
		"https://{tenant}.example.com/signed-in?from=rolecall":   "",
		"http://127.0.0.1:3000/signed-in":                        "",
		"com.example.app:/signed-in":                             "",
		"https://id.example.com/people/consoles/signed-in":       "",
		"myapp:/signed-in":                                       "must be an https URL",
		"javascript:alert(1)":                                    "must be an https URL",
		"https:///signed-in":                                     "must be an https URL",
		"https://ada@app.example.com/":                           "must be an https URL",
		"https://app.example.com/#signed-in":                     "must not have a fragment",
		"https://app.example.com/{user}":                         "only the placeholder {tenant}",
		"https://id.example.com/people/console/{tenant}/sign-in": "must not be a page of the console",
	} {
		_, err := (&serveCommand{PublicURL: "https://id.example.com/people", ReturnURLs: []string{address}}).settings(&globals{SecretKeyFile: "keys"})
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestOriginsOnAnotherSiteAreWarnedOf(t *testing.T) {
	for _, test := range []struct {
		public, origin string
		warned         bool
		ofScheme       bool // https on both sides would help
	}{
		{"https://id.example.com", "https://app.example.com", false, false},
		{"https://id.example.com", "https://example.com", false, false},
		{"https://id.example.com", "https://id.example.com:8443", false, false},
		{"https://example.com/people", "https://app.example.com", false, false},
		{"http://localhost:8080", "http://localhost:3000", false, false},
		{"https://id.example.com", "https://app.example.org", true, false},
		{"https://id.example.com", "https://example.net", true, false},
		{"https://id.example.com", "http://localhost:3000", true, false},
		{"https://localhost:8080", "http://localhost:3000", true, true},
		{"https://id.example.com", "http://app.example.com", true, true},
		{"http://127.0.0.1:8080", "http://localhost:3000", true, false},
		{"https://10.0.0.1", "https://10.1.0.1", true, false},
		{"", "https://app.example.org", false, false},
	} {
		s, err := (&serveCommand{PublicURL: test.public, AllowOrigin: []string{test.origin}}).settings(&globals{SecretKeyFile: "keys"})
		warnings := strings.Join(s.warnings, "\n")
		if err != nil || strings.Contains(warnings, "--allow-origin "+test.origin+" is on another site than --public-url "+test.public) != test.warned {
			t.Errorf("%+v: %v, warned %q", test, err, warnings)
		}
		if ofScheme := strings.Contains(warnings, "use the same scheme for both"); ofScheme != test.ofScheme {
			t.Errorf("%+v: warned %q", test, warnings)
		}
	}
}

func TestSecurityContactsAreURIs(t *testing.T) {
	for contact, ok := range map[string]bool{
		"mailto:security@example.com":                true,
		"https://example.com/security?report=1#form": true,
		"tel:+49-30-1234567":                         true,
		"security@example.com":                       false,
		"mailto:security":                            false,
		"http://example.com/security":                false,
		"https:///security":                          false,
		"tel:":                                       false,
		"mailto:a@example.com\nContact: mailto:b@example.com": false,
		"mailto:ä@example.com":                                false,
	} {
		_, err := (&serveCommand{SecurityURI: contact}).settings(&globals{SecretKeyFile: "keys"})
		if (err == nil) != ok {
			t.Errorf("%q: %v, want it accepted: %v", contact, err, ok)
		}
	}
}

func TestHSTSOfSubdomainsNeedsHTTPS(t *testing.T) {
	for public, ok := range map[string]bool{"https://id.example.com": true, "http://localhost:8080": false, "": false} {
		_, err := (&serveCommand{PublicURL: public, HSTSSubdomains: true}).settings(&globals{SecretKeyFile: "keys"})
		if (err == nil) != ok {
			t.Errorf("%q: %v, want it accepted: %v", public, err, ok)
		}
	}
}

func TestPasskeysAreBoundToADomain(t *testing.T) {
	const id, app = "https://id.example.com/people", "https://app.example.com"
	for _, test := range []struct {
		domain, public, allowed, want string // want: "" for no domain, "-" for an error
	}{
		{"", id, "", "id.example.com"},
		{"", "http://localhost:8080", "", "localhost"},
		{"", "http://127.0.0.1:8080", "", ""},
		{"", "https://[2001:db8::1]", "", ""},
		{"", "", app, ""},
		{"example.com", id, app, "example.com"},
		{"example.com", "", app, "example.com"},
		{"app.example.com", "https://id.internal", app, "app.example.com"},
		{"example.org", id, app, "-"},
		{"ample.com", id, app, "-"},
		{"com", id, app, "-"},
		{"https://example.com", id, app, "-"},
		{"127.0.0.1", "http://127.0.0.1:8080", "", "-"},
		{"example.com", "", "", "-"},
	} {
		s := settings{serveCommand: serveCommand{PasskeyDomain: test.domain, PublicURL: test.public}}
		if test.allowed != "" {
			s.AllowOrigin = []string{test.allowed}
		}
		err := errors.Join(s.readPublicURL(), s.readPasskeys())
		if (err != nil) != (test.want == "-") || (s.passkeys != nil) != (test.want != "" && test.want != "-") {
			t.Errorf("%+v: %v, %v", test, s.passkeys, err)
		}
		if s.passkeys == nil {
			continue
		}
		options, err := s.passkeys.RequestOptions(secret.NewToken(), nil)
		if err != nil || !strings.Contains(string(options), `"rpId":"`+test.want+`"`) {
			t.Errorf("%+v: %s, %v", test, options, err)
		}
	}
}

func TestPublicURLHasOneSpelling(t *testing.T) {
	for public, ok := range map[string]bool{
		"https://id.example.com":            true,
		"https://id.example.com/":           true,
		"https://id.example.com/people":     true,
		"https://id.example.com/a-1/b_2.c/": true,
		"https://id.example.com:8443/x":     true,
		"http://[2001:db8::1]:8080":         true,
		"https://ID.example.com":            false,
		"HTTPS://id.example.com":            false,
		"https://id.example.com:443":        false,
		"http://id.example.com:80/people":   false,
		"https://id.example.com:":           false,
		"https://bücher.example":            false,
		"https://[2001:DB8::1]":             false,
		"https://":                          false,
		"https://:8080":                     false,
		"https://id.example.com//":          false,
		"https://id.example.com/a//b":       false,
		"https://id.example.com/../x":       false,
		"https://id.example.com/.x":         false,
		"https://id.example.com/a%2Fb":      false,
		"https://id.example.com/a b":        false,
		"https://id.example.com/{id}":       false,
		"https://id.example.com/ä":          false,
	} {
		_, err := (&serveCommand{PublicURL: public}).settings(&globals{SecretKeyFile: "keys"})
		if (err == nil) != ok {
			t.Errorf("%q: %v, want it accepted: %v", public, err, ok)
		}
	}
}

func TestTrustedProxies(t *testing.T) {
	s, err := (&serveCommand{TrustedProxies: []string{"10.1.2.3/8", "192.0.2.1", "2001:db8::/32", "::1"}}).settings(&globals{SecretKeyFile: "keys"})
	if got, want := fmt.Sprint(s.trustedProxies), "[10.0.0.0/8 192.0.2.1/32 2001:db8::/32 ::1/128]"; err != nil || got != want || s.warnings != nil {
		t.Errorf("%s, %v, %q, want %s", got, err, s.warnings, want)
	}
	for _, bad := range []string{"", "proxy", "10.0.0.0/33", "10.0.0", "10.0.0.0/8;192.0.2.1"} {
		if _, err := (&serveCommand{TrustedProxies: []string{bad}}).settings(&globals{SecretKeyFile: "keys"}); err == nil {
			t.Errorf("%q is taken for a network", bad)
		}
	}
}

func TestTheNetworksOfOperatorsAreTheirs(t *testing.T) {
	s, err := (&serveCommand{OperatorNetworks: []string{"10.1.2.3/8"}}).settings(&globals{SecretKeyFile: "keys"})
	if got := fmt.Sprint(s.hookNetworks, s.oidcNetworks, s.mailNetworks); err != nil || got != "[10.0.0.0/8] [] []" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := (&serveCommand{OperatorNetworks: []string{"ten"}}).settings(&globals{SecretKeyFile: "keys"}); err == nil || !strings.Contains(err.Error(), "--operator-webhook-networks") {
		t.Errorf("the error is %v", err)
	}
}

func TestWeakerSettingsAreReported(t *testing.T) {
	for _, test := range []struct {
		command serveCommand
		warning string // "" for no warning
	}{
		{serveCommand{PublicURL: "https://id.example.com", AllowOrigin: []string{"https://app.example.com"}}, ""},
		{serveCommand{AllowOrigin: []string{"http://localhost:3000"}}, ""},
		{serveCommand{AllowOrigin: []string{"http://app.example.com"}}, "--allow-origin http://app.example.com uses plain http"},
		{serveCommand{TrustedProxies: []string{"0.0.0.0/0"}}, "trusts every client"},
		{serveCommand{TrustedProxies: []string{"::/0"}}, "trusts every client"},
		{serveCommand{OperatorNetworks: []string{"10.1.2.0/24", "fd00::1"}}, "--operator-webhook-networks lets every operator key of the scope all make this node send requests to these private networks: 10.1.2.0/24, fd00::1"},
		{serveCommand{TLSCert: "c", TLSKey: "k"}, "no Strict-Transport-Security"},
		{serveCommand{TLSCert: "c", TLSKey: "k", PublicURL: "https://id.example.com"}, ""},
	} {
		s, err := test.command.settings(&globals{SecretKeyFile: "keys"})
		if got := strings.Join(s.warnings, "\n"); err != nil || (got == "") != (test.warning == "") || !strings.Contains(got, test.warning) {
			t.Errorf("%+v: %v, warned %q, want %q", test.command, err, got, test.warning)
		}
	}
}

func TestTheMinimumForEventsIsAValueOfTheSetting(t *testing.T) {
	for text, want := range map[string]time.Duration{"1d": 24 * time.Hour, "3660d": 3660 * 24 * time.Hour, "36h": 36 * time.Hour, "23h": 0, "0d": 0, "3661d": 0, "-1h": 0, "long": 0} {
		var kept keepEvents
		if err := kept.UnmarshalText([]byte(text)); (err == nil) != (want > 0) || err == nil && time.Duration(kept) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(kept), err)
		}
	}
}

func TestPlainHTTPToOtherMachinesIsReported(t *testing.T) {
	for _, test := range []struct {
		command  serveCommand
		reported bool
	}{
		{serveCommand{Listen: "0.0.0.0:8080"}, true},
		{serveCommand{Listen: ":8080", PublicURL: "http://id.example.com"}, true},
		{serveCommand{Listen: ":8080", PublicURL: "https://id.example.com"}, false},
		{serveCommand{Listen: ":8080", TrustedProxies: []string{"10.0.0.0/8"}}, false},
		{serveCommand{Listen: ":8080", TLSCert: "cert.pem", TLSKey: "key.pem"}, false},
		{serveCommand{Listen: "127.0.0.1:8080"}, false},
		{serveCommand{Listen: "[::1]:8080"}, false},
		{serveCommand{Listen: "fd:3"}, false},
	} {
		s, err := test.command.settings(&globals{SecretKeyFile: "keys"})
		if err != nil || strings.Contains(strings.Join(s.warnings, "\n"), "plain http to other machines") != test.reported {
			t.Errorf("%+v: %v, warned %q", test.command, err, s.warnings)
		}
	}
}

func TestAddressesThatExcludeEachOtherAreRefused(t *testing.T) {
	for _, test := range []struct {
		a, b string // hosts
		same bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"", "127.0.0.1", true},
		{"", "[::1]", true},
		{"0.0.0.0", "127.0.0.1", true},
		{"0.0.0.0", "[::1]", true}, // a listener on 0.0.0.0 is one on [::]
		{"0.0.0.0", "[::]", true},
		{"127.0.0.1", "[::]", true},
		{"127.0.0.1", "[::1]", false},
		{"127.0.0.1", "127.0.0.2", false},
	} {
		if isSameListener(test.a+":8080", test.b+":8080") != test.same || isSameListener(test.b+":8080", test.a+":8080") != test.same {
			t.Errorf("%s and %s are the same address: %v, want %v", test.a, test.b, !test.same, test.same)
		}
		if !test.same || runtime.GOOS != "linux" { // other systems prefer the listener of one interface to that of all
			continue
		}
		first, err := net.Listen("tcp", test.a+":0")
		if err != nil {
			t.Fatal(err)
		}
		second, err := net.Listen("tcp", fmt.Sprintf("%s:%d", test.b, first.Addr().(*net.TCPAddr).Port))
		if err == nil {
			t.Errorf("the program can listen on %s and %s", test.a, test.b)
			_ = second.Close()
		}
		_ = first.Close()
	}
}

func TestFilesThatAllUsersCanReadAreReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	for mode, reported := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o602: true} {
		if err := errors.Join(os.WriteFile(file, nil, mode), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
		for setting, read := range map[string]func() (settings, error){
			"--secret-key-file": func() (settings, error) { return (&serveCommand{}).settings(&globals{SecretKeyFile: file}) },
			"--database":        func() (settings, error) { return (&serveCommand{}).settings(&globals{Database: file}) },
			"--tls-key": func() (settings, error) {
				return (&serveCommand{TLSCert: "cert", TLSKey: file}).settings(&globals{})
			},
			"--mail-webhook-key-file": func() (settings, error) {
				return (&serveCommand{PublicURL: "https://id.example.com", MailWebhook: "https://app.example.com/mail", MailWebhookKey: file}).settings(&globals{})
			},
		} {
			s, err := read()
			if warned := strings.Contains(strings.Join(s.warnings, "\n"), setting+" "+file+": every user of this machine can read or change"); err != nil || warned != reported {
				t.Errorf("%s with mode %o: %v, warned %q", setting, mode, err, s.warnings)
			}
		}
	}
}

func TestAnUnverifiedDatabaseIsReported(t *testing.T) {
	for database, want := range map[string]string{
		"postgres://u@db.example.com/x":                     "--database: the certificate of PostgreSQL at db.example.com is not verified",
		"postgres://u@db.example.com/x?sslmode=verify-full": "",
		"postgres://u@localhost/x":                          "",
		"people.db":                                         "",
	} {
		s, err := (&serveCommand{}).settings(&globals{SecretKeyFile: "keys", Database: database})
		if got := strings.Join(s.warnings, "\n"); err != nil || (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %v, warned %q", database, err, got)
		}
	}
}

func TestDocumentsSayHowLongAnOperatorKeyWorks(t *testing.T) {
	field, _ := reflect.TypeFor[operatorKeyCreate]().FieldByName("Expires")
	expires, _ := strings.CutSuffix(field.Tag.Get("default"), "d")
	page, err := os.ReadFile("../../docs/tenants.md")
	if want := "A key expires after " + expires + " days"; err != nil || !strings.Contains(string(page), want) {
		t.Errorf("docs/tenants.md does not say %q: %v", want, err)
	}
}
