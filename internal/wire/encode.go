package wire

import (
	"encoding"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

// Appender is a type that writes its own JSON.
type Appender interface {
	// AppendJSON appends the receiver to b as one JSON value, and returns the extended slice.
	AppendJSON(b []byte) []byte
}

// Fields is a set of fields of a struct: the bit 1<<i stands for the i-th field that its
// Encoder writes.
type Fields uint64

// AllFields is the set of all fields.
const AllFields Fields = 1<<64 - 1

// Encoder appends values of T as JSON. NewEncoder compiles it once, from the json tags of T. A zero
// id or time is null, and so is a zero struct with the tag nullable:"true".
type Encoder[T any] struct {
	fields []encodedField // the fields, if T is a struct
	value  appendFunc     // appends a T that is not a struct
}

// appendFunc appends the value as JSON.
type appendFunc func(b []byte, v reflect.Value) []byte

type encodedField struct {
	name      string
	key       string // the name in quotes, with the colon
	index     []int
	append    appendFunc
	omitEmpty bool
}

// NewEncoder compiles the encoder of T. It panics if T or the type of a field is not
// supported.
func NewEncoder[T any]() *Encoder[T] {
	t := reflect.TypeFor[T]()
	if isObject(t) {
		return &Encoder[T]{fields: encodedFields(t, nil)}
	}
	return &Encoder[T]{value: appendOf(t)}
}

// Append appends v to b as JSON, with all fields.
func (e *Encoder[T]) Append(b []byte, v *T) []byte { return e.AppendFields(b, v, AllFields) }

// AppendFields appends v to b as JSON. If T is a struct, AppendFields appends only the fields in
// the set.
func (e *Encoder[T]) AppendFields(b []byte, v *T, fields Fields) []byte {
	if e.fields == nil {
		return e.value(b, reflect.ValueOf(v).Elem())
	}
	return appendObject(b, reflect.ValueOf(v).Elem(), e.fields, fields)
}

// Fields returns the set of the fields with these names. It panics if T has no field with a
// name.
func (e *Encoder[T]) Fields(names ...string) Fields {
	var set Fields
	for _, name := range names {
		i := slices.IndexFunc(e.fields, func(f encodedField) bool { return f.name == name })
		if i < 0 {
			panic(fmt.Sprintf("wire: %v has no field %s", reflect.TypeFor[T](), name))
		}
		set |= 1 << i
	}
	return set
}

func appendObject(b []byte, v reflect.Value, all []encodedField, fields Fields) []byte {
	b = append(b, '{')
	empty := len(b)
	for i := range all {
		f := &all[i]
		if fields&(1<<i) == 0 {
			continue
		}
		value := v
		if len(f.index) == 1 {
			value = v.Field(f.index[0])
		} else {
			value = v.FieldByIndex(f.index)
		}
		if f.omitEmpty && value.IsZero() {
			continue
		}
		if len(b) > empty {
			b = append(b, ',')
		}
		b = append(b, f.key...)
		b = f.append(b, value)
	}
	return append(b, '}')
}

func encodedFields(t reflect.Type, index []int) []encodedField {
	var fields []encodedField
	for f := range fieldsOf(t, index) {
		if len(fields) == 64 {
			panic(fmt.Sprintf("wire: %v has more than 64 fields", t))
		}
		value := appendOf(f.typ)
		if isObject(f.typ) && f.tag.Get("nullable") == "true" {
			value = nullIfZero(value)
		}
		fields = append(fields, encodedField{
			name: f.name, key: string(AppendText(nil, f.name)) + ":", index: f.index, append: value, omitEmpty: f.omitEmpty,
		})
	}
	return fields
}

var (
	appenderType = reflect.TypeFor[Appender]()
	textType     = reflect.TypeFor[encoding.TextAppender]()
	rawType      = reflect.TypeFor[jsontext.Value]()
	timeType     = reflect.TypeFor[rolecall.Time]()
	idType       = reflect.TypeFor[rolecall.AnyID]()
)

// appendOf returns the function that appends values of type t.
func appendOf(t reflect.Type) appendFunc {
	switch {
	case reflect.PointerTo(t).Implements(appenderType):
		return func(b []byte, v reflect.Value) []byte { return v.Addr().Interface().(Appender).AppendJSON(b) }
	case t == timeType:
		return appendTime
	case t == rawType:
		return func(b []byte, v reflect.Value) []byte { return append(b, v.Bytes()...) }
	case t.ConvertibleTo(idType):
		return appendID
	case reflect.PointerTo(t).Implements(textType):
		return appendTextOf
	}
	switch t.Kind() {
	case reflect.String:
		return func(b []byte, v reflect.Value) []byte { return AppendText(b, v.String()) }
	case reflect.Bool:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendBool(b, v.Bool()) }
	case reflect.Int, reflect.Int64:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendInt(b, v.Int(), 10) }
	case reflect.Pointer:
		return appendPointer(t)
	case reflect.Slice:
		return appendSlice(t)
	case reflect.Struct:
		fields := sync.OnceValue(func() []encodedField { return encodedFields(t, nil) })
		return func(b []byte, v reflect.Value) []byte { return appendObject(b, v, fields(), AllFields) }
	default:
		panic(fmt.Sprintf("wire: %v has no JSON", t))
	}
}

