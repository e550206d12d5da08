package secret

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

// The expected codes are from RFC 6238, appendix B. They have eight digits. The last six
// digits are the codes of Rolecall.
func TestTOTPVectors(t *testing.T) {
	secret := TOTP("12345678901234567890")
	for at, code := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130",
	} {
		if step, ok := secret.Step(code[2:], rolecall.TimeOf(time.Unix(at, 0)), 0); !ok || step != at/30 {
			t.Errorf("at %d: step %d, %v; want %d", at, step, ok, at/30)
		}
	}
}

// The expected codes are from RFC 4226, appendix D.
func TestHOTPVectors(t *testing.T) {
	for step, want := range strings.Fields("755224 287082 359152 969429 338314 254676 287922 162583 399871 520489") {
		if got := TOTP("12345678901234567890").Code(int64(step)); got != want {
			t.Errorf("step %d: %s, want %s", step, got, want)
		}
	}
}

func TestTOTPWindow(t *testing.T) {
	secret := TOTP("12345678901234567890")
	const step = 1000
	begins := rolecall.TimeOf(time.Unix(step*30, 0))
	for _, test := range []struct {
		name string
		code string
		at   rolecall.Time
		used int64
		ok   bool
	}{
		{"as it begins", secret.Code(step), begins, 0, true},
		{"as it ends", secret.Code(step), begins.Add(30*time.Second - time.Microsecond), 0, true},
		{"a period early", secret.Code(step), begins.Add(-30 * time.Second), 0, true},
		{"more than a period early", secret.Code(step), begins.Add(-30*time.Second - time.Microsecond), 0, false},
		{"a period late", secret.Code(step), begins.Add(time.Minute - time.Microsecond), 0, true},
		{"more than a period late", secret.Code(step), begins.Add(time.Minute), 0, false},
		{"used", secret.Code(step), begins, step, false},
		{"older than one that was used", secret.Code(step - 1), begins, step, false},
		{"after one that was used", secret.Code(step + 1), begins, step, true},
		{"spaced", secret.Code(step)[:3] + " " + secret.Code(step)[3:], begins, 0, true},
		{"cut", secret.Code(step)[:5], begins, 0, false},
		{"empty", "", begins, 0, false},
		{"another secret's", TOTP("12345678901234567891").Code(step), begins, 0, false},
	} {
		if _, ok := secret.Step(test.code, test.at, test.used); ok != test.ok {
			t.Errorf("%s: %v, want %v", test.name, ok, test.ok)
		}
	}
}

func TestCodesHaveDigitsOfAnyScript(t *testing.T) {
	secret := TOTP("12345678901234567890")
	at := rolecall.TimeOf(time.Unix(59, 0))
	ascii := secret.Code(1)
	for script, zero := range map[string]rune{"Arabic-Indic": '٠', "Persian": '۰', "Devanagari": '०', "Bengali": '০', "Thai": '๐', "full-width": '０', "mathematical": '𝟬', "Adlam": '𞥐'} {
		code := strings.Map(func(r rune) rune { return r - '0' + zero }, ascii)
		for _, typed := range []string{code, "\u200f" + code[:len(code)/2] + "\u00a0" + code[len(code)/2:] + "\u202c\t"} {
			if step, ok := secret.Step(typed, at, 0); !ok || step != 1 {
				t.Errorf("%s %q: %d, %v", script, typed, step, ok)
			}
		}
		if _, ok := secret.Step(strings.Map(func(r rune) rune { return (r-'0'+1)%10 + zero }, ascii), at, 0); ok {
			t.Errorf("%s: another code is accepted", script)
		}
		for digit := range rune(10) {
			if got := digitOf(zero + digit); got != '0'+digit {
				t.Errorf("%s: %c is %c", script, zero+digit, got)
			}
		}
	}
	if _, ok := secret.Step("②"+ascii[1:], at, 0); ok {
		t.Error("a digit in a circle is accepted")
	}
	recovery := NewRecoveryCodes()[0]
	typed := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r - '0' + '٠'
		}
		return r
	}, string(recovery))
	if parsed, ok := ParseRecoveryCode(typed); !ok || parsed != recovery {
		t.Errorf("%s is %s, %v", typed, parsed, ok)
	}
}

func TestTOTPURI(t *testing.T) {
	secret := NewTOTP()
	if other := NewTOTP(); len(secret) != 20 || string(secret) == string(other) {
		t.Fatalf("secrets %x and %x, want 160 random bits", []byte(secret), []byte(other))
	}
	uri, err := url.Parse(secret.URI("Acme: R&D", "ada+x@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	if uri.Scheme != "otpauth" || uri.Host != "totp" || uri.Path != "/Acme R&D:ada+x@example.com" {
		t.Errorf("%s", uri)
	}
	if q := uri.Query(); q.Get("secret") != secret.Base32() || q.Get("issuer") != "Acme R&D" || strings.Contains(uri.RawQuery, "+") {
		t.Errorf("%s", uri)
	}
}
