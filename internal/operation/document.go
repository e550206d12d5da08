package operation

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/web"
)

// The names of the security schemes. Each differs from the names of schemas, because code generators make
// types of both. All tokens in the Authorization header are one scheme, because several generators make one
// setting of each scheme, and send only the first.
const (
	sessionCookie = "sessionCookie"
	bearerToken   = "bearerToken"
)

// aboutBearers is the description of the scheme bearerToken.
const aboutBearers = "One of these tokens: " +
	"rs_…, the token of a session without a cookie, from the response to a sign-in with the transport bearer; " +
	"rc_…, the API token of a user or a service account, which may do what both may do; " +
	"rco_…, the key of a program that acts as an operator, from `rolecall operator-key create`. " +
	"The description of an operation says if it accepts only some of them. Operations on /operator accept only operator keys."

// Contract is the part of the OpenAPI document that does not come from the operations.
type Contract struct {
	Info      *huma.Info
	Tags      []*huma.Tag
	Catalogue []*rolecall.Error  // all problems, sorted by status
	Examples  map[string]Example // by operation id
}

// Example has the body of a request that a test sent to an operation, and the body of its
// response.
type Example struct {
	Request  json.RawMessage `json:"request,omitempty"`
	Response json.RawMessage `json:"response,omitempty"`
}

// Document returns the contract with the operations as an OpenAPI 3.1 document.
func (c *Contract) Document(operations []*Operation) *huma.OpenAPI {
	d := newDescriber(c)
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	document := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info:    c.Info,
		Servers: []*huma.Server{{URL: ".", Description: "The service that serves this document."}},
		Components: &huma.Components{
			Schemas: registry, Parameters: d.parameters, Headers: d.headers, Responses: d.responses,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				sessionCookie: {Type: "apiKey", In: "cookie", Name: web.SessionCookie, Description: "Set by POST /auths/login. Its name is `__Host-session` where the operator has set `--host-cookie-prefix`."},
				bearerToken:   {Type: "http", Scheme: "bearer", Description: aboutBearers},
			},
		},
		Tags: c.Tags,
	}
	for _, op := range operations { // requests first: if a request and a response share a schema, the schema of the request applies
		if op.Input().TakesJSON() {
			d.requests.component(op.Input().Body.Type)
		}
	}
	for _, op := range operations {
		document.AddOperation(d.operation(op))
	}
	maps.Copy(registry.Map(), d.requests.components)
	return document
}

// exampleOf returns value, or an untyped nil if value is nil, so that the document has no
// example.
func exampleOf(value json.RawMessage) any {
	if value == nil {
		return nil
	}
	return value
}

// describer creates the operations of the OpenAPI document, and the components that they share.
type describer struct {
	contract          *Contract
	requests, answers Schemas // both fill the same map of components
	parameters        map[string]*huma.Param
	headers           map[string]*huma.Param
	responses         map[string]*huma.Response
}

func newDescriber(c *Contract) *describer {
	components := problemSchemas()
	maps.Copy(components, permissionSchemas())
	return &describer{
		contract:   c,
		requests:   Schemas{IsRequest: true, components: components},
		answers:    Schemas{components: components},
		parameters: map[string]*huma.Param{parameterName("x-tenant-schema"): tenantParameter()},
		headers:    map[string]*huma.Param{}, responses: map[string]*huma.Response{},
	}
}

// operation returns the description of the operation.
func (d *describer) operation(o *Operation) *huma.Operation {
	described := &huma.Operation{
		Method: o.Method, Path: o.Path, OperationID: o.ID, Summary: o.Summary, Description: o.about(), Tags: []string{o.Tag()},
		Responses: map[string]*huma.Response{}, Extensions: map[string]any{"x-access-effect": o.Policy.Effect},
	}
	if o.Policy.StepsUp() {
		described.Extensions["x-step-up"] = true
	}
	if o.Policy.Public {
		described.Extensions["security"] = []any{} // an extension, because huma omits an empty Security list
	}
	for _, scheme := range o.security() {
		described.Security = append(described.Security, map[string][]string{scheme: {}})
	}
	if !o.Policy.Operators {
		described.Parameters = append(described.Parameters, &huma.Param{Ref: "#/components/parameters/" + parameterName("x-tenant-schema")})
	}
	takes := o.Input()
	for _, p := range takes.parameters() {
		described.Parameters = append(described.Parameters, d.parameter(o, d.describe(p)))
	}
	if takes.file != nil {
		described.RequestBody = &huma.RequestBody{Required: takes.RequiresBody(), Description: fmt.Sprintf("At most %d bytes.", takes.file.SizeMax), Content: map[string]*huma.MediaType{}}
		for _, mediaType := range takes.file.MediaTypes {
			described.RequestBody.Content[mediaType] = &huma.MediaType{Schema: d.requests.of(takes.Body.Type, "")}
		}
	} else if takes.Body != nil {
		described.RequestBody = &huma.RequestBody{Required: takes.RequiresBody(), Content: map[string]*huma.MediaType{
			"application/json": {Schema: d.requests.component(takes.Body.Type), Example: exampleOf(d.contract.Examples[o.ID].Request)},
		}}
	}
	for _, a := range o.Answers {
		described.Responses[strconv.Itoa(a.Status)] = d.answer(o, a.About, a.Headers)
	}
	if takes.ifNoneMatch != nil {
		described.Responses["304"] = d.response("NotModified", o, &huma.Response{Description: "The client has the current version.", Headers: d.headersNamed("ETag", "Withheld-Fields")})
	}
	for status, errors := range o.ProblemsByStatus(d.contract.Catalogue) {
		described.Responses[strconv.Itoa(status)] = d.problems(o, status, errors)
	}
	return described
}

