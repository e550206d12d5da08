package web

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
)

// connectionLog receives the log of net/http about connections. It logs errors that any
// client can cause below the level of a warning.
type connectionLog struct{ logger *slog.Logger }

// clientErrors are the first words of the lines that net/http logs about errors of clients.
var clientErrors = []string{
	"http: TLS handshake error", "http2: server: error reading preface", "http2: server connection error",
	"http2: server closing client connection", "http2: received GOAWAY", "timeout waiting for ",
}

// Write logs one line of net/http (io.Writer).
func (l connectionLog) Write(line []byte) (int, error) {
	text := string(bytes.TrimSpace(line))
	level, message := slog.LevelWarn, "HTTP server error"
	if slices.ContainsFunc(clientErrors, func(prefix string) bool { return strings.HasPrefix(text, prefix) }) {
		level, message = slog.LevelInfo, "client connection failed"
	}
	l.logger.Log(context.Background(), level, message, "error", text)
	return len(line), nil
}
