package clienttest

import (
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/client"
)

// Tenant is a tenant for one test.
type Tenant struct {
	Name     string
	Owner    User
	Operator *client.Client // acts as an owner, without step-up

	server *Server
}

// User is an active user with a session.
type User struct {
	ID     string
	Email  string         // with Password, signs in
	Client *client.Client // with a session of the user, whose token Client.Token returns
}

// NewUser describes a user to create. The zero value is a user without permissions.
type NewUser struct {
	Name        string        // empty: Test User
	Department  string        // empty: none
	Permissions []string      // of a new role
	Reach       *client.Reach // of the assignment; nil: the whole tenant
}

// Tenant creates a tenant with an owner. It fails the test if that is not possible.
func (s *Server) Tenant(t testing.TB) *Tenant {
	t.Helper()
	tenant := &Tenant{Name: random("test"), server: s}
	tenant.Operator = client.NewWithToken(s.URL, tenant.Name, s.OperatorKey, nil)
	tenant.Owner.Email = random("owner") + "@example.com"
	var made struct {
		Owner      struct{ ID string }
		Invitation struct{ Token string }
	}
	_, err := s.send(t.Context(), request{
		method: http.MethodPost, path: "/operator/tenants", into: &made,
		body: map[string]any{"name": tenant.Name, "owner": map[string]string{"email": tenant.Owner.Email, "name": "Test Owner"}, "delivery": "return"},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.tenants = append(s.tenants, tenant.Name)
	s.mu.Unlock()
	tenant.Owner.ID = made.Owner.ID
	tenant.accept(t, &tenant.Owner, made.Invitation.Token)
	return tenant
}

// User creates an active user with a session. It fails the test if that is not possible.
func (tenant *Tenant) User(t testing.TB, n NewUser) User {
	t.Helper()
	ctx, draft := t.Context(), client.NewUser{Email: random("user") + "@example.com", Name: n.Name}
	if draft.Name == "" {
		draft.Name = "Test User"
	}
	if n.Department != "" {
		draft.Department = &n.Department
	}
	made, err := tenant.Operator.CreateUser(ctx, "", draft)
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Permissions) > 0 {
		role, err := tenant.Operator.CreateRole(ctx, "", client.NewRole{Name: random("Role"), Permissions: n.Permissions})
		if err == nil {
			_, err = tenant.Operator.AssignRole(ctx, made.ID, role.ID, n.Reach, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	user := User{ID: made.ID, Email: made.Email}
	var invitation struct{ Token string }
	_, err = tenant.server.send(ctx, request{
		method: http.MethodPost, path: "/users/" + made.ID + "/invitations", tenant: tenant.Name, body: map[string]string{"delivery": "return"}, into: &invitation,
	})
	if err != nil {
		t.Fatal(err)
	}
	tenant.accept(t, &user, invitation.Token)
	return user
}

// accept sets the password of the user, who is signed in afterwards.
func (tenant *Tenant) accept(t testing.TB, user *User, invitation string) {
	t.Helper()
	var in struct{ Token string }
	_, err := tenant.server.send(t.Context(), request{
		method: http.MethodPost, path: "/auths/invitations/accept", tenant: tenant.Name, anonymous: true, into: &in,
		body: map[string]string{"token": invitation, "password": Password, "transport": "bearer"},
	})
	if err != nil {
		t.Fatal(err)
	}
	user.Client = client.NewWithToken(tenant.server.URL, tenant.Name, in.Token, nil)
}
