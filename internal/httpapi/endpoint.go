package httpapi

import (
	"context"
	"encoding"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/wire"
)

// endpoint reads the input of an operation, calls its handler, and writes the response.
type endpoint interface {
	// newInput returns a new value of the input type.
	newInput() reflect.Value
	// inputs returns the parameters that the input type declares.
	inputs() []*parameter
	// decodeBody reads the body of the request into the input.
	decodeBody(x *exchange, in reflect.Value) error
	// serve decodes the body, calls the handler, and answers.
	serve(x *exchange) error
}

// Response is what a handler returns: the body, and what the answer says beside it.
type Response[T any] struct {
	Status     int // 0 for the first status of the operation
	Body       T
	Location   string             // path of the resource that was created
	Replayed   bool               // the answer to an earlier request with the same idempotency key
	Next       *rolecall.Position // where the next page begins; nil on the last page
	SignIn     *service.SignIn    // the session whose cookies the browser gets
	SignedOut  bool               // the browser loses its session cookie
	NameCaller bool               // X-Auth-User and X-Auth-Tenant name the caller
	Device     string             // the known-device token that the browser gets; empty for none
}

// NoContent is the body of a response without a body.
type NoContent struct{}

// handler is the handler of one operation.
type handler[In, Out any] func(s *Server, ctx context.Context, c service.Call, in *In) (Response[Out], error)

// redacted is a body of which permission hides some members.
type redacted interface{ hiddenMembers() string }

// taggedBody is a body that has an ETag. A body of which the caller may read nothing has none.
type taggedBody interface{ hasTag() bool }

// checkedBody is a body that knows rules beyond its types.
type checkedBody interface{ Check() rolecall.Faults }

// timedBody is a checkedBody whose rules depend on the time.
type timedBody interface {
	Check(now rolecall.Time) rolecall.Faults
}

// restricted is an input whose body has members that not every caller may set.
type restricted interface {
	mayDecode(c service.Call, member string, value jsontext.Value) error
}

// typedEndpoint is the endpoint of a handler from In to Out.
type typedEndpoint[In, Out any] struct {
	handler       handler[In, Out]
	parameters    []*parameter
	decode        func(x *exchange, in *In) error // the body; nil if none is read
	key           []int                           // index of the idempotency key in In; nil if it has none
	cursor        []int                           // index of the cursor in In; nil if it has none
	attempt       []int                           // index of the sign-in attempt in In; nil if it has none
	onlyPresented bool                            // the attempt is about the sessions of the request alone
	presented     []int                           // index of the session cookies in In; nil if it has none
	encoder       *wire.Encoder[Out]              // nil for NoContent
}

// typed returns the endpoint of the handler. It panics if In has a tag that cannot be
// read, at the start of the program.
func typed[In, Out any](h handler[In, Out]) endpoint {
	e := &typedEndpoint[In, Out]{handler: h}
	t := reflect.TypeFor[In]()
	e.parameters = parametersOf(t, nil)
	for _, f := range reflect.VisibleFields(t) {
		switch {
		case f.Name == "Body":
			e.decode = bodyDecoder[In](f)
		case f.Type == reflect.TypeFor[service.Key]():
			e.key = f.Index
		case f.Type == reflect.TypeFor[cursorValue]():
			e.cursor = f.Index
		case f.Type == reflect.TypeFor[service.Attempt]():
			e.attempt, e.onlyPresented = f.Index, f.Tag.Get("lookup") == "presented"
		case f.Type == reflect.TypeFor[[]secret.Token]():
			e.presented = f.Index
		}
	}
	if reflect.TypeFor[Out]() != reflect.TypeFor[NoContent]() {
		e.encoder = wire.NewEncoder[Out]()
	}
	return e
}

// fingerprint tells requests with the same idempotency key apart: by the operation, the
// ids of the path, and the body, in which JSON counts by value.
func (x *exchange) fingerprint() []byte {
	ids := strings.ToLower(x.request.URL.Path) // a UUID is the same in either case
	return secret.Digest([]byte(x.route.method+" "+x.route.path), []byte(ids), canonicalJSON(x.body))
}

func (e *typedEndpoint[In, Out]) newInput() reflect.Value { return reflect.New(reflect.TypeFor[In]()) }

func (e *typedEndpoint[In, Out]) inputs() []*parameter { return e.parameters }

func (e *typedEndpoint[In, Out]) decodeBody(x *exchange, in reflect.Value) error {
	if e.decode == nil {
		return nil
	}
	return e.decode(x, in.Interface().(*In))
}

