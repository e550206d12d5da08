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
	foldLength = 200 // maximum length of a folded text, in code points
	wordLength = 64  // maximum length of a word, in code points
)

// Fold returns the form in which texts are sorted and compared: NFKD, without marks,
// lower case, NFC, cut to 200 code points.
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

// isPlain reports whether text is ASCII without upper-case letters. Folding does not
// change the characters of such a text. This is the common case, and it needs no
// allocation.
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

// Words returns the distinct words of the folded text in order of appearance. A word
// is a sequence of letters and digits, cut to 64 code points. Stored texts and
// search texts are both split by this function, so that they match.
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

// CheckText returns the code and the detail of a field error if text must not be
// stored. A valid text has minimum to maximum code points, is valid UTF-8, has no
// control characters and has at least one visible character. Both results are empty
// for a valid text.
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

// isVisible reports whether r has a visible glyph. It is false for spaces and for
// invisible letters, marks and format characters.
func isVisible(r rune) bool {
	const blankBraille = '\u2800'
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && r != blankBraille &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// FieldErrors collects the field errors of a request body.
type FieldErrors []FieldError

// MaxFieldErrors is the maximum number of field errors in a response. FieldErrors keeps one
// more, which shows that the list is not complete.
const MaxFieldErrors = 100

// Add adds a field error for the member at pointer. It does nothing if the code is
// empty.
func (f *FieldErrors) Add(pointer, code, detail string) {
	if code != "" && len(*f) <= MaxFieldErrors {
		*f = append(*f, FieldError{Pointer: pointer, Code: code, Detail: detail})
	}
}

// Text adds the field error that CheckText returns, if any.
func (f *FieldErrors) Text(pointer, text string, minimum, maximum int) {
	code, detail := CheckText(text, minimum, maximum)
	f.Add(pointer, code, detail)
}

// Err returns ErrValidation with the field errors, or nil if there are no field errors.
func (f FieldErrors) Err() error {
	if len(f) == 0 {
		return nil
	}
	return ErrValidation.WithFieldErrors(f...)
}

// Optional is a value that a request can omit. If T is a pointer, a set nil means
// null (RFC 7396).
type Optional[T any] struct {
	Value T
	Set   bool
}

// Some returns v as a set Optional.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// IsOptional lets decoders recognize the type.
func (*Optional[T]) IsOptional() {}

// Metadata is a user's map of texts, stored as one JSON object with sorted keys. The
// object is copied from the store to the response without decoding. Values with the same
// pairs are equal by ==. The zero value has no pairs.
type Metadata struct{ object string } // empty for {}

const noPairs = "{}"

// NewMetadata returns the metadata of the pairs.
func NewMetadata(pairs map[string]string) Metadata {
	if len(pairs) == 0 {
		return Metadata{}
	}
	var object bytes.Buffer
	encoder := json.NewEncoder(&object) // sorts the keys
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(pairs) // never fails: strings can be encoded, and writes to a Buffer succeed
	return Metadata{strings.TrimSuffix(object.String(), "\n")}
}

// Pairs decodes the pairs. The map is never nil. It returns an error if the stored
// text is not a JSON object of texts.
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

// Scan reads an object that Value has stored (sql.Scanner).
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
