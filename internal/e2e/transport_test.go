package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/internal/patience"
)

// checked is an HTTP transport that compares every response with the OpenAPI document and with
// the rules of alwaysTrue. If a response breaks one of them, checked returns an error.
type checked struct {
	program *program
	next    http.RoundTripper
}

// RoundTrip sends the request. If the response breaks a rule, the error names the rule. On a slow machine, the program
// can refuse a request before it does anything. RoundTrip then sends the request again, as clients do.
func (c checked) RoundTrip(request *http.Request) (response *http.Response, err error) {
	patience.Poll(func() bool {
		var body []byte
		response, body, err = c.roundTrip(request)
		return err != nil || request.Body != nil && request.GetBody == nil || !postponed(response, body)
	})
	return response, err
}

// postponed reports whether the response asks for the same request again because of other requests.
func postponed(response *http.Response, body []byte) bool {
	switch response.StatusCode {
	case http.StatusServiceUnavailable:
		return bytes.Contains(body, []byte("The service is overloaded. Nothing was done."))
	case http.StatusConflict:
		return bytes.Contains(body, []byte(`"code":"idempotency-key-in-progress"`))
	}
	return false
}

// roundTrip sends the request once.
func (c checked) roundTrip(request *http.Request) (*http.Response, []byte, error) {
	request = request.Clone(request.Context())
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, nil, err
		}
		request.Body = body
	}
	response, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if postponed(response, body) {
		return response, body, nil
	}
	c.program.remember(response)
	if err := c.program.document.checkResponse(request, response, body); err != nil {
		return nil, nil, fmt.Errorf("%s %s answered %d: %w\n%s", request.Method, request.URL.Path, response.StatusCode, err, body)
	}
	return response, body, nil
}

// remember stores the values of the response's cookies, so that checkLog can search the log
// for them.
func (p *program) remember(response *http.Response) {
	for _, cookie := range response.Cookies() {
		if cookie.Value != "" {
			p.secret(cookie.Value)
		}
	}
}

// checkResponse returns an error that names the rule that the response breaks, or nil.
func (d *document) checkResponse(request *http.Request, response *http.Response, body []byte) error {
	if err := alwaysTrue(request, response, body); err != nil {
		return err
	}
	op := d.find(request.Method, request.URL.EscapedPath())
	if op == nil || request.Method == http.MethodHead {
		return nil
	}
	if got := response.Header.Get("Cache-Control"); got != "no-store" {
		return fmt.Errorf("cache-control is %q", got)
	}
	return op.check(d, response, body)
}

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// inside are patterns of internal details that no response may contain. They match text in
// lower case. Each pattern has a fixed text that every match contains, because a search for
// fixed text is much faster.
var inside = []struct {
	text string
	form *regexp.Regexp
}{
	{"select", regexp.MustCompile(`\bselect\b.+\bfrom\b`)},
	{"insert into", regexp.MustCompile(`insert into`)},
	{"delete from", regexp.MustCompile(`delete from`)},
	{"sqlite", regexp.MustCompile(`sqlite`)},
	{"postgres", regexp.MustCompile(`postgres`)},
	{"pgx", regexp.MustCompile(`\bpgx[.:]`)},
	{"sqlstate", regexp.MustCompile(`sqlstate`)},
	{"constraint", regexp.MustCompile(`\bconstraint\b`)},
	{"goroutine", regexp.MustCompile(`goroutine`)},
	{".go:", regexp.MustCompile(`\.go:\d`)},
	{"runtime error", regexp.MustCompile(`runtime error`)},
	{"nil pointer", regexp.MustCompile(`nil pointer`)},
	{"rolecall.", regexp.MustCompile(`rolecall\.[a-z]`)},
	{"internal/", regexp.MustCompile(`internal/`)},
	{"/tmp/", regexp.MustCompile(`/tmp/`)},
}

// findInside returns the first internal detail that the body contains, or "" if it contains
// none.
func findInside(body []byte) string {
	lower := bytes.ToLower(body)
	for _, part := range inside {
		if bytes.Contains(lower, []byte(part.text)) && part.form.Match(lower) {
			return string(part.form.Find(lower))
		}
	}
	return ""
}

// isAttemptPage reports whether the path is one of the pages of a sign-in with an identity provider, which redirect
// the browser.
func isAttemptPage(path string) bool {
	return path == "/auths/oidc/begin" || strings.HasPrefix(path, "/auths/oidc/callback/")
}