// about returns the description of the operation, followed by the permissions that it needs.
func (o *Operation) about() string {
	return strings.TrimSpace(o.Description + " " + o.Policy.Requirements())
}

// parameter returns a reference to the component of the parameter. If another parameter has the
// same name but a different description, the name of the component begins with the tag or with
// the operation.
func (d *describer) parameter(o *Operation, p *huma.Param) *huma.Param {
	name := parameterName(p.Name)
	for _, prefix := range []string{o.Tag(), upperFirst(o.name())} {
		if known := d.parameters[name]; known != nil && !reflect.DeepEqual(known, p) {
			name = prefix + parameterName(p.Name)
		}
	}
	d.parameters[name] = p
	return &huma.Param{Ref: "#/components/parameters/" + name}
}

// parameterName returns the name of a parameter's component, such as IfMatchParameter for
// if-match. Code generators derive names of types from components. The suffix keeps these names
// different from those of schemas.
func parameterName(name string) string {
	var words strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		words.WriteString(upperFirst(word))
	}
	return words.String() + "Parameter"
}

// upperFirst returns the name with a capital as its first letter.
func upperFirst(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// response returns a reference to the component of the response. If another response has the same
// name but a different content, the name of the component begins with the operation.
func (d *describer) response(name string, o *Operation, r *huma.Response) *huma.Response {
	if known := d.responses[name]; known != nil && !reflect.DeepEqual(known, r) {
		for other, known := range d.responses {
			if strings.HasSuffix(other, name) && reflect.DeepEqual(known, r) {
				return &huma.Response{Ref: "#/components/responses/" + other}
			}
		}
		name = upperFirst(o.name()) + name
	}
	d.responses[name] = r
	return &huma.Response{Ref: "#/components/responses/" + name}
}

// name returns the part of the operation's ID after Controller_, such as createUser.
func (o *Operation) name() string {
	_, name, _ := strings.Cut(o.ID, "_")
	return name
}

// describe returns the parameter as it appears in the OpenAPI document.
func (d *describer) describe(p *parameter) *huma.Param {
	described := &huma.Param{
		Name: p.name, In: string(p.in), Description: p.field.Tag.Get("doc"),
		Required: p.required || p.field.Tag.Get("required") != "", Schema: d.schema(p),
	}
	if example, ok := p.field.Tag.Lookup("example"); ok {
		described.Example = example
	}
	if id, ok := pathIDs[p.field.Type]; ok && described.Description == "" {
		described.Description, described.Example = id.About, id.Example
	}
	return described
}

// schema returns the schema of the parameter.
func (d *describer) schema(p *parameter) *huma.Schema {
	if p.values != nil {
		return known(p.values)
	}
	if own := typeOf(p.field.Type).schema; own != nil {
		return own(&d.requests, "")
	}
	switch p.field.Type {
	case reflect.TypeFor[Limit]():
		return &huma.Schema{Type: "integer", Minimum: new(1.0), Default: rolecall.DefaultLimit}
	case reflect.TypeFor[Cursor]():
		return &huma.Schema{Type: "string", MinLength: new(1)}
	case reflect.TypeFor[IfMatch](), reflect.TypeFor[IfNoneMatch]():
		return &huma.Schema{Type: "string", Pattern: tagsPattern}
	case reflect.TypeFor[Search]():
		return &huma.Schema{Type: "string", MinLength: new(1), MaxLength: new(SearchLength), Pattern: searchPattern}
	case reflect.TypeFor[Order]():
		var orders []string
		for by := range strings.SplitSeq(p.field.Tag.Get("order"), ",") {
			orders = append(orders, by, "-"+by)
		}
		return known(orders)
	case reflect.TypeFor[Touch]():
		return boolean(true)
	case reflect.TypeFor[TenantName]():
		return tenantNameSchema()
	case reflect.TypeFor[idempotency.Key]():
		return &huma.Schema{Type: "string", MinLength: new(1), MaxLength: new(keyLength), Pattern: keyPattern}
	case reflect.TypeFor[rolecall.Time]():
		return &huma.Schema{Type: "string", Format: "date-time"}
	}
	switch p.field.Type.Kind() {
	case reflect.Bool:
		return boolean(false)
	case reflect.String:
		longest, _ := strconv.Atoi(p.field.Tag.Get("maxLength")) // readerOf has validated the number
		return Bounded(1, longest)
	}
	return uuid()
}

// security returns the names of the security schemes that the operation accepts. A request needs
// only one of them.
func (o *Operation) security() []string {
	switch {
	case o.Policy.Public:
		return nil
	case o.Policy.Operators:
		return []string{bearerToken}
	}
	return []string{sessionCookie, bearerToken}
}

func tenantParameter() *huma.Param {
	return &huma.Param{
		Name: "x-tenant-schema", In: string(inHeader), Required: true, Description: "The tenant of the request.", Example: "acme",
		Schema: tenantNameSchema(),
	}
}

// answer returns the description of a successful response.
func (d *describer) answer(o *Operation, about string, headers []string) *huma.Response {
	r := &huma.Response{Description: about, Headers: d.headersNamed(headers...)}
	if t := o.Handler.answer; t != nil {
		r.Content = map[string]*huma.MediaType{}
		for _, mediaType := range o.Handler.mediaTypes {
			r.Content[mediaType] = &huma.MediaType{Schema: d.answers.of(t, ""), Example: exampleOf(d.contract.Examples[o.ID].Response)}
		}
	}
	return r
}

// ProblemsByStatus returns all problems that the operation can respond with, by status and in the
// order of the catalogue. It adds to the declared problems those that follow from the policy, the
// method and the input of the operation.
func (o *Operation) ProblemsByStatus(catalogue []*rolecall.Error) map[int][]*rolecall.Error {
	all := slices.Clone(o.Problems)
	all = append(all, rolecall.ErrMalformed, web.ErrURLTooLong, web.ErrTooManyLines, rolecall.ErrInternal, rolecall.ErrUnavailable)
	switch {
	case o.Policy.Operators:
		all = append(all, rolecall.ErrUnauthenticated, rolecall.ErrScopeMissing, rolecall.ErrTooManyAttempts, web.ErrUnknownPath)
	case !o.Policy.Public:
		all = append(all, rolecall.ErrUnauthenticated, rolecall.ErrAmbiguousSession, rolecall.ErrTenantSuspended, rolecall.ErrPermissionDenied, rolecall.ErrScopeMissing, rolecall.ErrTooManyAttempts)
	}
	if o.Policy.SessionOnly {
		all = append(all, rolecall.ErrSessionRequired)
	}
	if o.Policy.StepsUp() {
		all = append(all, rolecall.ErrNotRecent)
	}
	if o.Method != http.MethodGet {
		all = append(all, web.ErrCrossOrigin, web.ErrMediaType, web.ErrContentTooLarge)
	}
	if o.SetsSession() {
		all = append(all, web.ErrCrossSite)
	}
	if o.Handler.mediaTypes != nil {
		all = append(all, web.ErrNotAcceptable)
	}
	takes := o.Input()
	if takes.Body != nil || slices.ContainsFunc(takes.parameters(), func(p *parameter) bool { return p.values != nil }) {
		all = append(all, rolecall.ErrValidation)
	}
	if takes.key != nil {
		all = append(all, rolecall.ErrKeyInProgress, rolecall.ErrKeyReused, rolecall.ErrTooManyKeys)
	}
	if takes.ifMatch != nil {
		all = append(all, rolecall.ErrPreconditionFailed)
		if takes.typ.FieldByIndex(takes.ifMatch).Tag.Get("required") == "428" {
			all = append(all, rolecall.ErrPreconditionRequired)
		}
	}
	byStatus := map[int][]*rolecall.Error{}
	for _, known := range catalogue {
		if slices.Contains(all, known) {
			status, _ := web.StatusOf(known)
			byStatus[status] = append(byStatus[status], known)
		}
	}
	return byStatus
}

// problems returns a response that lists the codes of the problems. All of them have the status.
func (d *describer) problems(o *Operation, status int, errors []*rolecall.Error) *huma.Response {
	var codes []string
	for _, e := range errors {
		codes = append(codes, e.Code)
	}
	var headers []string
	switch status {
	case http.StatusUnauthorized:
		headers = []string{"WWW-Authenticate"}
	case http.StatusBadRequest, http.StatusForbidden:
		if !o.Policy.Public {
			headers = []string{"WWW-Authenticate"}
		}
	case http.StatusUnsupportedMediaType:
		headers = []string{"Accept", "Accept-Patch", "Accept-Encoding"}
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		headers = []string{"Retry-After"}
	}
	return d.response(strings.ReplaceAll(http.StatusText(status), " ", ""), o, &huma.Response{
		Description: http.StatusText(status) + ". Codes: " + strings.Join(codes, ", ") + ".",
		Headers:     d.headersNamed(headers...),
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: Ref("Problem")}},
	})
}

