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
// The field types describes the types for which tags do not suffice. A type in Types.Names becomes
// a component of the document.
type Schemas struct {
	// IsRequest is true for bodies of requests. They must not have members that the schema does
	// not name.
	IsRequest  bool
	components map[string]*huma.Schema
	types      *Types
}

// Types describes types in the document, in addition to their struct tags.
type Types struct {
	// Names has the types that become components of the document, with their names and
	// descriptions.
	Names map[reflect.Type]struct{ Name, About string }
	// StandsFor maps a type that encodes or decodes itself to a type with the same JSON form. The
	// schema is that of the second type.
	StandsFor map[reflect.Type]reflect.Type
	// OnlyID has the types of objects that are reduced to their id if the caller may not read
	// them. Only the id is a required member.
	OnlyID map[reflect.Type]bool
	// Schemas has functions that return the schemas of types for which struct tags do not
	// suffice. If the type is a component, about is its description. Otherwise about is empty.
	Schemas map[reflect.Type]func(s *Schemas, about string) *huma.Schema
	// PathIDs has the description and the example of an id in a path, if the field has no tag
	// doc.
	PathIDs map[reflect.Type]struct{ About, Example string }
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
	if other, ok := s.types.StandsFor[t]; ok {
		t = other
	}
	if _, ok := s.types.Names[t]; ok {
		return s.component(t)
	}
	if own := s.types.Schemas[t]; own != nil {
		return own(s, "")
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
	named := s.types.Names[t]
	if s.components[named.Name] == nil {
		s.components[named.Name] = &huma.Schema{} // a placeholder, so that the recursion ends if a type contains itself
		if own := s.types.Schemas[t]; own != nil {
			s.components[named.Name] = own(s, named.About)
		} else {
			s.components[named.Name] = s.Object(t, named.About)
		}
	}
	return Ref(named.Name)
}

// Object returns the schema of the struct type t, with about as the description.
func (s *Schemas) Object(t reflect.Type, about string) *huma.Schema {
	object := &huma.Schema{Type: "object", Description: about, Properties: properties{}}
	if s.IsRequest {
		object.AdditionalProperties = false
	}
	onlyID := s.types.OnlyID[t]
	for f := range wire.FieldsOf(t) {
		if f.Type == reflect.TypeFor[wire.Immutable]() {
			continue
		}
		object.Properties[f.Name] = s.of(f.Type, f.Tag)
		isRequired := !f.OmitZero && (!onlyID || f.Name == "id")
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
