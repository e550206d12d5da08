package wire

import (
	"bytes"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

// Unmarshaler is a type that reads its own JSON.
type Unmarshaler interface {
	// UnmarshalWire sets the receiver from value, or adds field errors to d. pointer is the JSON
	// pointer of value. The caller has checked the syntax of value.
	UnmarshalWire(d *Decoding, pointer string, value jsontext.Value)
}

// Decoder reads JSON objects into values of one struct type. It is compiled once, from the
// struct tags of the type:
//
//	json:"name"      the name of the member
//	required:"true"  the member must be present
//	nullable:"true"  null is allowed, and leaves the zero value
//
// Without the tag, only pointers allow null. In arrays and objects with any names, only elements that are
// pointers do. A program that has no value for a member often sends null. A member that allows null
// must therefore not mean more than without a value.
//
// A rolecall.Optional records whether the member was present. A member of type
// Immutable is always a field error.
type Decoder struct{ members []decodedMember }

// NewDecoder compiles the decoder of the struct type t. It panics if the type of a field is
// not supported.
func NewDecoder(t reflect.Type) *Decoder { return &Decoder{decodedMembers(t, nil)} }

// Decode reads the object into v, a settable struct. The caller has checked that body is valid
// JSON. If allowed is not nil, Decode calls it for each known member of the body. allowed returns
// an error if the caller may not set the member. Decode does not read the values of denied members.
// It returns the first error of allowed as denied, and the field errors as faults. The work is
// linear in the size of the body.
func (dec *Decoder) Decode(body []byte, v reflect.Value, allowed func(member string, value jsontext.Value) error) (faults rolecall.FieldErrors, denied error) {
	d := &Decoding{allowed: allowed}
	d.object("", jsontext.Value(body), dec.members, v)
	return d.FieldErrors, d.denied
}

// Continue reads value into v. value is an object inside the document that d decodes, and pointer
// is its JSON pointer. Continue adds field errors to d.
func (dec *Decoder) Continue(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
	d.object(pointer, value, dec.members, v)
}

// Immutable is the type of a member that can be set only at creation.
type Immutable struct{}

// UnmarshalWire adds a field error, because the member cannot be changed.
func (Immutable) UnmarshalWire(d *Decoding, pointer string, _ jsontext.Value) {
	d.Add(pointer, "immutable", "cannot be changed by this operation")
}

// Decoding is the state while a document is decoded. It collects the field errors.
type Decoding struct {
	rolecall.FieldErrors
	allowed func(member string, value jsontext.Value) error
	denied  error // the first error of allowed
}

// decodeFunc reads the value into v, or adds its field errors to d.
type decodeFunc func(d *Decoding, pointer string, value jsontext.Value, v reflect.Value)

type decodedMember struct {
	name     string
	required bool
	index    []int
	decode   decodeFunc
}

func decodedMembers(t reflect.Type, index []int) []decodedMember {
	var members []decodedMember
	for f := range fieldsOf(t, index) {
		if len(members) == 64 {
			panic(fmt.Sprintf("wire: %v has more than 64 members", t))
		}
		members = append(members, decodedMember{
			name: f.name, required: f.tag.Get("required") == "true", index: f.index, decode: decodeOf(f.typ, f.tag),
		})
	}
	return members
}

// object reads the members of value into v. It adds a field error for each unknown member and each
// missing required member.
func (d *Decoding) object(at string, value jsontext.Value, members []decodedMember, v reflect.Value) {
	allowed := d.allowed
	d.allowed = nil // allowed applies only to the members of the document, not of nested objects
	var seen uint64
	if !d.Each(at, value, func(name string, value jsontext.Value) {
		i := slices.IndexFunc(members, func(m decodedMember) bool { return m.name == name })
		if i < 0 {
			names := make([]string, len(members))
			for i, m := range members {
				names[i] = m.name
			}
			d.Unknown(at, name, names)
			return
		}
		seen |= 1 << i
		if allowed != nil {
			if err := allowed(name, value); err != nil {
				if d.denied == nil {
					d.denied = err
				}
				return
			}
		}
		members[i].decode(d, at+"/"+name, value, v.FieldByIndex(members[i].index))
	}) {
		return
	}
	for i, m := range members {
		if m.required && seen&(1<<i) == 0 {
			d.Add(at+"/"+m.name, "required", "is required")
		}
	}
}

// Unknown adds a field error for the member name, which is not among the known names. If a known
// name differs only in upper and lower case, the error suggests that name.
func (d *Decoding) Unknown(at, name string, names []string) {
	detail := "is not a member of this body"
	for _, known := range names {
		if strings.EqualFold(known, name) {
			detail += "; did you mean " + known
		}
	}
	d.Add(MemberPointer(at, name), "unknown", detail)
}

// Each calls fn with every member of value. It adds a field error and returns false if value
// is not an object.
func (d *Decoding) Each(at string, value jsontext.Value, fn func(name string, value jsontext.Value)) bool {
	if value.Kind() != jsontext.KindBeginObject {
		d.Add(at, "type", "must be an object")
		return false
	}
	for name, value := range members(value) {
		fn(name, value)
	}
	return true
}

// Text returns value as text. If value is not a string in UTF-8, Text adds a field error and
// returns false.
func (d *Decoding) Text(pointer string, value jsontext.Value) (string, bool) {
	if value.Kind() != jsontext.KindString {
		d.Add(pointer, "type", "must be a string")
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		d.Add(pointer, "type", "must be a string in UTF-8")
		return "", false
	}
	return string(text), true
}

// decodeOf returns the function that reads values into fields of type t.
func decodeOf(t reflect.Type, tag reflect.StructTag) decodeFunc {
	decode := decodeValue(t, tag)
	if tag.Get("nullable") == "true" && !reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ IsOptional() }]()) {
		return unlessNull(decode)
	}
	return decode
}

