package web

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
)

// connectionLog receives the messages that net/http logs about connections. Errors that any client
// can cause are logged at a lower level than warnings.
type connectionLog struct{ logger *slog.Logger }

// clientErrors are the beginnings of the messages that net/http logs about errors of clients.
var clientErrors = []string{
	"http: TLS handshake error", "http2: server: error reading preface", "http2: server connection error",
	"http2: server closing client connection", "http2: received GOAWAY", "timeout waiting for ",
}

// Write logs one message of net/http (io.Writer).
func (l connectionLog) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	level, message := slog.LevelWarn, "HTTP server error"
	if slices.ContainsFunc(clientErrors, func(prefix string) bool { return strings.HasPrefix(text, prefix) }) {
		level, message = slog.LevelInfo, "client connection failed"
	}
	l.logger.Log(context.Background(), level, message, "error", text)
	return len(line), nil
}
