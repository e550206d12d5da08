package httpapi

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/wire"
)

// appendText appends text as a JSON string.
func appendText[T ~string](b []byte, text T) []byte { return wire.AppendText(b, text) }

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
