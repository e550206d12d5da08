package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/rolecall/rolecall"
)

// sendLimit is the time limit for one message. The limit is long, because a mail server may scan a
// message before it accepts it. A message that is accepted after the limit is sent twice.
const (
	sendLimit = time.Minute
	quitLimit = time.Second // time limit for the reply to QUIT
)

// SMTP sends messages to a mail server (RFC 5321), and opens a connection for each message. It is
// safe for concurrent use.
type SMTP struct {
	host     string
	port     int
	implicit bool // TLS from the start
	local    bool // the server is on this machine
	user     string
	password string
	from     string
	hello    string // the name of this client in EHLO
	tls      *tls.Config
}

// NewSMTP returns a sender that uses the mail server in the URL. from is the sender address. A
// connection to smtps:// uses TLS from the start. A connection to smtp:// uses STARTTLS if the
// server offers it. A user and a password in the URL are never sent unencrypted, unless the server
// is on this machine. The client introduces itself to the server with the name hello, which is that of
// Hello or a domain.
func NewSMTP(server, from, hello string) (*SMTP, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be smtps://user:password@host:port or smtp://…; user, password and port are optional")
	}
	s := &SMTP{host: u.Hostname(), implicit: u.Scheme == "smtps", local: isLoopback(u.Hostname()), from: withALabels(from), hello: hello, user: u.User.Username()}
	s.password, _ = u.User.Password()
	if (s.user == "") != (s.password == "") {
		return nil, errors.New("must have both a user and a password, or neither")
	}
	switch {
	case u.Port() != "":
		if s.port, err = strconv.Atoi(u.Port()); err != nil || s.port < 1 || s.port > 65535 {
			return nil, errors.New("must have a port from 1 to 65535")
		}
	case s.implicit:
		s.port = gomail.DefaultPortSSL
	default:
		s.port = gomail.DefaultPortTLS
	}
	// The certificate of a server on this machine is not verified after STARTTLS. The connection
	// cannot be intercepted, and no authority issues certificates for this machine.
	s.tls = &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.local && !s.implicit}
	return s, nil
}

// Hello returns the name for EHLO of a host: the domain, or the address literal of an IP address (RFC 5321, 4.1.3).
// Strict servers refuse names without a dot, such as that of a container.
func Hello(host string) string {
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return host
	case ip.Is4():
		return "[" + host + "]"
	}
	return "[IPv6:" + ip.WithZone("").String() + "]"
}

// CheckHello returns an error unless the name is a domain of at least two labels.
func CheckHello(name string) error {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return errHello
		}
	}
	if len(name) > 253 || !strings.Contains(name, ".") {
		return errHello
	}
	return nil
}

var errHello = errors.New("must be a full domain name, such as mail.example.com")

// InClear reports whether mail may be sent unencrypted over a network. It is false for smtps and for a
// server on this machine. It is also false if the URL has a user, because STARTTLS is then mandatory.
func (s *SMTP) InClear() bool { return !s.implicit && !s.local && s.user == "" }

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Send returns nil as soon as the server has accepted the message. After an error, the server has
// not confirmed the message, so the caller may send it again. The error is rolecall.ErrMailRefused if the
// server refuses the address, and rolecall.ErrNoMailbox if a retry is useless, because the address does not
// exist, or because the server does not support addresses with characters outside of ASCII. No error contains
// a mail address. If ctx ends, Send stops and returns an error.
func (s *SMTP) Send(ctx context.Context, m Message) error {
	m.To = withALabels(m.To)
	composed, err := m.compose(s.from)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel() // also closes the connection
	client, err := gomail.NewClient(s.host, s.options(ctx, m.To)...)
	if err != nil {
		return err
	}
	connection, err := client.DialToSMTPClientWithContext(ctx)
	if err == nil {
		if supported, _ := connection.Extension("SMTPUTF8"); !supported && !isASCII(m.To) {
			s.quit(connection)
			return errNoUTF8
		}
		err = client.SendWithSMTPClient(connection, composed)
	}
	if err != nil {
		return describe(ctx, err)
	}
	s.quit(connection) // the server has already accepted the message
	return nil
}

