package httpapi

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

// schemas makes JSON schemas (OpenAPI 3.1) of the types of bodies, from the struct tags of
// package wire, and these:
//
//	doc:"…"                          a sentence about the member
//	minLength:"1" maxLength:"255"    of a text, or of the texts in an array or object
//	minItems:"1" maxItems:"200"      of an array
//	maxProperties:"50"               of an object with any names
//	nameLength:"64"                  of these names
//	pattern:"^[a-z]+$" format:"uri"  of a text; the format permission is a component
//	enum:"a,b" default:"a"           the values that are known, and the one of an absent member
//	example:"acme"                   a value, of parameters
//
// A type that schemaNames names becomes a component of the document.
type schemas struct {
	components map[string]*huma.Schema
	isRequest  bool // a request has no other members, and null stands for an absent one
}

// namedSchema is a type that is a component of the document.
type namedSchema struct{ name, about string }

var (
	timeType       = reflect.TypeFor[rolecall.Time]()
	rawType        = reflect.TypeFor[jsontext.Value]()
	permissionType = reflect.TypeFor[rolecall.Permission]()
)

// standsFor are the types whose JSON is that of another type: they write or read it
// themselves.
var standsFor = map[reflect.Type]reflect.Type{
	reflect.TypeFor[userBody]():           reflect.TypeFor[shownUser](),
	reflect.TypeFor[roleBody]():           reflect.TypeFor[rolecall.Role](),
	reflect.TypeFor[serviceAccountBody](): reflect.TypeFor[rolecall.ServiceAccount](),
	reflect.TypeFor[assignedRole]():       reflect.TypeFor[roleName](),
	reflect.TypeFor[reachBody]():          reflect.TypeFor[reachDraft](),
	reflect.TypeFor[permissionChecks]():   reflect.TypeFor[[]permissionCheck](),
}

// onlyID are the types of which a caller without permission gets the id alone.
var onlyID = map[reflect.Type]string{
	reflect.TypeFor[shownUser]():               "id",
	reflect.TypeFor[rolecall.Role]():           "id",
	reflect.TypeFor[rolecall.ServiceAccount](): "id",
	reflect.TypeFor[roleName]():                "id",
	reflect.TypeFor[tenantBody]():              "id",
}

// of returns the schema of a member of the type with the tag.
func (s *schemas) of(t reflect.Type, tag reflect.StructTag) *huma.Schema {
	member := s.value(t, tag)
	if tag.Get("nullable") == "true" && !member.Nullable && member.OneOf == nil {
		member = orNull(member)
	}
	if about := tag.Get("doc"); about != "" {
		member.Description = strings.TrimSuffix(about+" "+member.Description, " ")
	}
	return member
}

func (s *schemas) value(t reflect.Type, tag reflect.StructTag) *huma.Schema {
	if other, ok := standsFor[t]; ok {
		t = other
	}
	if _, ok := schemaNames[t]; ok {
		return s.nullableInRequest(s.component(t), tag)
	}
	switch t {
	case timeType:
		return &huma.Schema{Type: "string", Format: "date-time"}
	case rawType, reflect.TypeFor[credential]():
		return &huma.Schema{Type: "object", AdditionalProperties: true}
	case permissionType:
		return &huma.Schema{Type: "string", MaxLength: new(rolecall.PermissionLength)}
	case reflect.TypeFor[rolecall.Metadata]():
		return &huma.Schema{Type: "object", AdditionalProperties: anyText()}
	case reflect.TypeFor[permissionValue]():
		return ref("SinglePermission")
	case reflect.TypeFor[departmentText]():
		if !s.isRequest {
			return anyText()
		}
		return bounded(1, rolecall.DepartmentMax)
	case reflect.TypeFor[reasonText]():
		return orNull(bounded(0, reasonMax))
	case reflect.TypeFor[base64Text]():
		return &huma.Schema{Type: "string", Pattern: "^[A-Za-z0-9_-]+$"}
	case reflect.TypeFor[secret.RecoveryCode]():
		return anyText()
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
		return orNull(member)
	case reflect.Slice:
		member := &huma.Schema{Type: "array", Items: s.value(t.Elem(), onlyOfItems(tag)), MinItems: number(tag, "minItems"), MaxItems: number(tag, "maxItems")}
		return s.nullableInRequest(member, tag)
	case reflect.Map:
		member := &huma.Schema{Type: "object", AdditionalProperties: s.value(t.Elem(), onlyOfItems(tag)), MaxProperties: number(tag, "maxProperties")}
		if length := number(tag, "nameLength"); length != nil {
			member.Extensions = map[string]any{"propertyNames": bounded(1, *length)}
		}
		return s.nullableInRequest(member, tag)
	case reflect.Struct:
		return s.nullableInRequest(s.object(t, ""), tag)
	}
	panic(fmt.Sprintf("httpapi: %v has no schema", t))
}

// isOmitted reports whether the member is absent where its value is zero.
func isOmitted(tag reflect.StructTag) bool { return strings.HasSuffix(tag.Get("json"), ",omitzero") }

