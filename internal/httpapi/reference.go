package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/operation"
)

const jsonType = "application/json"

// builtDocument returns the OpenAPI document. The first call builds it.
var builtDocument = sync.OnceValue(Document)

// groupView is a tag of the OpenAPI document, with the operations that have the tag.
type groupView struct {
	Name, About string
	Operations  []operationView
}

// operationPage is the data of the page about one operation.
type operationPage struct {
	operationView
	Group            groupView
	About            string
	StepsUp          bool
	Curl             string
	File             string // the media types and the limit of a body that is not JSON
	Parameters, Body []memberView
	Responses        []responseView
	Problems         []statusView
}

// memberView is a parameter, or a member of a body. The name of a nested member is its path,
// such as items[].email.
type memberView struct {
	Name, In, Type, Rules, About string
	Required                     bool
}

// responseView is a successful response.
type responseView struct {
	Status        int
	Reason, About string
	Headers       []memberView
	Members       []memberView
	Example       string
}

// groups returns the operations by tag. If words are given, each of them must occur in the id,
// method, path, summary or description of the operation.
func groups(words []string) []groupView {
	var all []groupView
	for _, tag := range builtDocument().Tags {
		group := groupView{Name: tag.Name, About: tag.Description}
		for _, op := range declared {
			if op.Tag() != tag.Name {
				continue
			}
			text := strings.ToLower(strings.Join([]string{op.ID, op.Method, op.Path, op.Summary, describedOperation(op).Description}, " "))
			if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
				group.Operations = append(group.Operations, viewOperation(op))
			}
		}
		if group.Operations != nil {
			all = append(all, group)
		}
	}
	return all
}

// typeset returns the text as HTML. Parts between backquotes become code elements.
func typeset(text string) template.HTML {
	var html strings.Builder
	for i, part := range strings.Split(text, "`") {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		html.WriteString(part)
	}
	return template.HTML(html.String())
}

func viewOperation(op *operation.Operation) operationView {
	return operationView{op.ID, op.Method, op.Path, op.Summary}
}

// describedOperation returns the entry of the operation in the OpenAPI document.
func describedOperation(op *operation.Operation) *huma.Operation {
	path := builtDocument().Paths[op.Path]
	return map[string]*huma.Operation{
		http.MethodGet: path.Get, http.MethodPost: path.Post, http.MethodPut: path.Put, http.MethodPatch: path.Patch, http.MethodDelete: path.Delete,
	}[op.Method]
}

func (d *docs) showReference(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query().Get("q")
	w.Header()["Content-Security-Policy"] = referencePolicy
	return d.show(w, r, "reference.html", view{
		Here: "docs", Title: "API reference", Query: query, Groups: groups(strings.Fields(strings.ToLower(query))),
	})
}

func (d *docs) showOperation(w http.ResponseWriter, r *http.Request) error {
	all := declared
	at := slices.IndexFunc(all, func(op *operation.Operation) bool { return op.ID == r.PathValue("id") })
	if at < 0 {
		return rolecall.ErrNotFound.With("No operation has this ID. /docs lists all operations.")
	}
	w.Header()["Content-Security-Policy"] = pagePolicy
	return d.show(w, r, "operation.html", view{Here: "docs", Title: all[at].Summary, Operation: d.viewPage(r, all[at])})
}

// viewPage returns the data of the page about the operation.
func (d *docs) viewPage(r *http.Request, op *operation.Operation) operationPage {
	described := describedOperation(op)
	page := operationPage{operationView: viewOperation(op), About: described.Description, StepsUp: op.Policy.StepsUp()}
	for _, group := range groups(nil) {
		if group.Name == op.Tag() {
			page.Group = group
		}
	}
	for _, p := range parametersOf(described) {
		page.Parameters = append(page.Parameters, memberView{p.Name, p.In, typeOf(p.Schema), rulesOf(p.Schema), p.Description, p.Required})
	}
	if body := described.RequestBody; body != nil {
		if media := body.Content[jsonType]; media != nil {
			page.Body = membersOf(media.Schema, "")
		} else {
			page.File = strings.Join(slices.Sorted(maps.Keys(body.Content)), ", ") + ". " + body.Description
		}
	}
	page.Curl = curl(d.server.site.Address(r), op, nil)
	for _, answer := range op.Answers {
		page.Responses = append(page.Responses, viewResponse(answer.Status, described.Responses[strconv.Itoa(answer.Status)]))
	}
	byStatus := op.ProblemsByStatus(catalogue)
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		problems := statusView{Status: status, Reason: http.StatusText(status)}
		for _, known := range byStatus[status] {
			problems.Problems = append(problems.Problems, viewProblem(known))
		}
		page.Problems = append(page.Problems, problems)
	}
	return page
}

