package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The effects that an operation can have on access.
const (
	changesNothing = "none"    // no user gains or loses access
	grantsAccess   = "grants"  // gives or changes rights, a way to sign in or a credential
	removesForGood = "removes" // removes something that the caller cannot simply restore
	endsAccess     = "ends"    // ends access immediately
	provesItself   = "proves"  // the request itself authenticates the user
)

// stepsUp reports whether the effect requires a recent sign-in. Ending access does not,
// because it must be quick.
func stepsUp(effect string) bool { return effect == grantsAccess || effect == removesForGood }

// wrongQuery is a parameter that no operation has, so that a request with it changes nothing.
// Such a request is refused with 400 right after the check of the caller's permission for the
// operation.
const wrongQuery = "wrong-parameter=1"

// testStepUp checks which operations require a recent sign-in (step-up). Every principal sends
// every operation soon after the sign-in, and again when the sign-in is no longer recent. The
// expected difference follows from the effects in specs.
func testStepUp(t *testing.T, p *program) {
	for id := range specs {
		if !p.document.has(id) {
			t.Errorf("no operation is called %s", id)
		}
	}
	for _, op := range p.document.operations {
		t.Run("document of "+op.id, func(t *testing.T) { checkDocumentedStepUp(t, op) })
	}
	m := newMatrix(t, p)
	user, role := m.user(t, "somebody", ""), m.roles[0].id
	soon := map[string]*answer{}
	everyCell := func(send func(name string, op operation, who *principal, line string)) {
		for _, op := range p.document.operations {
			for _, who := range m.principals {
				abouts := []string{user}
				if who.id != "" && strings.HasPrefix(op.path, "/users/{id}") {
					abouts = append(abouts, who.id)
				}
				for i, about := range abouts {
					send(fmt.Sprintf("%s by %s, user %d", op.id, who.name, i+1), op, who, op.wrongLine(about, role))
				}
			}
		}
	}
	everyCell(func(name string, _ operation, who *principal, line string) { soon[name] = who.do(t, line, "") })

	operator := m.operator(t)
	operator.do(t, "PATCH /tenant", `{"settings":{"reauthenticationSeconds":1}}`).expect(t, 200)
	for _, who := range m.principals {
		if who.isPerson() {
			who.awaitStale(t)
		}
	}
	refused := map[string]bool{}
	everyCell(func(name string, op operation, who *principal, line string) {
		t.Run(name, func(t *testing.T) {
			status, code := soon[name].status, soon[name].text("/code")
			if stepsUp(specs[op.id].effect) && who.isPerson() && status == http.StatusBadRequest {
				status, code, refused[op.id] = http.StatusForbidden, "reauthentication-required", true
			}
			if a := who.do(t, line, ""); a.status != status || a.text("/code") != code {
				t.Errorf("%s long after the sign-in: answered %d %s, not %d %s", a.line, a.status, a.text("/code"), status, code)
			}
		})
	})
	for _, op := range p.document.operations {
		if stepsUp(specs[op.id].effect) && !op.isOperators() && !refused[op.id] {
			t.Errorf("%s: nobody was refused", op.id)
		}
	}
	owner := m.principals[0]
	operator.do(t, "PATCH /tenant", `{"settings":{"reauthenticationSeconds":0}}`).expect(t, 200)
	everyCell(func(name string, _ operation, who *principal, line string) {
		if who != owner {
			return
		}
		if a := who.do(t, line, ""); a.status != soon[name].status || a.text("/code") != soon[name].text("/code") {
			t.Errorf("%s in a tenant without step-up: answered %d %s", a.line, a.status, a.text("/code"))
		}
	})
}

// has reports whether the document has the operation.
func (d *document) has(id string) bool {
	for _, op := range d.operations {
		if op.id == id {
			return true
		}
	}
	return false
}

// wrongLine returns "METHOD /path" of the operation, as line does, and adds wrongQuery to the
// path.
func (op *operation) wrongLine(user, role string) string {
	line := op.line(user, role)
	if strings.Contains(line, "?") {
		return line + "&" + wrongQuery
	}
	return line + "?" + wrongQuery
}

// checkDocumentedStepUp checks that the OpenAPI document states the operation's effect, and
// that it documents the error reauthentication-required if the operation requires a recent
// sign-in.
func checkDocumentedStepUp(t *testing.T, op operation) {
	if _, ok := specs[op.id]; !ok {
		t.Fatalf("%s has no spec: call specify next to its requests in the matrix", op.id)
	}
	var marked string
	if raw, err := json.Marshal(op.spec.Extensions["x-access-effect"]); err != nil || json.Unmarshal(raw, &marked) != nil || marked != specs[op.id].effect {
		t.Errorf("x-access-effect is %s, not %q", raw, specs[op.id].effect)
	}
	var documented bool
	for _, response := range op.spec.Responses.Map() {
		documented = documented || strings.Contains(*response.Value.Description, "reauthentication-required")
	}
	if wanted := stepsUp(specs[op.id].effect) && !op.isOperators(); documented != wanted {
		t.Errorf("reauthentication-required is documented: %v", documented)
	}
}
