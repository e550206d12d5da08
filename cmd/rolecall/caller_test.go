package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// caller sends requests to a tenant of the process, with the session of its last sign-in.
type caller struct {
	process *process
	tenant  string
	session *http.Cookie
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body []byte
}

func (c *caller) send(t *testing.T, method, path, body string) answer {
	t.Helper()
	request, err := http.NewRequest(method, "http://"+c.process.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "X-Tenant-Schema": {c.tenant}}
	if c.session != nil {
		request.AddCookie(c.session)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response, content}
}

// signIn signs the user in. It keeps the session if the response has one.
func (c *caller) signIn(t *testing.T, email, password string) answer {
	t.Helper()
	a := c.send(t, http.MethodPost, "/auths/login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))
	if cookies := a.Cookies(); len(cookies) > 0 {
		c.session = cookies[len(cookies)-1]
	}
	return a
}

func (c *caller) get(t *testing.T, path string) answer {
	t.Helper()
	return c.send(t, http.MethodGet, path, "")
}

// decode decodes the body of a success.
func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(a.body, into); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s (%v)", a.Status, a.body, err)
	}
}

// problem returns the code of the problem, or an empty text if the request succeeded.
func (a answer) problem(t *testing.T) string {
	t.Helper()
	if a.StatusCode < http.StatusBadRequest {
		return ""
	}
	var problem struct{ Code string }
	if err := json.Unmarshal(a.body, &problem); err != nil {
		t.Fatalf("%s: %s", a.Status, a.body)
	}
	return problem.Code
}

// owner returns a caller in acme that is signed in as its owner, and the response of the sign-in.
func owner(t *testing.T, s *process) (*caller, answer) {
	t.Helper()
	c := &caller{process: s, tenant: "acme"}
	a := c.signIn(t, ownerEmail, ownerPassword)
	if a.StatusCode != http.StatusOK {
		t.Fatalf("sign-in: %s", a.Status)
	}
	return c, a
}
