package console

import (
	"fmt"
	"strings"

	"github.com/a-h/templ"
	"rsc.io/qr"
)

// appURL returns the address that opens an authenticator app. A form brought the text
// back, so it may be anything.
func appURL(uri string) templ.SafeURL {
	if !strings.HasPrefix(uri, "otpauth://") {
		return ""
	}
	return templ.SafeURL(uri)
}

// quiet is how many modules are free around a QR code (ISO/IEC 18004, 6.3.8).
const quiet = 4

// qrPath returns the modules of the QR code of the text as one path in SVG, and how
// many units its side has; nothing for a text that is too long for one.
func qrPath(text string) (path string, side int) {
	code, err := qr.Encode(text, qr.L) // a screen has no stains
	if err != nil {
		return "", 0
	}
	var b strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			from := x
			for x < code.Size && code.Black(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", quiet+from, quiet+y, x-from, x-from)
			}
		}
	}
	return b.String(), code.Size + 2*quiet
}