// appendTime appends the timestamp. The zero time and rolecall.Never are null.
func appendTime(b []byte, v reflect.Value) []byte {
	t := rolecall.Time(v.Int())
	if t == 0 || t == rolecall.Never {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.Append(b)
	return append(b, '"')
}

// appendID appends the id. The zero id is null.
func appendID(b []byte, v reflect.Value) []byte {
	id := rolecall.AnyID(v.Bytes())
	if id.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = id.Append(b)
	return append(b, '"')
}

// appendTextOf appends the result of AppendText in quotes. The text must not have characters that
// JSON escapes. The zero value is null, and so is a value whose AppendText fails.
func appendTextOf(b []byte, v reflect.Value) []byte {
	if v.IsZero() {
		return append(b, "null"...)
	}
	start := len(b)
	b, err := v.Addr().Interface().(encoding.TextAppender).AppendText(append(b, '"'))
	if err != nil {
		return append(b[:start], "null"...)
	}
	return append(b, '"')
}

// nullIfZero returns an appendFunc that appends null for the zero value, and calls value for other
// values.
func nullIfZero(value appendFunc) appendFunc {
	return func(b []byte, v reflect.Value) []byte {
		if v.IsZero() {
			return append(b, "null"...)
		}
		return value(b, v)
	}
}

func appendPointer(t reflect.Type) appendFunc {
	value := appendOf(t.Elem())
	return func(b []byte, v reflect.Value) []byte {
		if v.IsNil() {
			return append(b, "null"...)
		}
		return value(b, v.Elem())
	}
}

func appendSlice(t reflect.Type) appendFunc {
	item := appendOf(t.Elem())
	return func(b []byte, v reflect.Value) []byte {
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = item(b, v.Index(i))
		}
		return append(b, ']')
	}
}

// isObject reports whether values of the type are encoded as JSON objects with a member for each
// field.
func isObject(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(appenderType) && !reflect.PointerTo(t).Implements(appenderType) &&
		!reflect.PointerTo(t).Implements(textType)
}

// structField is one field of a struct that has a JSON name.
type structField struct {
	name      string
	index     []int
	typ       reflect.Type
	tag       reflect.StructTag
	omitEmpty bool
}

// Field describes a struct field that is a member of the JSON object of the struct.
type Field struct {
	Name     string
	Type     reflect.Type
	Tag      reflect.StructTag
	OmitZero bool
}

// FieldsOf yields the fields of the struct type t that are members of its JSON object.
func FieldsOf(t reflect.Type) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for f := range fieldsOf(t, nil) {
			if !yield(Field{f.name, f.typ, f.tag, f.omitEmpty}) {
				return
			}
		}
	}
}

// fieldsOf yields the fields of the struct type t that have a json tag. The fields of an embedded
// struct come at the position of the embedded struct.
func fieldsOf(t reflect.Type, index []int) func(func(structField) bool) {
	return func(yield func(structField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			at := append(slices.Clone(index), i)
			tag, tagged := f.Tag.Lookup("json")
			if f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct {
				for inner := range fieldsOf(f.Type, at) {
					if !yield(inner) {
						return
					}
				}
				continue
			}
			name, options, _ := strings.Cut(tag, ",")
			if !tagged || name == "-" || name == "" {
				continue
			}
			if !yield(structField{name: name, index: at, typ: f.Type, tag: f.Tag, omitEmpty: options == "omitzero"}) {
				return
			}
		}
	}
}