func (e *typedEndpoint[In, Out]) serve(x *exchange) error {
	in := x.in.typed.Interface().(*In)
	if err := e.decodeBody(x, x.in.typed); err != nil {
		return err
	}
	if e.key != nil {
		key := x.in.typed.Elem().FieldByIndex(e.key).Addr().Interface().(*service.Key)
		key.Fingerprint = x.fingerprint()
	}
	if e.attempt != nil {
		attempt, err := x.attemptOf(e.onlyPresented)
		if err != nil {
			return err
		}
		*x.in.typed.Elem().FieldByIndex(e.attempt).Addr().Interface().(*service.Attempt) = attempt
	}
	if e.presented != nil {
		*x.in.typed.Elem().FieldByIndex(e.presented).Addr().Interface().(*[]secret.Token) = x.presented
	}
	if e.cursor != nil {
		x.in.typed.Elem().FieldByIndex(e.cursor).Addr().Interface().(*cursorValue).after = x.in.after
	}
	response, err := e.handler(x.server, x.ctx, x.call, in)
	if err != nil {
		return err
	}
	return e.write(x, &response)
}

// write answers with the response.
func (e *typedEndpoint[In, Out]) write(x *exchange, r *Response[Out]) error {
	status := r.Status
	if status == 0 {
		status = x.route.answers[0].status
	}
	if r.Location != "" {
		x.header["Location"] = []string{x.server.site.Base + r.Location}
	}
	if r.Replayed {
		x.header["Idempotent-Replayed"] = []string{"true"}
	}
	switch {
	case r.SignIn != nil:
		x.setCookies(r.SignIn)
	case r.SignedOut:
		x.server.site.ClearSession(x.writer)
	}
	x.server.site.SetDevice(x.writer, x.request, x.tenant.ID, r.Device)
	if r.NameCaller {
		x.header["X-Auth-User"] = []string{x.call.User.ID.String()}
		x.header["X-Auth-Tenant"] = []string{x.call.Tenant.Name}
	}
	if e.encoder == nil {
		x.write(status)
		return nil
	}
	body := any(&r.Body)
	if page, ok := body.(cursorBody); ok && r.Next != nil {
		next := x.sealCursor(r.Next)
		page.setNextCursor(next)
		x.header["Link"] = []string{x.link(next)}
	}
	x.out = e.encoder.Append(x.out, &r.Body)
	if body, ok := body.(redacted); ok {
		if hidden := body.hiddenMembers(); hidden != "" {
			x.header["Withheld-Fields"] = []string{hidden}
		}
	}
	if body, ok := body.(taggedBody); ok && body.hasTag() {
		return x.tagged(status)
	}
	return x.json(status)
}

// cursorBody is the body of a page of a list.
type cursorBody interface{ setNextCursor(cursor string) }

// bodyDecoder returns what decodes the body into the field of In.
func bodyDecoder[In any](f reflect.StructField) func(x *exchange, in *In) error {
	decoder := wire.NewDecoder(f.Type)
	return func(x *exchange, in *In) error {
		body := x.body
		if len(body) == 0 {
			body = []byte("{}")
		}
		var allowed func(string, jsontext.Value) error
		if in, ok := any(in).(restricted); ok {
			allowed = func(member string, value jsontext.Value) error { return in.mayDecode(x.call, member, value) }
		}
		into := reflect.ValueOf(in).Elem().FieldByIndex(f.Index)
		faults, denied := decoder.Decode(body, into, allowed)
		switch {
		case denied != nil:
			return denied
		case faults == nil:
			return nil
		}
		switch body := into.Addr().Interface().(type) {
		case checkedBody:
			faults = wire.Merge(faults, body.Check())
		case timedBody:
			faults = wire.Merge(faults, body.Check(x.server.service.Now()))
		}
		return faults.Err()
	}
}

// parametersOf returns the parameters that the fields of a struct declare by the tags
// path, query and header.
func parametersOf(t reflect.Type, index []int) []*parameter {
	var all []*parameter
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(index[:len(index):len(index)], i)
		if f.Anonymous {
			all = append(all, parametersOf(f.Type, at)...)
			continue
		}
		for _, in := range []place{inPath, inQuery, inHeader} {
			if name := f.Tag.Get(string(in)); name != "" {
				p := &parameter{in: in, name: name, about: f.Tag.Get("doc"), required: in == inPath || f.Tag.Get("required") == "true"}
				if in == inHeader {
					p.key = http.CanonicalHeaderKey(name)
				}
				if enum := f.Tag.Get("enum"); enum != "" {
					p.values = strings.Split(enum, ",")
					p.unknown = "must be " + orList(p.values)
				}
				if value, ok := reflect.New(f.Type).Interface().(knownValues); ok {
					p.values, p.unknown = value.knownValues()
				}
				read := parameterReader(f)
				p.read = func(in *input, text string) (code, detail string) {
					v := in.typed.Elem().FieldByIndex(at)
					code, detail = read(v, text)
					switch value := v.Addr().Interface().(type) {
					case *rolecall.UserID:
						if p.in == inPath {
							in.user = *value
						}
					case *cursorValue:
						in.cursor = value.text
					case *touchValue:
						in.untouched = !bool(*value)
					case *ifNoneMatchValue:
						in.ifNoneMatch = value.tags
					}
					return code, detail
				}
				all = append(all, p)
			}
		}
	}
	return all
}

