package nodetest

import (
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/signin"
)

// FaultsOf returns the pointers and codes of an error's field errors.
func FaultsOf(err error) (faults []string) {
	if e, ok := errors.AsType[*rolecall.Error](err); ok {
		for _, fault := range e.FieldErrors {
			faults = append(faults, fault.Pointer+" "+fault.Code)
		}
	}
	return faults
}

// ErrorOf3 returns the error of a call with three results.
func ErrorOf3[T, U any](_ T, _ U, err error) error { return err }

// ErrorOf returns the error. For a sign-in that needs a second factor, it returns the
// problem of the challenge.
func ErrorOf[T any](value T, err error) error {
	if in, ok := any(value).(signin.SignIn); ok && in.Challenge != nil && err == nil {
		return in.Challenge.Problem
	}
	return err
}
