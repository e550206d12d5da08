package scim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	patchSchema   = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
	operationsMax = 1000 // maximum number of operations of a PATCH
)

// Op is the kind of an operation of a PATCH.
type Op string

// The kinds of operations.
const (
	Add     Op = "add"
	Replace Op = "replace"
	Remove  Op = "remove"
)

// Operation is an operation of a PATCH (RFC 7644, section 3.5.2).
type Operation struct {
	Op    Op
	Path  Path
	Value any // as decoded from JSON; nil for null and without a value
}

// DecodePatch returns the operations of the body of a PATCH. The list can be empty, which Entra sends. The errors are *Error: invalidSyntax, invalidPath, invalidValue for add and replace without a value,
// noTarget for remove without a path, and 413 for more than 1,000 operations.
func DecodePatch(body map[string]any) ([]Operation, error) {
	all, err := members(body)
	if err != nil {
		return nil, err
	}
	var values []any
	var isGiven bool
	for _, m := range all {
		switch m.name {
		case "schemas":
			if m.value != nil && !slices.ContainsFunc(list(m.value), isPatchSchema) {
				return nil, badRequest(InvalidSyntax, "schemas must contain %s.", patchSchema)
			}
		case "operations":
			list, ok := m.value.([]any)
			if !ok {
				return nil, badRequest(InvalidSyntax, "Operations must be a list.")
			}
			values, isGiven = list, true
		}
	}
	if !isGiven { // a body such as {"active": false} would change nothing, and the client would believe that it did
		return nil, badRequest(InvalidSyntax, "Operations is required.")
	}
	if len(values) > operationsMax {
		return nil, tooLarge("A PATCH can have at most %d operations.", operationsMax)
	}
	operations := make([]Operation, len(values))
	for i, value := range values {
		operations[i], err = decodeOperation(value)
		if err != nil {
			return nil, inOperation(i, err)
		}
	}
	return operations, nil
}

func isPatchSchema(value any) bool {
	text, ok := value.(string)
	return ok && strings.EqualFold(text, patchSchema)
}

// inOperation adds the number of the operation to the detail of the error.
func inOperation(i int, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	c := *e
	c.Detail = fmt.Sprintf("Operation %d: %s", i+1, e.Detail)
	return &c
}

func decodeOperation(value any) (Operation, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return Operation{}, badRequest(InvalidSyntax, "An operation must be an object.")
	}
	all, err := members(object)
	if err != nil {
		return Operation{}, err
	}
	var o Operation
	hasValue := false
	for _, m := range all {
		switch m.name {
		case "op":
			op, _ := m.value.(string)
			o.Op = Op(strings.ToLower(op))
		case "path":
			text, ok := m.value.(string)
			if !ok && m.value != nil {
				return Operation{}, badRequest(InvalidPath, "path must be a string.")
			}
			if text == "" {
				continue
			}
			if o.Path, err = parsePath(text); err != nil {
				return Operation{}, err
			}
		case "value":
			o.Value, hasValue = m.value, true
		}
	}
	switch o.Op {
	case Add, Replace:
		if !hasValue {
			return Operation{}, badRequest(InvalidValue, "add and replace need a value.")
		}
	case Remove:
		if o.Path.isRoot() {
			return Operation{}, badRequest(NoTarget, "remove needs a path.")
		}
	default:
		return Operation{}, badRequest(InvalidSyntax, "op must be add, replace or remove.")
	}
	return o, nil
}

// isRoot reports whether the path is the whole resource.
func (p *Path) isRoot() bool { return p.attributePath == attributePath{} }

// plain returns an invalidPath error if the path has a filter or a sub-attribute.
func (p *Path) plain() error {
	if p.filter != nil || p.sub != "" {
		return badRequest(InvalidPath, "%s has no sub-attributes and no values to select.", p.attribute)
	}
	return nil
}

// refuse returns the error for a path to an attribute that cannot be changed, or nil.
func (p *Path) refuse(s support) error {
	switch s {
	case unknown:
		return badRequest(InvalidPath, "The resource has no attribute %s.", p.attributePath)
	case readOnly:
		return badRequest(Mutability, "%s is read-only.", p.attribute)
	}
	return nil
}

