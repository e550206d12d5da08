package rolecall

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	foldLength = 200 // code points kept of a folded text: the bound of every text key
	wordLength = 64  // code points kept of a word
)

// Fold returns the form by which texts are sorted and compared: NFKD, marks
// removed, lower case, NFC, at most 200 code points.
func Fold(text string) string {
	if isPlain(text) {
		return cut(text, foldLength)
	}
	folded := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
	return cut(norm.NFC.String(folded), foldLength)
}

// isPlain reports whether folding leaves text as it is: the common case, and
// worth not allocating for.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

func cut(text string, length int) string {
	if len(text) <= length {
		return text
	}
	for i := range text {
		if length == 0 {
			return text[:i]
		}
		length--
	}
	return text
}

// Words returns the distinct folded words of text in order of appearance, split
// at everything but letters and digits, each at most 64 code points. It is the
// one definition of a word for what is stored and for what is searched.
func Words(text string) []string {
	fields := strings.FieldsFunc(Fold(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	words := fields[:0]
next:
	for _, word := range fields {
		word = cut(word, wordLength)
		for _, seen := range words {
			if seen == word {
				continue next
			}
		}
		words = append(words, word)
	}
	return words
}

// CheckText returns a fault's code and sentence if text is not fit to be stored
// and shown: from minimum to maximum code points, valid UTF-8, no control
// characters, at least one visible character. Both are empty if it is.
func CheckText(text string, minimum, maximum int) (code, detail string) {
	if !utf8.ValidString(text) {
		return "encoding", "must be valid UTF-8"
	}
	visible := false
	for _, r := range text {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return "control-character", "must not contain control characters"
		}
		visible = visible || isVisible(r)
	}
	if n := utf8.RuneCountInString(text); n < minimum || n > maximum {
		return "length", fmt.Sprintf("must have %d to %d characters", minimum, maximum)
	}
	if !visible {
		return "blank", "must contain a visible character"
	}
	return "", ""
}

// isVisible reports whether r leaves ink: neither a space nor one of the letters,
// marks and format characters that show nothing.
func isVisible(r rune) bool {
	const blankBraille = '\u2800'
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != blankBraille &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Faults collects what is wrong with a body, by member.
type Faults []Fault

// MaxFaults is how many faults an answer lists. Faults keeps one more, which says that
// there are others.
const MaxFaults = 100

// Add records that the member at pointer breaks a rule; an empty code records
// nothing.
func (f *Faults) Add(pointer, code, detail string) {
	if code != "" && len(*f) <= MaxFaults {
		*f = append(*f, Fault{Pointer: pointer, Code: code, Detail: detail})
	}
}

// Text records what CheckText finds.
func (f *Faults) Text(pointer, text string, minimum, maximum int) {
	code, detail := CheckText(text, minimum, maximum)
	f.Add(pointer, code, detail)
}

// Err returns ErrValidation with the faults, or nil if there are none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return ErrValidation.WithFaults(f...)
}

// Optional is a value that a request may leave out: absent, or set. For a member
// that may be null T is a pointer, and set to nil means null (RFC 7396).
type Optional[T any] struct {
	Value T
	Set   bool
}

// Some returns the set value v.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// IsOptional marks the type for decoders.
func (*Optional[T]) IsOptional() {}

// Metadata are the pairs of texts that an application keeps with a user, in the
// form in which they are stored and answered: one JSON object, its keys sorted. So
// they need not be read on the way from a store to an answer, and equal ones are
// equal by ==. The zero value has no pairs.
type Metadata struct{ object string } // empty for {}

const noPairs = "{}"

// NewMetadata returns the metadata of the pairs.
func NewMetadata(pairs map[string]string) Metadata {
	if len(pairs) == 0 {
		return Metadata{}
	}
	var object bytes.Buffer
	encoder := json.NewEncoder(&object) // which sorts the keys
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(pairs) // never fails: texts can always be encoded, and a Buffer takes all
	return Metadata{strings.TrimSuffix(object.String(), "\n")}
}

// Pairs returns the pairs, never nil. The error says that what the store gave is
// no such object.
func (m Metadata) Pairs() (map[string]string, error) {
	pairs := map[string]string{}
	if err := json.Unmarshal([]byte(m.String()), &pairs); err != nil {
		return nil, fmt.Errorf("rolecall: metadata: %w", err)
	}
	return pairs, nil
}

// String returns the JSON object.
func (m Metadata) String() string {
	if m.object == "" {
		return noPairs
	}
	return m.object
}

// MarshalJSON returns the JSON object (json.Marshaler).
func (m Metadata) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON reads a JSON object of texts (json.Unmarshaler).
func (m *Metadata) UnmarshalJSON(object []byte) error {
	var pairs map[string]string
	if err := json.Unmarshal(object, &pairs); err != nil {
		return err
	}
	*m = NewMetadata(pairs)
	return nil
}

// Value stores the JSON object as text (driver.Valuer).
func (m Metadata) Value() (driver.Value, error) { return m.String(), nil }

// Scan takes over the object that Value has stored (sql.Scanner).
func (m *Metadata) Scan(src any) error {
	object, ok := src.(string)
	if !ok {
		return fmt.Errorf("rolecall: cannot scan %T into metadata", src)
	}
	if object == noPairs {
		object = ""
	}
	*m = Metadata{object}
	return nil
}

// AppendJSON appends the pairs as a JSON object.
func (m Metadata) AppendJSON(b []byte) []byte { return append(b, m.String()...) }
