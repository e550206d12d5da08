package mailtest

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
)

// Message is a message that the server accepted.
type Message struct {
	From, To string // addresses in the envelope
	TLS      bool   // the connection was encrypted
	User     string // the authenticated sender; empty without authentication
	Raw      []byte // as received, with CR LF
	Header   mail.Header
	Subject  string // decoded
	Text     string
	HTML     string
	taken    bool
}

// read parses a received message. It returns an error unless the message has text and HTML as
// alternatives.
func read(raw []byte) (*Message, error) {
	parsed, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	m := &Message{Raw: raw, Header: parsed.Header}
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject")); err != nil {
		return nil, err
	}
	kind, parameters, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		return nil, fmt.Errorf("the mail is %q, not text and HTML: %w", kind, err)
	}
	parts := multipart.NewReader(parsed.Body, parameters["boundary"])
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		if text := strings.ReplaceAll(string(content), "\r\n", "\n"); strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			m.HTML = text
		} else {
			m.Text = text
		}
	}
}

var link = regexp.MustCompile(`https?://\S+`)

// Link returns the first link in the text, or nil if the text has no link.
func (m *Message) Link() *url.URL {
	u, err := url.Parse(link.FindString(m.Text))
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}

// Token returns the token in the fragment of the link, or an empty text if the message has no link.
func (m *Message) Token() string {
	u := m.Link()
	if u == nil {
		return ""
	}
	return u.Fragment
}
