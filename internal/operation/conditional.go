package operation

import (
	"slices"
	"strings"
)

// tags is a list of entity tags, or *, as If-Match and If-None-Match carry it
// (RFC 9110, 8.8.3).
type tags struct {
	Given bool
	any   bool
	list  []string // quoted, a weak one led by W/
}

// readTags reads the list.
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
		if text = strings.TrimLeft(text, ", \t"); text == "" { // empty elements are nothing (RFC 9110, 5.6.1)
			*into = list
			return "", ""
		}
	}
}

// cutTag returns the entity tag that text begins with, and what follows it.
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

// Matches compares strongly: a weak tag matches nothing.
func (t tags) Matches(tag string) bool { return t.any || slices.Contains(t.list, tag) }

// matchesWeakly compares weakly, as If-None-Match does.
func (t tags) matchesWeakly(tag string) bool {
	return t.any || slices.ContainsFunc(t.list, func(own string) bool { return strings.TrimPrefix(own, "W/") == tag })
}
