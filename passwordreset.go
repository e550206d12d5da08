package rolecall

// PasswordReset says that a user was mailed a link by which they can set a new
// password, once. A newer one replaces it.
type PasswordReset struct {
	UserID    UserID `json:"userId"`
	ExpiresAt Time   `json:"expiresAt"`
}
