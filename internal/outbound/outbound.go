// Package outbound sends requests to addresses that users have chosen. A
// request can reach only the internet, and not the network of the operator.
package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// Timeout is the time limit of a request, from the lookup of the name to the end of the response.
	Timeout = 15 * time.Second

	// responseBytes is how much of a response is read. The rest is not needed: with all of a short
	// response read, the connection can be used again.
	responseBytes = 4 << 10

	headerBytes = 16 << 10

	// idleConnections and idlePerHost limit the connections that are kept for later requests.
	idleConnections = 512
	idlePerHost     = 4
	idleTimeout     = 90 * time.Second

	// longestPause is the longest pause that a server can ask for.
	longestPause = 24 * time.Hour
)

// Options are the settings of a client.
type Options struct {
	// Allowed are networks that can be reached although they are not on the internet.
	Allowed []netip.Prefix

	// Roots are the authorities that certificates are checked with. Nil: those of the system.
	Roots *x509.CertPool

	// Resolver resolves names. Nil: the resolver of the system.
	Resolver *net.Resolver

	// Timeout is the time limit of a request. Zero: the constant Timeout.
	Timeout time.Duration
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	http    http.Client
	timeout time.Duration
	allowed []netip.Prefix
}

// New returns a client. It uses only https, follows no redirects and no proxy of the environment, and
// checks each address when it connects, after the name was resolved.
func New(o Options) *Client {
	dialer := &net.Dialer{
		Timeout: Timeout, KeepAlive: 30 * time.Second, Resolver: o.Resolver,
		Control: func(network, address string, _ syscall.RawConn) error { return checkDial(o.Allowed, network, address) },
	}
	if o.Timeout == 0 {
		o.Timeout = Timeout
	}
	return &Client{timeout: o.Timeout, allowed: o.Allowed, http: http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Roots},
			TLSHandshakeTimeout: o.Timeout, ResponseHeaderTimeout: o.Timeout, MaxResponseHeaderBytes: headerBytes,
			MaxIdleConns: idleConnections, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTimeout,
			DisableCompression: true,
			HTTP2:              &http.HTTP2Config{SendPingTimeout: o.Timeout, PingTimeout: o.Timeout}, // closes connections that have broken
		},
	}}
}

// CheckURL is CheckURLWithin for the networks that the client can reach.
func (c *Client) CheckURL(text string) error { return CheckURLWithin(text, c.allowed) }

// checkDial returns ErrAddress if the address must not be reached. The dialer calls it for each
// address that it connects to.
func checkDial(allowed []netip.Prefix, network, address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return ErrAddress
	}
	if a := to.Addr(); !IsPublic(a) && !within(allowed, a.Unmap()) {
		return ErrAddress
	}
	return nil
}

// Result is the result of a request.
type Result struct {
	Status     int           // the status of the response; 0: no response
	Error      string        // why it failed, as a code such as "timeout"; empty: it succeeded
	RetryAfter time.Duration // the pause that the server asked for
	Duration   time.Duration
}

// The codes of failures.
const (
	CodeStatus   = "status"          // a status other than 2xx
	CodeRedirect = "redirect"        // a status 3xx; it is not followed
	CodeTimeout  = "timeout"         // no response in time
	CodeAddress  = "address-refused" // the address is not on the internet
	CodeName     = "name-unresolved" // the name has no address
	CodeTLS      = "tls"             // no secure connection, for example because of the certificate
	CodeConnect  = "connection"      // no connection, or it broke
	CodeSize     = "too-large"       // a response with more than the limit of HTTP
)

// Post sends a request with the body and the headers. A failure is in the result.
func (c *Client) Post(ctx context.Context, url string, header http.Header, body []byte) Result {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	begun := time.Now()
	r := c.post(ctx, url, header, body)
	r.Duration = time.Since(begun)
	return r
}

func (c *Client) post(ctx context.Context, url string, header http.Header, body []byte) (r Result) {
	if err := checkScheme(url); err != nil {
		return Result{Error: CodeAddress}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Result{Error: CodeAddress}
	}
	request.Header = header
	response, err := c.http.Do(request)
	if err != nil {
		return Result{Error: CodeOf(err)}
	}
	// An error of the rest of the response does not change the result: the status is known.
	_, _ = io.CopyN(io.Discard, response.Body, responseBytes)
	_ = response.Body.Close()
	r.Status = response.StatusCode
	switch {
	case r.Status >= 300 && r.Status < 400:
		r.Error = CodeRedirect
	case r.Status < 200 || r.Status >= 300:
		r.Error, r.RetryAfter = CodeStatus, retryAfter(response.Header.Get("Retry-After"))
	}
	return r
}

// HTTP returns a client for a library that sends its own requests. It checks requests as Post does. Reading
// more than limit bytes of a response returns an *http.MaxBytesError. CodeOf returns the code of an error.
func (c *Client) HTTP(limit int64) *http.Client {
	return &http.Client{Transport: &limited{c.http.Transport, limit}, CheckRedirect: c.http.CheckRedirect, Timeout: c.timeout}
}

// limited limits the size of responses.
type limited struct {
	transport http.RoundTripper
	limit     int64
}

// RoundTrip sends the request if its URL is an https URL.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := checkScheme(request.URL.String()); err != nil {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, err
	}
	response, err := l.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = http.MaxBytesReader(nil, response.Body, l.limit)
	return response, nil
}

func checkScheme(url string) error {
	if !strings.HasPrefix(url, "https://") {
		return fmt.Errorf("outbound: %w: only https", ErrAddress)
	}
	return nil
}

// CodeOf returns the code of an error of a request.
func CodeOf(err error) string {
	var (
		name        *net.DNSError
		timeout     interface{ Timeout() bool }
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		size        *http.MaxBytesError
	)
	switch {
	case errors.As(err, &size):
		return CodeSize
	case errors.Is(err, ErrAddress):
		return CodeAddress
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err, &alert):
		return CodeTLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return CodeTimeout
	case errors.As(err, &name):
		return CodeName
	case strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "HTTP response to HTTPS client"): // these errors have no type
		return CodeTLS
	}
	return CodeConnect
}

// retryAfter parses the header Retry-After: seconds or a date.
func retryAfter(text string) time.Duration {
	var pause time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		pause = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		pause = time.Until(at)
	}
	return min(max(pause, 0), longestPause)
}
