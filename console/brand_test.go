package console

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"regexp"
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
	if _, err := f.node.Directory.UpdateTenant(t.Context(), f.asOwner(), rolecall.TenantPatch{Settings: rolecall.SettingsPatch{Texts: map[string]*string{"brandColor": &color}}}, nil); err != nil {
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

// aLogo returns a PNG with the width and the height.
func aLogo(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// upload sends a form with the file and the fields, which are names and values in turn. A
// nil file is not sent.
func (f *fixture) upload(path, cookie string, file []byte, fields ...string) reply {
	f.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		if err := form.WriteField(fields[i], fields[i+1]); err != nil {
			f.t.Fatal(err)
		}
	}
	if file != nil {
		part, err := form.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="logo.png"`}, "Content-Type": {"image/svg+xml"}})
		if err == nil {
			_, err = part.Write(file)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		f.t.Fatal(err)
	}
	return f.sendBody(path, cookie, form.FormDataContentType(), body.String())
}

// sendBody sends a POST request with the body.
func (f *fixture) sendBody(path, cookie, contentType, body string, headers ...string) reply {
	f.t.Helper()
	r := httptest.NewRequest(http.MethodPost, f.url+path, strings.NewReader(body))
	r.RequestURI = ""
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Cookie", cookie)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var content bytes.Buffer
	if _, err := content.ReadFrom(response.Body); err != nil {
		f.t.Fatal(err)
	}
	return reply{response, content.String()}
}

// logoAddress returns the address of the logo in the page, or an empty text.
func (a reply) logoAddress() string {
	_, rest, _ := strings.Cut(a.body, `class="logo-image" src="`)
	address, _, _ := strings.Cut(rest, `"`)
	return address
}

func TestLogoOfATenant(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	const path, remove = "/console/acme/settings/logo", "/console/acme/settings/logo/remove"
	if a := f.get("/console/acme/settings", cookie); a.logoAddress() != "" || !strings.Contains(a.body, path+`">`) || strings.Contains(a.body, remove) {
		t.Errorf("without a logo: %s", a.body)
	}
	if a := f.get(path, cookie); a.StatusCode != http.StatusOK || !strings.Contains(a.body, `enctype="multipart/form-data"`) || !strings.Contains(a.body, "--data-binary @logo.png") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.upload(path, cookie, aLogo(t, 640, 100)); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/console/acme/settings?done=logo-set" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	settings := f.get("/console/acme/settings", cookie)
	address := settings.logoAddress()
	if !strings.HasPrefix(address, "/console/-/logo/acme/") || !strings.Contains(settings.body, "PNG, 640 × 100 pixels, set") || !strings.Contains(settings.body, remove) {
		t.Errorf("%s: %s", address, settings.body)
	}
	for path, has := range map[string]bool{
		"/acme/sign-in": true, "/acme/invitation": true, "/acme/password-reset": true, "/acme/email-change": true, "/acme/sign-out": true,
		"/other/sign-in": false, "/nobody/sign-in": false, "/": false,
	} {
		a := f.get("/console"+path, "")
		if shown := strings.Contains(a.body, `<img class="logo-image" src="`+address+`" alt="Tenant acme" width="256" height="40">`); shown != has || has == strings.Contains(a.body, "logo.svg") && strings.Contains(a.body, "Rolecall\n") {
			t.Errorf("%s: %d, has the logo: %v: %s", path, a.StatusCode, shown, a.body)
		}
	}
	if a := f.get("/console/acme/users", cookie); a.logoAddress() != "" {
		t.Error("a page after the sign-in has the logo")
	}

	got := f.get(address, "")
	if got.StatusCode != http.StatusOK || got.body != string(aLogo(t, 640, 100)) || got.Header.Get("Content-Type") != "image/png" || !strings.Contains(got.Header.Get("Cache-Control"), "immutable") ||
		got.Header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "default-src 'none';") || got.Header.Get("Set-Cookie") != "" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
	if a := f.get(address, "", "If-None-Match", got.Header.Get("Etag")); a.StatusCode != http.StatusNotModified {
		t.Errorf("%d", a.StatusCode)
	}
	hash := strings.TrimPrefix(address, "/console/-/logo/acme/")
	missing := f.get("/console/-/logo/nobody/"+hash, "")
	for _, path := range []string{"acme/" + hash[1:], "acme/" + hash + "x", "acme/", "acme", "other/" + hash, "nobody/" + hash, "ACME/" + hash, "-/" + hash, "acme/" + hash + "/x"} {
		if a := f.get("/console/-/logo/"+path, ""); a.StatusCode != http.StatusNotFound || a.Header.Get("Content-Type") != missing.Header.Get("Content-Type") || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", path, a.StatusCode, a.Header)
		}
	}

	if a := f.get(remove, cookie); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Remove the logo?") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.send(http.MethodPost, remove, cookie, nil); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/console/acme/settings?done=logo-removed" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(address, ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("the removed logo: %d", a.StatusCode)
	}
	if a := f.send(http.MethodPost, remove, cookie, nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("removed again: %d", a.StatusCode)
	}
}

