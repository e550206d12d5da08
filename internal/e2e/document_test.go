package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/rolecall/rolecall/internal/openapitest"
)

// document is the published OpenAPI document.
type document struct {
	spec       *openapi3.T
	schemas    *openapitest.Schemas
	operations []operation
}

// operation is an operation of the OpenAPI document.
type operation struct {
	method, path, id string
	item             *openapi3.PathItem
	spec             *openapi3.Operation
}

func readDocument(t testing.TB) *document {
	t.Helper()
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var loadDocument = sync.OnceValues(func() (*document, error) {
	spec, err := openapi3.NewLoader().LoadFromFile("../../openapi/openapi.yaml")
	if err != nil {
		return nil, err
	}
	if err := spec.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("the OpenAPI document is not valid: %w", err)
	}
	schemas, err := openapitest.NewSchemas(spec)
	if err != nil {
		return nil, err
	}
	d := &document{spec: spec, schemas: schemas}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			d.operations = append(d.operations, operation{method, path, op.OperationID, item, op})
		}
	}
	slices.SortFunc(d.operations, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	return d, nil
})

// find returns the operation for a request, or nil if the document has none. HEAD is treated
// as GET. If the document contains the path literally, path templates are ignored.
func (d *document) find(method, path string) *operation {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var found *operation
	for i, op := range d.operations {
		if op.method == method && (op.path == path || found == nil && d.spec.Paths.Value(path) == nil && fits(op.path, path)) {
			found = &d.operations[i]
		}
	}
	return found
}

func fits(template, path string) bool {
	parts, given := strings.Split(template, "/"), strings.Split(path, "/")
	if len(parts) != len(given) {
		return false
	}
	for i, part := range parts {
		if part != given[i] && (given[i] == "" || !strings.HasPrefix(part, "{")) {
			return false
		}
	}
	return true
}

// check returns an error if the OpenAPI document does not allow the response.
func (op *operation) check(d *document, response *http.Response, body []byte) error {
	described := op.spec.Responses.Status(response.StatusCode)
	if described == nil {
		return fmt.Errorf("status %d is not in the document", response.StatusCode)
	}
	if err := undocumentedHeaders(described.Value, response.Header); err != nil {
		return err
	}
	if err := d.schemas.CheckResponse(described.Value, response.Header, body); err != nil {
		return err
	}
	media := described.Value.Content.Get(response.Header.Get("Content-Type"))
	if media == nil || len(body) == 0 || described.Value.Content["application/json"] == nil && described.Value.Content["application/problem+json"] == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	if extra := undocumented(media.Schema.Value, value, ""); extra != nil {
		return fmt.Errorf("members %q are not in the document", extra)
	}
	return nil
}

// undocumented returns the JSON pointers of the members in value that the schema does not
// name. at is the pointer of value.
func undocumented(schema *openapi3.Schema, value any, at string) (extra []string) {
	switch value := value.(type) {
	case []any:
		if schema.Items == nil {
			return []string{at + "/*"}
		}
		for i, item := range value {
			extra = append(extra, undocumented(schema.Items.Value, item, fmt.Sprintf("%s/%d", at, i))...)
		}
	case map[string]any:
		if isOpen(schema) {
			return nil
		}
		for name, item := range value {
			switch next := schema.Properties[name]; {
			case next != nil:
				extra = append(extra, undocumented(next.Value, item, at+"/"+name)...)
			case schema.AdditionalProperties.Schema != nil:
				extra = append(extra, undocumented(schema.AdditionalProperties.Schema.Value, item, at+"/"+name)...)
			default:
				if !describedByAny(schema, name, item, at) {
					extra = append(extra, at+"/"+name)
				}
			}
		}
	}
	return extra
}

// isOpen reports whether the schema describes an object whose member names are not restricted,
// such as the changed values in an event.
func isOpen(schema *openapi3.Schema) bool {
	return schema.Type.Is("object") && len(schema.Properties) == 0 && schema.AdditionalProperties.Schema == nil &&
		len(schema.AllOf)+len(schema.AnyOf)+len(schema.OneOf) == 0
}

// describedByAny reports whether a schema in allOf, anyOf or oneOf allows the member with its
// value.
func describedByAny(schema *openapi3.Schema, name string, value any, at string) bool {
	return slices.ContainsFunc(slices.Concat(schema.AllOf, schema.AnyOf, schema.OneOf), func(part *openapi3.SchemaRef) bool {
		return undocumented(part.Value, map[string]any{name: value}, at) == nil
	})
}

// everywhere are the headers that every response may have, even if the document does not
// describe them for the operation.
var everywhere = []string{
	"Cache-Control", "Connection", "Content-Length", "Content-Security-Policy", "Content-Type",
	"Cross-Origin-Resource-Policy", "Date", "Referrer-Policy", "Strict-Transport-Security", "X-Content-Type-Options", "X-Request-Id",
}

func undocumentedHeaders(described *openapi3.Response, header http.Header) error {
	for name := range header {
		if slices.Contains(everywhere, name) {
			continue
		}
		named := false
		for own := range described.Headers {
			named = named || strings.EqualFold(own, name)
		}
		if !named {
			return fmt.Errorf("header %s is not in the document", name)
		}
	}
	return nil
}
