package httpapi

import (
	"encoding"
	"encoding/base64"
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
)

// place is where a parameter stands.
type place string

// The places of parameters. Each is the name of the tag that declares one.
const (
	inPath   place = "path"
	inQuery  place = "query"
	inHeader place = "header"
)

// parameter is one value outside of the body. A field of an input type declares it by the
// tags path, query or header, doc, required, and those of its schema.
type parameter struct {
	in       place
	name     string
	key      string // of a header: the form in which net/http keeps its name
	required bool   // the request is malformed without it
	index    []int  // of the field
	field    reflect.StructField
	read     readFunc
	values   []string // if only these are known; read is called with one of them
	unknown  string   // the sentence about another value
}

// readFunc reads the text of a parameter into its field. Code and detail say what is wrong
// with the text; both are empty if nothing is.
type readFunc func(v reflect.Value, text string) (code, detail string)

// parameterValue is a type that reads its own parameter.
type parameterValue interface {
	// setParameter is a readFunc of the value.
	setParameter(text string) (code, detail string)
}

// fault says what is wrong with the parameter.
func (p *parameter) fault(code, detail string) rolecall.Fault {
	f := rolecall.Fault{Code: code, Detail: detail}
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
			if f.Type == reflect.TypeFor[eventTypeValue]() {
				p.values, p.unknown = eventTypes(), "must be a known type of event, such as user.updated; /docs/events lists all types"
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

// readerOf returns what reads the parameter of the field. It panics if the field has a type
// that cannot be read.
func readerOf(f reflect.StructField) readFunc {
	pointer := reflect.PointerTo(f.Type)
	switch {
	case pointer.Implements(reflect.TypeFor[parameterValue]()):
		return func(v reflect.Value, text string) (code, detail string) {
			return v.Addr().Interface().(parameterValue).setParameter(text)
		}
	case f.Type == reflect.TypeFor[idempotency.Key]():
		return func(v reflect.Value, text string) (code, detail string) {
			key := v.Addr().Interface().(*idempotency.Key)
			key.Text, code, detail = parseKey(text)
			return code, detail
		}
	case f.Type == reflect.TypeFor[orderValue]():
		members := strings.Split(f.Tag.Get("order"), ",")
		return func(v reflect.Value, text string) (code, detail string) {
			return v.Addr().Interface().(*orderValue).set(text, members)
		}
	case f.Type == reflect.TypeFor[rolecall.Time]():
		return func(v reflect.Value, text string) (code, detail string) {
			if v.Addr().Interface().(*rolecall.Time).UnmarshalText([]byte(text)) != nil {
				return "format", "must be a moment in RFC 3339, such as 2030-01-31T12:00:00Z"
			}
			return "", ""
		}
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		isFilter := f.Tag.Get("query") != ""
		return func(v reflect.Value, text string) (code, detail string) {
			if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)) != nil {
				return "format", "must be a UUID"
			}
			if isFilter && v.IsZero() { // it would filter nothing
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
			panic("httpapi: the maxLength of " + f.Name + " is not a number")
		}
		return func(v reflect.Value, text string) (code, detail string) {
			v.SetString(text)
			return rolecall.CheckText(text, 1, longest)
		}
	case f.Type.Kind() == reflect.String && (f.Tag.Get("enum") != "" || f.Type == reflect.TypeFor[eventTypeValue]()):
		return func(v reflect.Value, text string) (code, detail string) {
			v.SetString(text)
			return "", ""
		}
	}
	panic(fmt.Sprintf("httpapi: the parameter %s has the type %v, which cannot be read", f.Name, f.Type))
}

// The parameters that several operations have.
type (
	// pageRequest are the parameters of every list that is read page by page.
	pageRequest struct {
		Limit limitValue  `query:"limit" doc:"Maximum number of items on a page. Values above 200 are treated as 200. A page can have fewer items, or none, while nextCursor is not null."`
		After cursorValue `query:"cursor" doc:"The nextCursor of the previous page. It is valid for the same user, filters and order."`
	}
	// idPath names a user, a role or a service account. pathIDs documents it.
	idPath[T any] struct {
		ID rolecall.ID[T] `path:"id"`
	}
	userPath = idPath[rolecall.User]
	rolePath = idPath[rolecall.Role]
	// assignedRolePath names the role of an assignment.
	assignedRolePath struct {
		Role rolecall.RoleID `path:"roleId" example:"019d83e6-1ef1-7001-8c02-5a1f0c5d3e11" doc:"ID of the role."`
	}
	// tokenPath names an API token.
	tokenPath struct {
		Token rolecall.APITokenID `path:"tokenId" example:"019d83e6-1ef1-7003-9f3e-2c4d6b8a0e33" doc:"ID of the API token."`
	}
	// idempotencyHeader makes a request safe to repeat.
	idempotencyHeader struct {
		Key idempotency.Key `header:"idempotency-key" required:"true" doc:"Makes the request safe to repeat. For a day, requests with the same key have one effect and one answer. Visible ASCII characters; the quoted form of a structured field is the same key."`
	}
	// ifMatchHeader makes a change conditional.
	ifMatchHeader struct {
		IfMatch ifMatchValue `header:"if-match" doc:"Entity tags, or *. The change is made only if one of them is the current one. Otherwise the answer is 412."`
	}
	// ifNoneMatchHeader makes a read conditional.
	ifNoneMatchHeader struct {
		IfNoneMatch ifNoneMatchValue `header:"if-none-match" doc:"Entity tags, or *. If one of them is the current one, the answer is 304."`
	}
	// countQuery asks for the total of a list.
	countQuery struct {
		Count bool `query:"count" doc:"Whether the answer has the total. It is exact up to 10,000."`
	}
	// expiredQuery asks for assignments that have expired.
	expiredQuery struct {
		IncludeExpired bool `query:"includeExpired" doc:"Whether to list expired assignments after the others, those that expired last first."`
	}
)

// holder is a noun that holds roles and API tokens. The operations about these have the
// same handlers for both.
type holder interface {
	rolecall.User | rolecall.ServiceAccount
}

// pathIDs are the description and the example of each idPath.
var pathIDs = map[reflect.Type][2]string{
	reflect.TypeFor[rolecall.UserID]():           {"ID of the user.", "019d83e6-1ef1-7000-9b87-15029121b69d"},
	reflect.TypeFor[rolecall.RoleID]():           {"ID of the role.", "019d83e6-1ef1-7001-8c02-5a1f0c5d3e11"},
	reflect.TypeFor[rolecall.ServiceAccountID](): {"ID of the service account.", "019d83e6-1ef1-7002-b1aa-7d0b8e6f4c22"},
}

// The types of parameters.
type (
	// limitValue is how many items a page has at most; 0 is the default.
	limitValue int
	// cursorValue is the nextCursor of the page before.
	cursorValue struct {
		text  string
		after *rolecall.Position // what the text stands for
	}
	// searchValue are the words of a search.
	searchValue []string
	// orderValue is how a list is sorted, by one of the members in the tag order.
	orderValue struct {
		by   string // "" for the default
		desc bool
	}
	// ifMatchValue is the If-Match header.
	ifMatchValue struct{ tags }
	// ifNoneMatchValue is the If-None-Match header.
	ifNoneMatchValue struct{ tags }
	// touchValue says whether the request counts as a use of the session. It does by default.
	touchValue struct{ isOff bool }
	// tenantNameValue is the name of a tenant.
	tenantNameValue string
	// passkeyIDValue is the id of a passkey.
	passkeyIDValue []byte
	// eventTypeValue is a known type of event.
	eventTypeValue string
)

const (
	keyLength    = 255
	searchLength = 200
	searchWords  = 8
	// passkeyIDLength is how long the id of a passkey can be as base64url: 1023 bytes
	// (WebAuthn, 4).
	passkeyIDLength = 1364
)

func (l *limitValue) setParameter(text string) (code, detail string) {
	const what = "must be a whole number from 1 on"
	n, err := strconv.ParseUint(text, 10, 63)
	if text != "" && errors.Is(err, strconv.ErrSyntax) {
		whole, ok := wholeNumber(text)
		if !ok || whole < 0 {
			return "format", what
		}
		n = uint64(whole)
	}
	if n < 1 {
		return "range", what
	}
	*l = limitValue(min(n, rolecall.MaxLimit))
	return "", ""
}

// orDefault returns the limit, or the default where none was sent.
func (l limitValue) orDefault() int {
	if l == 0 {
		return rolecall.DefaultLimit
	}
	return int(l)
}

func (c *cursorValue) setParameter(text string) (code, detail string) {
	c.text = text
	if text == "" {
		return "cursor", cursorDetail
	}
	return "", ""
}

func (w *searchValue) setParameter(text string) (code, detail string) {
	if n := utf8.RuneCountInString(text); n < 1 || n > searchLength {
		return "length", "must have 1 to 200 characters"
	}
	*w = rolecall.Words(text)
	switch {
	case len(*w) == 0:
		return "no-word", "must hold a letter or a digit"
	case len(*w) > searchWords:
		return "too-many", "must hold at most 8 words"
	}
	return "", ""
}

// set reads the order; - reverses it.
func (o *orderValue) set(text string, members []string) (code, detail string) {
	by, desc := strings.CutPrefix(text, "-")
	if !slices.Contains(members, by) {
		return "format", "must be an order of this list, such as name or -name"
	}
	*o = orderValue{by, desc}
	return "", ""
}

func (m *ifMatchValue) setParameter(text string) (code, detail string) {
	return readTags(&m.tags, text)
}

func (m *ifNoneMatchValue) setParameter(text string) (code, detail string) {
	return readTags(&m.tags, text)
}

func (t *touchValue) setParameter(text string) (code, detail string) {
	touch, code, detail := parseBool(text)
	t.isOff = !touch
	return code, detail
}

func (n *tenantNameValue) setParameter(text string) (code, detail string) {
	*n = tenantNameValue(text)
	if !rolecall.IsTenantName(text) {
		return "format", tenantNameDetail
	}
	return "", ""
}

func (v *passkeyIDValue) setParameter(text string) (code, detail string) {
	id, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > passkeyIDLength || len(id) == 0 {
		return "format", "must be the id of a passkey: base64url without padding"
	}
	*v = id
	return "", ""
}

// eventTypes returns the known types of events.
func eventTypes() (types []string) {
	for _, d := range rolecall.EventDescriptions() {
		types = append(types, string(d.Type))
	}
	return types
}

func parseBool(text string) (value bool, code, detail string) {
	switch text {
	case "true", "false":
		return text == "true", "", ""
	}
	return false, "format", "must be true or false"
}

// parseKey reads an idempotency key, in the bare form or as a quoted string of a
// structured field (RFC 8941, 3.3.3): both are the same key.
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
