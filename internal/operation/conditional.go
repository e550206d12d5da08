package operation

import (
	"slices"
	"strings"
)

// tags is the parsed value of If-Match or If-None-Match: a list of entity tags, or * (RFC 9110,
// 13.1).
type tags struct {
	Given bool
	any   bool
	list  []string // quoted; weak tags begin with W/
}

// readTags parses the value of an If-Match or If-None-Match header and stores the result in into.
// If the value is malformed, readTags returns the code and the detail of a field error. Otherwise
// it returns empty strings.
func readTags(into *tags, text string) (code, detail string) {
	const what = `must be * or a list of entity tags such as "abc"`
	text = strings.Trim(text, " \t")
	if text == "*" {
		*into = tags{Given: true, any: true}
		return "", ""
	}
	list := tags{Given: true}
	for {
		tag, rest, ok := cutTag(text)
		if !ok {
			return "format", what
		}
		list.list = append(list.list, tag)
		if rest == "" {
			*into = list
			return "", ""
		}
		if text, ok = strings.CutPrefix(rest, ","); !ok {
			return "format", what
		}
		if text = strings.TrimLeft(text, ", \t"); text == "" { // empty elements are ignored (RFC 9110, 5.6.1)
			*into = list
			return "", ""
		}
	}
}

// cutTag returns the entity tag at the beginning of text, and the rest of text without leading
// blanks. It returns false if text does not begin with an entity tag.
func cutTag(text string) (tag, rest string, ok bool) {
	opaque := strings.TrimPrefix(text, "W/")
	if opaque == "" || opaque[0] != '"' {
		return "", "", false
	}
	end := strings.IndexByte(opaque[1:], '"')
	if end < 0 || strings.ContainsFunc(opaque[1:1+end], func(r rune) bool { return r < '!' || r == 0x7f }) {
		return "", "", false
	}
	length := len(text) - len(opaque) + end + 2
	return text[:length], strings.TrimLeft(text[length:], " \t"), true
}

// Matches reports whether the header is * or its list contains the tag. It uses the strong
// comparison: weak tags in the list never match.
func (t tags) Matches(tag string) bool { return t.any || slices.Contains(t.list, tag) }

// matchesWeakly is like Matches, but a weak tag in the list matches too. RFC 9110 requires this
// comparison for If-None-Match.
func (t tags) matchesWeakly(tag string) bool {
	return t.any || slices.ContainsFunc(t.list, func(own string) bool { return strings.TrimPrefix(own, "W/") == tag })
}
