package node_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// held is an assignment of a role with these permissions and grants.
type held struct {
	permissions, grants []string
	departments         []string      // nil: the whole tenant
	until               rolecall.Time // zero: no expiry
}

// holding returns a role with the permissions, in the whole tenant and without expiry.
func holding(permissions ...string) held { return held{permissions: permissions} }

// granting returns a role that only lets its holders grant the permissions.
func granting(grants ...string) held { return held{grants: grants} }

// within returns the assignment restricted to the departments.
func (h held) within(departments ...string) held {
	h.departments = departments
	return h
}

// to returns the assignment with this expiry.
func (h held) to(until rolecall.Time) held {
	h.until = until
	return h
}

// expiry returns the time at which the assignment expires.
func (h held) expiry() rolecall.Time {
	if h.until == 0 {
		return rolecall.Never
	}
	return h.until
}

// draft returns the assignment as a draft.
func (h held) draft() rolecall.AssignmentDraft {
	draft := rolecall.AssignmentDraft{Departments: h.departments}
	if h.until != 0 {
		draft.ExpiresAt = &h.until
	}
	return draft
}

// role returns a role with the permissions and the grants, and with a unique name.
func (h held) role(t testing.TB) rolecall.Role {
	draft := rolecall.RoleDraft{Name: fmt.Sprintf("Role %d", serial.Add(1)), Permissions: h.permissions, Grants: h.grants}
	role, faults := draft.Role(start, rolecall.DefaultNameMin)
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	return role
}

// assignment returns the assignment of the role to the user.
func (h held) assignment(t testing.TB, id rolecall.UserID) rolecall.Assignment {
	draft := h.draft()
	return rolecall.Assignment{Holder: rolecall.HolderOf(id), Role: h.role(t), Reach: draft.Reach(), ExpiresAt: h.expiry(), GrantedAt: start}
}

// person creates an active user without a password, with the assignments.
func (f *fixture) person(department string, holds ...held) (rolecall.User, []rolecall.Assignment) {
	f.Helper()
	draft := rolecall.UserDraft{Email: fmt.Sprintf("person-%d@example.com", serial.Add(1)), Name: "A Person"}
	if department != "" {
		draft.Department = &department
	}
	user := draft.User(start)
	user.Status = rolecall.UserActive
	var assignments []rolecall.Assignment
	for _, h := range holds {
		assignments = append(assignments, h.assignment(f, user.ID))
	}
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		tx.InsertUser(user)
		for _, a := range assignments {
			tx.InsertRole(a.Role)
			tx.UpsertAssignment(a)
		}
		return nil
	}))
	return user, assignments
}

// caller creates a user with the assignments and returns a request by that user.
func (f *fixture) caller(holds ...held) access.Caller {
	f.Helper()
	user, assignments := f.person("", holds...)
	return f.callBy(user, assignments)
}

// callBy returns a request by the user with the assignments.
func (f *fixture) callBy(user rolecall.User, assignments []rolecall.Assignment) access.Caller {
	f.Helper()
	session := rolecall.Session{ID: rolecall.NewID[rolecall.Session](start), UserID: user.ID, AuthenticatedAt: start, LastUsedAt: start, ExpiresAt: rolecall.Never}
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		tx.InsertSession(session, session.ID[:])
		return nil
	}))
	return access.Caller{
		Principal: authz.NewPrincipal(f.tenant, user, session, assignments, f.clock.Now()),
		RequestID: "request", Source: "192.0.2.1",
	}
}

// invite invites the user as the owner and returns the token.
func (f *fixture) invite(id rolecall.UserID) secret.Token {
	f.Helper()
	f.ok(errorOf(f.Directory.InviteUser(f.Context(), f.owner, newKey(), id)))
	return secret.Token(f.mailAbout(id, rolecall.MailInvitation).Token)
}

// mailAbout returns the last mail of the kind that is about the user.
func (f *fixture) mailAbout(id rolecall.UserID, kind rolecall.MailKind) rolecall.Mail {
	f.Helper()
	for _, m := range slices.Backward(f.mails()) {
		if m.UserID == id && m.Kind == kind {
			return m
		}
	}
	f.Fatalf("there is no mail %s about %s", kind, id)
	return rolecall.Mail{}
}

// accept accepts an invitation with the password.
func (f *fixture) accept(token secret.Token, password string) (signin.SignIn, error) {
	return f.SignIn.AcceptInvitation(f.Context(), f.attempt(), token, password)
}

// events returns the newest events of the listing that the caller may see.
func (f *fixture) events(c access.Caller, l directory.EventListing) []rolecall.Event {
	f.Helper()
	l.Limit = rolecall.MaxLimit
	page, err := f.Directory.Events(f.Context(), c, l)
	f.ok(err)
	return page.Items
}
