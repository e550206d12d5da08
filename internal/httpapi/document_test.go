package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/getkin/kin-openapi/openapi3"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/openapi"
)

var update = flag.Bool("update", false, "write the OpenAPI document anew")

func TestDocumentIsTheCommittedOne(t *testing.T) {
	yaml, err := YAML()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("../../openapi/openapi.yaml", yaml, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(yaml, openapi.YAML) {
		t.Error("the table and the committed document differ; run make openapi")
	}
}

func TestDocumentIsValidOpenAPI(t *testing.T) {
	document, err := openapi3.NewLoader().LoadFromData(openapi.YAML)
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(t.Context(), openapi3.EnableSchemaFormatValidation()); err != nil {
		t.Fatalf("%v\nIf an example in openapi/examples.json is old, delete it there and run make examples.", err)
	}
	if document.OpenAPI != "3.1.0" {
		t.Errorf("openapi is %s", document.OpenAPI)
	}
}

func TestEveryOperationIsWholeAndDocumented(t *testing.T) {
	document := Document()
	withoutSession := []string{"AuthsController_login", "AuthsController_refresh", "AuthsController_logout", "AuthsController_acceptInvitation",
		"AuthsController_completeLogin", "AuthsController_beginEnrolment", "AuthsController_getPasskeySignInOptions", "AuthsController_signInByPasskey",
		"AuthsController_requestPasswordReset", "AuthsController_resetPassword", "AuthsController_changeEmail", "AuthsController_listConnections", "AuthsController_findConnection",
		"AuthsController_startOidc", "AuthsController_exchangeCode", "AuthsController_signOutOidc"}
	seen := map[string]bool{}
	for _, op := range declared {
		if op.Summary == "" || op.Description == "" || op.Input() == nil || len(op.Answers) == 0 || !strings.Contains(op.ID, "Controller_") {
			t.Errorf("%s %s is not whole", op.Method, op.Path)
		}
		if (op.Policy.Public) != slices.Contains(withoutSession, op.ID) {
			t.Errorf("%s: needs a session: %v", op.ID, !op.Policy.Public)
		}
		if seen[op.ID] {
			t.Errorf("%s is there twice", op.ID)
		}
		seen[op.ID] = true
		at := document.Paths[op.Path]
		if at == nil {
			t.Errorf("%s is not in the document", op.ID)
			continue
		}
		described := map[string]*huma.Operation{http.MethodGet: at.Get, http.MethodPost: at.Post, http.MethodPut: at.Put, http.MethodPatch: at.Patch, http.MethodDelete: at.Delete}[op.Method]
		takesKey := slices.ContainsFunc(described.Parameters, func(p *huma.Param) bool { return strings.HasSuffix(p.Ref, "/IdempotencyKeyParameter") })
		if creates := op.Answers[0].Status == http.StatusCreated || op.Answers[0].Status == http.StatusAccepted && !op.Policy.Public; creates != takesKey {
			t.Errorf("%s creates: %v, takes an idempotency key: %v", op.ID, creates, takesKey)
		}
		for _, problem := range op.Problems {
			if !slices.Contains(catalogue, problem) {
				t.Errorf("%s can answer %s, which is not in the catalogue of document.go", op.ID, problem.Code)
			}
		}
	}
	for _, p := range document.Components.Parameters {
		if p.Description == "" {
			t.Errorf("the document does not describe %s", p.Name)
		}
	}
}

// TestDocumentSuitsCodeGenerators checks two conditions under which generated code compiles. The
// names of components are distinct and have no characters that generators replace. No description
// begins or ends a comment.
func TestDocumentSuitsCodeGenerators(t *testing.T) {
	document := Document()
	seen := map[string]bool{}
	use := func(kind, name string) {
		key := strings.ToLower(name)
		if seen[key] || strings.ContainsAny(name, ".-_") {
			t.Errorf("the %s %s has the name of something else, or a character that generators replace", kind, name)
		}
		seen[key] = true
	}
	for name := range document.Components.Schemas.Map() {
		use("schema", name)
	}
	for name := range document.Components.Parameters {
		use("parameter", name)
	}
	for name := range document.Components.Responses {
		use("response", name)
	}
	for line := range strings.Lines(string(openapi.YAML)) {
		if strings.Contains(line, "description:") && (strings.Contains(line, "*/") || strings.Contains(line, "/*")) {
			t.Errorf("would begin or end a comment: %s", line)
		}
	}
}

func TestEveryOperationOnAnObjectDocumentsThatItMayBeGone(t *testing.T) {
	for _, op := range declared {
		if strings.Contains(op.Path, "{") && !slices.Contains(op.ProblemsByStatus(catalogue)[http.StatusNotFound], rolecall.ErrNotFound) {
			t.Errorf("%s %s does not document not-found", op.Method, op.Path)
		}
	}
}

func TestALimitIsCappedInWords(t *testing.T) {
	limit := Document().Components.Parameters["LimitParameter"]
	if limit.Schema.Maximum != nil || !strings.Contains(limit.Description, "Values above 200 are treated as 200.") {
		t.Errorf("maximum %v, %q", limit.Schema.Maximum, limit.Description)
	}
}

func TestEveryErrorOfTheNounsIsInTheCatalogue(t *testing.T) {
	source, err := os.ReadFile("../../error.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	for line := range strings.Lines(string(source)) {
		_, rest, found := strings.Cut(line, `, Code: "`)
		if !found {
			continue
		}
		codes++
		code, _, _ := strings.Cut(rest, `"`)
		if !slices.ContainsFunc(catalogue, func(e *rolecall.Error) bool { return e.Code == code }) {
			t.Errorf("%s is not in the catalogue of document.go", code)
		}
	}
	if codes < 20 {
		t.Errorf("found %d errors", codes)
	}
}

func TestBodiesAcceptWhatTheDocumentDescribes(t *testing.T) {
	readers := bodyReaders()
	schemas := Document().Components.Schemas.Map()
	for name, read := range readers {
		schema := schemas[name]
		body := map[string]any{"unheardOf": 1}
		for member := range schema.Properties {
			body[member] = 1
		}
		sent, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		_, known := web.StatusOf(errorOf(read(string(sent))))
		for _, f := range known.FieldErrors {
			if (f.Code == "unknown") != (f.Pointer == "/unheardOf") || f.Code == "required" {
				t.Errorf("%s: %s %s", name, f.Pointer, f.Code)
			}
		}
		if len(known.FieldErrors) != len(body) {
			t.Errorf("%s: %d faults of %d members", name, len(known.FieldErrors), len(body))
		}
		var required []string
		if _, err := read("{}"); err != nil {
			_, known := web.StatusOf(err)
			for _, f := range known.FieldErrors {
				required = append(required, strings.TrimPrefix(f.Pointer, "/"))
			}
		}
		slices.Sort(required)
		if !slices.Equal(required, slices.Sorted(slices.Values(schema.Required))) {
			t.Errorf("%s requires %q, the document says %q", name, required, schema.Required)
		}
	}
}

// errorOf returns err. It drops the first result of a function that decodes a body.
func errorOf(_ reflect.Value, err error) error { return err }
