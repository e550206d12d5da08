package operation

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/wire"
)

// Input describes the parameters and the body of an operation. It is compiled from the fields of
// the input type of the handler:
//
//	path:"id" query:"limit" header:"if-match"  the tag that makes a field a parameter
//	required:"true" doc:"…" enum:"a,b"         of a parameter, in addition to the tags of Schemas
//	optional:"true"                            of Body: the body can be absent
//	lookup:"presented"                         of access.Anonymous: only sessions matter
//
// The field Body is the body. A field of the type access.Anonymous is the caller without a
// principal, and a field of the type []secret.Token has the session cookies. Both need no tag.
type Input struct {
	typ                 reflect.Type
	path, query, header []*parameter
	Body                *reflect.StructField // the field Body; nil if the operation has no body
	decoder             *wire.Decoder        // decodes the body

	// The indexes of fields that this package uses. An index is nil if the input type has no
	// such field.
	userID      []int // the user in the path
	cursor      []int
	touch       []int
	ifMatch     []int
	ifNoneMatch []int
	key         []int // idempotency key
	sessions    []int // the session cookies
	anonymous   []int // the anonymous caller

	onlyPresented bool // an anonymous caller without a session cookie needs no tenant
}

// inputOf returns the input of the type. It panics at the start of the program if a field has an
// invalid tag.
func inputOf(t reflect.Type) *Input {
	in := &Input{typ: t}
	for _, p := range parametersOf(t) {
		switch p.in {
		case inPath:
			in.path = append(in.path, p)
		case inQuery:
			in.query = append(in.query, p)
		case inHeader:
			in.header = append(in.header, p)
		}
	}
	for _, f := range reflect.VisibleFields(t) {
		switch f.Type {
		case reflect.TypeFor[rolecall.UserID]():
			if f.Tag.Get("path") != "" {
				in.userID = f.Index
			}
		case reflect.TypeFor[Cursor]():
			in.cursor = f.Index
		case reflect.TypeFor[Touch]():
			in.touch = f.Index
		case reflect.TypeFor[IfMatch]():
			in.ifMatch = f.Index
		case reflect.TypeFor[IfNoneMatch]():
			in.ifNoneMatch = f.Index
		case reflect.TypeFor[idempotency.Key]():
			in.key = f.Index
		case reflect.TypeFor[[]secret.Token]():
			in.sessions = f.Index
		case reflect.TypeFor[access.Anonymous]():
			in.anonymous, in.onlyPresented = f.Index, f.Tag.Get("lookup") == "presented"
		}
		if f.Name == "Body" {
			in.Body, in.decoder = &f, wire.NewDecoder(f.Type)
		}
	}
	return in
}

// RequiresBody reports whether a request without a body is malformed.
func (in *Input) RequiresBody() bool { return in.Body != nil && in.Body.Tag.Get("optional") != "true" }

// parameters returns all parameters.
func (in *Input) parameters() []*parameter { return slices.Concat(in.path, in.query, in.header) }

// New returns a new value of the input type.
func (in *Input) New() reflect.Value { return reflect.New(in.typ).Elem() }

// fieldOf returns the field of the value at the index.
func fieldOf[T any](v reflect.Value, index []int) *T {
	return v.FieldByIndex(index).Addr().Interface().(*T)
}

// user returns the user id in the path, or the zero id.
func (in *Input) user(v reflect.Value) rolecall.UserID {
	if in.userID == nil {
		return rolecall.UserID{}
	}
	return *fieldOf[rolecall.UserID](v, in.userID)
}

// parameterFaults are the field errors of the parameters of a request.
type parameterFaults struct {
	malformed rolecall.FieldErrors
	unknown   rolecall.FieldErrors // values outside of the fixed set of a parameter
}

// readParameters reads path, query and header into the value.
func (in *Input) readParameters(v reflect.Value, r *http.Request) (faults parameterFaults) {
	for _, p := range in.path {
		faults.read(v, p, r.PathValue(p.name))
	}
	for _, p := range in.header {
		switch lines := r.Header[p.key]; {
		case len(lines) == 1:
			faults.read(v, p, lines[0])
		case len(lines) > 1:
			faults.add(p, "repeated", "must be sent once")
		case p.required:
			faults.add(p, "required", "must be sent")
		}
	}
	in.readQuery(&faults, v, r.URL.RawQuery)
	return faults
}

func (f *parameterFaults) add(p *parameter, code, detail string) {
	f.malformed = append(f.malformed, p.fault(code, detail))
}

func (f *parameterFaults) read(v reflect.Value, p *parameter, text string) {
	if p.values != nil && !slices.Contains(p.values, text) {
		f.unknown = append(f.unknown, p.fault("unknown-value", p.unknown))
		return
	}
	if code, detail := p.read(v.FieldByIndex(p.index), text); code != "" {
		f.add(p, code, detail)
	}
}

// readQuery reads the query strictly: each parameter must be known and not repeated, and required
// ones must be present.
func (in *Input) readQuery(faults *parameterFaults, v reflect.Value, raw string) {
	var seen uint32
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, text, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		text, textErr := url.QueryUnescape(text)
		i := slices.IndexFunc(in.query, func(p *parameter) bool { return p.name == name })
		if i < 0 {
			faults.malformed = append(faults.malformed, rolecall.FieldError{Parameter: wire.Bounded(name), Code: "unknown", Detail: "is not a query parameter of this operation"})
			continue
		}
		p := in.query[i]
		switch {
		case nameErr != nil || textErr != nil || !utf8.ValidString(text):
			faults.add(p, "encoding", "must be percent-encoded UTF-8")
		case seen&(1<<i) != 0:
			faults.add(p, "repeated", "must be given once")
		default:
			faults.read(v, p, text)
		}
		seen |= 1 << i
	}
	for i, p := range in.query {
		if p.required && seen&(1<<i) == 0 {
			faults.add(p, "required", "must be given")
		}
	}
}

// checkedBody is a body with rules that its struct tags do not express.
type checkedBody interface{ Check() rolecall.FieldErrors }

// timedBody is a checkedBody whose rules depend on the time.
type timedBody interface {
	Check(now rolecall.Time) rolecall.FieldErrors
}

// restricted is an input with a body. Setting some members of the body needs a permission.
type restricted interface {
	MayDecode(c access.Caller, member string, value jsontext.Value) error
}

// DecodeBody reads the body into the value. If the caller may not set a member, it returns that
// error. Otherwise it returns all field errors of the body.
func (in *Input) DecodeBody(v reflect.Value, body []byte, c access.Caller, now rolecall.Time) error {
	if len(body) == 0 {
		body = []byte("{}")
	}
	var allowed func(string, jsontext.Value) error
	if r, ok := v.Addr().Interface().(restricted); ok {
		allowed = func(member string, value jsontext.Value) error { return r.MayDecode(c, member, value) }
	}
	into := v.FieldByIndex(in.Body.Index)
	faults, denied := in.decoder.Decode(body, into, allowed)
	if denied != nil {
		return denied
	}
	if faults == nil {
		return nil
	}
	switch body := into.Addr().Interface().(type) {
	case checkedBody:
		faults = wire.Merge(faults, body.Check())
	case timedBody:
		faults = wire.Merge(faults, body.Check(now))
	}
	return faults.Err()
}
