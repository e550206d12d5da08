// Package openapi contains the API contract as an OpenAPI 3.1 document. The program generates the
// document. A test of package httpapi checks that the committed document is the generated one.
package openapi

import _ "embed"

// YAML is the document.
//
//go:embed openapi.yaml
var YAML []byte

// Examples are requests that tests have sent, with their answers, by the ids of the
// operations. The document shows them.
//
//go:embed examples.json
var Examples []byte