// headersAbout has the descriptions of response headers, by name.
var headersAbout = map[string]string{
	"X-Request-Id":        "ID of the request, which is also in the log and in events.",
	"ETag":                "Strong entity tag of the body. It depends on the members that the caller may read.",
	"Content-Disposition": "attachment, with a name for the file.",
	"Location":            "Path of the new resource.",
	"Link":                "The URL of the next page, with rel=next.",
	"Withheld-Fields":     "The members that are redacted because the caller may not read them.",
	"Idempotent-Replayed": "true if this is the answer to an earlier request with the same key.",
	"Set-Cookie":          "The session cookie, or the known-device token of the browser.",
	"WWW-Authenticate":    "The accepted schemes: Session, Bearer, or both. If a bearer token was rejected, error has the reason: invalid_request, invalid_token or insufficient_scope.",
	"Retry-After":         "Seconds to wait before the next attempt.",
	"X-Auth-User":         "ID of the caller: a user (with a session or an API token), a service account or an operator.",
	"X-Auth-Tenant":       "Name of the tenant.",
	"Accept":              "With 415: the media types that the request body may have.",
	"Accept-Patch":        "With 415 for a PATCH: the media types that the body may have.",
	"Accept-Encoding":     "Request bodies must not be compressed.",
}

// headersNamed returns references to the components of the headers, and of X-Request-Id, which every
// response has.
func (d *describer) headersNamed(names ...string) map[string]*huma.Param {
	headers := map[string]*huma.Param{}
	for _, name := range append([]string{"X-Request-Id"}, names...) {
		d.headers[name] = &huma.Param{Description: headersAbout[name], Schema: Text()}
		headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
	return headers
}

// problemSchemas returns the schemas of the problems that package web writes.
func problemSchemas() properties {
	describedText := func(about string) *huma.Schema { return &huma.Schema{Type: "string", Description: about} }
	return properties{
		"Problem": {
			Type: "object", Description: "An error (RFC 9457).",
			Properties: properties{
				"type":       describedText("Path of the page that explains the code."),
				"code":       describedText("Stable code of the error, for programs."),
				"title":      describedText("Short summary of the error."),
				"status":     {Type: "integer", Description: "Status of the response."},
				"detail":     describedText("Explanation of the error for people."),
				"instance":   describedText("Path of the request."),
				"requestId":  describedText("ID of the request."),
				"errors":     {Type: "array", Items: Ref("Fault"), Description: "The field errors of the request, at most 100."},
				"moreErrors": {Type: "boolean", Description: "True if the request has more than 100 field errors. Absent otherwise."},
				"challenge":  describedText("Only if a second factor is needed. Send it with the second factor within five minutes."),
				"methods":    {Type: "array", Items: Text(), Description: "The methods that the user can use: totp, passkey or recovery-code. Later versions may add values."},
				"publicKey":  {Type: "object", AdditionalProperties: true, Description: "Options for navigator.credentials.get. Only with the code second-factor-required, if passkey is one of the methods."},
			},
			Required: []string{"type", "code", "title", "status", "detail", "instance", "requestId"},
		},
		"Fault": {
			Type: "object", Description: "One field error of a request. Exactly one of pointer, header and parameter is present, and names the field.",
			Properties: properties{
				"pointer":   describedText("JSON Pointer (RFC 6901) into the body."),
				"header":    describedText("Name of the header."),
				"parameter": describedText("Name of the parameter."),
				"code":      describedText("Stable code of the field error, for programs."),
				"detail":    describedText("Explanation of the field error for people."),
			},
			Required: []string{"code", "detail"},
		},
	}
}