func decodeValue(t reflect.Type, tag reflect.StructTag) decodeFunc {
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[Unmarshaler]()):
		return func(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
			v.Addr().Interface().(Unmarshaler).UnmarshalWire(d, pointer, value)
		}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ IsOptional() }]()):
		return decodeOptional(t, tag)
	case t == timeType:
		return decodeTime
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return decodeID
	}
	switch t.Kind() {
	case reflect.String:
		return decodeString
	case reflect.Bool:
		return decodeBool
	case reflect.Pointer:
		return decodePointer(t, tag)
	case reflect.Slice:
		return decodeSlice(t)
	case reflect.Map:
		return decodeMap(t)
	case reflect.Struct:
		members := decodedMembers(t, nil)
		return func(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
			d.object(pointer, value, members, v)
		}
	default:
		panic(fmt.Sprintf("wire: %v has no JSON", t))
	}
}

func isNull(value jsontext.Value) bool { return value.Kind() == jsontext.KindNull }

// unlessNull returns a decodeFunc that leaves the field unchanged if the value is null.
func unlessNull(decode decodeFunc) decodeFunc {
	return func(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
		if !isNull(value) {
			decode(d, pointer, value, v)
		}
	}
}

func decodeString(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
	text, _ := d.Text(pointer, value)
	v.SetString(text)
}

func decodeBool(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
	switch value.Kind() {
	case jsontext.KindTrue, jsontext.KindFalse:
		v.SetBool(value.Kind() == jsontext.KindTrue)
	default:
		d.Add(pointer, "type", "must be true or false")
	}
}

func decodeTime(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
	var t rolecall.Time
	if text, ok := d.Text(pointer, value); ok && t.UnmarshalText([]byte(text)) != nil {
		d.Add(pointer, "format", "must be a timestamp in RFC 3339, such as 2030-01-31T12:00:00Z")
		return
	}
	v.SetInt(int64(t))
}

func decodeID(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
	if text, ok := d.Text(pointer, value); ok && v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)) != nil {
		d.Add(pointer, "format", "must be a UUID")
	}
}

