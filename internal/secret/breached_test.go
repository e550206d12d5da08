package secret

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func sha1Of(password string) string {
	sum := sha1.Sum([]byte(password))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// breachedText returns the content of a file with the hashes of the passwords. The lines
// end with CR LF, as in the well-known lists.
func breachedText(passwords ...string) string {
	var lines []string
	for i, password := range passwords {
		lines = append(lines, fmt.Sprintf("%s:%d\r\n", sha1Of(password), 1+i*i*i))
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

func openBreached(text string) (*Breached, error) {
	return NewBreached(strings.NewReader(text), int64(len(text)))
}

// The hash is the one that the well-known service lists for the password "password".
func TestTheWellKnownFormatIsRead(t *testing.T) {
	b, err := openBreached("5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:9545824\r\n")
	if err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]bool{"password": true, "Password": false} {
		if got, err := b.Has(password); got != want || err != nil {
			t.Errorf("Has(%q) = %v, %v", password, got, err)
		}
	}
}

func TestEveryBreachedPasswordIsFoundAndNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var passwords []string
		for i := range rapid.IntRange(1, 300).Draw(t, "passwords") {
			passwords = append(passwords, fmt.Sprintf("password %d", i))
		}
		text := breachedText(passwords...)
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			text = strings.ReplaceAll(text, "\r", "")
		case 1:
			text = strings.TrimSuffix(text, "\r\n")
		case 2:
			text = strings.ToLower(text)
		}
		b, err := openBreached(text)
		if err != nil {
			t.Fatal(err)
		}
		for i, password := range passwords {
			if has, err := b.Has(password); !has || err != nil {
				t.Fatalf("%q is not found: %v", password, err)
			}
			if has, err := b.Has(fmt.Sprintf("another password %d", i)); has || err != nil {
				t.Fatalf("a password that is not there is found: %v", err)
			}
		}
	})
}

// countedReads is a file that counts how often it is read.
type countedReads struct {
	*strings.Reader
	reads int
}

func (c *countedReads) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	return c.Reader.ReadAt(p, off)
}

func TestALookUpReadsAFewLines(t *testing.T) {
	var passwords []string
	for i := range 20_000 {
		passwords = append(passwords, fmt.Sprint(i))
	}
	text := breachedText(passwords...)
	file := &countedReads{Reader: strings.NewReader(text)}
	b, err := NewBreached(file, int64(len(text)))
	if err != nil || file.reads > breachedSamples+3 {
		t.Fatalf("%d reads at the start: %v", file.reads, err)
	}
	for _, password := range []string{"0", "19999", "absent", "also absent"} {
		file.reads = 0
		if _, err := b.Has(password); err != nil || file.reads > 21 { // the file has less than 2^20 bytes
			t.Errorf("%d reads for %q: %v", file.reads, password, err)
		}
	}
}

func TestMalformedFilesAreRefusedAtTheStart(t *testing.T) {
	var passwords []string
	for i := range 5_000 {
		passwords = append(passwords, fmt.Sprint(i))
	}
	good := breachedText(passwords...)
	lines := strings.SplitAfter(strings.TrimSuffix(good, "\r\n"), "\n")
	backwards := slices.Clone(lines)
	slices.Reverse(backwards)
	for what, text := range map[string]string{
		"empty":             "",
		"passwords":         "password\n123456\n",
		"a range file":      good[5:],
		"by count":          strings.Join(backwards, ""),
		"cut short":         good[:len(good)-30],
		"a long first line": strings.Repeat("A", 500),
		"a long line":       lines[0] + strings.Repeat("F", 100_000) + "\n" + lines[len(lines)-1],
		"one long line":     strings.ReplaceAll(good, "\r\n", " "),
		"SHA-256":           strings.Repeat("0", 64) + ":1\n",
		"something else":    string(bytes.Repeat([]byte{0}, 10_000)),
	} {
		if _, err := openBreached(text); err == nil || !strings.Contains(err.Error(), "the line at byte") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := openBreached(good); err != nil {
		t.Error(err)
	}
}

func TestAFileThatIsTruncatedLaterIsAnError(t *testing.T) {
	good := breachedText("one", "two", "three")
	b, err := NewBreached(strings.NewReader(good), int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	b.file = strings.NewReader(good[:10])
	if _, err := b.Has("one"); err == nil {
		t.Error("a file that was cut has no breached password")
	}
	if has, err := (*Breached)(nil).Has("one"); has || err != nil {
		t.Errorf("without a file: %v, %v", has, err)
	}
}

func TestRangeFilesBecomeOneFile(t *testing.T) {
	good := strings.ReplaceAll(breachedText("one", "two", "three", "four"), "\r", "")
	var written bytes.Buffer
	w := NewBreachedWriter(&written)
	read := 0
	for line := range strings.Lines(good) {
		padding := strings.Repeat("0", 35) + ":0\r\n"
		if err := w.Add(line[:5], strings.NewReader(padding+line[5:]), func(n int) { read += n }); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil || written.String() != good || w.Hashes != 4 || read == 0 {
		t.Errorf("%v, %d hashes of %d bytes: %s", err, w.Hashes, read, written.String())
	}
}

func TestUnsortedListsAreNotWritten(t *testing.T) {
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	for _, c := range []struct{ prefix, list, says string }{
		{"", two + ":1\n" + one + ":1\n", "line 2 is not in order"},
		{"", one + ":1\n" + one + ":1\n", "line 2 is not in order"},
		{"", one + ":1\nnonsense\n", "line 2 is not 40 hexadecimal digits"},
		{"00000", one + ":1\n", "line 1 is not 35 hexadecimal digits"},
		{"", one + strings.Repeat("1", 100_000), "too long"},
	} {
		err := NewBreachedWriter(io.Discard).Add(c.prefix, strings.NewReader(c.list), func(int) {})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.60q: %v, want %q", c.list, err, c.says)
		}
	}
	if err := NewBreachedWriter(io.Discard).Add("", failing{}, func(int) {}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a list that cannot be read: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func FuzzBreached(f *testing.F) {
	for _, text := range []string{"", breachedText("one"), breachedText("one", "two", "three"), "\n\n", strings.Repeat("0", 40), strings.Repeat("A", 200)} {
		f.Add(text, "one")
	}
	f.Fuzz(func(t *testing.T, text, password string) {
		b, err := openBreached(text)
		if err != nil {
			return
		}
		has, err := b.Has(password)
		if has && err == nil && !strings.Contains(strings.ToUpper(text), sha1Of(norm.NFC.String(password))) {
			t.Errorf("%q is not in the file", password)
		}
	})
}