// errNoUTF8 is the error for an address that cannot be written in ASCII.
var errNoUTF8 = fmt.Errorf("%w for this mail server, which does not support internationalized addresses (SMTPUTF8)", rolecall.ErrNoMailbox)

// quit ends the session. Its result does not matter.
func (s *SMTP) quit(connection *smtp.Client) {
	if connection.UpdateDeadline(quitLimit) == nil {
		_ = connection.Quit()
	}
}

// withALabels returns the address with the domain in ASCII (RFC 5890), so that every mail server accepts it. If the
// local part is not in ASCII, the server must support SMTPUTF8 anyway, and the address is unchanged. It is also
// unchanged if the domain cannot be written in ASCII.
func withALabels(address string) string {
	at := strings.LastIndex(address, "@")
	if at < 0 || !isASCII(address[:at]) || isASCII(address) {
		return address
	}
	domain := rolecall.DomainKey(address[at+1:])
	if !isASCII(domain) {
		return address
	}
	return address[:at+1] + domain
}

func (s *SMTP) options(ctx context.Context, to string) []gomail.Option {
	options := []gomail.Option{
		gomail.WithPort(s.port), gomail.WithHELO(s.hello), gomail.WithTimeout(sendLimit), gomail.WithDialContextFunc(s.dialer(ctx)),
		gomail.WithTLSConfig(s.tls), gomail.WithTLSPolicy(s.policy()), gomail.WithoutNoop(), gomail.WithoutRset(),
	}
	if s.implicit {
		options = append(options, gomail.WithSSL())
	}
	if isASCII(to + s.from) {
		options = append(options, gomail.WithoutSMTPUTF8()) // an unnecessary SMTPUTF8 would make relays without this extension refuse the mail
	}
	if s.user == "" {
		return options
	}
	mechanisms := []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin}
	if s.local {
		mechanisms = []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc}
	}
	return append(options, gomail.WithOpportunisticSMTPAuth(mechanisms...), gomail.WithUsername(s.user), gomail.WithPassword(s.password))
}

// policy returns the STARTTLS policy. STARTTLS is mandatory if a password is sent over a network.
func (s *SMTP) policy() gomail.TLSPolicy {
	if s.user != "" && !s.local {
		return gomail.TLSMandatory
	}
	return gomail.TLSOpportunistic
}

// dialer returns a function that opens connections. These connections are closed when ctx ends.
func (s *SMTP) dialer(ctx context.Context) gomail.DialContextFunc {
	dial := new(net.Dialer).DialContext
	if s.implicit {
		dial = (&tls.Dialer{Config: s.tls}).DialContext
	}
	return func(dialing context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(dialing, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = connection.Close() })
		}
		return connection, err
	}
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

// noMailbox are the enhanced status codes for an address that does not exist and never will
// (RFC 3463, 3.2; RFC 7505).
var noMailbox = []string{"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"}

// describe returns an error without the texts of the server and the library, because these texts
// can contain mail addresses. It returns rolecall.ErrNoMailbox if the server reports that the
// address does not exist.
func describe(ctx context.Context, err error) error {
	var answer *textproto.Error
	var failed *gomail.SendError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the mail server did not accept the mail in time: %w", ctx.Err())
	case errors.As(err, &failed) && failed.Reason == gomail.ErrSMTPRcptTo && slices.Contains(noMailbox, failed.EnhancedStatusCode()):
		return fmt.Errorf("%w: %d %s", rolecall.ErrNoMailbox, failed.ErrorCode(), failed.EnhancedStatusCode())
	case errors.As(err, &failed) && failed.Reason == gomail.ErrSMTPRcptTo && failed.ErrorCode() != 0:
		return fmt.Errorf("%w: %d %s", rolecall.ErrMailRefused, failed.ErrorCode(), failed.EnhancedStatusCode())
	case errors.As(err, &failed) && failed.ErrorCode() != 0:
		return fmt.Errorf("the mail server answered %d %s: %s", failed.ErrorCode(), failed.EnhancedStatusCode(), failed.Reason)
	case errors.As(err, &failed):
		return fmt.Errorf("the connection to the mail server failed: %s", failed.Reason)
	case errors.As(err, &answer):
		return fmt.Errorf("the mail server answered %d before it accepted a message: check its address, user and password, and --smtp-hello", answer.Code)
	}
	return err
}
