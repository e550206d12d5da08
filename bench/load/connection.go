package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// maxHeader is the maximum length of a response's header in bytes.
const maxHeader = 64 << 10

// connection is a client connection with the part of HTTP/1.1 that a load test needs:
// one response to each request, with its length in the header or in chunks.
type connection struct {
	net.Conn
	buffer []byte
	close  func() error
}

// answer is a response. Its body is valid until the next read.
type answer struct {
	status int
	body   []byte
	closes bool // the server closes the connection after this response
}

var (
	headerEnd     = []byte("\r\n\r\n")
	lineEnd       = []byte("\r\n")
	contentLength = []byte("content-length:")
	connectionIs  = []byte("connection:")
	codingIs      = []byte("transfer-encoding:")
)

// dial opens a connection that is closed when ctx ends.
func dial(ctx context.Context, address string) (*connection, error) {
	dialed, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	hangUp := sync.OnceValue(dialed.Close)
	forget := context.AfterFunc(ctx, func() { hangUp() }) // close returns the error of this call
	return &connection{Conn: dialed, buffer: make([]byte, 4096), close: func() error {
		forget()
		return hangUp()
	}}, nil
}

// read reads one answer to its end.
func (c *connection) read() (answer, error) {
	have, header := 0, -1
	for header < 0 {
		n, err := c.more(have)
		if err != nil {
			return answer{}, fmt.Errorf("the connection ended after %d bytes of an answer: %w", have, err)
		}
		header = bytes.Index(c.buffer[max(0, have-3):have+n], headerEnd)
		if header >= 0 {
			header += max(0, have-3)
		}
		have += n
		if header < 0 && have > maxHeader {
			return answer{}, fmt.Errorf("an answer with more than %d bytes of header", maxHeader)
		}
	}
	got, length, err := parse(c.buffer[:header])
	if err != nil {
		return answer{}, err
	}
	start := header + len(headerEnd)
	if length == inChunks {
		got.body, err = c.readChunks(start, have)
		return got, err
	}
	for have < start+length {
		n, err := c.more(have)
		if err != nil {
			return answer{}, fmt.Errorf("the connection ended after %d of %d bytes of a body: %w", have-start, length, err)
		}
		have += n
	}
	if have > start+length {
		return answer{}, fmt.Errorf("%d bytes more than the answer should have", have-start-length)
	}
	got.body = c.buffer[start:have]
	return got, nil
}

// readChunks reads a body in chunks that begins at start in the buffer, and returns the body in one
// piece. It returns an error for trailers.
func (c *connection) readChunks(start, have int) ([]byte, error) {
	end, next := start, start // the end of the body so far, and the start of the next chunk
	read := func(upTo int) error {
		for have < upTo {
			n, err := c.more(have)
			if err != nil {
				return fmt.Errorf("the connection ended after %d bytes of a body in chunks: %w", end-start, err)
			}
			have += n
		}
		return nil
	}
	for {
		line := bytes.Index(c.buffer[next:have], lineEnd)
		if line < 0 {
			if err := read(have + 1); err != nil {
				return nil, err
			}
			continue
		}
		size, err := strconv.ParseUint(string(c.buffer[next:next+line]), 16, 31)
		if err != nil {
			return nil, fmt.Errorf("a chunk: %w", err)
		}
		from := next + line + len(lineEnd)
		to := from + int(size)
		next = to + len(lineEnd)
		if err := read(next); err != nil {
			return nil, err
		}
		if !bytes.Equal(c.buffer[to:next], lineEnd) {
			return nil, errors.New("a chunk is longer than it says, or a trailer follows")
		}
		end += copy(c.buffer[end:], c.buffer[from:to])
		if size == 0 {
			break
		}
	}
	if have > next {
		return nil, fmt.Errorf("%d bytes more than the answer should have", have-next)
	}
	return c.buffer[start:end], nil
}

// more reads available data into the buffer, after the have bytes that it contains. It returns the
// number of bytes read.
func (c *connection) more(have int) (int, error) {
	if have == len(c.buffer) {
		c.buffer = append(c.buffer, make([]byte, len(c.buffer))...)
	}
	return c.Read(c.buffer[have:])
}

// inChunks is the length that parse returns for a body in chunks.
const inChunks = -2

// parse reads the header of an answer. It returns the length of the body in bytes, or inChunks.
func parse(header []byte) (got answer, length int, err error) {
	const start = len("HTTP/1.1 ")
	line, rest, _ := bytes.Cut(header, lineEnd)
	if len(line) < start+3 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return got, 0, fmt.Errorf("an answer that begins with %.50q", line)
	}
	if got.status, err = strconv.Atoi(string(line[start : start+3])); err != nil {
		return got, 0, err
	}
	const unknown = -1
	length = unknown
	if got.status == http.StatusNoContent || got.status == http.StatusNotModified {
		length = 0
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, lineEnd)
		if value, ok := field(line, contentLength); ok {
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return got, 0, fmt.Errorf("a body of length %q", value)
			}
		} else if value, ok := field(line, connectionIs); ok {
			got.closes = bytes.EqualFold(value, []byte("close"))
		} else if value, ok := field(line, codingIs); ok && bytes.EqualFold(value, []byte("chunked")) {
			length = inChunks
		}
	}
	if length == unknown {
		return got, 0, errors.New("an answer does not say how long it is")
	}
	return got, length, nil
}

// field returns the value of the header line if the line has the name. The name is in
// lower case and ends with a colon.
func field(line, name []byte) (value []byte, ok bool) {
	if len(line) < len(name) || line[0]|0x20 != name[0] || !bytes.EqualFold(line[:len(name)], name) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name):]), true
}
