package rolecall

// APIToken lets a program speak for a user or for a service account: with no more
// than its own permissions, and no more than the holder has at that moment. The
// token itself is a secret and never part of it.
type APIToken struct {
	ID               APITokenID
	UserID           UserID           // whose it is; zero if it is a service account's
	ServiceAccountID ServiceAccountID // whose it is; zero if it is a user's
	Name             string
	Permissions      []Permission // sorted by text, each once
	CreatedBy        UserID       // zero: an operator
	CreatedAt        Time
	ExpiresAt        Time
	LastUsedAt       Time // zero: never
}

// Restrict returns the assignments with no more than the token's permissions in
// each role, and in what it lets its holders hand on.
func (t *APIToken) Restrict(assignments []Assignment) []Assignment {
	restricted := make([]Assignment, 0, len(assignments))
	for _, a := range assignments {
		a.Role.Permissions = meet(a.Role.Permissions, t.Permissions)
		a.Role.Grants = meet(a.Role.Grants, t.Permissions)
		restricted = append(restricted, a)
	}
	return restricted
}

// meet returns what both sets cover.
func meet(a, b []Permission) []Permission {
	var both []Permission
	for _, p := range a {
		for _, q := range b {
			if r, ok := p.Meet(q); ok {
				both = append(both, r)
			}
		}
	}
	return NormalPermissions(both)
}
