package mailtest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/textproto"
	"strings"
	"unicode"
)

// session is one connection of a mail client (RFC 5321).
type session struct {
	server     *Server
	connection net.Conn
	text       *textproto.Conn
	secure     bool
	user       string
	from, to   string
}

// errGone means that the session has ended.
var errGone = errors.New("the session is over")

func (s *Server) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.sessions.Go(func() {
			s.mu.Lock()
			s.open[connection] = true
			s.mu.Unlock()
			(&session{server: s, connection: connection}).serve()
			s.mu.Lock()
			delete(s.open, connection)
			s.mu.Unlock()
			_ = connection.Close()
		})
	}
}

func (c *session) serve() {
	if o := c.server.options; o.Implicit {
		c.connection, c.secure = tls.Server(c.connection, o.TLS), true
	}
	c.text = textproto.NewConn(c.connection)
	err := c.answer(Connect, "220 mailtest ESMTP")
	for err == nil {
		var line string
		if line, err = c.text.ReadLine(); err == nil {
			command, argument, _ := strings.Cut(line, " ")
			err = c.do(strings.ToUpper(command), argument)
		}
	}
}

// answer sends the reply, unless the test has set a failure for the moment.
func (c *session) answer(at, reply string) error {
	f, faulty := c.server.fault(at)
	switch {
	case !faulty:
		return c.text.PrintfLine("%s", reply)
	case f.reply != "":
		return c.text.PrintfLine("%s", f.reply)
	case f.drop:
		return errGone
	}
	_, _ = io.Copy(io.Discard, c.connection) // until the client or Close closes the connection
	return errGone
}

func (c *session) do(command, argument string) error {
	o := c.server.options
	switch command {
	case "EHLO", "HELO":
		if c.server.options.Strict && !strings.ContainsAny(argument, ".:") {
			return c.text.PrintfLine("504 5.5.2 <%s>: Helo command rejected: need fully-qualified hostname", argument)
		}
		return c.answer("EHLO", c.greeting())
	case "STARTTLS":
		if err := c.answer(command, "220 Go ahead"); err != nil {
			return err
		}
		c.connection, c.secure = tls.Server(c.connection, o.TLS), true
		c.text = textproto.NewConn(c.connection)
		return nil
	case "AUTH":
		if argument != "PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00"+o.User+"\x00"+o.Password)) {
			return c.answer(command, "535 5.7.8 Wrong credentials")
		}
		c.user = o.User
		return c.answer(command, "235 2.7.0 Welcome")
	case "MAIL":
		if c.user != o.User {
			return c.text.PrintfLine("530 5.7.0 Who are you?")
		}
		c.from = path(argument)
		return c.answer(command, "250 2.1.0 OK")
	case "RCPT":
		c.to = path(argument)
		if c.server.options.ASCII && strings.ContainsFunc(c.to, func(r rune) bool { return r > unicode.MaxASCII }) {
			return c.text.PrintfLine("553 5.6.7 SMTPUTF8 is required")
		}
		if alone := command + " " + c.to; c.server.fails(alone) {
			return c.answer(alone, "")
		}
		return c.answer(command, "250 2.1.5 OK")
	case "DATA":
		return c.data()
	case "QUIT":
		return errors.Join(c.answer(command, "221 2.0.0 Bye"), errGone)
	case "RSET", "NOOP":
		return c.text.PrintfLine("250 2.0.0 OK")
	}
	return c.text.PrintfLine("502 5.5.1 Unknown command")
}

func (c *session) greeting() string {
	extensions := []string{"250-mailtest", "250-8BITMIME", "250-ENHANCEDSTATUSCODES"}
	if !c.server.options.ASCII {
		extensions = append(extensions, "250-SMTPUTF8")
	}
	if c.server.options.TLS != nil && !c.secure {
		extensions = append(extensions, "250-STARTTLS")
	}
	if c.server.options.User != "" {
		extensions = append(extensions, "250-AUTH PLAIN")
	}
	return strings.Join(append(extensions, "250 HELP"), "\r\n")
}

// path returns the address in the argument of the command MAIL or RCPT.
func path(argument string) string {
	_, rest, _ := strings.Cut(argument, "<")
	address, _, _ := strings.Cut(rest, ">")
	return address
}

func (c *session) data() error {
	refused := c.server.fails("DATA")
	if err := c.answer("DATA", "354 Go on"); err != nil || refused {
		return err
	}
	raw, err := readText(c.text.R)
	if err != nil {
		return err
	}
	if c.server.fails(End) {
		return c.answer(End, "")
	}
	m, err := read(raw)
	if err != nil {
		return c.text.PrintfLine("554 5.6.0 %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	m.From, m.To, m.TLS, m.User = c.from, c.to, c.secure, c.user
	c.server.keep(m)
	return c.answer(Taken, "250 2.0.0 Taken")
}

// readText returns the text of a message, which ends before a line with a single dot. A client adds
// a dot to each line that begins with a dot, and readText removes it. Only CR LF ends a line.
func readText(r *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		if bytes.Equal(line, []byte(".\r\n")) && (len(text) == 0 || bytes.HasSuffix(text, []byte("\r\n"))) {
			return text, nil
		}
		text = append(text, bytes.TrimPrefix(line, []byte("."))...)
	}
}