// orList returns the values as a list: a, b or c.
func orList(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// The types of parameters that several operations have.
type (
	// limitValue is how many items a page has at most; 0 is the default.
	limitValue int
	// cursorValue is the nextCursor of the page before.
	cursorValue struct {
		text  string
		after *rolecall.Position
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
)

func (l *limitValue) setParameter(text string) (code, detail string) {
	var in input
	code, detail = readLimit(&in, text)
	*l = limitValue(in.limit)
	return code, detail
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
	var in input
	code, detail = readSearch(&in, text)
	*w = in.words
	return code, detail
}

func (m *ifMatchValue) setParameter(text string) (code, detail string) {
	return readTags(&m.tags, text)
}

func (m *ifNoneMatchValue) setParameter(text string) (code, detail string) {
	return readTags(&m.tags, text)
}

// match returns the precondition of the service: the ETag of what the caller sees of the
// value is one of the header. It is nil without the header.
func match[T any](m ifMatchValue, body func(*T) string) service.Match[T] {
	if !m.given {
		return nil
	}
	return func(value *T) bool { return m.matches(body(value)) }
}

// parameterValue is a type that reads its own parameter.
type parameterValue interface {
	// setParameter reads the text. Code and detail say what is wrong with it; both are
	// empty if nothing is.
	setParameter(text string) (code, detail string)
}

// knownValues is a type of parameter of which only some values are known.
type knownValues interface {
	// knownValues returns the values, and the sentence about any other value.
	knownValues() (values []string, unknown string)
}

// parameterReader returns what reads a parameter into the field.
func parameterReader(f reflect.StructField) func(v reflect.Value, text string) (code, detail string) {
	switch {
	case reflect.PointerTo(f.Type).Implements(reflect.TypeFor[parameterValue]()):
		return func(v reflect.Value, text string) (code, detail string) {
			return v.Addr().Interface().(parameterValue).setParameter(text)
		}
	case f.Type == reflect.TypeFor[orderValue]():
		read := readSort(strings.Split(f.Tag.Get("order"), ",")...)
		return func(v reflect.Value, text string) (code, detail string) {
			var in input
			code, detail = read(&in, text)
			*v.Addr().Interface().(*orderValue) = orderValue(in.sort)
			return code, detail
		}
	case f.Type == reflect.TypeFor[service.Key]():
		return func(v reflect.Value, text string) (code, detail string) {
			var in input
			code, detail = readKey(&in, text)
			v.Addr().Interface().(*service.Key).Text = in.key
			return code, detail
		}
	case reflect.PointerTo(f.Type).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		isQuery := f.Tag.Get("query") != ""
		return func(v reflect.Value, text string) (code, detail string) {
			if v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)) != nil {
				return "format", "must be a UUID"
			}
			if isQuery && v.IsZero() { // it would filter nothing
				return "format", "must not be the nil UUID"
			}
			return "", ""
		}
	case f.Type.Kind() == reflect.Bool:
		return func(v reflect.Value, text string) (code, detail string) {
			v.SetBool(text == "true")
			if text != "true" && text != "false" {
				return "format", "must be true or false"
			}
			return "", ""
		}
	case f.Type.Kind() == reflect.String:
		longest, err := strconv.Atoi(f.Tag.Get("maxLength"))
		_, isKnown := reflect.New(f.Type).Interface().(knownValues)
		if err != nil && f.Tag.Get("enum") == "" && !isKnown {
			panic("httpapi: the parameter " + f.Name + " has no maxLength")
		}
		return func(v reflect.Value, text string) (code, detail string) {
			v.SetString(text)
			if longest == 0 {
				return "", ""
			}
			return rolecall.CheckText(text, 1, longest)
		}
	}
	panic(fmt.Sprintf("httpapi: the parameter %s has the type %v", f.Name, f.Type))
}

// attemptOf returns the anonymous request. One about the sessions of the request alone needs
// no tenant where there are none.
func (x *exchange) attemptOf(onlyPresented bool) (service.Attempt, error) {
	if onlyPresented && len(x.presented) == 0 {
		return service.Attempt{}, nil
	}
	return x.attempt()
}

func (t *touchValue) setParameter(text string) (code, detail string) {
	*t = text == "true"
	if text != "true" && text != "false" {
		return "format", "must be true or false"
	}
	return "", ""
}

// timeValue is a timestamp in RFC 3339.
type timeValue rolecall.Time

func (t *timeValue) setParameter(text string) (code, detail string) {
	if err := (*rolecall.Time)(t).UnmarshalText([]byte(text)); err != nil {
		return "format", "must be a moment in RFC 3339, such as 2030-01-31T12:00:00Z"
	}
	return "", ""
}
