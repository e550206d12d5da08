package rolecall

import "time"

// TombstoneLifetime is how long a deleted user can be restored.
const TombstoneLifetime = 30 * 24 * time.Hour

// Tombstone is what is kept of a deleted user: all of them but what they signed in
// with.
type Tombstone struct {
	ID          TombstoneID // ids are in order of deletion
	DeletedAt   Time
	User        User
	Assignments []Assignment // of their roles only the id
}

// Restored returns the user as a restore at the moment makes them. Nobody is active
// without a way to sign in.
func (t *Tombstone) Restored(now Time) User {
	u := t.User
	if u.Status == UserActive {
		u.Status = UserPending
	}
	u.Stamp(now)
	return u
}

// TombstoneQuery selects the users who were deleted after a moment, the last deleted
// first.
type TombstoneQuery struct {
	Within Reach // only users of these departments
	Since  Time
	After  *Position
	Limit  int
}
