package operation

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/wire"
)

// Schemas creates the JSON schemas (OpenAPI 3.1) of bodies from the struct tags of package wire
// and from these tags:
//
//	doc:"…"                          a sentence about the member
//	minLength:"1" maxLength:"255"    of a string, or of the strings in an array or object
//	minItems:"1" maxItems:"200"      of an array
//	maxProperties:"50"               of an object whose members can have any name
//	nameLength:"64"                  maximum length of these names
//	pattern:"^[a-z]+$" format:"uri"  of a string; the format permission is a component
//	enum:"a,b" default:"a"           the allowed values, and the value if the member is absent
//	example:"acme"                   an example value, only of parameters
//
// For types for which tags do not suffice, SchemaOf and SameSchema give a schema.
type Schemas struct {
	// IsRequest is true for bodies of requests. They must not have members that the schema does
	// not name.
	IsRequest  bool
	components map[string]*huma.Schema
}

// typeInfo is what the document needs to know about a type in addition to its struct tags.
type typeInfo struct {
	name, about string                                      // of the component, if the type is one
	orID        bool                                        // see ComponentOrID
	sameAs      reflect.Type                                // see SameSchema
	schema      func(s *Schemas, about string) *huma.Schema // see SchemaOf
}

// types are the types that packages describe when they are initialized.
var types = map[reflect.Type]*typeInfo{}

// typeOf returns the description of the type. It is empty for most types.
func typeOf(t reflect.Type) typeInfo {
	if described := types[t]; described != nil {
		return *described
	}
	return typeInfo{}
}

// describe changes the description of the type T. Packages call Component and the functions after it next to the type,
// in the declaration of a blank variable. Therefore, these functions return a value, which has no meaning.
func describe[T any](change func(*typeInfo)) struct{} {
	t := reflect.TypeFor[T]()
	if types[t] == nil {
		types[t] = &typeInfo{}
	}
	change(types[t])
	return struct{}{}
}

// Component makes the schema of T a component of the document, with the name and the description.
func Component[T any](name, about string) struct{} {
	return describe[T](func(t *typeInfo) {
		if t.name != "" {
			panic("operation: one type is the components " + t.name + " and " + name)
		}
		t.name, t.about = name, about
	})
}

// ComponentOrID is like Component for objects that are reduced to their ID if the caller may not read them. Only the
// ID is a required member.
func ComponentOrID[T any](name, about string) struct{} {
	Component[T](name, about)
	return describe[T](func(t *typeInfo) { t.orID = true })
}

// SameSchema gives T, which encodes or decodes itself, the schema of the type Other.
func SameSchema[T, Other any]() struct{} {
	return describe[T](func(t *typeInfo) { t.sameAs = reflect.TypeFor[Other]() })
}

// SchemaOf gives T the schema that the function returns. If T is a component, about is its description. Otherwise
// about is empty.
func SchemaOf[T any](schema func(s *Schemas, about string) *huma.Schema) struct{} {
	return describe[T](func(t *typeInfo) { t.schema = schema })
}

// ComponentName returns the name of the component of the type, or "" if it is not a component.
func ComponentName(t reflect.Type) string { return typeOf(t).name }

// pathIDs has the descriptions and examples of IDs in paths, by their types.
var pathIDs = map[reflect.Type]struct{ About, Example string }{}

// PathID gives the description and an example of an ID in a path. It applies if the field has no tag doc.
func PathID[ID any](about, example string) struct{} {
	pathIDs[reflect.TypeFor[ID]()] = struct{ About, Example string }{about, example}
	return struct{}{}
}

var (
	timeType       = reflect.TypeFor[rolecall.Time]()
	rawType        = reflect.TypeFor[jsontext.Value]()
	permissionType = reflect.TypeFor[rolecall.Permission]()
)

// of returns the schema of a member with the type t and the struct tag.
func (s *Schemas) of(t reflect.Type, tag reflect.StructTag) *huma.Schema {
	member := s.value(t, tag)
	if tag.Get("nullable") == "true" && !member.Nullable && member.OneOf == nil {
		member = OrNull(member)
	}
	if about := tag.Get("doc"); about != "" {
		member.Description = strings.TrimSuffix(about+" "+member.Description, " ")
	}
	return member
}

func (s *Schemas) value(t reflect.Type, tag reflect.StructTag) *huma.Schema {
	if other := typeOf(t).sameAs; other != nil {
		t = other
	}
	switch described := typeOf(t); {
	case described.name != "":
		return s.component(t)
	case described.schema != nil:
		return described.schema(s, "")
	}
	switch t {
	case timeType:
		return &huma.Schema{Type: "string", Format: "date-time"}
	case rawType:
		return &huma.Schema{Type: "object", AdditionalProperties: true}
	case reflect.TypeFor[File]():
		return &huma.Schema{Type: "string", Format: "binary"}
	case permissionType:
		return &huma.Schema{Type: "string", MaxLength: new(rolecall.PermissionLength)}
	case reflect.TypeFor[rolecall.Metadata]():
		return &huma.Schema{Type: "object", AdditionalProperties: Text()}
	}
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[interface{ IsOptional() }]()):
		f, _ := t.FieldByName("Value")
		return s.value(f.Type, tag)
	case t.Kind() == reflect.Array && t.Len() == len(rolecall.AnyID{}):
		return uuid()
	}
	switch t.Kind() {
	case reflect.String:
		return s.text(tag)
	case reflect.Bool:
		return &huma.Schema{Type: "boolean"}
	case reflect.Int, reflect.Int64:
		return &huma.Schema{Type: "integer", Minimum: new(0.0)}
	case reflect.Pointer:
		member := s.value(t.Elem(), tag)
		if isOmitted(tag) && tag.Get("nullable") != "true" || member.Nullable || member.OneOf != nil {
			return member
		}
		return OrNull(member)
	case reflect.Slice:
		return &huma.Schema{Type: "array", Items: s.value(t.Elem(), onlyOfItems(tag)), MinItems: number(tag, "minItems"), MaxItems: number(tag, "maxItems")}
	case reflect.Map:
		member := &huma.Schema{Type: "object", AdditionalProperties: s.value(t.Elem(), onlyOfItems(tag)), MaxProperties: number(tag, "maxProperties")}
		if length := number(tag, "nameLength"); length != nil {
			member.Extensions = map[string]any{"propertyNames": Bounded(1, *length)}
		}
		return member
	case reflect.Struct:
		return s.Object(t, "")
	}
	panic(fmt.Sprintf("operation: %v has no schema", t))
}

