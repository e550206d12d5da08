package httpapi

import "testing"

// TestExamplesMatchTheDocument checks that each example belongs to an operation, that the operation
// accepts its request, and that each body of the document has an example.
func TestExamplesMatchTheDocument(t *testing.T) {
	examples := loadExamples()
	readers := bodyReaders()
	for id, e := range examples {
		op := operationNamed(id)
		if e.Request == nil || !op.Input().TakesJSON() {
			continue
		}
		if _, err := readers[bodySchema(op)](string(e.Request)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, op := range declared {
		e := examples[op.ID]
		if takes := op.Input(); takes.TakesJSON() && takes.RequiresBody() && e.Request == nil || op.AnswersJSON() && e.Response == nil {
			t.Errorf("%s has no example; write its spec in internal/e2e, and run make examples", op.ID)
		}
	}
}
