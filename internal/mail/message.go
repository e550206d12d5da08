// Package mail renders mail to users. It sends mail to a mail server or, for development, writes it
// to a folder.
package mail

import (
	"errors"
	"fmt"
	"io"
	netmail "net/mail"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
)

// Message is one mail to one person, ready to be sent.
type Message struct {
	ID       string // id of the mail; does not change when the mail is sent again
	Date     time.Time
	To       string // an address
	FromName string // the display name of the sender; may be empty
	Subject  string
	Text     string
	HTML     string
}

// errUnfit means that a header has a control character, such as a line break, or that To is not
// exactly one address.
var errUnfit = errors.New("a header of the mail has control characters or more than one address")

// check returns errUnfit if a header could contain more than one line or more than one recipient.
// Stored values were checked on input, so this error means a defect of Rolecall.
func (m *Message) check() error {
	for _, text := range []string{m.ID, m.To, m.FromName, m.Subject} {
		if strings.ContainsFunc(text, unicode.IsControl) {
			return errUnfit
		}
	}
	if address, err := netmail.ParseAddress(m.To); err != nil || address.Address != m.To {
		return errUnfit
	}
	return nil
}

// compose returns the message in the Internet Message Format (RFC 5322), with text and HTML as
// alternatives. The message is marked as automatic (RFC 3834), so that no other program answers it.
func (m *Message) compose(from string) (*gomail.Msg, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(from, "@")
	composed := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	composed.FromMailAddress(&netmail.Address{Name: m.FromName, Address: from})
	composed.ToMailAddress(&netmail.Address{Address: m.To})
	composed.Subject(m.Subject)
	composed.SetDateWithValue(m.Date.UTC())
	composed.SetMessageIDWithValue(fmt.Sprintf("%s@%s", m.ID, domain))
	composed.SetGenHeader("Auto-Submitted", "auto-generated")
	composed.SetBodyString(gomail.TypeTextPlain, m.Text)
	composed.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	return composed, nil
}

// writeTo writes the message to w in the form in which it is sent to a mail server. from is the
// sender address.
func (m *Message) writeTo(w io.Writer, from string) error {
	composed, err := m.compose(from)
	if err == nil {
		_, err = composed.WriteTo(w)
	}
	return err
}

// CheckFrom returns an error unless from is a single email address without a name.
func CheckFrom(from string) error {
	m := Message{To: from}
	if err := m.check(); err != nil || strings.Count(from, "@") != 1 {
		return errors.New("must be an email address without a name, such as rolecall@example.com")
	}
	return nil
}