// isOmitted reports whether the encoder omits the member if its value is zero.
func isOmitted(tag reflect.StructTag) bool { return strings.HasSuffix(tag.Get("json"), ",omitzero") }

// onlyOfItems returns those keys of the tag that apply to the strings in an array or object.
func onlyOfItems(tag reflect.StructTag) reflect.StructTag {
	var items []string
	for _, key := range []string{"minLength", "maxLength", "pattern", "format"} {
		if value, ok := tag.Lookup(key); ok {
			items = append(items, key+":"+strconv.Quote(value))
		}
	}
	return reflect.StructTag(strings.Join(items, " "))
}

// component returns a reference to the component of the type t. It creates the component at the
// first call for t.
func (s *Schemas) component(t reflect.Type) *huma.Schema {
	described := typeOf(t)
	if s.components[described.name] == nil {
		s.components[described.name] = &huma.Schema{} // a placeholder, so that the recursion ends if a type contains itself
		if described.schema != nil {
			s.components[described.name] = described.schema(s, described.about)
		} else {
			s.components[described.name] = s.Object(t, described.about)
		}
	}
	return Ref(described.name)
}

// Object returns the schema of the struct type t, with about as the description.
func (s *Schemas) Object(t reflect.Type, about string) *huma.Schema {
	object := &huma.Schema{Type: "object", Description: about, Properties: properties{}}
	if s.IsRequest {
		object.AdditionalProperties = false
	}
	orID := typeOf(t).orID
	for f := range wire.FieldsOf(t) {
		if f.Type == reflect.TypeFor[wire.Immutable]() {
			continue
		}
		object.Properties[f.Name] = s.of(f.Type, f.Tag)
		isRequired := !f.OmitZero && (!orID || f.Name == "id")
		if s.IsRequest {
			isRequired = f.Tag.Get("required") == "true"
		}
		if isRequired {
			object.Required = append(object.Required, f.Name)
		}
	}
	slices.Sort(object.Required)
	return object
}

// text returns the schema of a string with the limits in the tag. If a string in a request has a
// maximum length and neither pattern nor format, it must have a visible character and no control
// characters.
func (s *Schemas) text(tag reflect.StructTag) *huma.Schema {
	text := &huma.Schema{
		Type: "string", MinLength: number(tag, "minLength"), MaxLength: number(tag, "maxLength"),
		Pattern: tag.Get("pattern"), Format: tag.Get("format"),
	}
	if enum := tag.Get("enum"); enum != "" {
		text.Enum = known(strings.Split(enum, ",")).Enum
	}
	if value, ok := tag.Lookup("default"); ok {
		text.Default = value
	}
	switch {
	case text.Format == "permission":
		return Ref("Permission")
	case s.IsRequest && text.MaxLength != nil && text.Pattern == "" && text.Format == "":
		stored := Bounded(*text.MinLength, *text.MaxLength)
		text.Pattern, text.Description = stored.Pattern, stored.Description
	}
	return text
}

// Bounded returns the schema of a string with a minimum and a maximum length in code points. The
// string must have a visible character. If minimum is 0, it can also be empty.
func Bounded(minimum, maximum int) *huma.Schema {
	text := &huma.Schema{Type: "string", MinLength: &minimum, MaxLength: &maximum, Pattern: visibleText, Description: mustBeVisible}
	if minimum == 0 {
		text.Pattern, text.Description = emptyOrVisibleText, "Must be empty or contain a visible character."
	}
	return text
}

// number returns the number in the tag with the name, or nil if the tag is absent.
func number(tag reflect.StructTag, name string) *int {
	text, ok := tag.Lookup(name)
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("operation: the tag " + name + " is not a number: " + text)
	}
	return &n
}

// OrNull returns a schema that also allows null. It can change s.
func OrNull(s *huma.Schema) *huma.Schema {
	if s.Ref != "" {
		return &huma.Schema{OneOf: []*huma.Schema{s, {Type: "null"}}}
	}
	s.Nullable = true
	if s.Enum != nil {
		s.Enum = append(s.Enum, nil)
	}
	return s
}

type properties = map[string]*huma.Schema

// Text returns the schema of an arbitrary string.
func Text() *huma.Schema { return &huma.Schema{Type: "string"} }

func uuid() *huma.Schema { return &huma.Schema{Type: "string", Format: "uuid"} }

func tenantNameSchema() *huma.Schema {
	return &huma.Schema{Type: "string", Pattern: "^[a-z0-9][a-z0-9_-]{0,62}$"}
}

func boolean(standard bool) *huma.Schema { return &huma.Schema{Type: "boolean", Default: standard} }

// Ref returns a reference to the component with the name.
func Ref(name string) *huma.Schema { return &huma.Schema{Ref: "#/components/schemas/" + name} }

// known returns the schema of a string that is one of the values.
func known(values []string) *huma.Schema {
	s := &huma.Schema{Type: "string"}
	for _, value := range values {
		s.Enum = append(s.Enum, value)
	}
	return s
}
