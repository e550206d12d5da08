package mail

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Mailbox is a transport for development. It writes messages to files in a folder and prints them,
// instead of sending them. It is safe for concurrent use.
type Mailbox struct {
	folder string
	from   string
	mu     sync.Mutex // prevents mixed output of concurrent calls
	out    io.Writer
}

// NewMailbox returns a mailbox that writes messages to the folder and prints them to out. from is
// the sender address. NewMailbox creates the folder if necessary.
func NewMailbox(folder, from string, out io.Writer) (*Mailbox, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	return &Mailbox{folder: folder, from: from, out: out}, nil
}

// Send writes the message to a separate file, which a mail program can open, and prints it.
func (b *Mailbox) Send(_ context.Context, m Message) error {
	var content bytes.Buffer
	if err := m.writeTo(&content, b.from); err != nil {
		return err
	}
	file := filepath.Join(b.folder, m.Date.UTC().Format("20060102T150405")+"-"+m.ID+".eml")
	if err := writeWhole(file, content.Bytes()); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.ReplaceAll(strings.TrimSpace(m.Text), "\n", "\n    ")
	_, err := fmt.Fprintf(b.out, "Mail to %s: %s\n\n    %s\n\n  written to %s\n\n", m.To, m.Subject, text, file)
	return err
}

// writeWhole writes the file atomically: a concurrent reader never sees a part of the file.
func writeWhole(file string, content []byte) error {
	if err := os.WriteFile(file+".part", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}
