package operation

import (
	"encoding"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/wire"
)

// place is the part of a request that contains a parameter.
type place string

// Each place is also the name of the struct tag that declares a parameter there.
const (
	inPath   place = "path"
	inQuery  place = "query"
	inHeader place = "header"
)

// parameter is a value in the path, the query or a header. A field of an input type declares it
// with a tag path, query or header. The field can also have the tag required and the tags of
// Schemas.
type parameter struct {
	in       place
	name     string
	key      string // of a header: its name in the canonical form of net/http
	required bool   // the request is malformed without it
	index    []int  // of the field
	field    reflect.StructField
	read     readFunc
	values   []string // the allowed values, nil for any; read is called only with an allowed value
	unknown  string   // the detail of the field error for an unknown value
}

// readFunc parses the text of a parameter and stores the value in v. If the text is invalid, it
// returns the code and the detail of a field error. Otherwise it returns empty strings.
type readFunc func(v reflect.Value, text string) (code, detail string)

// Parameter is implemented by types that parse the text of their parameter.
type Parameter interface {
	// SetParameter parses the text and stores the value. If the text is invalid, it returns the
	// code and the detail of a field error. Otherwise it returns empty strings.
	SetParameter(text string) (code, detail string)
}

// Enumerated is implemented by types of parameters that have a fixed set of values. For a few
// values, use the tag enum instead.
type Enumerated interface {
	// Known returns the allowed values, and the detail of the field error for any other value.
	Known() (values []string, otherwise string)
}

// fault returns a field error that names the parameter.
func (p *parameter) fault(code, detail string) rolecall.FieldError {
	f := rolecall.FieldError{Code: code, Detail: detail}
	if p.in == inHeader {
		f.Header = p.name
	} else {
		f.Parameter = p.name
	}
	return f
}

// parametersOf returns the parameters that the fields of a struct declare.
func parametersOf(t reflect.Type) []*parameter {
	var all []*parameter
	for _, f := range reflect.VisibleFields(t) {
		for _, in := range []place{inPath, inQuery, inHeader} {
			name := f.Tag.Get(string(in))
			if name == "" {
				continue
			}
			p := &parameter{in: in, name: name, index: f.Index, field: f, required: in == inPath || f.Tag.Get("required") == "true", read: readerOf(f)}
			if in == inHeader {
				p.key = http.CanonicalHeaderKey(name)
			}
			if enum := f.Tag.Get("enum"); enum != "" {
				p.values = strings.Split(enum, ",")
				p.unknown = "must be " + orList(p.values)
			}
			if known, ok := reflect.Zero(f.Type).Interface().(Enumerated); ok {
				p.values, p.unknown = known.Known()
			}
			all = append(all, p)
		}
	}
	return all
}