func viewResponse(status int, described *huma.Response) responseView {
	components := builtDocument().Components
	if name, ok := strings.CutPrefix(described.Ref, "#/components/responses/"); ok {
		described = components.Responses[name]
	}
	response := responseView{Status: status, Reason: http.StatusText(status), About: described.Description}
	for _, name := range slices.Sorted(maps.Keys(described.Headers)) {
		header := described.Headers[name]
		if component, ok := strings.CutPrefix(header.Ref, "#/components/headers/"); ok {
			header = components.Headers[component]
		}
		response.Headers = append(response.Headers, memberView{Name: name, About: header.Description})
	}
	if media := described.Content[jsonType]; media != nil {
		response.Members = membersOf(media.Schema, "")
		for i := range response.Members { // members that the caller may not read are absent
			response.Members[i].Required = false
		}
		if example, ok := media.Example.(json.RawMessage); ok {
			response.Example = indented(example)
		}
	}
	return response
}

func indented(value json.RawMessage) string {
	var text bytes.Buffer
	if json.Indent(&text, value, "", "  ") != nil {
		return string(value)
	}
	return text.String()
}

// parametersOf returns the parameters of the operation, with references to shared components
// resolved.
func parametersOf(described *huma.Operation) (parameters []*huma.Param) {
	for _, p := range described.Parameters {
		if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
			p = builtDocument().Components.Parameters[name]
		}
		parameters = append(parameters, p)
	}
	return parameters
}

