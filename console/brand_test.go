package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestTextOnEveryBrandColorIsReadable(t *testing.T) {
	for r := 0; r < 256; r += 5 {
		for g := 0; g < 256; g += 5 {
			for b := 0; b < 256; b += 5 {
				ground := rgb{uint8(r), uint8(g), uint8(b)}
				text := textOn(ground)
				if got := contrast(ground, text); got < 4.5 {
					t.Fatalf("%v on %v: %.2f", text, ground, got)
				}
				if before, after := contrast(ground, text), contrast(hovered(ground), text); after < before {
					t.Fatalf("%v on %v: %.2f under the pointer, %.2f otherwise", text, ground, after, before)
				}
			}
		}
	}
	if got := contrast(white, black); got < 20.99 || got > 21.01 {
		t.Errorf("white and black: %.2f", got)
	}
	if got := contrast(colorOf("777777"), white); got < 4.47 || got > 4.49 {
		t.Errorf("gray and white: %.2f", got)
	}
}

func TestPagesBeforeTheSignInHaveTheColorOfTheTenant(t *testing.T) {
	f := newFixture(t)
	color := "#FFCC00"
	if _, err := f.node.Directory.UpdateTenant(t.Context(), f.asOwner(), rolecall.TenantPatch{Settings: rolecall.SettingsPatch{BrandColor: rolecall.Some(&color)}}, nil); err != nil {
		t.Fatal(err)
	}
	const link = `<link rel="stylesheet" href="/console/-/brand/ffcc00.css">`
	for path, has := range map[string]bool{
		"/acme/sign-in": true, "/acme/invitation": true, "/acme/password-reset": true, "/acme/email-change": true, "/acme/sign-out": true,
		"/other/sign-in": false, "/nobody/sign-in": false, "/": false,
	} {
		if a := f.get("/console"+path, ""); strings.Contains(a.body, link) != has || strings.Contains(a.body, "/brand/") != has {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	cookie := f.signIn("acme", ownerEmail)
	if a := f.get("/console/acme/users", cookie); strings.Contains(a.body, "/brand/") {
		t.Error("a page after the sign-in has the color")
	}
	if a := f.get("/console/acme/settings", cookie); !strings.Contains(a.body, `<span class="brand-sample">#ffcc00</span>`) {
		t.Errorf("the settings do not show the color: %s", a.body)
	}
	a := f.get("/console/-/brand/ffcc00.css", "")
	if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "background: #ffcc00; color: #000000") || a.Header.Get("Content-Type") != "text/css; charset=utf-8" ||
		!strings.Contains(a.Header.Get("Cache-Control"), "immutable") || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	for _, name := range []string{"ffcc0.css", "FFCC00.css", "ffcc00", "ffcc00;}.css", "ffcc0g.css", "ffcc00.css/x"} {
		if a := f.get("/console/-/brand/"+name, ""); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}
