package rolecall

import (
	"fmt"
	"slices"
	"time"
)

// The bounds of an API token. It always ends: one that nobody renews is one that
// nobody misses.
const (
	APITokenNameMin        = 3
	APITokenNameMax        = 100
	APITokenPermissionsMax = RolePermissionsMax
	APITokenLifetimeMax    = 366 * 24 * time.Hour
	APITokensMax           = 100 // of one holder, those that ended in the last 30 days included
)

// APIToken lets a program speak for a user or for a service account: with no more
// than its own permissions, and no more than the holder has at that moment. The
// token itself is a secret and never part of it.
type APIToken struct {
	ID               APITokenID       `json:"id"`
	UserID           UserID           `json:"userId,omitzero"`           // whose it is; zero if it is a service account's
	ServiceAccountID ServiceAccountID `json:"serviceAccountId,omitzero"` // whose it is; zero if it is a user's
	Name             string           `json:"name"`
	Permissions      []Permission     `json:"permissions"`        // sorted by text, each once
	CreatedBy        UserID           `json:"createdBy,omitzero"` // zero: an operator
	CreatedAt        Time             `json:"createdAt"`
	ExpiresAt        Time             `json:"expiresAt"`
	LastUsedAt       Time             `json:"-"` // zero: never
}

// Live reports whether the token counts at the moment.
func (t *APIToken) Live(now Time) bool { return now < t.ExpiresAt }

// Covers reports whether the token lets its bearer use the permission, as far as
// the holder has it.
func (t *APIToken) Covers(asked Permission) bool {
	return slices.ContainsFunc(t.Permissions, func(p Permission) bool { return p.Covers(asked) })
}

// APITokenState is what a presented API token resolves to. A service account is
// shown as a user of its id, name and status.
type APITokenState struct {
	Token       APIToken
	Holder      User
	Guarded     bool // the holder has a second factor; a service account has none
	Assignments []Assignment
}

// APITokenDraft is what a creator says of a new API token.
type APITokenDraft struct {
	Name        string   `json:"name" required:"true" minLength:"3" maxLength:"100" doc:"What the token is for."`
	Permissions []string `json:"permissions" required:"true" minItems:"1" maxItems:"256" format:"permission" doc:"What the bearer may do at most. The holder of the token must hold each permission or be able to assign it. What the holder loses later, the token loses too."`
	ExpiresAt   Time     `json:"expiresAt" required:"true" doc:"When the token expires: in the future, and at most 366 days from now."`
}

// Check returns what is wrong with the draft, nil if nothing is.
func (d *APITokenDraft) Check(now Time) Faults {
	var faults Faults
	faults.Text("/name", d.Name, APITokenNameMin, APITokenNameMax)
	if len(d.Permissions) == 0 {
		faults.Add("/permissions", "too-few", "must hold a permission")
	}
	parsePermissions(&faults, "/permissions", d.Permissions)
	switch {
	case d.ExpiresAt <= now:
		faults.Add("/expiresAt", "past", "must be in the future")
	case d.ExpiresAt > now.Add(APITokenLifetimeMax):
		faults.Add("/expiresAt", "range", "must be at most 366 days from now")
	}
	return faults
}

// CheckHolder returns what is wrong with the draft for somebody with the
// assignments: each permission must be one that they hold or may hand on. The
// draft must have passed Check.
func (d *APITokenDraft) CheckHolder(assignments []Assignment, now Time) Faults {
	var faults Faults
	for i, text := range d.Permissions {
		asked, err := ParsePermission(text)
		covers := func(p Permission) bool { return p.Covers(asked) }
		if err != nil || !slices.ContainsFunc(assignments, func(a Assignment) bool {
			return a.Live(now) && (slices.ContainsFunc(a.Role.Permissions, covers) || slices.ContainsFunc(a.Role.Grants, covers))
		}) {
			faults.Add(fmt.Sprintf("/permissions/%d", i), "not-held", "is not held by whom the token would speak for")
		}
	}
	return faults
}

// APIToken returns the token that the draft describes, which must have passed
// Check, without its holder.
func (d *APITokenDraft) APIToken(now Time) APIToken {
	var none Faults
	return APIToken{
		ID: NewID[APIToken](now), Name: d.Name, Permissions: parsePermissions(&none, "", d.Permissions),
		CreatedAt: now, ExpiresAt: d.ExpiresAt,
	}
}
