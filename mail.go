package rolecall

import (
	"errors"
	"time"
)

// Mail is a message to one person in the outbox. It is stored encrypted.
type Mail struct {
	ID        MailID `json:"-"`
	CreatedAt Time   `json:"-"`

	Kind   MailKind `json:"kind"`
	To     string   `json:"to"`
	Name   string   `json:"name"`            // of the recipient
	UserID UserID   `json:"userId"`          // the user that the mail is about
	Token  string   `json:"token,omitempty"` // the token in the link
	What   string   `json:"what,omitempty"`  // for a notice: the changed credential, such as "password"

	// Members of the notice that a new address was requested.
	NewEmail        string `json:"newEmail,omitempty"` // masked
	ByAdministrator bool   `json:"byAdministrator,omitempty"`

	// Members of a notice: a description of the client's browser, and the client's IP
	// address. Each is empty if it is unknown, or if an administrator made the change.
	Client string `json:"client,omitempty"`
	Source string `json:"source,omitempty"`

	ExpiresAt Time `json:"expiresAt"` // when the link expires; for other mails, when attempts to send stop
}

// ErrNoMailbox is the error of a mail whose address does not exist. Sending it again
// cannot succeed.
var ErrNoMailbox = errors.New("the mail server reported that the mailbox does not exist")

// NoticeLifetime is how long the delivery of a mail without a link is retried.
const NoticeLifetime = 24 * time.Hour

// MailKind selects the text of a mail.
type MailKind string

// The kinds of mail.
const (
	MailInvitation    MailKind = "invitation"
	MailPasswordReset MailKind = "password-reset"
	MailEmailChange   MailKind = "email-change"  // to the new address: confirm it
	MailEmailChanged  MailKind = "email-changed" // to the old address: a notice

	MailEmailChangeRequested MailKind = "email-change-requested" // to the old address: a notice

	MailCredentialsChanged MailKind = "credentials-changed" // a notice; What names the credential
	MailNewBrowser         MailKind = "new-browser"         // a notice: sign-in from an unknown browser
	MailTokenReused        MailKind = "token-reused"        // a notice: an old session token was used, so the session ended
	MailNothing            MailKind = "nothing"             // a dummy for an address without a user; it is never sent
)

// OutboxMail is a row of the outbox.
type OutboxMail struct {
	ID        MailID
	TenantID  TenantID
	UserID    UserID // the user that the mail is about; zero: no user
	Sealed    []byte // the encrypted Mail
	DueAt     Time   // time of the next attempt
	Attempts  int
	CreatedAt Time
	ExpiresAt Time
}
