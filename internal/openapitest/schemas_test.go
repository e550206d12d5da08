package openapitest

import (
	"net/http"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

const example = `
openapi: 3.1.0
info: {title: Example, version: "1"}
paths:
  /users/{id}:
    get:
      responses:
        "200":
          description: A user.
          headers:
            ETag: {required: true, schema: {type: string, pattern: '^"'}}
          content:
            application/json:
              schema: {$ref: "#/components/schemas/User"}
components:
  schemas:
    User:
      type: object
      required: [id]
      properties:
        id: {$ref: "#/components/schemas/ID"}
        createdAt: {type: string, format: date-time}
        department: {type: [string, "null"]}
    ID: {type: string, format: uuid}
`

func TestCheckResponse(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := NewSchemas(document)
	if err != nil {
		t.Fatal(err)
	}
	described := document.Paths.Value("/users/{id}").Get.Responses.Status(http.StatusOK).Value
	const json, id = "application/json", "01a1fc10-ea84-7001-a69a-ad84f9bf0fca"
	for _, test := range []struct {
		name, contentType, etag, body string
		fits                          bool
	}{
		{"a user", json, `"a"`, `{"id":"` + id + `","department":null,"createdAt":"2026-11-21T03:05:29.476709Z"}`, true},
		{"without a required header", json, "", `{"id":"` + id + `"}`, false},
		{"with a header of another form", json, "a", `{"id":"` + id + `"}`, false},
		{"of another content type", "text/plain", `"a"`, `{"id":"` + id + `"}`, false},
		{"without a required member", json, `"a"`, `{}`, false},
		{"with an id of another form", json, `"a"`, `{"id":"01A1FC10"}`, false},
		{"with a time of another form", json, `"a"`, `{"id":"` + id + `","createdAt":"2026-11-21T03:05:29Z"}`, false},
		{"with a member of another type", json, `"a"`, `{"id":"` + id + `","department":1}`, false},
		{"that is not JSON", json, `"a"`, `{`, false},
	} {
		header := http.Header{"Content-Type": {test.contentType}}
		if test.etag != "" {
			header.Set("ETag", test.etag)
		}
		if err := schemas.CheckResponse(described, header, []byte(test.body)); (err == nil) != test.fits {
			t.Errorf("a response %s: %v", test.name, err)
		}
	}
}
