package rolecall_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

func TestErrorsAreTheSameByCode(t *testing.T) {
	err := fmt.Errorf("while creating: %w", rolecall.ErrEmailTaken.With("Another sentence.").WithFieldErrors(rolecall.FieldError{Pointer: "/email"}).After(time.Second))
	if !errors.Is(err, rolecall.ErrEmailTaken) || errors.Is(err, rolecall.ErrExternalIDTaken) {
		t.Errorf("%v is not itself, or another", err)
	}
	if rolecall.KindOf(err) != rolecall.Conflict {
		t.Errorf("its kind is %v", rolecall.KindOf(err))
	}
	if rolecall.KindOf(errors.New("something else")) != rolecall.Internal {
		t.Error("an error nobody classified is not internal")
	}
	if e := rolecall.ErrEmailTaken; len(e.FieldErrors) != 0 || e.RetryAfter != 0 || e.Detail == "Another sentence." {
		t.Errorf("the shared error was changed: %+v", e)
	}
}
