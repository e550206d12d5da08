// Package openapi holds the contract as an OpenAPI 3.1 document. It is written
// out by the program; a test of the HTTP edge compares it with what is served.
package openapi

import _ "embed"

// YAML is the document.
//
//go:embed openapi.yaml
var YAML []byte
