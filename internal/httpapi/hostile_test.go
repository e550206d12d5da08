package httpapi

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// hostileValues are JSON values that a careless parser handles slowly. Each has about size bytes.
var hostileValues = map[string]func(size int) string{
	"unknown members":          func(size int) string { return hostileObject(size, `"m%d":1`) },
	"members with bad names":   func(size int) string { return hostileObject(size, `"\u007f%d":1`) },
	"members with bad values":  func(size int) string { return hostileObject(size, `"k%d":"\u007f"`) },
	"members of texts":         func(size int) string { return hostileObject(size, `"k%d":"v"`) },
	"members with long names":  func(size int) string { return hostileObject(size, `"`+strings.Repeat("k", 80)+`%d":1`) },
	"members without a value":  func(size int) string { return hostileObject(size, `"k%d":null`) },
	"one member again":         func(size int) string { return hostileObject(size, `"k":"%d"`) },
	"a long name":              func(size int) string { return `{"` + strings.Repeat("k", size) + `":1}` },
	"a name of escapes":        func(size int) string { return `{"` + strings.Repeat("~/", size/2) + `":1}` },
	"numbers":                  func(size int) string { return hostileArray(size, `%d`) },
	"bad texts":                func(size int) string { return hostileArray(size, `"\u007f%d"`) },
	"texts":                    func(size int) string { return hostileArray(size, `"Sales %d"`) },
	"one text again":           func(size int) string { return hostileArray(size, `"users:read"`) },
	"permissions":              func(size int) string { return hostileArray(size, `"shop/a%d:b"`) },
	"ids":                      func(size int) string { return hostileArray(size, `"01890a5d-ac96-774b-bcce-%012d"`) },
	"objects":                  func(size int) string { return hostileArray(size, `{"k":%d}`) },
	"deep arrays":              func(size int) string { return strings.Repeat("[", size/2) + strings.Repeat("]", size/2) },
	"deep objects":             func(size int) string { return strings.Repeat(`{"k":`, size/6) + "1" + strings.Repeat("}", size/6) },
	"a long number":            func(size int) string { return strings.Repeat("9", size) },
	"a long fraction":          func(size int) string { return "0." + strings.Repeat("0", size) },
	"a small number":           func(size int) string { return "0." + strings.Repeat("0", size) + "1" },
	"a long exponent":          func(size int) string { return "1e" + strings.Repeat("9", size) },
	"a long negative exponent": func(size int) string { return "1e-" + strings.Repeat("9", size) },
	"a long text":              func(size int) string { return `"` + strings.Repeat("a", size) + `"` },
	"a text of escapes":        func(size int) string { return `"` + strings.Repeat(`\u0061`, size/6) + `"` },
	"a text of marks":          func(size int) string { return `"` + strings.Repeat("\u0301", size/2) + `"` },
	"a text that is not UTF-8": func(size int) string { return `"` + strings.Repeat("\xff", size) + `"` },
	"a text of surrogates":     func(size int) string { return `"` + strings.Repeat(`\ud800`, size/6) + `"` },
}

func hostileObject(size int, member string) string { return "{" + repeated(size, member) + "}" }

func hostileArray(size int, item string) string { return "[" + repeated(size, item) + "]" }

// repeated formats the numbers 0, 1, 2 and so on, and separates them by commas. It stops when the
// result has size bytes.
func repeated(size int, format string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.Contains(format, "%") {
			fmt.Fprintf(&b, format, i)
		} else {
			b.WriteString(format)
		}
	}
	return b.String()
}

