// Package wire maps Go structs to the JSON of the API and back. The struct tags of a type define
// its encoder, its decoder and its schema. The package does not depend on HTTP or the store.
package wire

import (
	"encoding/hex"
	"unicode/utf8"
)

// AppendText appends text as a JSON string. Bytes that are not valid UTF-8 become U+FFFD, so that
// the result is valid JSON for every text.
func AppendText[T ~string](b []byte, text T) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(text[i:min(len(text), i+utf8.UTFMax)]))
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, text[start:i]...)
		b = appendEscape(b, c)
		i++
		start = i
	}
	b = append(b, text[start:]...)
	return append(b, '"')
}

// appendEscape appends the escaped form of a byte that must not occur in a JSON string. A byte that
// is not valid UTF-8 becomes U+FFFD.
func appendEscape(b []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(b, '\\', c)
	case c == '\n':
		return append(b, `\n`...)
	case c == '\t':
		return append(b, `\t`...)
	case c >= utf8.RuneSelf:
		return append(b, "\uFFFD"...)
	default:
		return hex.AppendEncode(append(b, `\u00`...), []byte{c})
	}
}

// OptionalText is a text. If it is empty, its JSON is null.
type OptionalText string

// AppendJSON appends the text, or null if it is empty.
func (t OptionalText) AppendJSON(b []byte) []byte {
	if t == "" {
		return append(b, "null"...)
	}
	return AppendText(b, t)
}
