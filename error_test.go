package rolecall_test

import (
	"errors"
	"fmt"
	"strings"
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

// People read only the detail of a problem.
func TestTheDetailNamesTheInvalidValues(t *testing.T) {
	at := func(pointers ...string) (faults rolecall.FieldErrors) {
		for _, pointer := range pointers {
			faults.Add(pointer, "length", "must have 3 to 255 characters")
		}
		return faults
	}
	const rest = ". See errors in this response for each of them."
	for want, err := range map[string]error{
		"/email, /name":                     at("/email", "/name", "/email").Err(),
		"the body":                          at("").Err(),
		"/1, /2, /3, /4, /5 and others":     at("/1", "/2", "/3", "/4", "/5", "/6", "/7").Err(),
		"/" + strings.Repeat("é", 29) + "…": at("/" + strings.Repeat("é", 200)).Err(),
		"header if-match, parameter limit":  rolecall.ErrMalformed.WithFieldErrors(rolecall.FieldError{Header: "if-match"}, rolecall.FieldError{Parameter: "limit"}),
	} {
		if e, _ := errors.AsType[*rolecall.Error](err); e == nil || e.Detail != "These values are invalid: "+want+rest {
			t.Errorf("%s: the detail is %q", want, err)
		}
	}
	if e := rolecall.ErrMalformed.With("The cursor is of another list.").WithFieldErrors(at("/a")...); e.Detail != "The cursor is of another list." {
		t.Errorf("the detail of a known cause is %q", e.Detail)
	}
}
