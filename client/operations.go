package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// User is a user. Members that the caller may not read have their zero value.
type User struct {
	ID         string            `json:"id"`
	Email      string            `json:"email"`
	Name       string            `json:"name"`
	Department *string           `json:"department"`
	ExternalID *string           `json:"externalId"`
	Metadata   map[string]string `json:"metadata"`
	Status     string            `json:"status"`    // pending, active or suspended; later versions can add values
	ManagedBy  *string           `json:"managedBy"` // ID of the directory that manages the user; nil for no directory
	CreatedAt  time.Time         `json:"createdAt"`
	UpdatedAt  time.Time         `json:"updatedAt"`

	ETag string `json:"-"` // hash of the members that the caller may read; empty in lists
}

// NewUser describes a user to create.
type NewUser struct {
	Email      string            `json:"email"`
	Name       string            `json:"name"`
	Department *string           `json:"department,omitempty"`
	ExternalID *string           `json:"externalId,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

// Patch is a JSON merge patch (RFC 7396). Members that are not in the Patch do not change.
// A nil value clears a member.
type Patch map[string]any

// UserFilter selects and sorts users. Empty fields do not limit the result.
type UserFilter struct {
	Email, ExternalID, Department, Status, Role string

	Query string // each word must begin a word of the name or of the email address
	Sort  string // name, email or createdAt; with a leading - in descending order
	Limit int    // number of users per request; zero means the default of the service
}

// Role is a named set of permissions.
type Role struct {
	ID          string    `json:"id"`
	Key         *string   `json:"key"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Permissions []string  `json:"permissions"`
	Grants      []string  `json:"grants"`
	System      bool      `json:"system"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`

	ETag string `json:"-"` // hash of this version of the role; empty in lists
}

// NewRole describes a role to create.
type NewRole struct {
	Key         *string  `json:"key,omitempty"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Permissions []string `json:"permissions,omitempty"`
	Grants      []string `json:"grants,omitempty"`
}

// Reach limits an assignment to the users of the named departments.
type Reach struct {
	Departments []string `json:"departments"`
}

// ErrEmptyReach is the error of a reach without departments. It is neither the whole tenant nor a part of it.
var ErrEmptyReach = errors.New("rolecall: the reach has no departments; use a nil reach for the whole tenant")

// Assignment is a role that a user has, in one way. A nil Reach means the whole tenant. A nil ExpiresAt
// means that the assignment does not expire.
type Assignment struct {
	Role struct {
		ID   string  `json:"id"`
		Key  *string `json:"key"`
		Name string  `json:"name"`
	} `json:"role"`
	Through *struct {
		Group struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"group"`
	} `json:"through"` // the group through which the user has the role; nil: the role is assigned directly
	Reach     *Reach     `json:"reach"`
	ExpiresAt *time.Time `json:"expiresAt"`
	GrantedBy *string    `json:"grantedBy"` // id of a user or service account; nil if an operator granted the role
	GrantedAt time.Time  `json:"grantedAt"`
}

// SignIn has the signed-in user and the session.
type SignIn struct {
	User    User    `json:"user"`
	Session Session `json:"session"`

	RecoveryCodes []string `json:"recoveryCodes"` // set only after the enrolment of a second factor; returned only once
}

// Session is a session of the user.
type Session struct {
	ID              string     `json:"id"`
	AuthenticatedAt time.Time  `json:"authenticatedAt"`
	ConfirmedAt     *time.Time `json:"confirmedAt"` // time of the last re-authentication; nil if the user has not re-authenticated since the sign-in
	SecondFactor    bool       `json:"secondFactor"`
	IdleExpiresAt   time.Time  `json:"idleExpiresAt"`
	ExpiresAt       time.Time  `json:"expiresAt"`
	TokenExpiresAt  *time.Time `json:"tokenExpiresAt"` // when the token of the request expires, because a newer one is in use; nil: it is the newest
}

