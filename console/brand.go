package console

import (
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
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