// curl returns a curl command that sends a request to the operation. Parameters have the values
// in given. A required parameter that is not given has its example value, and other parameters
// are absent. The body is that of the recorded example.
func curl(address string, op *operation.Operation, given url.Values) string {
	described, path, query := describedOperation(op), op.Path, url.Values{}
	var headers []string
	for _, p := range parametersOf(described) {
		value := cmp.Or(given.Get(p.Name), fmt.Sprint(cmp.Or(p.Example, any("…"))))
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", value)
		case p.In == "query" && isSent(p, given.Get(p.Name)):
			query.Set(p.Name, value)
		case p.Name == "idempotency-key":
			headers = append(headers, p.Name+": "+cmp.Or(given.Get(p.Name), "my-request-1"))
		case p.In == "header" && p.Required:
			headers = append(headers, p.Name+": "+value)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var body json.RawMessage
	isFile := false
	if described.RequestBody != nil {
		media := described.RequestBody.Content[jsonType]
		if isFile = media == nil; !isFile {
			body, _ = media.Example.(json.RawMessage)
		}
	}
	command := "curl"
	if op.Method != http.MethodGet && (op.Method != http.MethodPost || body == nil) {
		command += " -X " + op.Method
	}
	lines := []string{command + " " + quoted(address+path)}
	switch {
	case op.SetsSession():
		lines = append(lines, "-c cookies")
	case op.Policy.Public:
	case op.Policy.Operators:
		lines = append(lines, `-H "authorization: Bearer $ROLECALL_OPERATOR_KEY"`)
	case op.Policy.SessionOnly:
		lines = append(lines, "-b cookies")
	default:
		lines = append(lines, `-H "authorization: Bearer $ROLECALL_TOKEN"`)
	}
	if isFile {
		headers = append(headers, "content-type: image/png")
	} else if body != nil {
		headers = append(headers, "content-type: "+jsonType)
	}
	for _, header := range headers {
		lines = append(lines, "-H "+quoted(header))
	}
	if isFile {
		lines = append(lines, "--data-binary @logo.png")
	} else if body != nil {
		lines = append(lines, "-d "+quoted(indented(body)))
	}
	return strings.Join(lines, " \\\n  ")
}

// isSent reports whether the curl command contains the query parameter. Values that only the
// console accepts are omitted: dates instead of timestamps, and cursors of console pages.
func isSent(p *huma.Param, given string) bool {
	if given == "" {
		return p.Required
	}
	if schema, _ := resolved(p.Schema); schema.Format == "date-time" {
		_, err := time.Parse(time.RFC3339, given)
		return err == nil
	}
	return p.Name != "cursor" // a cursor of the console does not continue a list of the API
}

// quoted returns the text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// resolved returns the schema that s refers to, and whether s allows null. If s is not a
// reference, and not a choice between a reference and null, resolved returns s.
func resolved(s *huma.Schema) (schema *huma.Schema, nullable bool) {
	nullable = s.Nullable
	for _, choice := range s.OneOf {
		if choice.Type == "null" {
			nullable = true
		} else {
			about := cmp.Or(s.Description, choice.Description)
			schema, _ := resolved(choice)
			copied := *schema
			copied.Description = cmp.Or(about, schema.Description)
			return &copied, true
		}
	}
	if s.Ref != "" {
		return builtDocument().Components.Schemas.SchemaFromRef(s.Ref), nullable
	}
	return s, nullable
}

// typeOf returns the type of the schema in words: "string (email) or null".
func typeOf(s *huma.Schema) string {
	resolvedSchema, nullable := resolved(s)
	name := resolvedSchema.Type
	switch {
	case name == "array" && resolvedSchema.Items != nil:
		name = "array of " + plainType(resolvedSchema.Items)
	case resolvedSchema.Format != "":
		name += " (" + resolvedSchema.Format + ")"
	}
	if nullable {
		name += " or null"
	}
	return name
}

// plainType returns the type of the items of an array, in the plural.
func plainType(items *huma.Schema) string {
	if schema, _ := resolved(items); schema.Type == "object" {
		return "objects"
	}
	return typeOf(items) + "s"
}

// rulesOf returns the limits of the schema in words: "3 to 255 characters".
func rulesOf(s *huma.Schema) string {
	s, _ = resolved(s)
	var rules []string
	if s.Enum != nil {
		var values []string
		for _, value := range s.Enum {
			values = append(values, fmt.Sprint(value))
		}
		rules = append(rules, "one of "+strings.Join(values, ", "))
	}
	for _, limit := range []struct {
		unit            string
		lowest, highest string
	}{
		{" characters", number(s.MinLength), number(s.MaxLength)},
		{" items", number(s.MinItems), number(s.MaxItems)},
		{" members", number(s.MinProperties), number(s.MaxProperties)},
		{"", number(s.Minimum), number(s.Maximum)},
	} {
		switch {
		case limit.lowest != "" && limit.highest != "":
			rules = append(rules, limit.lowest+" to "+limit.highest+limit.unit)
		case limit.highest != "":
			rules = append(rules, "at most "+limit.highest+limit.unit)
		case limit.lowest != "" && limit.lowest != "0":
			rules = append(rules, "at least "+limit.lowest+limit.unit)
		}
	}
	if s.Default != nil {
		rules = append(rules, fmt.Sprintf("default %v", s.Default))
	}
	return strings.Join(rules, "; ")
}

func number[N int | float64](n *N) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*n), 'f', -1, 64)
}

// membersOf returns the members of s and of the objects within s. Required members come first.
// The prefix is the path to s within the body.
func membersOf(s *huma.Schema, prefix string) []memberView {
	s, _ = resolved(s)
	if s.Type == "array" && s.Items != nil {
		return membersOf(s.Items, prefix+"[]")
	}
	if prefix != "" {
		prefix += "."
	}
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		if x, y := slices.Contains(s.Required, a), slices.Contains(s.Required, b); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return strings.Compare(a, b)
	})
	var members []memberView
	for _, name := range names {
		property := s.Properties[name]
		schema, _ := resolved(property)
		members = append(members, memberView{
			Name: prefix + name, Type: typeOf(property), Rules: rulesOf(property),
			About: cmp.Or(property.Description, schema.Description), Required: slices.Contains(s.Required, name),
		})
		members = append(members, membersOf(property, prefix+name)...)
	}
	return members
}
