package httpserver

import (
	"net"
	"sync/atomic"
	"time"
)

// writeListener wraps the connections that it accepts in writeConns.
type writeListener struct{ net.Listener }

// Accept returns the next connection (net.Listener).
func (l writeListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &writeConn{Conn: conn}, nil
}

// writeConn notes since when a write waits for the client, which happens if the client does not read its responses.
type writeConn struct {
	net.Conn
	began atomic.Int64 // when the write began, in nanoseconds since 1970; 0: no write
}

// Write sends b (io.Writer).
func (c *writeConn) Write(b []byte) (int, error) {
	c.began.Store(time.Now().UnixNano())
	defer c.began.Store(0)
	return c.Conn.Write(b)
}

// CloseWrite ends the responses of the connection. http.Server calls it before it closes a connection with
// unread bytes: otherwise, the client could lose the response.
func (c *writeConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// plain returns the connection below the encryption of TLS.
func plain(conn net.Conn) net.Conn {
	if encrypted, ok := conn.(interface{ NetConn() net.Conn }); ok { // of crypto/tls
		return encrypted.NetConn()
	}
	return conn
}

// writesSince returns since when a write of the connection waits, or the zero time.
func writesSince(conn net.Conn) time.Time {
	if c, ok := plain(conn).(*writeConn); ok {
		if began := c.began.Load(); began != 0 {
			return time.Unix(0, began)
		}
	}
	return time.Time{}
}
