// Package openapitest compares responses with an OpenAPI 3.1 document, in tests.
package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rolecall/rolecall"
)

// Schemas are the JSON schemas of a document. Each schema is compiled at its first use and kept,
// because compiling takes far longer than validating. Schemas are safe for concurrent use.
type Schemas struct {
	components any
	mu         sync.Mutex
	compiled   map[*openapi3.Schema]*jsonschema.Schema
}

// NewSchemas returns the schemas of the document.
func NewSchemas(document *openapi3.T) (*Schemas, error) {
	encoded, err := json.Marshal(document.Components)
	if err != nil {
		return nil, err
	}
	s := &Schemas{compiled: map[*openapi3.Schema]*jsonschema.Schema{}}
	s.components, err = jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	return s, err
}

// CheckResponse returns an error if the headers or the body of a response do not match the
// description in the document.
func (s *Schemas) CheckResponse(described *openapi3.Response, header http.Header, body []byte) error {
	for _, name := range slices.Sorted(maps.Keys(described.Headers)) {
		if err := s.checkHeader(described.Headers[name].Value, header.Values(name)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	if len(described.Content) == 0 {
		return nil
	}
	contentType := header.Get("Content-Type")
	media := described.Content.Get(contentType)
	if media == nil {
		return fmt.Errorf("content type %q is not in the document", contentType)
	}
	if !strings.HasSuffix(contentType, "json") { // a file
		return s.validate(media.Schema, string(body))
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return s.validate(media.Schema, value)
}

func (s *Schemas) checkHeader(described *openapi3.Header, values []string) error {
	if len(values) == 0 && described.Required {
		return errors.New("is missing")
	}
	for _, value := range values {
		if err := s.validate(described.Schema, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *Schemas) validate(ref *openapi3.SchemaRef, value any) error {
	schema, err := s.compile(ref)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (s *Schemas) compile(ref *openapi3.SchemaRef) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if schema := s.compiled[ref.Value]; schema != nil {
		return schema, nil
	}
	encoded, err := json.Marshal(ref.Value)
	if err != nil {
		return nil, err
	}
	var resource map[string]any
	if err := json.Unmarshal(encoded, &resource); err != nil {
		return nil, err
	}
	resource["components"] = s.components // the targets of references in the schema
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	for name, parse := range formats {
		compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(value any) error {
			if text, ok := value.(string); ok {
				return parse(text)
			}
			return nil
		}})
	}
	const address = "https://example.com/openapi.json"
	if err := compiler.AddResource(address, resource); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile(address)
	if err != nil {
		return nil, err
	}
	s.compiled[ref.Value] = schema
	return schema, nil
}

// formats checks the formats of the document that allow fewer values than the JSON Schema formats
// of the same name.
var formats = map[string]func(text string) error{
	"uuid": func(text string) error {
		_, err := rolecall.ParseID[any](text)
		return err
	},
	"date-time": func(text string) error {
		_, err := time.Parse("2006-01-02T15:04:05.000000Z", text)
		return err
	},
}
