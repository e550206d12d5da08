package rolecall

import (
	"errors"
	"strings"
	"time"
)

// Mail is a message to one person. The outbox stores it encrypted until it is sent.
type Mail struct {
	ID        MailID `json:"-"`
	CreatedAt Time   `json:"-"`

	Kind   MailKind `json:"kind"`
	To     string   `json:"to"`
	Name   string   `json:"name"`            // name of the recipient
	UserID UserID   `json:"userId"`          // the user that the mail is about
	Token  string   `json:"token,omitempty"` // the token in the link
	What   string   `json:"what,omitempty"`  // for a notice: the changed credential, such as "password"

	// These members are set only in the notice of kind MailEmailChangeRequested.
	NewEmail        string `json:"newEmail,omitempty"` // the requested address, masked by MaskEmail
	ByAdministrator bool   `json:"byAdministrator,omitempty"`

	// These members are set only in notices. Client describes the client's browser or
	// program, and Source is the client's IP address. Each is empty if it is unknown, or if
	// an administrator made the change.
	Client string `json:"client,omitempty"`
	Source string `json:"source,omitempty"`

	ExpiresAt Time `json:"expiresAt"` // when the link expires; in a mail without a link, when attempts to send the mail stop
}

// ErrNoMailbox is the error for a mail to an address that does not exist. Another attempt
// to send the mail cannot succeed.
var ErrNoMailbox = errors.New("the mail server reported that the mailbox does not exist")

// ErrMailRefused is the error for a mail that the mail server does not accept for its address now.
var ErrMailRefused = errors.New("the mail server refused the mail to this address")

// NoticeLifetime is how long Rolecall tries to deliver a mail without a link.
const NoticeLifetime = 24 * time.Hour

// MailKind selects the text of a mail.
type MailKind string

// The kinds of mail.
const (
	MailInvitation    MailKind = "invitation"
	MailPasswordReset MailKind = "password-reset"
	MailEmailChange   MailKind = "email-change"  // to the new address, with a link that confirms the address
	MailEmailChanged  MailKind = "email-changed" // to the old address: a notice

	MailEmailChangeRequested MailKind = "email-change-requested" // to the old address: a notice

	MailCredentialsChanged MailKind = "credentials-changed" // a notice; Mail.What names the credential
	MailNewBrowser         MailKind = "new-browser"         // a notice: sign-in from an unknown browser
	MailTokenReused        MailKind = "token-reused"        // a notice: an old session token was used, so the session ended
	MailWebhookDisabled    MailKind = "webhook-disabled"    // a notice; Mail.What says why
	MailEventsKept         MailKind = "events-kept"         // a notice: the tenant keeps its events for a shorter time; Mail.What says how long
	MailDirectory          MailKind = "directory"           // a notice to owners about a directory; Mail.What is a sentence
	MailNoticesPaused      MailKind = "notices-paused"      // a notice: no more notices of a kind are sent for a while; Mail.What says about what they were
	MailNothing            MailKind = "nothing"             // never sent; stored for an address without a user, so that the request does the same work
)

// MailLinks has, for each kind of mail with a link, the address of the page that the link leads to. An
// address has {token} in its fragment, which browsers do not send to servers. It can have {tenant}.
type MailLinks map[MailKind]string

// ConsoleLinks returns the addresses of the pages of the console. public is the URL of the service,
// without a slash at the end.
func ConsoleLinks(public string) MailLinks {
	links := MailLinks{}
	for _, kind := range []MailKind{MailInvitation, MailPasswordReset, MailEmailChange} {
		links[kind] = public + "/console/{tenant}/" + string(kind) + "#{token}"
	}
	return links
}

// Link returns the link with the token for a user of the tenant.
func (l MailLinks) Link(kind MailKind, tenant, token string) string {
	return strings.NewReplacer("{tenant}", tenant, "{token}", token).Replace(l[kind])
}

// OutboxMail is a mail in the outbox, as it is stored.
type OutboxMail struct {
	ID        MailID
	TenantID  TenantID
	UserID    UserID // the user that the mail is about; zero: no user
	Sealed    []byte // the encrypted Mail
	DueAt     Time   // time of the next attempt to send the mail
	Attempts  int
	CreatedAt Time
	ExpiresAt Time
}
