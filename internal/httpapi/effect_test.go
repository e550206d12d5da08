package httpapi

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/authz"
)

func TestEveryOperationDeclaresItsEffectOnAccess(t *testing.T) {
	for _, op := range declared {
		switch op.Policy.Effect {
		case authz.Grants, authz.Removes, authz.Ends, authz.Proves, authz.NoEffect:
		default:
			t.Errorf("%s declares %q as its effect on access", op.ID, op.Policy.Effect)
		}
		if op.Method == http.MethodGet && op.Policy.Effect != authz.NoEffect {
			t.Errorf("%s only reads, and declares %q", op.ID, op.Policy.Effect)
		}
		if op.Policy.Public && (op.Policy.Effect == authz.Grants || op.Policy.Effect == authz.Removes) {
			t.Errorf("%s works without a session and declares %q, which asks for the age of one", op.ID, op.Policy.Effect)
		}
	}
}

func TestAnOperationWithoutADeclaredEffectStepsUp(t *testing.T) {
	policy := *declared[0].Policy
	if policy.StepsUp() {
		t.Errorf("%s needs step-up", declared[0].ID)
	}
	if policy.Effect = ""; !policy.StepsUp() {
		t.Error("an operation without an effect needs no step-up")
	}
}

func TestTheStepUpPageListsTheOperations(t *testing.T) {
	const written = "../../docs/step-up.md"
	source, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	const heading = "\n## Operations\n"
	prose, _, found := strings.Cut(string(source), heading)
	if !found {
		t.Fatalf("%s has no heading %q", written, strings.TrimSpace(heading))
	}
	want := prose + heading + "\n" + stepUpTable()
	if *update {
		if err := os.WriteFile(written, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(source) != want {
		t.Errorf("%s does not list the operations of the table; run: make openapi", written)
	}
}

// stepUpTable returns the operations with an effect on access, as Markdown.
func stepUpTable() string {
	var b strings.Builder
	b.WriteString("| operation | what it does | effect | step-up |\n|---|---|---|---|\n")
	for _, effect := range []authz.Effect{authz.Grants, authz.Removes, authz.Ends, authz.Proves} {
		for _, op := range declared {
			if op.Policy.Effect != effect {
				continue
			}
			stepUp := "no"
			if op.Policy.StepsUp() {
				stepUp = "yes"
			}
			fmt.Fprintf(&b, "| `%s %s` | %s | `%s` | %s |\n", op.Method, op.Path, op.Summary, op.Policy.Effect, stepUp)
		}
	}
	return b.String()
}
