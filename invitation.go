package rolecall

import "time"

// InvitationKept is how long an invitation is kept that is over, so that it can be
// told why somebody never came in.
const InvitationKept = 30 * 24 * time.Hour

// Invitation lets whoever bears its token set the user's password and sign in,
// once. A newer one replaces it. The token is a secret and never part of it.
type Invitation struct {
	UserID    UserID `json:"userId"`
	CreatedBy UserID `json:"-"` // zero: an operator
	CreatedAt Time   `json:"createdAt,omitzero"`
	ExpiresAt Time   `json:"expiresAt"`
	Origin    `json:"-"`
}

// Invited is an invitation that can be accepted, with its user.
type Invited struct {
	Invitation
	User User
}

// InvitationQuery selects invitations, in the order in which their users were made.
type InvitationQuery struct {
	Within Reach // of the users
	Now    Time  // those that are over by then are left out
	After  *Position
	Limit  int
}