// decodePointer returns a decodeFunc that reads a value into a new variable, and sets the pointer
// to this variable. For null and for an invalid value, the pointer stays nil.
func decodePointer(t reflect.Type, tag reflect.StructTag) decodeFunc {
	decode := decodeValue(t.Elem(), tag)
	return unlessNull(func(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
		before, into := len(d.FieldErrors), reflect.New(t.Elem())
		if decode(d, pointer, value, into.Elem()); len(d.FieldErrors) == before {
			v.Set(into)
		}
	})
}

// decodeOptional returns a decodeFunc that sets Set of a rolecall.Optional to true, and reads the
// value into its Value.
func decodeOptional(t reflect.Type, tag reflect.StructTag) decodeFunc {
	f, _ := t.FieldByName("Value")
	decode := decodeOf(f.Type, tag)
	return func(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
		v.FieldByName("Set").SetBool(true)
		decode(d, pointer, value, v.FieldByIndex(f.Index))
	}
}

// decodeSlice returns a decodeFunc that reads an array into a slice.
func decodeSlice(t reflect.Type) decodeFunc {
	decode := decodeOf(t.Elem(), "")
	expected := "must be an array"
	if t.Elem().Kind() == reflect.String {
		expected = "must be an array of strings"
	}
	return func(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
		if value.Kind() != jsontext.KindBeginArray {
			d.Add(pointer, "type", expected)
			return
		}
		v.Set(reflect.MakeSlice(t, 0, 0))
		for i, element := range Elements(value) {
			item := reflect.New(t.Elem()).Elem()
			decode(d, pointer+"/"+strconv.Itoa(i), element, item)
			v.Set(reflect.Append(v, item))
		}
	}
}

// decodeMap returns a decodeFunc that reads an object with any member names into a map.
func decodeMap(t reflect.Type) decodeFunc {
	decode := decodeOf(t.Elem(), "")
	return func(d *Decoding, pointer string, value jsontext.Value, v reflect.Value) {
		v.Set(reflect.MakeMap(t))
		d.Each(pointer, value, func(name string, value jsontext.Value) {
			item := reflect.New(t.Elem()).Elem()
			decode(d, MemberPointer(pointer, name), value, item)
			v.SetMapIndex(reflect.ValueOf(name), item)
		})
	}
}

// members yields the names and values of the members of an object. The caller has checked the
// syntax of the object.
func members(object jsontext.Value) func(func(string, jsontext.Value) bool) {
	return func(yield func(string, jsontext.Value) bool) {
		d := jsontext.NewDecoder(bytes.NewBuffer(object))
		_, err := d.ReadToken()
		for err == nil && d.PeekKind() == jsontext.KindString {
			var name jsontext.Token
			if name, err = d.ReadToken(); err != nil {
				return
			}
			text := name.String()
			var value jsontext.Value
			if value, err = d.ReadValue(); err != nil || !yield(text, value) {
				return
			}
		}
	}
}

// Elements yields the index and the value of each element of an array. The caller has checked the
// syntax of the array.
func Elements(array jsontext.Value) func(func(int, jsontext.Value) bool) {
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

// MemberPointer returns the JSON pointer of the member name in the object at pointer. It shortens a
// long name, because a client may have chosen the name.
func MemberPointer(pointer, name string) string {
	return pointer + "/" + rolecall.EscapePointer(Bounded(name))
}

// Bounded shortens a name that a client chose to about 64 bytes, because a response should not
// repeat longer names.
func Bounded(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return name[:cut] + "…"
}

// Merge returns the field errors of faults, followed by those of more. It leaves out an error of
// more if faults has an error for the same value, or for an object or array that contains this
// value.
func Merge(faults, more rolecall.FieldErrors) rolecall.FieldErrors {
	found := make(map[string]bool, len(faults))
	for _, f := range faults {
		found[f.Pointer] = true
	}
	for _, f := range more {
		if !isWithin(found, f.Pointer) {
			faults.Add(f.Pointer, f.Code, f.Detail)
		}
	}
	return faults
}

// isWithin reports whether pointers contains the JSON pointer or one of its parents. For example,
// /a/0 is within /a.
func isWithin(pointers map[string]bool, pointer string) bool {
	for pointer != "" && !pointers[pointer] {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return pointers[pointer]
}