// orList returns the values as a list: a, b or c.
func orList(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// readerOf returns the function that reads the parameter of the field f. It panics if the type of
// f is not supported.
func readerOf(f reflect.StructField) readFunc {
	pointer := reflect.PointerTo(f.Type)
	switch {
	case pointer.Implements(reflect.TypeFor[Parameter]()):
		return func(v reflect.Value, text string) (code, detail string) {
			return v.Addr().Interface().(Parameter).SetParameter(text)
		}
	case f.Type == reflect.TypeFor[idempotency.Key]():
		return func(v reflect.Value, text string) (code, detail string) {
			key := v.Addr().Interface().(*idempotency.Key)
			key.Text, code, detail = parseKey(text)
			return code, detail
		}
	case f.Type == reflect.TypeFor[Order]():
		members := strings.Split(f.Tag.Get("order"), ",")
		return func(v reflect.Value, text string) (code, detail string) {
			return v.Addr().Interface().(*Order).set(text, members)
		}
	case f.Type == reflect.TypeFor[rolecall.Time]():
		return func(v reflect.Value, text string) (code, detail string) {
			if v.Addr().Interface().(*rolecall.Time).UnmarshalText([]byte(text)) != nil {
				return "format", "must be a timestamp in RFC 3339, such as 2030-01-31T12:00:00Z"
			}
			return "", ""
		}
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		isFilter := f.Tag.Get("query") != ""
		return func(v reflect.Value, text string) (code, detail string) {
			if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)) != nil {
				return "format", "must be a UUID"
			}
			if isFilter && v.IsZero() { // a zero value means no filter
				return "format", "must not be the nil UUID"
			}
			return "", ""
		}
	case f.Type.Kind() == reflect.Bool:
		return func(v reflect.Value, text string) (code, detail string) {
			value, code, detail := parseBool(text)
			v.SetBool(value)
			return code, detail
		}
	case f.Type.Kind() == reflect.String && f.Tag.Get("maxLength") != "":
		longest, err := strconv.Atoi(f.Tag.Get("maxLength"))
		if err != nil {
			panic("operation: the maxLength of " + f.Name + " is not a number")
		}
		return func(v reflect.Value, text string) (code, detail string) {
			v.SetString(text)
			return rolecall.CheckText(text, 1, longest)
		}
	case f.Type.Kind() == reflect.String && (f.Tag.Get("enum") != "" || f.Type.Implements(reflect.TypeFor[Enumerated]())):
		return func(v reflect.Value, text string) (code, detail string) {
			v.SetString(text)
			return "", ""
		}
	}
	panic(fmt.Sprintf("operation: the parameter %s has the type %v, which cannot be read", f.Name, f.Type))
}

// PageRequest has the parameters of every list with pages.
type PageRequest struct {
	Limit Limit  `query:"limit" doc:"Maximum number of items on a page. Values above 200 are treated as 200. A page can have fewer items, or be empty, while nextCursor is not null."`
	After Cursor `query:"cursor" doc:"The nextCursor of the previous page. It is valid only for the same caller, filters and sort order."`
}

// IdempotencyHeader makes a request safe to repeat.
type IdempotencyHeader struct {
	Key idempotency.Key `header:"idempotency-key" required:"true" missing:"must be sent, with a new value for each creation, such as a UUID, and with the same value in repetitions" doc:"Makes the request safe to repeat. A key is kept for at least a day. Until then, if you repeat a request that succeeded, you get the same answer without secrets, and nothing changes. The key has visible ASCII characters only. It can be sent in quotes, as a structured field."`
}

// IfMatchHeader makes a change conditional.
type IfMatchHeader struct {
	IfMatch IfMatch `header:"if-match" doc:"Entity tags, or *. The change is made only if one of them is the current ETag. Otherwise the answer is 412."`
}

// IfNoneMatchHeader makes a read conditional.
type IfNoneMatchHeader struct {
	IfNoneMatch IfNoneMatch `header:"if-none-match" doc:"Entity tags, or *. If one of them is the current ETag, the answer is 304."`
}

// CountQuery lets a request ask for the total number of items of a list.
type CountQuery struct {
	Count bool `query:"count" doc:"Whether the answer has the total number of items. It is exact up to 10,000."`
}

// The types of parameters.
type (
	// Limit is the maximum number of items on a page; 0 means the default.
	Limit int
	// Cursor is the nextCursor of the previous page.
	Cursor struct {
		At   *rolecall.Position // the position in the cursor; nil for the first page
		text string
	}
	// Search has the words of a search.
	Search []string
	// Order is the sort order of a list. The tag order of the field lists the allowed members.
	Order struct {
		By   string // the member to sort by; "" for the default order
		Desc bool
	}
	// IfMatch is the parsed If-Match header.
	IfMatch struct{ tags }
	// IfNoneMatch is the parsed If-None-Match header.
	IfNoneMatch struct{ tags }
	// Touch states whether the request counts as a use of the session. By default, it does.
	Touch struct{ isOff bool }
	// TenantName is the name of a tenant.
	TenantName string
)

