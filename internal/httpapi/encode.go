package httpapi

import (
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
)

// appendText appends text as a JSON string. What is not UTF-8 becomes U+FFFD, so
// that no text can break a document.
func appendText[T ~string](b []byte, text T) []byte {
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

// appendEscape appends the escaped form of a byte that cannot stand in a string.
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

// appendTextOrNull appends the text, null for none.
func appendTextOrNull(b []byte, text *string) []byte {
	if text == nil {
		return append(b, "null"...)
	}
	return appendText(b, *text)
}

func appendID[T any](b []byte, id rolecall.ID[T]) []byte {
	b = append(b, '"')
	b = id.Append(b)
	return append(b, '"')
}

// appendIDOrNull appends the id, null for the zero one.
func appendIDOrNull[T any](b []byte, id rolecall.ID[T]) []byte {
	if id.IsZero() {
		return append(b, "null"...)
	}
	return appendID(b, id)
}

func appendTime(b []byte, t rolecall.Time) []byte {
	b = append(b, '"')
	b = t.Append(b)
	return append(b, '"')
}

// appendTimeOrNull appends the moment, null for the zero one and for never.
func appendTimeOrNull(b []byte, t rolecall.Time) []byte {
	if t == 0 || t == rolecall.Never {
		return append(b, "null"...)
	}
	return appendTime(b, t)
}

// appendList appends the items as an array.
func appendList[T any](b []byte, items []T, one func([]byte, *T) []byte) []byte {
	b = append(b, '[')
	for i := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, &items[i])
	}
	return append(b, ']')
}

func appendTextItem[T ~string](b []byte, text *T) []byte { return appendText(b, *text) }

func appendIDItem[T any](b []byte, id *rolecall.ID[T]) []byte { return appendID(b, *id) }

func appendPermission(b []byte, p *rolecall.Permission) []byte { return appendText(b, p.String()) }

// appendReach appends the reach, null for the whole tenant.
func appendReach(b []byte, r rolecall.Reach) []byte {
	if r.IsEverywhere() {
		return append(b, "null"...)
	}
	b = append(b, `{"departments":`...)
	b = appendList(b, r.Departments(), appendTextItem)
	return append(b, '}')
}

// appendPage appends the envelope of a list. The members beside the items are
// written by rest.
func appendPage[T any](x *exchange, b []byte, page *rolecall.Page[T], one func([]byte, *T) []byte) []byte {
	b = append(b, `{"items":`...)
	b = appendList(b, page.Items, one)
	b = append(b, `,"nextCursor":`...)
	if page.Next == nil {
		b = append(b, "null"...)
	} else {
		next := x.sealCursor(page.Next)
		x.header["Link"] = []string{x.link(next)}
		b = appendText(b, next)
	}
	if page.Total != nil {
		b = append(b, `,"total":`...)
		b = strconv.AppendInt(b, int64(page.Total.Count), 10)
		b = append(b, `,"totalIsExact":`...)
		b = strconv.AppendBool(b, page.Total.Exact)
	}
	return b
}
