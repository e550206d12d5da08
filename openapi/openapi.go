// Package openapi holds the contract as an OpenAPI 3.1 document. The program writes the document. A
// test of package httpapi compares it with the served one.
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
