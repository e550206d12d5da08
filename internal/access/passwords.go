package access

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// CheckNewPassword returns ErrValidation if the password is too short, too easy to guess
// for the user, or in the file of leaked passwords. The field error in ErrValidation has
// the JSON Pointer pointer. Do not call CheckNewPassword in a transaction, because it reads
// the file.
func (s *Service) CheckNewPassword(pointer, password string, u *rolecall.User, t *rolecall.Tenant) error {
	faults, err := s.PasswordFieldErrors(pointer, password, u, t)
	if err != nil {
		return err
	}
	return faults.Err()
}

// PasswordFieldErrors makes the checks of CheckNewPassword, but returns the field errors.
// Use it to report them together with the errors of other fields.
func (s *Service) PasswordFieldErrors(pointer, password string, u *rolecall.User, t *rolecall.Tenant) (faults rolecall.FieldErrors, err error) {
	code, detail := secret.CheckPassword(password, t.Settings.PasswordMinimum(), s.forbidden, u.Email, u.Name, t.Name, t.DisplayName)
	if code == "" {
		breached, err := s.breached.Has(password)
		if err != nil {
			return nil, err
		}
		if breached {
			code, detail = "breached", "must not be a password from a known data leak; choose one that you have never used"
		}
	}
	faults.Add(pointer, code, detail)
	return faults, nil
}
