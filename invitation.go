package rolecall

import "time"

// InvitationKept is how long an invitation is kept that is over, so that it can be
// told why somebody never came in.
const InvitationKept = 30 * 24 * time.Hour

// Invitation lets whoever bears its token set the user's password and sign in,
// once. A newer one replaces it. The token is a secret and never part of it.
type Invitation struct {
	UserID    UserID `json:"userId"`
	CreatedBy UserID `json:"-"`
	CreatedAt Time   `json:"-"`
	ExpiresAt Time   `json:"expiresAt"`
}
