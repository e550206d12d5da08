package console

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
)

// brandPath follows Path in the addresses of the style sheets for brand colors. The address
// contains the color and not the tenant, so it reveals nothing about tenants.
const brandPath = assetsPath + "brand/"

// brandStyle returns the address of the style sheet for the color. The color has the form
// #rrggbb.
func (v *pageContext) brandStyle(color string) string {
	return v.console.site.Base + Path + brandPath + strings.ToLower(color[1:]) + ".css"
}

// serveBrandStyle answers with the style sheet for the color in the path.
func (c *console) serveBrandStyle(w http.ResponseWriter, r *http.Request) {
	digits, isStyle := strings.CutSuffix(r.PathValue("name"), ".css")
	if !isStyle || !rolecall.IsColor("#"+digits) || digits != strings.ToLower(digits) {
		c.site.RespondProblem(w, r, web.ErrUnknownPath)
		return
	}
	style := []byte(brandRules(colorOf(digits)))
	web.RespondTagged(w, r, style, "text/css; charset=utf-8", "public, max-age=31536000, immutable", secret.ETag(style))
}

// rgb is a color.
type rgb [3]uint8

var (
	white = rgb{255, 255, 255}
	black = rgb{}
)

// colorOf returns the color with the hexadecimal digits rrggbb.
func colorOf(digits string) (color rgb) {
	_, _ = hex.Decode(color[:], []byte(digits)) // IsColor has checked the digits
	return color
}

