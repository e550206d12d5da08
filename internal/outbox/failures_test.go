package outbox

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestEachFailureIsReportedOnce(t *testing.T) {
	ada, grace := rolecall.NewID[rolecall.User](1), rolecall.NewID[rolecall.User](2)
	refused := func(code int) error { return fmt.Errorf("%w: %d", rolecall.ErrMailRefused, code) }
	down, slow := errors.New("no connection"), errors.New("no answer")
	var f failures
	for i, step := range []struct {
		user rolecall.UserID
		err  error // nil: the mail was sent
		want bool
	}{
		{ada, refused(550), true}, {ada, refused(550), false}, {ada, refused(554), true}, {grace, refused(550), true},
		{ada, down, true}, {grace, down, false}, {grace, slow, true},
		{grace, nil, true}, {grace, nil, false},
		{ada, refused(550), false}, {grace, refused(550), true}, {ada, down, true},
		{ada, nil, true}, {ada, refused(554), true},
	} {
		got := false
		if step.err == nil {
			got = f.end(step.user)
		} else {
			got = f.isFirst(failureOf(step.user, step.err))
		}
		if got != step.want {
			t.Errorf("step %d is %v", i, got)
		}
	}
	for i := range 3 * failuresMax {
		f.isFirst(failure{cause: fmt.Sprint(i)})
	}
	if len(f.known) > failuresMax {
		t.Errorf("%d failures are remembered", len(f.known))
	}
}
