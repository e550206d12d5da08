package rolecall

import (
	"errors"
	"time"
)

// Mail is a message to one person that waits to be sent. It is stored sealed.
type Mail struct {
	ID        MailID `json:"-"`
	CreatedAt Time   `json:"-"`

	Kind   MailKind `json:"kind"`
	To     string   `json:"to"`
	Name   string   `json:"name"`            // of the person
	UserID UserID   `json:"userId"`          // whom it is about
	Token  string   `json:"token,omitempty"` // what its link bears
	What   string   `json:"what,omitempty"`  // of a notice: what was changed, such as "password"

	// Of a notice that a new address was requested.
	NewEmail        string `json:"newEmail,omitempty"` // masked
	ByAdministrator bool   `json:"byAdministrator,omitempty"`

	// Of a notice about a request or a session: the browser in words, empty if it is
	// unknown, and the address that the session came from.
	Client string `json:"client,omitempty"`
	Source string `json:"source,omitempty"`

	ExpiresAt Time `json:"expiresAt"` // when its link ends, or after which it is not worth sending
}

// ErrNoMailbox says of a mail that nobody will ever get it at its address.
var ErrNoMailbox = errors.New("the mail server says that there is no such mailbox")

// NoticeLifetime is for how long sending a mail without a link is tried.
const NoticeLifetime = 24 * time.Hour

// MailKind says which text a mail has.
type MailKind string

// The kinds of mail.
const (
	MailInvitation    MailKind = "invitation"
	MailPasswordReset MailKind = "password-reset"
	MailEmailChange   MailKind = "email-change"  // to the new address: confirm it
	MailEmailChanged  MailKind = "email-changed" // to the old address: a notice

	MailEmailChangeRequested MailKind = "email-change-requested" // to the old address: a notice

	MailCredentialsChanged MailKind = "credentials-changed" // a notice; What says what
	MailNewBrowser         MailKind = "new-browser"         // a notice: somebody signed in from an unknown browser
	MailTokenReused        MailKind = "token-reused"        // a notice: an old session token was used, so the session ended
	MailNothing            MailKind = "nothing"             // to an address that nobody has: never sent
)

// OutboxMail is a mail as it waits in the store.
type OutboxMail struct {
	ID        MailID
	TenantID  TenantID
	UserID    UserID // whom it is about; zero: nobody
	Sealed    []byte // the Mail
	DueAt     Time   // when it is to be tried next
	Attempts  int
	CreatedAt Time
	ExpiresAt Time
}