func (c rgb) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// luminance returns the relative luminance of the color (WCAG 2.2).
func (c rgb) luminance() float64 {
	linear := func(channel uint8) float64 {
		v := float64(channel) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// contrast returns the contrast ratio of two colors (WCAG 2.2), from 1 to 21.
func contrast(a, b rgb) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// textOn returns the color of text on the ground: white or black, the one that has more
// contrast. The contrast is at least 4.58 on every ground.
func textOn(ground rgb) rgb {
	if contrast(ground, white) >= contrast(ground, black) {
		return white
	}
	return black
}

// hovered returns the color of a button under the pointer. Compared with ground, it has
// more contrast to the text.
func hovered(ground rgb) (hover rgb) {
	away := black
	if textOn(ground) == black {
		away = white
	}
	for i := range hover {
		hover[i] = uint8((int(ground[i])*85 + int(away[i])*15) / 100)
	}
	return hover
}

// brandRules returns the style sheet for the color. The rules are outside of layers, so
// they override console.css. Primary buttons have a border, because the page can have the
// same color as the button.
func brandRules(color rgb) string {
	text := textOn(color)
	return fmt.Sprintf(`.entry-card { border-top: 4px solid %[1]s; }
.brand-sample { background: %[1]s; color: %[2]s; }
.entry .button.primary { border-color: var(--line-strong); background: %[1]s; color: %[2]s; }
.entry .button.primary:hover { background: %[3]s; }
`, color, text, hovered(color))
}

// logoPath follows Path in the addresses of logos. The name of the tenant and the hash of
// the logo follow it.
const logoPath = assetsPath + "logo/"

// serveLogo answers with the logo of the tenant in the path, if it has the hash in the path.
func (c *console) serveLogo(w http.ResponseWriter, r *http.Request) {
	q, tenant, hash := web.RequestOf(r), r.PathValue("owner"), r.PathValue("hash")
	if !rolecall.IsTenantName(tenant) {
		c.site.RespondProblem(w, r, web.ErrUnknownPath)
		return
	}
	q.Tenant = tenant
	if err := q.Enter(web.WorkLimiter); err != nil {
		c.site.RespondProblem(w, r, err)
		return
	}
	file, err := c.directory.PublicLogo(r.Context(), tenant, hash)
	if errors.Is(err, rolecall.ErrNotFound) {
		err = web.ErrUnknownPath
	}
	if err != nil {
		c.site.RespondProblem(w, r, err)
		return
	}
	web.RespondTagged(w, r, file.Content, file.MediaType, "public, max-age=31536000, immutable", `"`+hash+`"`)
}

// The maximum size at which a page shows a logo, in CSS pixels.
const (
	logoWidthMax  = 256
	logoHeightMax = 80
)

// shownLogo is a logo as a page shows it.
type shownLogo struct {
	address       string
	width, height int // in CSS pixels
}

// shown returns the logo of the tenant as a page shows it. A logo that is too large is
// reduced in proportion. It returns the zero shownLogo if the tenant has no logo.
func (v *pageContext) shown(t *rolecall.Tenant) shownLogo {
	logo := t.Logo
	if logo == nil {
		return shownLogo{}
	}
	scale := min(1, float64(logoWidthMax)/float64(logo.Width), float64(logoHeightMax)/float64(logo.Height))
	size := func(pixels int) int { return max(1, int(math.Round(scale*float64(pixels)))) }
	return shownLogo{v.console.site.Base + Path + logoPath + t.Name + "/" + logo.Hash, size(logo.Width), size(logo.Height)}
}

// logo returns the logo of the tenant in the address. It returns the zero shownLogo if the
// tenant has no logo or does not exist.
func (f frame) logo() shownLogo {
	if f.tenant == "" {
		return shownLogo{}
	}
	tenant, err := f.console.directory.Tenant(f.ctx, f.tenant)
	if err != nil {
		return shownLogo{}
	}
	return f.shown(&tenant)
}

// fieldFile is the name of the form field for a file.
const fieldFile = "file"

// uploadMax is the maximum size of a form with a file, in bytes. It is larger than a logo
// can be, so that the form can state that the file is too large. The rest of such a file is
// read, but not stored.
const uploadMax = 4 << 20

// maxBody returns the maximum size of a form of the page, in bytes.
func (p *page) maxBody() int64 {
	if p.takesFile {
		return uploadMax
	}
	return web.MaxBody
}

// tooLarge returns the error for a form that is larger than maxBody.
func (p *page) tooLarge() error {
	if p.takesFile {
		return web.ErrContentTooLarge.With(msg("logo.too-large"))
	}
	return web.ErrContentTooLarge
}

// readFormWithFile parses a form in multipart/form-data. It keeps one byte more of the file
// than a logo can have, so that the service refuses a larger file.
func (v *pageContext) readFormWithFile(boundary string) error {
	parts, form := multipart.NewReader(web.LimitedBody(v.request, uploadMax), boundary), url.Values{}
	for rest := int64(web.MaxBody); ; rest-- { // each part counts, also an empty one
		part, err := parts.NextRawPart()
		if err == io.EOF {
			break
		}
		limit, name, content := rest, "", []byte(nil)
		if err == nil {
			if name = part.FormName(); name == fieldFile {
				limit = rolecall.LogoSizeMax
			}
			content, err = io.ReadAll(io.LimitReader(part, limit+1))
		}
		if err == nil {
			_, err = io.Copy(io.Discard, part)
		}
		_, tooLarge := errors.AsType[*http.MaxBytesError](err)
		switch {
		case tooLarge:
			return v.page.tooLarge()
		case err != nil:
			return rolecall.ErrMalformed.With(msg("form.broken"))
		case name == fieldFile:
			v.file = content
		case int64(len(content)) > rest || rest <= 0:
			return web.ErrContentTooLarge
		default:
			rest -= int64(len(content))
			form.Add(name, string(content))
			clear(content) // it can be a password
		}
	}
	if !isText(form) {
		return rolecall.ErrMalformed.With(msg("form.broken"))
	}
	v.form = form
	return nil
}

// logoPages returns the pages to set and to remove the logo of the tenant.
func (c *console) logoPages() []page {
	return []page{
		{path: "/{tenant}/settings/logo", operation: "TenantController_setLogo", takesFile: true, show: c.showLogo, act: c.setLogo},
		{path: "/{tenant}/settings/logo/remove", operation: "TenantController_deleteLogo", show: c.showLogoRemoval, act: c.removeLogo},
	}
}

func (c *console) showLogo(v *pageContext) error {
	return c.show(v, msg("logo.set"), settingsSection, logoFormPage)
}

// setLogo stores the file in the form as the logo. The media type that the browser sends is
// ignored, because it depends on the name of the file.
func (c *console) setLogo(v *pageContext) error {
	file := rolecall.LogoFile{MediaType: http.DetectContentType(v.file), Content: v.file}
	if _, err := c.directory.SetLogo(v.ctx, v.call, file, nil); err != nil {
		return inLogoWords(err, len(v.file) == 0)
	}
	return v.redirect(v.path("/settings") + "?done=logo-set")
}

func (c *console) showLogoRemoval(v *pageContext) error {
	return c.show(v, msg("logo.remove"), settingsSection, logoRemovalPage)
}

func (c *console) removeLogo(v *pageContext) error {
	if err := c.directory.RemoveLogo(v.ctx, v.call, nil); err != nil {
		return err
	}
	return v.redirect(v.path("/settings") + "?done=logo-removed")
}

// inLogoWords rewrites the field errors of an image for the form. isMissing reports whether
// the form has no file. inLogoWords returns other errors unchanged.
func inLogoWords(err error, isMissing bool) error {
	known, ok := errors.AsType[*rolecall.Error](err)
	if !ok || known.FieldErrors == nil {
		return err
	}
	faults := slices.Clone(known.FieldErrors)
	for i := range faults {
		faults[i].Pointer, faults[i].Detail = "/"+fieldFile, msg("logo."+faults[i].Code)
		if isMissing {
			faults[i].Detail = msg("logo.missing")
		}
	}
	return known.WithFieldErrors(faults...)
}

// imageFormat returns the name of the format of the logo, such as PNG.
func imageFormat(l *rolecall.Logo) string {
	names := map[string]string{"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WebP"}
	return cmp.Or(names[l.MediaType], l.MediaType)
}
