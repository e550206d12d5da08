package httpapi

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestEveryOperationDeclaresItsEffectOnAccess(t *testing.T) {
	for _, op := range everyOperation {
		switch op.effect {
		case effectGrants, effectRemoves, effectEnds, effectProves, effectNone:
		default:
			t.Errorf("%s declares %q as its effect on access", op.id, op.effect)
		}
		if op.method == http.MethodGet && op.effect != effectNone {
			t.Errorf("%s only reads, and declares %q", op.id, op.effect)
		}
		if op.need == nil && (op.effect == effectGrants || op.effect == effectRemoves) {
			t.Errorf("%s works without a session and declares %q, which asks for the age of one", op.id, op.effect)
		}
	}
}

func TestAnOperationWithoutADeclaredEffectStepsUp(t *testing.T) {
	declared := *operations[0]
	if declared.stepsUp() {
		t.Errorf("%s needs step-up", declared.id)
	}
	if declared.effect = ""; !declared.stepsUp() {
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
	for _, effect := range []effect{effectGrants, effectRemoves, effectEnds, effectProves} {
		for _, op := range slices.Concat(operations, operatorOperations) {
			if op.effect != effect {
				continue
			}
			stepUp := "no"
			if op.stepsUp() {
				stepUp = "yes"
			}
			fmt.Fprintf(&b, "| `%s %s` | %s | `%s` | %s |\n", op.method, op.path, op.summary, op.effect, stepUp)
		}
	}
	return b.String()
}