// Principal is the signed-in user with the session and permissions. Permissions apply to
// the whole tenant, and each of ScopedPermissions to the users of some departments.
// Permissions can contain wildcards, so use Can or CheckPermissions to check a permission.
type Principal struct {
	SignIn

	// Caller is the user or service account that sent the request. With an API token, there is no
	// session, and of a service account, User has only the ID and the name.
	Caller struct {
		Type string `json:"type"` // user, service_account or operator; later versions can add values
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"principal"`
	Tenant struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"tenant"`
	Permissions       []string `json:"permissions"`
	ScopedPermissions []struct {
		Reach       Reach    `json:"reach"`
		Permissions []string `json:"permissions"`
	} `json:"scopedPermissions"`
	PermissionsExpireAt *time.Time `json:"permissionsExpireAt"` // when the first role or the API token expires; nil: never
}

// Login signs in with email address and password. The client keeps the session and sends it
// with each request. If the user has a second factor, Login fails with the code
// second-factor-required, and CompleteLogin continues the sign-in.
func (c *Client) Login(ctx context.Context, email, password string) (in SignIn, err error) {
	body := map[string]string{"email": email, "password": password, "transport": c.transport()}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/login", body: body, into: &in})
	return in, err
}

// Refresh replaces the session token with a new one and returns the renewed session. The
// client uses the new token.
func (c *Client) Refresh(ctx context.Context) (in SignIn, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/refresh", into: &in})
	return in, err
}

// Confirm re-authenticates the user with the password, and with a second factor if the user
// has one. It returns the session, and the client uses the new session token. Operations
// that are marked x-step-up in the OpenAPI document, such as DeleteUser and AssignRole,
// need a recent sign-in or re-authentication. Otherwise they fail with the code
// reauthentication-required. If the user has a second factor and p is empty, Confirm fails
// with the code second-factor-required, and the Problem lists the accepted methods.
func (c *Client) Confirm(ctx context.Context, password string, p Proof) (s Session, err error) {
	body := struct {
		Password string `json:"password"`
		Proof
	}{password, p}
	_, err = c.do(ctx, call{method: http.MethodPost, path: "/auths/confirm", body: body, into: &s})
	return s, err
}

// Logout ends the session.
func (c *Client) Logout(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/auths/logout"})
	return err
}

// Session returns the signed-in user and their permissions.
func (c *Client) Session(ctx context.Context) (p Principal, err error) {
	_, err = c.do(ctx, call{method: http.MethodGet, path: "/auths/session", into: &p})
	return p, err
}

// Users yields the users that the filter selects. After an error, Users yields the error
// and ends.
func (c *Client) Users(ctx context.Context, f UserFilter) iter.Seq2[User, error] {
	return pages[User](ctx, c, "/users", f.values())
}

func (f UserFilter) values() url.Values {
	values := url.Values{}
	for name, value := range map[string]string{
		"email": f.Email, "externalId": f.ExternalID, "department": f.Department, "status": f.Status, "role": f.Role,
		"q": f.Query, "sort": f.Sort,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if f.Limit > 0 {
		values.Set("limit", strconv.Itoa(f.Limit))
	}
	return values
}

// User returns the user with the id.
func (c *Client) User(ctx context.Context, id string) (User, error) {
	return c.user(ctx, call{method: http.MethodGet, path: "/users/" + url.PathEscape(id)})
}

// CreateUser creates a user. A repeated call with the same key does not create a second
// user. If key is empty, the client makes one.
func (c *Client) CreateUser(ctx context.Context, key string, u NewUser) (User, error) {
	return c.user(ctx, call{method: http.MethodPost, path: "/users", header: idempotent(key), body: u})
}

// UpdateUser changes a user. If version is not empty and not the current ETag of the user,
// UpdateUser fails with the code precondition-failed.
func (c *Client) UpdateUser(ctx context.Context, id, version string, p Patch) (User, error) {
	return c.user(ctx, call{method: http.MethodPatch, path: "/users/" + url.PathEscape(id), header: map[string]string{"If-Match": version}, body: p})
}

// DeleteUser deletes a user.
func (c *Client) DeleteUser(ctx context.Context, id string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/users/" + url.PathEscape(id)})
	return err
}

// SuspendUser prevents a user from signing in and ends their sessions.
func (c *Client) SuspendUser(ctx context.Context, id, reason string) (User, error) {
	return c.user(ctx, call{method: http.MethodPost, path: "/users/" + url.PathEscape(id) + "/suspend", body: map[string]string{"reason": reason}})
}

// ResumeUser lets a suspended user sign in again.
func (c *Client) ResumeUser(ctx context.Context, id, reason string) (User, error) {
	return c.user(ctx, call{method: http.MethodPost, path: "/users/" + url.PathEscape(id) + "/resume", body: map[string]string{"reason": reason}})
}

// UserRoles returns the assignments of a user that have not expired.
func (c *Client) UserRoles(ctx context.Context, id string) ([]Assignment, error) {
	var all []Assignment
	for a, err := range pages[Assignment](ctx, c, "/users/"+url.PathEscape(id)+"/roles", url.Values{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// AssignRole assigns a role to a user. A nil reach means the whole tenant. A nil expiresAt
// means that the assignment does not expire. AssignRole returns ErrEmptyReach, without a request, if the
// reach has no departments.
func (c *Client) AssignRole(ctx context.Context, user, role string, reach *Reach, expiresAt *time.Time) (a Assignment, err error) {
	if reach != nil && len(reach.Departments) == 0 {
		return a, ErrEmptyReach
	}
	body := struct {
		Reach     *Reach     `json:"reach,omitempty"`
		ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	}{reach, expiresAt}
	_, err = c.do(ctx, call{method: http.MethodPut, path: assignment(user, role), body: body, into: &a})
	return a, err
}

// UnassignRole removes a role from a user.
func (c *Client) UnassignRole(ctx context.Context, user, role string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: assignment(user, role)})
	return err
}

// Roles yields the tenant's roles. After an error, Roles yields the error and ends.
func (c *Client) Roles(ctx context.Context) iter.Seq2[Role, error] {
	return pages[Role](ctx, c, "/roles", url.Values{})
}

// Role returns the role with the id.
func (c *Client) Role(ctx context.Context, id string) (Role, error) {
	return c.role(ctx, call{method: http.MethodGet, path: "/roles/" + url.PathEscape(id)})
}

// CreateRole creates a role. A repeated call with the same key does not create a second
// role. If key is empty, the client makes one.
func (c *Client) CreateRole(ctx context.Context, key string, r NewRole) (Role, error) {
	return c.role(ctx, call{method: http.MethodPost, path: "/roles", header: idempotent(key), body: r})
}

// UpdateRole changes a role. If version is not empty and not the current ETag of the role,
// UpdateRole fails with the code precondition-failed.
func (c *Client) UpdateRole(ctx context.Context, id, version string, p Patch) (Role, error) {
	return c.role(ctx, call{method: http.MethodPatch, path: "/roles/" + url.PathEscape(id), header: map[string]string{"If-Match": version}, body: p})
}

// DeleteRole deletes a role. With force, DeleteRole also deletes the assignments of the
// role. Without force, DeleteRole fails if the role is assigned.
func (c *Client) DeleteRole(ctx context.Context, id string, force bool) error {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	_, err := c.do(ctx, call{method: http.MethodDelete, path: "/roles/" + url.PathEscape(id), query: query})
	return err
}

func (c *Client) user(ctx context.Context, call call) (u User, err error) {
	call.into = &u
	header, err := c.do(ctx, call)
	u.ETag = header.Get("ETag")
	return u, err
}

func (c *Client) role(ctx context.Context, call call) (r Role, err error) {
	call.into = &r
	header, err := c.do(ctx, call)
	r.ETag = header.Get("ETag")
	return r, err
}

func assignment(user, role string) string {
	return "/users/" + url.PathEscape(user) + "/roles/" + url.PathEscape(role)
}
