package httpapi

import (
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

// version is that of the contract: within a major version it only grows.
const version = "1.0.0"

// apiToken is the name of the security scheme of API tokens.
const apiToken = "apiToken"

// operatorKey is the name of the security scheme of operators.
const operatorKey = "operatorKey"

// Document returns the contract as an OpenAPI 3.1 document, made from the same
// table that requests are served by.
func Document() *huma.OpenAPI {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	maps.Copy(schemas.Map(), requestSchemas())
	maps.Copy(schemas.Map(), answerSchemas())
	maps.Copy(schemas.Map(), sessionSchemas())
	maps.Copy(schemas.Map(), machineSchemas())
	maps.Copy(schemas.Map(), linkSchemas())
	maps.Copy(schemas.Map(), factorSchemas())
	maps.Copy(schemas.Map(), operatorSchemas())
	document := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Rolecall", Version: version,
			Description: "Users, roles and sessions of many tenants. Every answer about a user holds what the caller may read of that user, and nothing else.",
		},
		Servers: []*huma.Server{{URL: "./"}},
		Components: &huma.Components{
			Schemas: schemas,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				web.SessionCookie: {Type: "apiKey", In: "cookie", Name: web.SessionCookie, Description: "Set by POST /auths/login. Its name is `__Host-session` where the operator has set `--host-cookie-prefix`."},
				apiToken:          {Type: "http", Scheme: "bearer", BearerFormat: "rc_…", Description: "Of a program that speaks for a user or a service account, as far as both may."},
				operatorKey:       {Type: "http", Scheme: "bearer", BearerFormat: "rco_…", Description: "Of a program that acts as an operator; `rolecall operator-key create` makes one."},
			},
		},
		Tags: []*huma.Tag{
			{Name: "Users", Description: "People of a tenant."},
			{Name: "Roles", Description: "Named sets of permissions, and who holds them."},
			{Name: "ServiceAccounts", Description: "Programs of a tenant, what they hold, and their tokens."},
			{Name: "Events", Description: "What happened."},
			{Name: "Tenant", Description: "The tenant itself."},
			{Name: "Auths", Description: "Signing in and out."},
			{Name: "Operator", Description: "Tenants, for programs that act as an operator. Not served until there is a key."},
		},
	}
	for _, op := range slices.Concat(operations, operatorOperations) {
		document.AddOperation(op.describe())
	}
	return document
}

// YAML returns the document as YAML, the same bytes for the same contract.
func YAML() ([]byte, error) { return Document().YAML() }

// describe returns the operation as the document shows it.
func (o *operation) describe() *huma.Operation {
	described := &huma.Operation{
		Method: o.method, Path: o.path, OperationID: o.id, Summary: o.summary, Tags: []string{o.tag()},
		Responses: map[string]*huma.Response{}, Extensions: map[string]any{"x-access-effect": o.policy.Effect},
	}
	if o.policy.StepsUp() {
		described.Extensions["x-step-up"] = true
	}
	if !o.policy.Operators {
		described.Parameters = append(described.Parameters, tenantParameter())
	}
	for _, scheme := range o.security() {
		described.Security = append(described.Security, map[string][]string{scheme: {}})
	}
	takes := o.endpoint.takes()
	for _, p := range takes.parameters() {
		described.Parameters = append(described.Parameters, p.describe())
	}
	if o.body != nil {
		content := map[string]*huma.MediaType{"application/json": {Schema: ref(o.body.schema)}}
		if o.method == http.MethodPatch {
			content["application/merge-patch+json"] = &huma.MediaType{Schema: ref(o.body.schema)}
		}
		described.RequestBody = &huma.RequestBody{Required: o.body.required, Content: content}
	}
	for _, a := range o.answers {
		described.Responses[strconv.Itoa(a.status)] = a.describe()
	}
	if takes.ifNoneMatch != nil {
		described.Responses["304"] = &huma.Response{Description: "The client has the current version.", Headers: headersNamed(o.answers[0].headers...)}
	}
	for status, errors := range o.problemsByStatus() {
		described.Responses[strconv.Itoa(status)] = o.describeProblems(status, errors)
	}
	return described
}

// describe returns what the document says of the parameter.
func (p *parameter) describe() *huma.Param {
	isRequired := p.required || p.field.Tag.Get("required") != ""
	return &huma.Param{Name: p.name, In: string(p.in), Description: p.field.Tag.Get("doc"), Required: isRequired, Schema: p.schema()}
}

// schema returns what the document says of the parameter's values.
func (p *parameter) schema() *huma.Schema {
	if p.values != nil {
		return known(p.values)
	}
	switch p.field.Type {
	case reflect.TypeFor[limitValue]():
		return &huma.Schema{Type: "integer", Minimum: new(1.0), Default: rolecall.DefaultLimit}
	case reflect.TypeFor[cursorValue](), reflect.TypeFor[ifMatchValue](), reflect.TypeFor[ifNoneMatchValue]():
		return anyText()
	case reflect.TypeFor[searchValue]():
		return text(1, searchLength)
	case reflect.TypeFor[orderValue]():
		var orders []string
		for by := range strings.SplitSeq(p.field.Tag.Get("order"), ",") {
			orders = append(orders, by, "-"+by)
		}
		return known(orders)
	case reflect.TypeFor[touchValue]():
		return boolean(true)
	case reflect.TypeFor[tenantNameValue]():
		return tenantNameSchema()
	case reflect.TypeFor[passkeyIDValue]():
		return text(1, passkeyIDLength)
	case reflect.TypeFor[permissionValue]():
		return text(1, rolecall.PermissionLength)
	case reflect.TypeFor[idempotency.Key]():
		return text(1, keyLength)
	case reflect.TypeFor[rolecall.Time]():
		return moment()
	}
	switch p.field.Type.Kind() {
	case reflect.Bool:
		return boolean(false)
	case reflect.String:
		longest, _ := strconv.Atoi(p.field.Tag.Get("maxLength")) // readerOf has read it
		return text(1, longest)
	}
	return uuid()
}