// alwaysTrue checks the rules that hold for every response of every operation.
func alwaysTrue(request *http.Request, response *http.Response, body []byte) error {
	h, isSCIM := response.Header, strings.HasPrefix(request.URL.Path, "/scim/")
	switch {
	case len(h["X-Request-Id"]) != 1 || !requestIDForm.MatchString(h.Get("X-Request-Id")):
		return fmt.Errorf("x-request-id is %q", h["X-Request-Id"])
	case h.Get("X-Content-Type-Options") != "nosniff":
		return errors.New("nosniff is missing")
	case isSCIM:
		return checkSCIM(request, response, body)
	case response.StatusCode >= 500 && !(response.StatusCode == http.StatusServiceUnavailable && bytes.Contains(body, []byte(`"code":"connection-unavailable"`))):
		return errors.New("a server error")
	case response.StatusCode >= 300 && response.StatusCode < 400 && response.StatusCode != http.StatusNotModified && !isAttemptPage(request.URL.Path):
		return errors.New("a redirect")
	case strings.HasPrefix(h.Get("Content-Type"), "application/") && !strings.HasPrefix(request.URL.Path, "/openapi.") && findInside(body) != "":
		return fmt.Errorf("the body shows the inside: %q", findInside(body))
	case response.StatusCode < 400 || request.Method == http.MethodHead:
		return nil
	}
	return checkProblem(request, response, body)
}

// checkSCIM checks the rules that hold for every response of SCIM (RFC 7644, section 3.12).
func checkSCIM(request *http.Request, response *http.Response, body []byte) error {
	if len(body) > 0 && response.Header.Get("Content-Type") != "application/scim+json" {
		return fmt.Errorf("SCIM of content type %q", response.Header.Get("Content-Type"))
	}
	if inner := findInside(body); inner != "" {
		return fmt.Errorf("the body shows the inside: %q", inner)
	}
	if response.StatusCode < 300 || response.StatusCode == http.StatusNotModified || request.Method == http.MethodHead {
		return nil
	}
	var e struct {
		Schemas                  []string
		Status, SCIMType, Detail string
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	switch {
	case len(e.Schemas) != 1 || e.Schemas[0] != "urn:ietf:params:scim:api:messages:2.0:Error":
		return fmt.Errorf("the schemas of the error are %q", e.Schemas)
	case e.Status != strconv.Itoa(response.StatusCode) || e.Detail == "":
		return fmt.Errorf("the error says status %q and detail %q", e.Status, e.Detail)
	case response.StatusCode == http.StatusBadRequest && e.SCIMType == "":
		return errors.New("a bad request without scimType")
	case response.StatusCode < 400 || response.StatusCode == http.StatusInternalServerError:
		return errors.New("a redirect or an internal error")
	}
	return checkRefusalHeaders(response)
}

// checkProblem checks the form of a problem document.
func checkProblem(request *http.Request, response *http.Response, body []byte) error {
	if got := response.Header.Get("Content-Type"); got != "application/problem+json" {
		return fmt.Errorf("a problem of content type %q", got)
	}
	var problem struct {
		Type, Code, Title, Detail, Instance, RequestID string
		Status                                         int
		Errors                                         []map[string]string
	}
	if err := json.Unmarshal(body, &problem); err != nil {
		return err
	}
	switch {
	case problem.Type != "/problems/"+problem.Code || problem.Code == "":
		return fmt.Errorf("type %q of code %q", problem.Type, problem.Code)
	case problem.Title == "" || problem.Detail == "":
		return errors.New("a problem without a title or a detail")
	case problem.Status != response.StatusCode:
		return fmt.Errorf("the problem says status %d", problem.Status)
	case problem.Instance != request.URL.Path:
		return fmt.Errorf("the problem says instance %q", problem.Instance)
	case problem.RequestID != response.Header.Get("X-Request-Id"):
		return errors.New("the problem says another request id than the header")
	}
	for _, fault := range problem.Errors {
		_, pointer := fault["pointer"]
		_, header := fault["header"]
		_, parameter := fault["parameter"]
		if len(fault) != 3 || fault["code"] == "" || fault["detail"] == "" || !pointer && !header && !parameter {
			return fmt.Errorf("a fault of another form: %v", fault)
		}
	}
	return checkRefusalHeaders(response)
}

// checkRefusalHeaders checks that a refusal has the headers that its status requires, such as
// Retry-After for 429.
func checkRefusalHeaders(response *http.Response) error {
	wanted := map[int][]string{
		401: {"Www-Authenticate"}, 405: {"Allow"}, 429: {"Retry-After"}, 503: {"Retry-After"},
	}
	for _, name := range wanted[response.StatusCode] {
		if response.Header.Get(name) == "" {
			return fmt.Errorf("%s is missing", name)
		}
	}
	if h := response.Header; response.StatusCode == 415 && h.Get("Accept")+h.Get("Accept-Patch")+h.Get("Accept-Encoding") == "" {
		return errors.New("neither Accept nor Accept-Patch nor Accept-Encoding is there")
	}
	return nil
}
