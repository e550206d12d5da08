package secret

import (
	"bufio"
	"bytes"
	"crypto/sha1" // lists of leaked passwords use SHA-1; it protects no secret here
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/unicode/norm"
)

const (
	sha1Digits = 2 * sha1.Size

	// longestLine is the maximum length of a line in bytes: a hash, a colon, 19 digits and a
	// line end.
	longestLine = 64

	// breachedSamples is the number of lines that NewBreached checks.
	breachedSamples = 1000
)

// Breached looks up passwords in a file of leaked passwords. Each line of the file has a
// SHA-1 hash in hexadecimal digits, a colon and a count. The lines are sorted by hash. A
// lookup reads a few dozen lines and keeps nothing in memory.
type Breached struct {
	file io.ReaderAt
	size int64
}

// NewBreached returns the leaked passwords of a file with the given size. It checks lines
// all over the file, and returns an error if a line is malformed or not in order.
func NewBreached(file io.ReaderAt, size int64) (*Breached, error) {
	b := &Breached{file, size}
	var last breachedLine
	look := func(at int64) error {
		line, err := b.lineFrom(at)
		if err == nil && bytes.Compare(line.hash[:], last.hash[:]) < 0 {
			err = fmt.Errorf("the line at byte %d is not in order", line.start)
		}
		last = line
		return err
	}
	for i := range int64(breachedSamples) {
		if err := look(size * i / breachedSamples); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	last = breachedLine{end: max(0, size-longestLine-1)} // at or before the start of the last line
	for last.end < size {
		if err := look(last.end); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Has reports whether the password was leaked. A nil list is empty.
func (b *Breached) Has(password string) (bool, error) {
	if b == nil {
		return false, nil
	}
	hash := sha1.Sum([]byte(norm.NFC.String(password)))
	for low, high := int64(0), b.size; low < high; {
		middle := low + (high-low)/2
		line, err := b.lineFrom(middle)
		if errors.Is(err, io.EOF) || err == nil && line.start >= high {
			high = middle
			continue
		}
		if err != nil {
			return false, err
		}
		switch order := bytes.Compare(line.hash[:], hash[:]); {
		case order == 0:
			return true, nil
		case order < 0:
			low = line.end
		default:
			high = middle
		}
	}
	return false, nil
}

// breachedLine is the position of a line in the file, and its hash.
type breachedLine struct {
	start, end int64
	hash       [sha1.Size]byte
}

// lineFrom returns the first line that begins at the offset or after it, or io.EOF.
func (b *Breached) lineFrom(at int64) (line breachedLine, err error) {
	from := max(0, at-1) // a line begins at the offset if the byte before it ends a line
	var buffer [2 * (longestLine + 1)]byte
	wanted := min(int64(len(buffer)), b.size-from)
	n, err := b.file.ReadAt(buffer[:wanted], from)
	if int64(n) < wanted {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the file has become shorter
		}
		return line, fmt.Errorf("read the breached passwords: %w", err)
	}
	text := buffer[:n]
	if at > 0 {
		end := bytes.IndexByte(text, '\n')
		switch isLast := from+int64(n) == b.size; {
		case end > longestLine, end < 0 && !isLast:
			return line, fmt.Errorf("the line at byte %d is longer than %d bytes", at, longestLine)
		case end < 0, end == len(text)-1:
			return line, io.EOF
		}
		from, text = from+int64(end)+1, text[end+1:]
	}
	content, _, _ := bytes.Cut(text, []byte("\n"))
	line.start, line.end = from, from+int64(len(content))+1
	if line.hash, _, err = parseBreached("", string(content)); err != nil {
		return line, fmt.Errorf("the line at byte %d %w", line.start, err)
	}
	return line, nil
}

// parseBreached returns the hash and the count of a line. The hash begins with the prefix,
// which the line omits.
func parseBreached(prefix, line string) (hash [sha1.Size]byte, count string, err error) {
	digits, count, _ := strings.Cut(strings.TrimSuffix(line, "\r"), ":")
	if digits = prefix + digits; len(digits) == sha1Digits && len(line) <= longestLine {
		if _, err := hex.Decode(hash[:], []byte(digits)); err == nil {
			return hash, count, nil
		}
	}
	return hash, "", fmt.Errorf("is not %d hexadecimal digits, a colon and a count", sha1Digits-len(prefix))
}

// BreachedWriter writes the file that NewBreached reads.
type BreachedWriter struct {
	Hashes  int64 // number of hashes written so far
	last    [sha1.Size]byte
	written *bufio.Writer
}

// NewBreachedWriter returns a writer to w.
func NewBreachedWriter(w io.Writer) *BreachedWriter {
	return &BreachedWriter{written: bufio.NewWriterSize(w, 1<<20)}
}

// Add writes the hashes of a sorted list. As in a range file, all hashes begin with the
// prefix, and the lines omit it. Add skips hashes with the count 0, which pad range files.
// It calls read with the number of bytes of each line. If a line is malformed or not in
// order, the error names it.
func (w *BreachedWriter) Add(prefix string, r io.Reader, read func(bytes int)) error {
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		text := lines.Text()
		if read(len(lines.Bytes()) + 1); text == "" {
			continue
		}
		hash, count, err := parseBreached(prefix, text)
		if err != nil {
			return fmt.Errorf("line %d %w", number, err)
		}
		if count == "0" {
			continue
		}
		if w.Hashes > 0 && bytes.Compare(hash[:], w.last[:]) <= 0 {
			return fmt.Errorf("line %d is not in order: the list must be sorted by hash", number)
		}
		if count == "" {
			count = "1"
		}
		w.Hashes, w.last = w.Hashes+1, hash
		if _, err := fmt.Fprintf(w.written, "%X:%s\n", hash, count); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Flush writes the buffered hashes.
func (w *BreachedWriter) Flush() error { return w.written.Flush() }
