package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// contract finds the documented operation of a request.
var contract = sync.OnceValues(func() (routers.Router, error) {
	yaml, err := YAML()
	if err != nil {
		return nil, err
	}
	document, err := openapi3.NewLoader().LoadFromData(yaml)
	if err != nil {
		return nil, err
	}
	document.Servers = nil
	return legacy.NewRouter(document)
})

// checkContract fails the test if the answer of a documented operation is not a
// documented one.
func checkContract(t testing.TB, base string, r reply) {
	t.Helper()
	path, inside := strings.CutPrefix(r.Request.URL.Path, base)
	if !inside || r.StatusCode == http.StatusMethodNotAllowed {
		return // no operation
	}
	router, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	u := *r.Request.URL
	u.Path = path
	request := &http.Request{Method: r.Request.Method, URL: &u, Header: r.Request.Header}
	route, parameters, err := router.FindRoute(request)
	if err != nil {
		return // a page, or a path that is not served
	}
	options := &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request, PathParams: parameters, Route: route, Options: options},
		Status:                 r.StatusCode,
		Header:                 r.Header,
		Body:                   io.NopCloser(bytes.NewBufferString(r.body)),
		Options:                options,
	})
	if err != nil {
		t.Errorf("%s %s answers %d against the document: %v", r.Request.Method, r.Request.URL.Path, r.StatusCode, err)
	}
}