// PatchUser returns the user with all operations, or an error. It does not change u. The returned user has passed
// Check. Operations on attributes that are not stored have no effect. A value path that selects nothing adds the
// email address that it describes. The errors are *Error of the types invalidPath, invalidValue, invalidSyntax,
// mutability and noTarget.
func PatchUser(u User, operations []Operation) (User, error) {
	u.Emails = slices.Clone(u.Emails)
	for i, o := range operations {
		if err := u.apply(o); err != nil {
			return User{}, inOperation(i, err)
		}
	}
	return u.finish()
}

func (u *User) apply(o Operation) error {
	if o.Path.isRoot() {
		object, ok := o.Value.(map[string]any)
		if !ok {
			return badRequest(InvalidValue, "The value of an operation without a path must be an object.")
		}
		return u.assignAll(o.Op, object)
	}
	s := userSupport(o.Path.attributePath)
	if s != stored {
		return o.Path.refuse(s)
	}
	return u.assign(o.Op, o.Path, o.Value)
}

// assignAll assigns the attributes of an object whose names are paths. Attributes that are not stored have no effect.
func (u *User) assignAll(op Op, object map[string]any) error {
	all, err := members(object)
	if err != nil {
		return err
	}
	for _, m := range all {
		p, err := parsePath(m.name)
		if err != nil || userSupport(p.attributePath) != stored {
			continue
		}
		if err := u.assign(op, p, m.value); err != nil {
			return err
		}
	}
	return nil
}

// assign applies an operation on a stored attribute.
func (u *User) assign(op Op, p Path, value any) error {
	switch {
	case p.schema == enterpriseKey:
		return u.assignEnterprise(op, p, value)
	case p.attribute == "emails":
		return u.assignEmails(op, p, value)
	case p.attribute == "name":
		return u.assignName(op, p, value)
	}
	if err := p.plain(); err != nil {
		return err
	}
	if op == Remove && (p.attribute == "username" || p.attribute == "active") {
		return badRequest(Mutability, "%s is required.", p.attribute)
	}
	if p.attribute == "active" {
		active, err := optionalBoolean("active", value)
		if err != nil {
			return err
		}
		if active != nil {
			u.Active = active
		}
		return nil
	}
	return find(userTexts, p.attribute).assign(u, op, value)
}

// assign applies an operation on a text. Adding null has no effect.
func (a *textAttribute[O]) assign(object *O, op Op, value any) error {
	if op == Add && value == nil {
		return nil
	}
	if op == Remove {
		value = nil
	}
	text, err := text(a.name, value, a.maximum)
	if err != nil {
		return err
	}
	*a.field(object) = text
	return nil
}

func (u *User) assignName(op Op, p Path, value any) error {
	if p.filter != nil {
		return badRequest(InvalidPath, "name has no values to select.")
	}
	if p.sub != "" {
		attribute := find(nameTexts, p.sub)
		if attribute == nil {
			return badRequest(InvalidPath, "name has no sub-attribute %s.", p.sub)
		}
		return attribute.assign(&u.Name, op, value)
	}
	return assignObject("name", nameTexts, &u.Name, op, value)
}

func (u *User) assignEnterprise(op Op, p Path, value any) error {
	if err := p.plain(); err != nil {
		return err
	}
	if p.attribute != "" {
		return find(enterpriseTexts, p.attribute).assign(u, op, value)
	}
	return assignObject(EnterpriseUserSchema, enterpriseTexts, u, op, value)
}

// assignObject applies an operation on a complex attribute, which keeps the sub-attributes that the value does not
// have. Remove, and replace by null, remove all.
func assignObject[O any](name string, attributes []textAttribute[O], object *O, op Op, value any) error {
	if op == Remove || op == Replace && value == nil {
		for i := range attributes {
			*attributes[i].field(object) = ""
		}
		return nil
	}
	if value == nil {
		return nil
	}
	values, ok := value.(map[string]any)
	if !ok {
		return badRequest(InvalidValue, "%s must be an object.", name)
	}
	all, err := members(values)
	if err != nil {
		return err
	}
	for _, m := range all {
		attribute := find(attributes, m.name)
		if attribute == nil {
			continue
		}
		if err := attribute.assign(object, op, m.value); err != nil {
			return err
		}
	}
	return nil
}