// SearchLength is the maximum length of a search text, in code points.
const SearchLength = 200

const (
	keyLength   = 255
	searchWords = 8
)

// SetParameter parses the limit. A limit above rolecall.MaxLimit counts as rolecall.MaxLimit.
func (l *Limit) SetParameter(text string) (code, detail string) {
	const what = "must be a whole number of at least 1"
	n, err := strconv.ParseUint(text, 10, 63)
	if text != "" && errors.Is(err, strconv.ErrSyntax) {
		whole, ok := wire.WholeNumber(text)
		if !ok || whole < 0 {
			return "format", what
		}
		n = uint64(whole)
	}
	if n < 1 {
		return "range", what
	}
	*l = Limit(min(n, rolecall.MaxLimit))
	return "", ""
}

// OrDefault returns the limit, or rolecall.DefaultLimit if the request has no limit.
func (l Limit) OrDefault() int {
	if l == 0 {
		return rolecall.DefaultLimit
	}
	return int(l)
}

// SetParameter stores the cursor. Package operation decrypts it after the caller is known.
func (c *Cursor) SetParameter(text string) (code, detail string) {
	c.text = text
	if text == "" {
		return "cursor", cursorDetail
	}
	return "", ""
}

// SetParameter splits the text into words.
func (w *Search) SetParameter(text string) (code, detail string) {
	if n := utf8.RuneCountInString(text); n < 1 || n > SearchLength {
		return "length", "must have 1 to 200 characters"
	}
	*w = rolecall.Words(text)
	switch {
	case len(*w) == 0:
		return "no-word", "must contain a letter or a digit"
	case len(*w) > searchWords:
		return "too-many", "must have at most 8 words"
	}
	return "", ""
}

// set parses a sort order, such as name or -name. A leading - means descending.
func (o *Order) set(text string, members []string) (code, detail string) {
	by, desc := strings.CutPrefix(text, "-")
	if !slices.Contains(members, by) {
		return "format", "must be a sort order of this list, such as name or -name"
	}
	*o = Order{by, desc}
	return "", ""
}

// SetParameter parses the list of entity tags.
func (m *IfMatch) SetParameter(text string) (code, detail string) {
	return readTags(&m.tags, text)
}

// SetParameter parses the list of entity tags.
func (m *IfNoneMatch) SetParameter(text string) (code, detail string) {
	return readTags(&m.tags, text)
}

// SetParameter parses true or false.
func (t *Touch) SetParameter(text string) (code, detail string) {
	touch, code, detail := parseBool(text)
	t.isOff = !touch
	return code, detail
}

// SetParameter stores the name if it is valid.
func (n *TenantName) SetParameter(text string) (code, detail string) {
	*n = TenantName(text)
	if !rolecall.IsTenantName(text) {
		return "format", tenantNameDetail
	}
	return "", ""
}

func parseBool(text string) (value bool, code, detail string) {
	switch text {
	case "true", "false":
		return text == "true", "", ""
	}
	return false, "format", "must be true or false"
}

// parseKey reads an idempotency key. The key can be bare or a quoted string of a structured field
// (RFC 8941, 3.3.3). Both forms give the same key.
func parseKey(text string) (key, code, detail string) {
	const what = "must be 1 to 255 visible ASCII characters"
	key = text
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		unquoted := make([]byte, 0, len(text))
		quoted := text[1 : len(text)-1]
		for i := 0; i < len(quoted); i++ {
			if quoted[i] == '\\' {
				i++
				if i == len(quoted) || quoted[i] != '"' && quoted[i] != '\\' {
					return "", "format", what
				}
			} else if quoted[i] == '"' {
				return "", "format", what
			}
			unquoted = append(unquoted, quoted[i])
		}
		key = string(unquoted)
	}
	if len(key) < 1 || len(key) > keyLength {
		return "", "length", what
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return "", "format", what
		}
	}
	return key, "", ""
}
