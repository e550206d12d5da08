package rolecall_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

func TestIsTenantName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "demo": true, "0": true, "acme-eu_1": true, "a-": true, strings.Repeat("a", 63): true,
		"": false, "Acme": false, "-acme": false, "_acme": false, "acme.eu": false, "acme eu": false, "acmé": false,
		"acme\n": false, strings.Repeat("a", 64): false,
	} {
		if got := rolecall.IsTenantName(name); got != want {
			t.Errorf("IsTenantName(%q) = %v", name, got)
		}
	}
}

func TestSessionLifetimes(t *testing.T) {
	standard := rolecall.TenantSettings{}
	short := rolecall.TenantSettings{SessionIdle: new(rolecall.Seconds(60)), SessionAbsolute: new(rolecall.Seconds(90)), RefreshGrace: new(rolecall.Seconds(0)), IdempotencyKept: new(rolecall.Seconds(30))}
	if standard.Grace() != 10*time.Second || short.Grace() != 0 {
		t.Errorf("grace %v, and %v where it is set to nothing", standard.Grace(), short.Grace())
	}
	if standard.KeyLifetime() != 24*time.Hour || short.KeyLifetime() != 30*time.Second {
		t.Errorf("keys live %v, %v", standard.KeyLifetime(), short.KeyLifetime())
	}
	for name, test := range map[string]struct {
		settings rolecall.TenantSettings
		used     time.Duration // after sign-in
		idleEnd  time.Duration
	}{
		"standard":                            {standard, time.Hour, 13 * time.Hour},
		"short":                               {short, 0, time.Minute},
		"never idle longer than the absolute": {short, time.Minute, 90 * time.Second},
	} {
		s := rolecall.Session{
			AuthenticatedAt: aMoment, LastUsedAt: aMoment.Add(test.used),
			ExpiresAt: aMoment.Add(test.settings.AbsoluteLifetime()),
		}
		end := aMoment.Add(test.idleEnd)
		if got := s.IdleExpiresAt(test.settings); got != end {
			t.Errorf("%s: idle end %v, want %v", name, got, end)
		}
		if !s.Live(end-1, test.settings) || s.Live(end, test.settings) {
			t.Errorf("%s: it must live until %v, and not from then on", name, end)
		}
	}
}

func TestTenantPatches(t *testing.T) {
	old := rolecall.Tenant{
		Name: "acme", DisplayName: "Acme", UpdatedAt: aMoment, Version: 3,
		Settings: rolecall.TenantSettings{RefreshGrace: new(rolecall.Seconds(0)), SessionIdle: new(rolecall.Seconds(60))},
	}
	for what, c := range map[string]struct {
		patch   rolecall.TenantPatch
		changed []string
		grace   time.Duration
		idle    time.Duration
	}{
		"nothing":                      {rolecall.TenantPatch{}, nil, 0, time.Minute},
		"what it is":                   {rolecall.TenantPatch{DisplayName: rolecall.Some("Acme"), Settings: numbers(map[string]*int64{"refreshGraceSeconds": new(int64(0)), "eventsKeptSeconds": nil})}, nil, 0, time.Minute},
		"another name":                 {rolecall.TenantPatch{DisplayName: rolecall.Some("ACME")}, []string{"displayName"}, 0, time.Minute},
		"another setting":              {patchOf(number("refreshGraceSeconds", 5)), []string{"settings"}, 5 * time.Second, time.Minute},
		"the default again":            {patchOf(numbers(map[string]*int64{"sessionIdleSeconds": nil})), []string{"settings"}, 0, 12 * time.Hour},
		"the default, said in seconds": {patchOf(number("sessionIdleSeconds", 12*3600)), []string{"settings"}, 0, 12 * time.Hour},
	} {
		got, changed := c.patch.Apply(old, aMoment)
		if !slices.Equal(changed, c.changed) || got.Settings.Grace() != c.grace || got.Settings.IdleLifetime() != c.idle || got.Name != "acme" {
			t.Errorf("%s: changed %q, into %+v", what, changed, got)
		}
		if wasChanged := changed != nil; (got.Version == 4) != wasChanged || (got.UpdatedAt == aMoment+1) != wasChanged {
			t.Errorf("%s: version %d of %v", what, got.Version, got.UpdatedAt)
		}
	}
	if old.Settings.Grace() != 0 || old.Settings.IdleLifetime() != time.Minute {
		t.Errorf("what was patched is changed itself: %+v", old.Settings)
	}
	for name, good := range map[string]bool{"A": true, strings.Repeat("é", 255): true, "": false, " ": false, "a\nb": false, strings.Repeat("a", 256): false} {
		patch := rolecall.TenantPatch{DisplayName: rolecall.Some(name)}
		if faults := patch.Check(); (faults == nil) != good || !good && faults[0].Pointer != "/displayName" {
			t.Errorf("%q: %+v", name, faults)
		}
	}
}

// drawn returns an image of one color in the format of encode.
func drawn(t testing.TB, width, height int, encode func(b *bytes.Buffer, m image.Image) error) []byte {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White})
	var b bytes.Buffer
	if err := encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asPNG(b *bytes.Buffer, m image.Image) error  { return png.Encode(b, m) }