// onlyOfItems returns the part of the tag that is about the texts in an array or object.
func onlyOfItems(tag reflect.StructTag) reflect.StructTag {
	var items []string
	for _, key := range []string{"minLength", "maxLength", "pattern", "format"} {
		if value, ok := tag.Lookup(key); ok {
			items = append(items, key+":"+strconv.Quote(value))
		}
	}
	return reflect.StructTag(strings.Join(items, " "))
}

// nullableInRequest allows null for an array or object that a request need not have.
func (s *schemas) nullableInRequest(member *huma.Schema, tag reflect.StructTag) *huma.Schema {
	if s.isRequest && tag.Get("json") != "" && tag.Get("required") != "true" {
		return orNull(member)
	}
	return member
}

// component returns a reference to the component of the type, which it makes if there is
// none yet.
func (s *schemas) component(t reflect.Type) *huma.Schema {
	named := schemaNames[t]
	if s.components[named.name] == nil {
		s.components[named.name] = &huma.Schema{} // ends a cycle
		switch t {
		case reflect.TypeFor[settingsBody]():
			s.components[named.name] = s.settings(named.about)
		case reflect.TypeFor[settingsPatch]():
			s.components[named.name] = s.settingsPatch(named.about)
		default:
			s.components[named.name] = s.object(t, named.about)
		}
	}
	return ref(named.name)
}

// object returns the schema of the struct.
func (s *schemas) object(t reflect.Type, about string) *huma.Schema {
	object := &huma.Schema{Type: "object", Description: about, Properties: properties{}}
	if s.isRequest {
		object.AdditionalProperties = false
	}
	only := onlyID[t]
	for f := range wire.FieldsOf(t) {
		if f.Type == reflect.TypeFor[wire.Immutable]() {
			continue
		}
		object.Properties[f.Name] = s.of(f.Type, f.Tag)
		isRequired := !f.OmitZero && (only == "" || f.Name == only)
		if s.isRequest {
			isRequired = f.Tag.Get("required") == "true"
		}
		if isRequired {
			object.Required = append(object.Required, f.Name)
		}
	}
	slices.Sort(object.Required)
	return object
}

// settings returns the schema of the settings that are in force.
func (s *schemas) settings(about string) *huma.Schema {
	settings := s.object(reflect.TypeFor[otherSettings](), about)
	for _, n := range rolecall.NumberSettings {
		settings.Properties[n.Name] = &huma.Schema{Type: "integer", Description: n.About}
		settings.Required = append(settings.Required, n.Name)
	}
	slices.Sort(settings.Required)
	return settings
}

// settingsPatch returns the schema of a change of settings, each of which may be null.
func (s *schemas) settingsPatch(about string) *huma.Schema {
	settings := s.object(reflect.TypeFor[otherSettingsPatch](), about)
	for _, n := range rolecall.NumberSettings {
		settings.Properties[n.Name] = &huma.Schema{
			Type: "integer", Nullable: true, Description: n.About, Default: n.Default(),
			Minimum: new(float64(n.Min)), Maximum: new(float64(n.Max)),
		}
	}
	return settings
}

// text returns the schema of a text with the bounds of the tag. A text that is stored has
// no control characters.
func (s *schemas) text(tag reflect.StructTag) *huma.Schema {
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
		return ref("Permission")
	case s.isRequest && text.MaxLength != nil && text.Pattern == "" && text.Format == "":
		stored := bounded(*text.MinLength, *text.MaxLength)
		text.Pattern, text.Description = stored.Pattern, stored.Description
	}
	return text
}

// bounded is a text that is stored and shown.
func bounded(minimum, maximum int) *huma.Schema {
	text := &huma.Schema{Type: "string", MinLength: &minimum, MaxLength: &maximum, Pattern: visibleText, Description: mustBeVisible}
	if minimum == 0 {
		text.Pattern, text.Description = emptyOrVisibleText, "Must be empty or contain a visible character."
	}
	return text
}

// number returns the number in the tag, nil if there is none.
func number(tag reflect.StructTag, name string) *int {
	text, ok := tag.Lookup(name)
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("httpapi: the tag " + name + " is not a number: " + text)
	}
	return &n
}

// orNull returns the schema with null as another value.
func orNull(s *huma.Schema) *huma.Schema {
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

func anyText() *huma.Schema { return &huma.Schema{Type: "string"} }

func uuid() *huma.Schema { return &huma.Schema{Type: "string", Format: "uuid"} }

func tenantNameSchema() *huma.Schema {
	return &huma.Schema{Type: "string", Pattern: "^[a-z0-9][a-z0-9_-]{0,62}$"}
}

func boolean(standard bool) *huma.Schema { return &huma.Schema{Type: "boolean", Default: standard} }

func ref(name string) *huma.Schema { return &huma.Schema{Ref: "#/components/schemas/" + name} }

// known is a text that has one of the values.
func known(values []string) *huma.Schema {
	s := &huma.Schema{Type: "string"}
	for _, value := range values {
		s.Enum = append(s.Enum, value)
	}
	return s
}
