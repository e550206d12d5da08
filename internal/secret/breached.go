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

	// breachedSamples is the number of evenly spaced lines that NewBreached checks.
	breachedSamples = 1000
)

// Breached looks up passwords in a file of leaked passwords. Each line of the file has a
// SHA-1 hash in hexadecimal digits, a colon and a count. The lines are sorted by hash. A
// lookup is a binary search that reads a few dozen lines and keeps nothing in memory.
type Breached struct {
	file io.ReaderAt
	size int64
}

// NewBreached returns the leaked passwords of the file. The argument size is the size of
// the file in bytes. NewBreached checks a sample of lines from the whole file, and the
// last lines. It returns an error if one of these lines is malformed or is not sorted.
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
	last = breachedLine{end: max(0, size-longestLine-1)} // continue at or before the start of the last line
	for last.end < size {
		if err := look(last.end); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Has reports whether the file contains the hash of the password. If b is nil, Has
// returns false.
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

// breachedLine is a line of the file: the offsets of its first byte and of the byte after
// its line end, and its hash.
type breachedLine struct {
	start, end int64
	hash       [sha1.Size]byte
}

// lineFrom returns the first line that begins at or after the offset at. It returns
// io.EOF if no line begins there.
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

// parseBreached returns the hash and the count of a line. The line contains the digits of
// the hash after the prefix. If the line is malformed, the text of the error continues a
// sentence that begins with the line.
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
	Hashes  int64 // number of hashes that Add has written
	last    [sha1.Size]byte
	written *bufio.Writer
}

// NewBreachedWriter returns a BreachedWriter that writes to w. Call Flush after the last
// Add.
func NewBreachedWriter(w io.Writer) *BreachedWriter {
	return &BreachedWriter{written: bufio.NewWriterSize(w, 1<<20)}
}

// Add reads a sorted list of hashes from r and writes it. The lines of the list omit the
// prefix, with which all its hashes begin, as in the range files of the well-known
// service. Add skips hashes with the count 0, which such files contain as padding. After
// each line, Add calls the function read with the number of bytes of the line. If a line
// is malformed or is not sorted, the error has the number of the line.
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

// Flush writes buffered hashes to the underlying writer.
func (w *BreachedWriter) Flush() error { return w.written.Flush() }