// known is a string that has one of the values.
func known(values []string) *huma.Schema {
	s := &huma.Schema{Type: "string"}
	for _, value := range values {
		s.Enum = append(s.Enum, value)
	}
	return s
}

// security returns the names of the schemes, any of which lets a caller in.
func (o *operation) security() []string {
	switch {
	case o.policy.Public:
		return nil
	case o.policy.Operators:
		return []string{operatorKey}
	case o.policy.SessionOnly:
		return []string{web.SessionCookie}
	}
	return []string{web.SessionCookie, apiToken, operatorKey}
}

func tenantParameter() *huma.Param {
	return &huma.Param{
		Name: "x-tenant-schema", In: string(inHeader), Required: true, Description: "The tenant of the request.",
		Schema: tenantNameSchema(),
	}
}

func (a *answer) describe() *huma.Response {
	r := &huma.Response{Description: a.about, Headers: headersNamed(a.headers...)}
	if a.schema != "" {
		r.Content = map[string]*huma.MediaType{"application/json": {Schema: ref(a.schema)}}
	}
	return r
}

// problemsByStatus returns everything that the operation can refuse with: its own
// problems, and those that follow from what it takes.
func (o *operation) problemsByStatus() map[int][]*rolecall.Error {
	all := slices.Clone(o.problems)
	all = append(all, rolecall.ErrMalformed, web.ErrURLTooLong, web.ErrTooManyLines, rolecall.ErrInternal, rolecall.ErrUnavailable)
	switch {
	case o.policy.Operators:
		all = append(all, rolecall.ErrUnauthenticated, rolecall.ErrTooManyAttempts, web.ErrUnknownPath)
	case !o.policy.Public:
		all = append(all, rolecall.ErrUnauthenticated, rolecall.ErrAmbiguousSession, rolecall.ErrTenantSuspended, rolecall.ErrPermissionDenied, rolecall.ErrTooManyAttempts)
	}
	if o.policy.SessionOnly {
		all = append(all, rolecall.ErrSessionRequired)
	}
	if o.policy.StepsUp() {
		all = append(all, rolecall.ErrNotRecent)
	}
	if o.method != http.MethodGet {
		all = append(all, web.ErrCrossOrigin, web.ErrMediaType, web.ErrContentTooLarge)
	}
	if o.setsSession() {
		all = append(all, web.ErrCrossSite)
	}
	if o.answersJSON() {
		all = append(all, web.ErrNotAcceptable)
	}
	takes := o.endpoint.takes()
	if o.body != nil || slices.ContainsFunc(takes.parameters(), func(p *parameter) bool { return p.values != nil }) {
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

func (o *operation) describeProblems(status int, errors []*rolecall.Error) *huma.Response {
	var codes []string
	for _, e := range errors {
		codes = append(codes, e.Code)
	}
	var headers []string
	switch status {
	case http.StatusUnauthorized:
		headers = []string{"WWW-Authenticate"}
	case http.StatusBadRequest, http.StatusForbidden:
		if !o.policy.Public {
			headers = []string{"WWW-Authenticate"}
		}
	case http.StatusUnsupportedMediaType:
		headers = []string{"Accept", "Accept-Patch", "Accept-Encoding"}
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		headers = []string{"Retry-After"}
	}
	return &huma.Response{
		Description: http.StatusText(status) + ": " + strings.Join(codes, ", ") + ".",
		Headers:     headersNamed(headers...),
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: ref("Problem")}},
	}
}

// headersAbout explains the headers of answers.
var headersAbout = map[string]string{
	"X-Request-Id":        "Names the request, in the log and in events too.",
	"ETag":                "Strong entity tag of what this caller sees.",
	"Location":            "Where the new resource is.",
	"Link":                "rel=next leads to the next page.",
	"Withheld-Fields":     "The members that permission held back.",
	"Idempotent-Replayed": "true if this is the answer to the first request with the key.",
	"Set-Cookie":          "The session cookie; or the mark of a browser that is known for the account.",
	"WWW-Authenticate":    "What opens: Session, Bearer, or both; of a bearer that came, error says why it did not do: invalid_request, invalid_token, insufficient_scope.",
	"Retry-After":         "Seconds to wait.",
	"X-Auth-User":         "The id of who asks: a user, also through a token, a service account or an operator.",
	"X-Auth-Tenant":       "The name of the tenant.",
	"Accept":              "What is taken.",
	"Accept-Patch":        "What PATCH takes.",
	"Accept-Encoding":     "Bodies are not compressed.",
}

// headersNamed returns the headers, and the one that every answer has.
func headersNamed(names ...string) map[string]*huma.Param {
	headers := map[string]*huma.Param{}
	for _, name := range append([]string{"X-Request-Id"}, names...) {
		headers[name] = &huma.Param{Description: headersAbout[name], Schema: anyText()}
	}
	return headers
}
