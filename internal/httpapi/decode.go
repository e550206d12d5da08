package httpapi

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

// checkSyntax adds what is wrong with body as one JSON document (RFC 8259): invalid
// UTF-8, a member given twice, trailing data and deep nesting included. Whether the
// document is an object is for the decoder to say.
func checkSyntax(faults *rolecall.Faults, body []byte) {
	const incomplete = "must be one complete JSON document in UTF-8"
	if len(bytes.TrimLeft(body, blanks)) == 0 {
		faults.Add("", "syntax", incomplete)
		return
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	for {
		_, err := d.ReadToken()
		syntax, isSyntax := errors.AsType[*jsontext.SyntacticError](err)
		switch {
		case err == io.EOF:
			return
		case errors.Is(err, jsontext.ErrDuplicateName):
			faults.Add(string(syntax.JSONPointer), "duplicate", "must be given once")
			return
		case isSyntax:
			faults.Add(string(syntax.JSONPointer), "syntax", "must be JSON in UTF-8; the fault is near byte "+strconv.FormatInt(syntax.ByteOffset, 10))
			return
		case err != nil:
			faults.Add("", "syntax", incomplete)
			return
		case d.StackDepth() > maxDepth:
			faults.Add("", "depth", "must not be nested deeper than 32")
			return
		case d.StackDepth() == 0 && len(bytes.TrimLeft(body[d.InputOffset():], blanks)) > 0:
			faults.Add("", "syntax", "must be one JSON document with nothing after it")
			return
		}
	}
}

// blanks are the characters that mean nothing between the tokens of JSON.
const blanks = " \t\r\n"

// decoder reads the members of a document whose syntax was checked, and collects
// every fault on the way.
type decoder struct {
	faults rolecall.Faults
	denied error // the caller may not set one of the members
}

// member is one member that an object may have. Read is called with its value.
type member struct {
	name     string
	required bool
	read     func(d *decoder, pointer string, value jsontext.Value)
}

// decode reads the body of the request; an empty one has no members.
func (x *exchange) decode(members ...member) *decoder {
	d := &decoder{}
	if body := x.body; len(body) > 0 {
		d.object("", body, members)
	} else {
		d.object("", jsontext.Value("{}"), members)
	}
	return d
}

// err returns ErrPermissionDenied if the caller may not set one of the members. It returns
// ErrValidation if anything was wrong, together with what check finds in the rest; nil
// if nothing was: then the verb checks the rules itself.
func (d *decoder) err(check func() rolecall.Faults) error {
	if d.denied != nil {
		return d.denied
	}
	if d.faults == nil {
		return nil
	}
	found := make(map[string]bool, len(d.faults))
	for _, f := range d.faults {
		found[f.Pointer] = true
	}
	for _, f := range check() {
		if !isWithin(found, f.Pointer) {
			d.faults.Add(f.Pointer, f.Code, f.Detail)
		}
	}
	return d.faults.Err()
}

// isWithin reports whether the pointer, or one above it, is among the pointers.
func isWithin(pointers map[string]bool, pointer string) bool {
	for pointer != "" && !pointers[pointer] {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return pointers[pointer]
}

// object reads the members of value, and adds those that are unknown or missing.
func (d *decoder) object(at string, value jsontext.Value, members []member) {
	var seen uint32
	if !d.each(at, value, func(name string, value jsontext.Value) {
		i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		if i < 0 {
			d.unknown(at, name, members)
			return
		}
		seen |= 1 << i
		members[i].read(d, at+"/"+name, value)
	}) {
		return
	}
	for i, m := range members {
		if m.required && seen&(1<<i) == 0 {
			d.faults.Add(at+"/"+m.name, "required", "is required")
		}
	}
}

// unknown refuses a member by its name, and says which one was probably meant.
func (d *decoder) unknown(at, name string, members []member) {
	detail := "is not a member of this body"
	for _, m := range members {
		if strings.EqualFold(m.name, name) {
			detail += "; it is spelled " + m.name
		}
	}
	d.faults.Add(pairPointer(at, name), "unknown", detail)
}

// each calls fn with every member of value; it adds a fault and returns false if
// value is not an object.
func (d *decoder) each(at string, value jsontext.Value, fn func(name string, value jsontext.Value)) bool {
	if value.Kind() != jsontext.KindBeginObject {
		d.faults.Add(at, "type", "must be an object")
		return false
	}
	for name, value := range pairs(value) {
		fn(name, value)
	}
	return true
}

// pairs yields the members of an object whose syntax was checked.
func pairs(object jsontext.Value) func(func(string, jsontext.Value) bool) {
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

// canonicalJSON returns the body in the form in which equal documents are equal
// bytes (RFC 8785).
func canonicalJSON(body []byte) []byte {
	canonical := jsontext.Value(slices.Clone(body))
	if err := canonical.Canonicalize(); err != nil {
		return body
	}
	return canonical
}

// noFaults is the check of a body whose rules the decoder knows all.
func noFaults() rolecall.Faults { return nil }