// hostileBodies yields descriptions and bodies of about size bytes. Each hostile value is used as
// the whole body, as the value of each member of the schema, and as the value of all members at
// once. In addition, each list of objects gets many items with the same wrong or new value.
func hostileBodies(schema *huma.Schema, size int) iter.Seq2[string, string] {
	schemas := Document().Components.Schemas.Map()
	pointers := slices.Sorted(maps.Keys(memberPointers(schemas, schema, "")))
	return func(yield func(what, body string) bool) {
		for _, pointer := range pointers {
			list, member, ok := strings.Cut(pointer, inEachItem)
			if !ok {
				continue
			}
			for _, value := range []string{`%d`, `"\u007f%d"`, `"Sales %d"`, `"shop/a%d:b"`, `"01890a5d-ac96-774b-bcce-%012d"`, `[%d]`, `{"k%d":1}`} {
				if !yield("items with "+value+" at "+pointer, placed(list, hostileArray(size, placed("/"+member, value)))) {
					return
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(hostileValues)) {
			value := hostileValues[name](size)
			if !yield(name, value) {
				return
			}
			for _, pointer := range pointers {
				if !yield(name+" at "+pointer, placed(pointer, value)) {
					return
				}
			}
			if len(schema.Properties) > 0 {
				share := hostileValues[name](size / len(schema.Properties))
				var members []string
				for _, member := range slices.Sorted(maps.Keys(schema.Properties)) {
					members = append(members, `"`+member+`":`+share)
				}
				if !yield(name+" at every member", "{"+strings.Join(members, ",")+"}") {
					return
				}
			}
		}
	}
}

// inEachItem is the part of a pointer that stands for the items of a list.
const inEachItem = "/*/"

// placed returns a JSON document that has only the value at the pointer.
func placed(pointer, value string) string {
	names := strings.Split(pointer, "/")[1:]
	for _, name := range slices.Backward(names) {
		if name == "*" {
			value = "[" + value + "]"
		} else {
			value = `{"` + name + `":` + value + `}`
		}
	}
	return value
}

// memberPointers returns the JSON Pointers of all members of the schema, and of the objects and the lists of
// objects in it.
func memberPointers(schemas map[string]*huma.Schema, schema *huma.Schema, at string) map[string]bool {
	pointers := map[string]bool{}
	for _, part := range append(slices.Clone(schema.OneOf), schema) {
		if named := schemas[strings.TrimPrefix(part.Ref, "#/components/schemas/")]; named != nil {
			part = named
		}
		for name, member := range part.Properties {
			pointers[at+"/"+name] = true
			maps.Copy(pointers, memberPointers(schemas, member, at+"/"+name))
			if member.Items != nil {
				maps.Copy(pointers, memberPointers(schemas, member.Items, at+"/"+name+"/*"))
			}
		}
	}
	return pointers
}

// hostileRequests yields, for each operation with a request body and each hostile body, a
// description and a function that sends the request.
func (s *testServer) hostileRequests(size int) iter.Seq2[string, func() reply] {
	schemas := Document().Components.Schemas.Map()
	fill := strings.NewReplacer("{name}", operatedTenant, "{passkeyId}", "AA", "{roleId}", s.ownerID, "{sessionId}", s.ownerID, "{tokenId}", s.ownerID)
	return func(yield func(string, func() reply) bool) {
		for _, op := range declared {
			if !op.Input().TakesJSON() {
				continue
			}
			for what, body := range hostileBodies(schemas[bodySchema(op)], size) {
				request := s.fuzzed(op.Method, fill.Replace(op.Path), "idempotency-key: hostile", body)
				if !yield(op.ID+": "+what, func() reply { return s.handled(request, body) }) {
					return
				}
			}
		}
	}
}

// TestHostileBodiesReachTheReaders checks that no hostile body is refused because of the
// credentials or the permissions, and that many are refused because of their content. This proves
// that a decoder has read these bodies.
func TestHostileBodiesReachTheReaders(t *testing.T) {
	s := newTestServer(t)
	s.operate()
	refused := map[int]int{}
	for what, send := range s.hostileRequests(300) {
		r := send()
		refused[r.StatusCode]++
		if r.StatusCode >= 500 || r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusUnauthorized && strings.Contains(r.body, `"unauthenticated"`) {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
	}
	if refused[http.StatusUnprocessableEntity] < 1000 {
		t.Errorf("answers by status: %v", refused)
	}
}
