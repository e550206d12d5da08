package rolecall

import (
	"fmt"
	"slices"
	"time"
)

// The limits of an API token. Every token has an expiry, so that a forgotten token becomes
// invalid.
const (
	APITokenNameMin        = 3
	APITokenNameMax        = 100
	APITokenPermissionsMax = RolePermissionsMax
	APITokensMax           = 100 // per holder, including tokens that expired in the last 30 days
	TokenLifetimeMax       = 366 * 24 * time.Hour
)

// APIToken lets a program act for a user or for a service account. A request with the
// token has the permissions that both the token and its holder have at the time of the
// request. The struct does not contain the secret.
type APIToken struct {
	ID               APITokenID       `json:"id"`
	UserID           UserID           `json:"userId,omitzero"`           // the holder; zero if the holder is a service account
	ServiceAccountID ServiceAccountID `json:"serviceAccountId,omitzero"` // the holder; zero if the holder is a user
	Name             string           `json:"name"`
	Permissions      []Permission     `json:"permissions"`        // sorted by text, each once
	CreatedBy        UserID           `json:"createdBy,omitzero"` // zero: created by an operator
	CreatedAt        Time             `json:"createdAt"`
	ExpiresAt        Time             `json:"expiresAt"`
	LastUsedAt       Time             `json:"-"` // zero: the token was never used
}

// Live reports whether the token is valid at the time now.
func (t *APIToken) Live(now Time) bool { return now < t.ExpiresAt }

// Covers reports whether a permission of the token covers the permission asked. Even if it
// does, a request succeeds only if the holder of the token also has the permission.
func (t *APIToken) Covers(asked Permission) bool {
	return slices.ContainsFunc(t.Permissions, func(p Permission) bool { return p.Covers(asked) })
}

// APITokenState is an API token with its holder and the holder's assignments. If the holder
// is a service account, Holder is a User with only the account's id, name and status.
type APITokenState struct {
	Token       APIToken
	Holder      User
	Guarded     bool // the holder has a second factor; false for service accounts
	Assignments []Assignment
	Groups      []GroupName // of the holder
}

// APITokenDraft describes an API token to create.
type APITokenDraft struct {
	Name        string   `json:"name" required:"true" minLength:"3" maxLength:"100" doc:"Name of the token, for example its purpose."`
	Permissions []string `json:"permissions" required:"true" minItems:"1" maxItems:"256" format:"permission" doc:"The permissions of the token. The user or service account of the token must have each permission or be able to assign it. If the user or service account loses a permission later, the token loses it too."`
	ExpiresAt   Time     `json:"expiresAt" required:"true" doc:"When the token expires: in the future, and at most 366 days from now."`
}

// Check validates the draft without its holder. It returns nil if the draft is valid.
func (d *APITokenDraft) Check(now Time) FieldErrors {
	var faults FieldErrors
	faults.Name("/name", d.Name, APITokenNameMin, APITokenNameMax)
	if len(d.Permissions) == 0 {
		faults.Add("/permissions", "too-few", "must have at least one permission")
	}
	parsePermissions(&faults, "/permissions", d.Permissions)
	checkTokenExpiry(&faults, d.ExpiresAt, now)
	return faults
}

// checkTokenExpiry adds an error if a new token cannot expire at the time.
func checkTokenExpiry(faults *FieldErrors, at, now Time) {
	switch {
	case at <= now:
		faults.Add("/expiresAt", "past", "must be in the future")
	case at > now.Add(TokenLifetimeMax):
		faults.Add("/expiresAt", "range", "must be at most 366 days from now")
	}
}

// CheckHolder checks that the holder of the token has each permission of the draft or may
// assign it. The argument assignments has the holder's assignments. The draft must have
// passed Check. CheckHolder returns nil if the draft is valid.
func (d *APITokenDraft) CheckHolder(assignments []Assignment, now Time) FieldErrors {
	var faults FieldErrors
	for i, text := range d.Permissions {
		asked, err := ParsePermission(text)
		covers := func(p Permission) bool { return p.Covers(asked) }
		if err != nil || !slices.ContainsFunc(assignments, func(a Assignment) bool {
			return a.Live(now) && (slices.ContainsFunc(a.Role.Permissions, covers) || slices.ContainsFunc(a.Role.Grants, covers))
		}) {
			faults.Add(fmt.Sprintf("/permissions/%d", i), "not-held", "is not a permission that the holder of the token has or may assign")
		}
	}
	return faults
}

// APIToken returns a new token with the values of the draft. The token has a new id and no
// holder. The draft must have passed Check.
func (d *APITokenDraft) APIToken(now Time) APIToken {
	var none FieldErrors
	return APIToken{
		ID: NewID[APIToken](now), Name: TrimName(d.Name), Permissions: parsePermissions(&none, "", d.Permissions),
		CreatedAt: now, ExpiresAt: d.ExpiresAt,
	}
}

// APITokenQuery selects the API tokens of one holder, in the order of their creation.
type APITokenQuery struct {
	Holder Holder
	After  *Position
	Limit  int
}
