package nodetest

import (
	"fmt"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// Password is the password of all users who can sign in.
const Password = "correct horse battery"

// Address returns the email address of the user with the name.
func Address(name string) string { return name + "@example.com" }

// NewUser creates a pending user.
func (f *Fixture) NewUser(name string) rolecall.User {
	f.Helper()
	created, err := f.Directory.CreateUser(f.Context(), f.Owner, NewKey(), rolecall.UserDraft{Email: Address(name), Name: "User " + name})
	f.OK(err)
	return created.Value
}

// NewMember creates a user who can sign in.
func (f *Fixture) NewMember(name string) rolecall.User {
	f.Helper()
	user := f.NewUser(name)
	f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, Address(name), Password))
	return user
}

// AnotherPassword differs from Password.
const AnotherPassword = "another " + Password

// Obstacles returns the reasons that the owner sees why the user cannot sign in, each
// with the operation that fixes it.
func (f *Fixture) Obstacles(id rolecall.UserID) (reasons []string) {
	f.Helper()
	o, err := f.Directory.Overview(f.Context(), f.Owner, id)
	f.OK(err)
	for _, r := range o.SignIn.Reasons {
		reason := r.Code + " " + r.Operation
		if r.Covers != "" {
			reason += fmt.Sprintf(" %s %s %s", r.Covers, r.Source, r.Until.Sub(f.Clock.Now()))
		}
		reasons = append(reasons, reason)
	}
	if o.SignIn.CanSignIn != (reasons == nil) {
		f.Errorf("they can sign in: %v, and hindered by %q", o.SignIn.CanSignIn, reasons)
	}
	return reasons
}

// Person creates an active user without a password, with the assignments.
func (f *Fixture) Person(department string, holds ...Held) (rolecall.User, []rolecall.Assignment) {
	f.Helper()
	draft := rolecall.UserDraft{Email: fmt.Sprintf("person-%d@example.com", Serial.Add(1)), Name: "A Person"}
	if department != "" {
		draft.Department = &department
	}
	user := draft.User(Start)
	user.Status = rolecall.UserActive
	var assignments []rolecall.Assignment
	for _, h := range holds {
		assignments = append(assignments, h.Assignment(f, user.ID))
	}
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertUser(user)
		for _, a := range assignments {
			tx.InsertRole(a.Role)
			tx.UpsertAssignment(a)
		}
		return nil
	}))
	return user, assignments
}

// DeleteUser deletes the user as the owner.
func (f *Fixture) DeleteUser(id rolecall.UserID) {
	f.Helper()
	f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, id, nil))
}
