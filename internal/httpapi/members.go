package httpapi

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

// reader reads the value of a member, or adds a fault.
type reader = func(d *decoder, pointer string, value jsontext.Value)

func isNull(value jsontext.Value) bool { return value.Kind() == jsontext.KindNull }

// text reads a string.
func (d *decoder) text(pointer string, value jsontext.Value) (string, bool) {
	if value.Kind() != jsontext.KindString {
		d.faults.Add(pointer, "type", "must be a string")
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		d.faults.Add(pointer, "type", "must be a string in UTF-8")
		return "", false
	}
	return string(text), true
}

// readString reads a string that cannot be null.
func readString(into *string) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		*into, _ = d.text(pointer, value)
	}
}

// readTruth reads true or false.
func readTruth(into *bool) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		switch value.Kind() {
		case jsontext.KindTrue, jsontext.KindFalse:
			*into = value.Kind() == jsontext.KindTrue
		default:
			d.faults.Add(pointer, "type", "must be true or false")
		}
	}
}

// wholeNumber returns the whole number that a JSON number stands for. Its spelling does
// not matter: 10, 10.0 and 1e1 are equal. A number that does not fit is the nearest one
// that does. The work is bounded by the length of the text, not by the exponent.
func wholeNumber(text string) (n int64, ok bool) {
	if jsontext.Value(text).Kind() != jsontext.KindNumber {
		return 0, false
	}
	const huge = 1 << 32 // more digits than any text has
	digits, isNegative := strings.CutPrefix(text, "-")
	digits, exponent, hasExponent := strings.Cut(strings.ToLower(digits), "e")
	whole, fraction, _ := strings.Cut(digits, ".")
	significant := strings.TrimRight(whole+fraction, "0")
	zeros := len(whole) - len(significant) // that follow the significant digits
	if hasExponent {
		power, err := strconv.ParseInt(exponent, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, false
		}
		zeros += int(min(max(power, -huge), huge))
	}
	significant = strings.TrimLeft(significant, "0")
	switch {
	case significant == "":
		return 0, true
	case zeros < 0:
		return 0, false
	}
	const most = 19 // digits of an int64
	if isNegative {
		significant = "-" + significant
	}
	n, err := strconv.ParseInt(significant+strings.Repeat("0", min(zeros, most)), 10, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// readStringOrNull reads a string; null is like absence.
func readStringOrNull(into *string) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if !isNull(value) {
			*into, _ = d.text(pointer, value)
		}
	}
}

// readNullable reads a string or null.
func readNullable(into **string) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if isNull(value) {
			return
		}
		if text, ok := d.text(pointer, value); ok {
			*into = &text
		}
	}
}

// optional reads a member of a patch, and records that it was there.
func optional[T any](into *rolecall.Optional[T], read func(*T) reader) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		into.Set = true
		read(&into.Value)(d, pointer, value)
	}
}

// readStrings reads an array of strings; null is an empty one.
func readStrings(into *[]string) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if isNull(value) {
			return
		}
		if value.Kind() != jsontext.KindBeginArray {
			d.faults.Add(pointer, "type", "must be an array of strings")
			return
		}
		*into = []string{}
		for i, element := range elements(value) {
			text, _ := d.text(pointer+"/"+strconv.Itoa(i), element)
			*into = append(*into, text)
		}
	}
}

// elements yields the elements of an array whose syntax was checked.
func elements(array jsontext.Value) func(func(int, jsontext.Value) bool) {
	return func(yield func(int, jsontext.Value) bool) {
		d := jsontext.NewDecoder(bytes.NewBuffer(array))
		_, err := d.ReadToken()
		for i := 0; err == nil && d.PeekKind() != jsontext.KindEndArray; i++ {
			var value jsontext.Value
			if value, err = d.ReadValue(); err != nil || !yield(i, value) {
				return
			}
		}
	}
}

// readPairs reads an object of strings; null is an empty one.
func readPairs(into *map[string]string) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if isNull(value) {
			return
		}
		all := map[string]string{}
		d.each(pointer, value, func(name string, value jsontext.Value) {
			all[name], _ = d.text(pairPointer(pointer, name), value)
		})
		*into = all
	}
}

// readPairsPatch reads an object of strings and nulls; null is for all of them.
func readPairsPatch(into *map[string]*string) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if isNull(value) {
			return
		}
		all := map[string]*string{}
		d.each(pointer, value, func(name string, value jsontext.Value) {
			all[name] = nil
			if !isNull(value) {
				text, _ := d.text(pairPointer(pointer, name), value)
				all[name] = &text
			}
		})
		*into = all
	}
}

// moment reads a moment in RFC 3339.
func (d *decoder) moment(pointer string, value jsontext.Value) (t rolecall.Time, ok bool) {
	text, ok := d.text(pointer, value)
	if ok && t.UnmarshalText([]byte(text)) != nil {
		d.faults.Add(pointer, "format", "must be a moment in RFC 3339, such as 2030-01-31T12:00:00Z")
		return 0, false
	}
	return t, ok
}

// readTime reads a moment; null is like absence.
func readTime(into **rolecall.Time) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if isNull(value) {
			return
		}
		if t, ok := d.moment(pointer, value); ok {
			*into = &t
		}
	}
}

// readNonNullTime reads a moment that cannot be null.
func readNonNullTime(into *rolecall.Time) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		*into, _ = d.moment(pointer, value)
	}
}

// readObject reads an object of the members; null is like absence.
func readObject(members ...member) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if !isNull(value) {
			d.object(pointer, value, members)
		}
	}
}

// permitted reads a member that the caller needs a permission for. The value of a member
// that the caller may not set is not looked at.
func permitted(may func(value jsontext.Value) error, read reader) reader {
	return func(d *decoder, pointer string, value jsontext.Value) {
		if err := may(value); err == nil {
			read(d, pointer, value)
		} else if d.denied == nil {
			d.denied = err
		}
	}
}

// immutable refuses a member that can be set at creation only.
func immutable(d *decoder, pointer string, _ jsontext.Value) {
	d.faults.Add(pointer, "immutable", "cannot be changed here")
}

func pairPointer(pointer, name string) string {
	return pointer + "/" + rolecall.EscapePointer(bounded(name))
}