func asJPEG(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) }
func asGIF(b *bytes.Buffer, m image.Image) error  { return gif.Encode(b, m, nil) }

// aWebP is an image of 48 by 32 pixels.
func aWebP(t testing.TB) []byte {
	t.Helper()
	content, err := base64.StdEncoding.DecodeString("UklGRh4AAABXRUJQVlA4TBEAAAAvL8AHAAfQ//73v/+BiOh/AAA=")
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// claiming returns a PNG whose header claims the size, with a correct checksum.
func claiming(t testing.TB, width, height uint32) []byte {
	t.Helper()
	content := drawn(t, 20, 20, asPNG)
	binary.BigEndian.PutUint32(content[16:], width)
	binary.BigEndian.PutUint32(content[20:], height)
	binary.BigEndian.PutUint32(content[29:], crc32.ChecksumIEEE(content[12:29]))
	return content
}

func TestLogos(t *testing.T) {
	small, webp := drawn(t, 64, 32, asPNG), aWebP(t)
	for name, test := range map[string]struct {
		mediaType string
		content   []byte
		want      string // the code of the fault
		width     int
	}{
		"a PNG":                             {"image/png", small, "", 64},
		"a JPEG":                            {"image/jpeg", drawn(t, 100, 50, asJPEG), "", 100},
		"a WebP":                            {"image/webp", webp, "", 48},
		"the smallest":                      {"image/png", drawn(t, 16, 16, asPNG), "", 16},
		"the largest":                       {"image/png", drawn(t, 1024, 1024, asPNG), "", 1024},
		"too narrow":                        {"image/png", drawn(t, 15, 16, asPNG), "range", 0},
		"too low":                           {"image/jpeg", drawn(t, 16, 15, asJPEG), "range", 0},
		"too wide":                          {"image/png", drawn(t, 1025, 16, asPNG), "range", 0},
		"too high":                          {"image/png", drawn(t, 16, 1025, asPNG), "range", 0},
		"a PNG that claims a huge size":     {"image/png", claiming(t, 65535, 65535), "range", 0},
		"a PNG that claims more than int":   {"image/png", claiming(t, 0xffffffff, 0xffffffff), "format", 0},
		"a PNG that claims no pixels":       {"image/png", claiming(t, 0, 0), "format", 0},
		"a PNG with a wrong checksum":       {"image/png", append(slices.Clone(small[:29]), make([]byte, 40)...), "format", 0},
		"a PNG that ends after its size":    {"image/png", small[:40], "format", 0},
		"a PNG without its last byte":       {"image/png", small[:len(small)-1], "format", 0},
		"a PNG that ends in its size":       {"image/png", small[:20], "format", 0},
		"a PNG with a page after it":        {"image/png", append(slices.Clone(small), "<script>"...), "format", 0},
		"a JPEG without its end":            {"image/jpeg", drawn(t, 64, 64, asJPEG)[:300], "format", 0},
		"a WebP without its last byte":      {"image/webp", webp[:len(webp)-1], "format", 0},
		"a WebP with more than it says":     {"image/webp", append(slices.Clone(webp), 0), "format", 0},
		"a JPEG that is called PNG":         {"image/png", drawn(t, 64, 64, asJPEG), "type", 0},
		"a PNG that is called WebP":         {"image/webp", small, "type", 0},
		"a GIF":                             {"image/gif", drawn(t, 64, 64, asGIF), "format", 0},
		"an SVG":                            {"image/svg+xml", []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"/>`), "format", 0},
		"an SVG that is called PNG":         {"image/png", []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"/>`), "format", 0},
		"a page that is called PNG":         {"image/png", []byte("<!DOCTYPE html><script>alert(1)</script>"), "format", 0},
		"nothing":                           {"image/png", nil, "format", 0},
		"a PNG that has one byte too many":  {"image/png", make([]byte, rolecall.LogoSizeMax+1), "length", 0},
		"as many bytes as allowed, of zero": {"image/png", make([]byte, rolecall.LogoSizeMax), "format", 0},
	} {
		file := rolecall.LogoFile{MediaType: test.mediaType, Content: test.content}
		logo, faults := file.Logo("hash", aMoment)
		got := ""
		for _, fault := range faults {
			got += fault.Code
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if faults == nil && (logo.Width != test.width || logo.MediaType != test.mediaType || logo.Size != len(test.content) || logo.Hash != "hash" || logo.UpdatedAt != aMoment) {
			t.Errorf("%s: %+v", name, logo)
		}
	}
}

func TestALogoIsPartOfTheVersionOfItsTenant(t *testing.T) {
	old := rolecall.Tenant{UpdatedAt: aMoment, Version: 3}
	set := old.WithLogo(&rolecall.Logo{Hash: "a"}, aMoment)
	if set.Logo.Hash != "a" || set.Version != 4 || set.UpdatedAt != aMoment+1 || old.Logo != nil {
		t.Errorf("%+v", set)
	}
	if removed := set.WithLogo(nil, aMoment.Add(time.Hour)); removed.Logo != nil || removed.Version != 5 || removed.UpdatedAt != aMoment.Add(time.Hour) {
		t.Errorf("%+v", removed)
	}
}