func TestFilesThatAreNoLogo(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	const path = "/console/acme/settings/logo"
	large := append(aLogo(t, 64, 64), make([]byte, rolecall.LogoSizeMax)...)
	for name, test := range map[string]struct {
		file []byte
		want string
	}{
		"no file":                   {nil, "Choose a file."},
		"an empty file":             {[]byte{}, "Choose a file."},
		"an SVG":                    {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "Must be a complete image in the format PNG, JPEG or WebP."},
		"a page":                    {[]byte("<!DOCTYPE html><script>alert(1)</script>"), "Must be a complete image in the format PNG, JPEG or WebP."},
		"a truncated PNG":           {aLogo(t, 64, 64)[:50], "Must be a complete image in the format PNG, JPEG or WebP."},
		"a PNG that is too wide":    {aLogo(t, 1025, 64), "Must have a width and a height from 16 to 1,024 pixels."},
		"a PNG that is too large":   {large, "Must have at most 32 KiB."},
		"a file of three megabytes": {make([]byte, 3<<20), "Must have at most 32 KiB."},
	} {
		a := f.upload(path, cookie, test.file)
		if input := regexp.MustCompile(`<input[^>]*type="file"[^>]*>`).FindString(a.body); input == "" || strings.Contains(input, "value=") {
			t.Errorf("the input of the file is %q", input)
		}
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, test.want) || !strings.Contains(a.body, `id="fault-file"`) {
			t.Errorf("%s: %d, without %q: %s", name, a.StatusCode, test.want, a.body)
		}
	}
	if a := f.upload(path, cookie, make([]byte, uploadMax)); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a file of four megabytes: %d", a.StatusCode)
	}
	for name, test := range map[string]struct {
		contentType, body string
		status            int
	}{
		"another boundary":        {"multipart/form-data; boundary=a", "--b\r\n\r\n--b--\r\n", http.StatusBadRequest},
		"no boundary":             {"multipart/form-data", "x", http.StatusBadRequest},
		"an end that is missing":  {"multipart/form-data; boundary=a", "--a\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx", http.StatusBadRequest},
		"a text that is no text":  {"multipart/form-data; boundary=a", "--a\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\xff\r\n--a--\r\n", http.StatusBadRequest},
		"a text that is too long": {"multipart/form-data; boundary=a", "--a\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n" + strings.Repeat("x", 64<<10+1) + "\r\n--a--\r\n", http.StatusRequestEntityTooLarge},
		"too many parts":          {"multipart/form-data; boundary=a", strings.Repeat("--a\r\n\r\n\r\n", 64<<10+1) + "--a--\r\n", http.StatusRequestEntityTooLarge},
		"JSON":                    {"application/json", "{}", http.StatusUnsupportedMediaType},
		"a form without a file":   {"application/x-www-form-urlencoded", "file=x", http.StatusUnprocessableEntity},
	} {
		if a := f.sendBody(path, cookie, test.contentType, test.body); a.StatusCode != test.status {
			t.Errorf("%s: %d, want %d", name, a.StatusCode, test.status)
		}
	}
	if a := f.sendBody(path, cookie, "multipart/form-data; boundary=a", "--a--\r\n", "Origin", "https://evil.example"); a.StatusCode != http.StatusForbidden {
		t.Errorf("another origin: %d", a.StatusCode)
	}
	if a := f.sendBody("/console/acme/settings/edit", cookie, "multipart/form-data; boundary=a", "--a--\r\n"); a.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form that takes no file: %d", a.StatusCode)
	}
	if a := f.get("/console/acme/settings", cookie); a.logoAddress() != "" {
		t.Error("one of the files became the logo")
	}
}

func TestAStaleSignInConfirmsALogoWithThePassword(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	f.await()
	const path = "/console/acme/settings/logo"
	if a := f.get(path, cookie); !strings.Contains(a.body, `name="current-password"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.upload(path, cookie, aLogo(t, 64, 64)); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, `name="current-password"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.upload(path, cookie, aLogo(t, 64, 64), "current-password", password); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	reader := f.hire("reader@example.com", "Grace Hopper", []string{"tenant:read"})
	cookie = f.signIn("acme", reader.Email)
	if a := f.get("/console/acme/settings", cookie); a.logoAddress() == "" || strings.Contains(a.body, "settings/logo") {
		t.Errorf("who may only read: %s", a.body)
	}
	if a := f.upload(path, cookie, aLogo(t, 65, 64)); a.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// firstLoadMax is the maximum size of a sign-in page with all files that it loads, as they
// are sent, in bytes.
const firstLoadMax = 100_000

func TestTheSignInPageWithTheLargestLogoIsLight(t *testing.T) {
	f := newFixture(t)
	noise, random := image.NewGray(image.Rect(0, 0, 180, 180)), rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = color.Gray{Y: uint8(random.IntN(256))}.Y
	}
	var logo bytes.Buffer
	if err := png.Encode(&logo, noise); err != nil {
		t.Fatal(err)
	}
	if _, err := f.node.Directory.SetLogo(t.Context(), f.asOwner(), rolecall.LogoFile{MediaType: "image/png", Content: logo.Bytes()}, nil); err != nil {
		t.Fatal(err)
	}
	total, _ := f.get("/console/acme/sign-in", "", browser...).sizes(t)
	files := regexp.MustCompile(` (?:src|href)="(/console/-/[^"]+)"`).FindAllStringSubmatch(f.get("/console/acme/sign-in", "").body, -1)
	for _, file := range files {
		sent, _ := f.get(file[1], "", browser...).sizes(t)
		total += sent
	}
	t.Logf("%d bytes in %d files, with a logo of %d bytes", total, len(files), logo.Len())
	if total > firstLoadMax || len(files) < 5 || logo.Len() < rolecall.LogoSizeMax*9/10 {
		t.Errorf("%d bytes in %d files, with a logo of %d bytes, want at most %d", total, len(files), logo.Len(), firstLoadMax)
	}
}
