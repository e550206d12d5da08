package httpapi

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/rolecall/rolecall/internal/openapitest"
)

// contract is the loaded OpenAPI document. It finds the documented operation of a request, and
// has the schemas of all bodies.
type contract struct {
	routers.Router
	schemas *openapitest.Schemas
}

var loadContract = sync.OnceValues(func() (*contract, error) {
	yaml, err := YAML()
	if err != nil {
		return nil, err
	}
	document, err := openapi3.NewLoader().LoadFromData(yaml)
	if err != nil {
		return nil, err
	}
	document.Servers = nil
	schemas, err := openapitest.NewSchemas(document)
	if err != nil {
		return nil, err
	}
	router, err := legacy.NewRouter(document, openapi3.DisableExamplesValidation()) // TestDocumentIsValidOpenAPI validates them
	return &contract{router, schemas}, err
})

// checkContract fails the test if the response of an operation does not match the OpenAPI document.
func checkContract(t testing.TB, base string, r reply) {
	t.Helper()
	path, inside := strings.CutPrefix(r.Request.URL.Path, base)
	if !inside || r.StatusCode == http.StatusMethodNotAllowed {
		return // no operation
	}
	c, err := loadContract()
	if err != nil {
		t.Fatal(err)
	}
	u := *r.Request.URL
	u.Path = path
	request := &http.Request{Method: r.Request.Method, URL: &u, Header: r.Request.Header}
	route, _, err := c.FindRoute(request)
	if err != nil {
		return // a page, or a path that is not served
	}
	described := route.Operation.Responses.Status(r.StatusCode)
	if described == nil {
		t.Errorf("%s %s answers %d, which is not in the document", request.Method, path, r.StatusCode)
		return
	}
	if request.Method == http.MethodHead || r.StatusCode == http.StatusNotModified {
		return // no body
	}
	err = c.schemas.CheckResponse(described.Value, r.Header, []byte(r.body))
	if err != nil {
		t.Errorf("%s %s answers %d against the document: %v", r.Request.Method, r.Request.URL.Path, r.StatusCode, err)
	}
}
