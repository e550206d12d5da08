package operation

import (
	"cmp"
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

// Input describes the parameters and the body of an operation. The fields of the handler's input
// type declare them with these tags:
//
//	path:"id" query:"limit" header:"if-match"  the place and the name of a parameter
//	required:"true" doc:"…" enum:"a,b"         more about the parameter; see also Schemas
//	optional:"true"                            only for Body: the body can be absent
//	lookup:"presented"                         only for access.Anonymous: the tenant is not loaded
//	                                           if the request has no session cookie
//
// The field Body has the body. If its type is File, the body is not JSON, and the input type has the
// method FileRules. A field of the type access.Anonymous has the data of an
// unauthenticated request. A field of the type []secret.Token has the session cookies. A field of
// the type Waiting lets the handler wait. These fields need no tag.
type Input struct {
	typ                 reflect.Type
	path, query, header []*parameter
	Body                *reflect.StructField // the field Body; nil if the operation has no body
	decoder             *wire.Decoder        // decodes the body; nil for a File
	file                *FileRules           // nil: the body is JSON

	// The indexes of fields that this package reads or sets. An index is nil if the input type
	// has no such field.
	userID      []int // the user in the path
	cursor      []int
	touch       []int
	ifMatch     []int
	ifNoneMatch []int
	key         []int // idempotency key
	sessions    []int // the session cookies
	anonymous   []int // the anonymous caller
	waiting     []int

	onlyPresented bool // without a session cookie, the tenant of the anonymous caller is not loaded
}

// inputOf compiles the input type t, a struct. It panics if a field has an invalid tag or an
// unsupported type. Package httpapi declares all operations in a variable, so such a panic stops the
// program at its start.
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
		case reflect.TypeFor[Waiting]():
			in.waiting = f.Index
		case reflect.TypeFor[access.Anonymous]():
			in.anonymous, in.onlyPresented = f.Index, f.Tag.Get("lookup") == "presented"
		}
		if f.Name == "Body" {
			in.Body = &f
			if in.file = fileRulesOf(t); in.file == nil {
				in.decoder = wire.NewDecoder(f.Type)
			}
		}
	}
	return in
}

// TakesJSON reports whether the operation has a body that is JSON.
func (in *Input) TakesJSON() bool { return in.Body != nil && in.file == nil }

// RequiresBody reports whether a request without a body is rejected.
func (in *Input) RequiresBody() bool { return in.Body != nil && in.Body.Tag.Get("optional") != "true" }

// parameters returns all parameters.
func (in *Input) parameters() []*parameter { return slices.Concat(in.path, in.query, in.header) }

// New returns a new, settable value of the input type.
func (in *Input) New() reflect.Value { return reflect.New(in.typ).Elem() }

// fieldOf returns a pointer to the field of v with the index.
func fieldOf[T any](v reflect.Value, index []int) *T {
	return v.FieldByIndex(index).Addr().Interface().(*T)
}

// user returns the id of the user in the path, or the zero id if the path has no user.
func (in *Input) user(v reflect.Value) rolecall.UserID {
	if in.userID == nil {
		return rolecall.UserID{}
	}
	return *fieldOf[rolecall.UserID](v, in.userID)
}

// parameterFaults are the field errors of the parameters of a request. Malformed parameters give
// 400, and unknown values 422.
type parameterFaults struct {
	malformed rolecall.FieldErrors
	unknown   rolecall.FieldErrors // values that a parameter with a fixed set of values does not allow
}

// readParameters reads the parameters in the path, headers and query of r into v, the input
// value. It returns the field errors of all parameters.
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
			faults.add(p, "required", cmp.Or(p.field.Tag.Get("missing"), "must be sent"))
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

// readQuery reads the query parameters into v. It adds a field error for each unknown, repeated
// or missing parameter, and for each invalid value.
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

// checkedBody is a body with rules that its struct tags do not express. DecodeBody calls Check
// only if it has found other field errors, so that all of them are reported together. Otherwise
// the service method that gets the body validates it.
type checkedBody interface{ Check() rolecall.FieldErrors }

// timedBody is like checkedBody, for rules that depend on the current time.
type timedBody interface {
	Check(now rolecall.Time) rolecall.FieldErrors
}

// namedBody is like checkedBody, for bodies with names. The argument is the setting nameMinimum
// of the tenant.
type namedBody interface {
	Check(nameMinimum int) rolecall.FieldErrors
}

// tokenReturning is implemented by the requests that can choose to get the token of a session in the
// response instead of a cookie.
type tokenReturning interface {
	// ReturnsToken reports whether the response has the token.
	ReturnsToken() bool
}

// restricted is an input whose body has members that only some callers may set. MayDecode returns
// an error if the caller may not set the member to the value.
type restricted interface {
	MayDecode(c access.Caller, member string, value jsontext.Value) error
}

// DecodeBody decodes the body into the field Body of v. If MayDecode denies a member, DecodeBody
// returns the error of MayDecode. Otherwise it returns an error with all field errors that it
// found, or nil.
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
	case namedBody:
		faults = wire.Merge(faults, body.Check(c.Tenant.Settings.NameMinimum()))
	}
	return faults.Err()
}
