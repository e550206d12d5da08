package rolecall

import (
	"bytes"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	foldLength = 200 // maximum length of a folded text, in code points
	wordLength = 64  // maximum length of a word, in code points
)

// Fold returns the key by which texts are sorted and searched. Texts that differ only in case, in
// marks such as accents, in invisible characters, or in their Unicode encoding have the same key.
// The key is the text in NFKD without marks and invisible characters, in lower case and without
// letterVariants, in NFC, cut to 200 code points. TextKey decides which names are the same.
func Fold(text string) string {
	if isPlain(text) {
		return cut(text, foldLength)
	}
	folded := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.M, r) || visibleRune(r) < 0 {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(text))
	return cut(norm.NFC.String(letterVariants.Replace(folded)), foldLength)
}

// letterVariants replaces lower-case letters that people search for by other letters, although
// Unicode does not take them apart.
var letterVariants = strings.NewReplacer("ł", "l", "ø", "o", "đ", "d", "ð", "d", "ı", "i", "æ", "ae", "œ", "oe", "ß", "ss", "þ", "th", "ς", "σ")

// isPlain reports whether text is ASCII without upper-case letters. Fold does not change
// the characters of such a text, and allocates no memory for it.
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

// Words returns the words of the folded text in order of appearance, without duplicates. A
// word is a sequence of letters and digits, cut to 64 code points. Words splits search texts,
// and WordsToFind splits stored texts in the same way, so that their words match.
func Words(text string) []string {
	fields := strings.FieldsFunc(Fold(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	words := fields[:0]
	for _, word := range fields {
		words = appendNew(words, cut(word, wordLength))
	}
	return words
}

// WordsToFind returns the words by which a stored text is found: its Words, and the ends of each
// word that begin at a letter of a script without spaces between words. So 太郎 finds 山田太郎.
func WordsToFind(text string) []string {
	var all []string
	for _, word := range Words(text) {
		all = appendNew(all, word)
		spaceless := false // whether the letter before is of such a script
		for i, r := range word {
			before := spaceless
			spaceless = unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
			if i > 0 && (before || spaceless) {
				all = appendNew(all, word[i:])
			}
		}
	}
	return all
}

func appendNew(words []string, word string) []string {
	if slices.Contains(words, word) {
		return words
	}
	return append(words, word)
}

// keyMax is the maximum length of a key of a text, in bytes. One code point of a name can become 18 in the key, and
// indexes hold keys of a limited length.
const keyMax = 255

// hashed begins each part of a key that names cannot contain, because they have no control characters.
const hashed = "\x01"

// TextKey returns the key by which departments and names are compared. Spellings that differ only in case,
// invisible characters, the number of blanks, or the Unicode encoding of a character have the same key. Letters
// of different scripts that look alike have different keys. Marks such as accents count, because they make other
// letters in many scripts: カード and ガード differ.
//
// The key is the text as toNFKC_Casefold of Unicode (section 3.13.5), trimmed and with single blanks. In place of a
// key of more than 255 bytes, TextKey returns its SHA-256 in base64, after a control character.
func TextKey(text string) string { return shortKey(identity(text)) }

// sortedKey returns a key that equals that of another text exactly if their TextKeys are equal, and that sorts by
// Fold. So one index both sorts names and keeps them unique.
func sortedKey(text string) string {
	same := identity(text)
	folded := Fold(same)
	if folded == same {
		return same
	}
	return folded + hashed + shortKey(same)
}

func shortKey(key string) string {
	if len(key) <= keyMax {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hashed + base64.RawURLEncoding.EncodeToString(sum[:])
}

func identity(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return singleBlanks(strings.ToLower(text))
	}
	return singleBlanks(nfkcCasefold(text))
}

// nfkcCasefold returns toNFKC_Casefold(NFD(text)) (Unicode, section 3.13.5).
func nfkcCasefold(text string) string {
	text = norm.NFD.String(text)
	for {
		next := norm.NFKC.String(foldCase(strings.Map(visibleRune, text)))
		if next == text {
			return text
		}
		text = next
	}
}

// visibleRune returns r, or -1 if r is a Default_Ignorable_Code_Point.
func visibleRune(r rune) rune {
	switch {
	case !unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
	case unicode.In(r, unicode.White_Space, unicode.Prepended_Concatenation_Mark):
	case 0xFFF9 <= r && r <= 0xFFFB, 0x13430 <= r && r <= 0x13440:
	default:
		return -1
	}
	return r
}

// foldCase returns the full case folding of the text. Of the Cherokee letters, those in upper case are the folded
// ones, and the package cases exchanges both.
func foldCase(text string) string {
	isCherokee := func(r rune) bool { return unicode.Is(unicode.Cherokee, r) }
	var folded strings.Builder
	for text != "" {
		begin := strings.IndexFunc(text, isCherokee)
		if begin < 0 {
			begin = len(text)
		}
		folded.WriteString(cases.Fold().String(text[:begin]))
		text = text[begin:]
		end := strings.IndexFunc(text, func(r rune) bool { return !isCherokee(r) })
		if end < 0 {
			end = len(text)
		}
		folded.WriteString(strings.ToUpper(text[:end]))
		text = text[end:]
	}
	return folded.String()
}

// singleBlanks returns the text without blanks at its ends, and with one space in place of each other sequence of
// blanks.
func singleBlanks(text string) string {
	blanks := true // whether the last character is a blank
	for _, r := range text {
		blank := unicode.IsSpace(r)
		if blank && (blanks || r != ' ') {
			return strings.Join(strings.Fields(text), " ")
		}
		blanks = blank
	}
	if blanks {
		return strings.TrimSuffix(text, " ")
	}
	return text
}

// duplicate is between a key and the id of a row whose key another row had already when the rows got these keys.
const duplicate = "\x02"

// Duplicate returns the key of the row with the id if another row has the key itself.
func Duplicate(key string, id AnyID) string { return key + duplicate + id.String() }

// Duplicates returns the range of the keys that Duplicate returns for the key: those after the first and before the
// second text.
func Duplicates(key string) (after, before string) { return key + duplicate, key + "\x03" }

// lowerCase returns the text in lower case by the full mapping of Unicode. Unlike strings.ToLower, it does not turn
// U+0130 into a plain i, with which it would be another text.
func lowerCase(text string) string {
	return strings.ToLower(strings.ReplaceAll(text, "\u0130", "i\u0307"))
}

// aLabels converts domains to A-labels for a look-up (UTS #46, nontransitional).
var aLabels = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// DomainKey returns the key by which domains of addresses are compared: the domain with A-labels, such as
// xn--bcher-kva.example for bücher.example. A domain that UTS #46 does not allow stays in NFC and in lower case.
func DomainKey(domain string) string {
	lower := lowerCase(norm.NFC.String(domain))
	if isPlain(lower) && !strings.Contains(lower, "xn--") {
		return lower
	}
	key, err := aLabels.ToASCII(lower)
	if err != nil {
		return lower
	}
	return key
}

// CheckText checks whether text may be stored. The text must be valid UTF-8 with minimum to
// maximum code points, without control characters, and with at least one visible character.
// CheckText returns the code and the detail of a field error. Both are empty if the text is
// valid.
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

// CheckName checks whether text may be a name, as of a user, department or role: a text as in CheckText whose
// key is stable, that has no invisible characters with a key, and that displays no other text in another order. The length is that of TrimName.
func CheckName(text string, minimum, maximum int) (code, detail string) {
	trimmed := TrimName(text)
	if trimmed == "" && text != "" {
		return "blank", "must contain a visible character"
	}
	if code, detail := CheckText(trimmed, minimum, maximum); code != "" {
		return code, detail
	}
	for _, r := range text {
		switch {
		case 0x202A <= r && r <= 0x202E, 0x2066 <= r && r <= 0x2069, r == '\uFEFF':
			return "control-character", "must not contain U+FEFF or characters that change the direction of the text around them"
		case unicode.Is(invisible, r):
			return "control-character", "must not contain the invisible characters U+2800, U+FFF9 to U+FFFB, U+13430 to U+13442, U+16FE4 and U+1D159"
		case unicode.Is(unicode.Cn, r):
			return "unassigned", "must not contain code points that Unicode " + unicode.Version + " does not assign"
		}
	}
	return "", ""
}

// TrimName returns the name as it is stored: without spaces at its ends. Control characters such
// as line breaks stay, so that CheckName refuses them.
func TrimName(name string) string {
	return strings.TrimFunc(name, func(r rune) bool { return unicode.Is(unicode.Zs, r) })
}

func trimNames(names []string) []string {
	trimmed := make([]string, len(names))
	for i, name := range names {
		trimmed[i] = TrimName(name)
	}
	return trimmed
}

func trimOptional(name *string) *string {
	if name == nil {
		return nil
	}
	trimmed := TrimName(*name)
	return &trimmed
}

// invisible has the characters that are invisible, or look like a space, and have a key: the braille pattern
// without dots, annotations, the controls and blanks of hieroglyphs, the filler of Khitan, and the notehead
// that is not drawn.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{{0x2800, 0x2800, 1}, {0xFFF9, 0xFFFB, 1}},
	R32: []unicode.Range32{{0x13430, 0x13442, 1}, {0x16FE4, 0x16FE4, 1}, {0x1D159, 0x1D159, 1}},
}

// isVisible reports whether r is displayed as a visible character. It returns false for
// spaces, and for letters, marks and format characters that are invisible.
func isVisible(r rune) bool {
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) &&
		!unicode.In(r, invisible, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// FieldErrors has the field errors of a request body.
type FieldErrors []FieldError

// MaxFieldErrors is the maximum number of field errors in a response. FieldErrors can have
// one more, which shows that the response does not list all errors.
const MaxFieldErrors = 100

// Add adds a field error for the member at the JSON Pointer. It does nothing if the code is
// empty, or if the list already has more than MaxFieldErrors errors.
func (f *FieldErrors) Add(pointer, code, detail string) {
	if code != "" && len(*f) <= MaxFieldErrors {
		*f = append(*f, FieldError{Pointer: pointer, Code: code, Detail: detail})
	}
}

// Text validates text with CheckText, and adds the field error for the member at the JSON
// Pointer if the text is invalid.
func (f *FieldErrors) Text(pointer, text string, minimum, maximum int) {
	code, detail := CheckText(text, minimum, maximum)
	f.Add(pointer, code, detail)
}

// Name validates text with CheckName, and adds the field error for the member at the JSON
// Pointer if the text is invalid.
func (f *FieldErrors) Name(pointer, text string, minimum, maximum int) {
	code, detail := CheckName(text, minimum, maximum)
	f.Add(pointer, code, detail)
}

// Err returns ErrValidation with the field errors, or nil if there are no field errors.
func (f FieldErrors) Err() error {
	if len(f) == 0 {
		return nil
	}
	return ErrValidation.WithFieldErrors(f...)
}

// Optional is a member of a request that can be absent. Set is true if the member is
// present. If T is a pointer, a nil Value of a present member means null (RFC 7396).
type Optional[T any] struct {
	Value T
	Set   bool
}

// Some returns an Optional that is present and has the value v.
func Some[T any](v T) Optional[T] { return Optional[T]{Value: v, Set: true} }

// IsOptional does nothing. Decoders recognize an Optional by this method.
func (*Optional[T]) IsOptional() {}

// Metadata is a user's map of keys to texts, stored as one JSON object with sorted keys.
// The object is copied from the store to the response without decoding. Because the keys
// are sorted, two values with the same pairs are equal with ==. The zero value has no
// pairs.
type Metadata struct{ object string } // empty for {}

const noPairs = "{}"

// NewMetadata returns metadata with these pairs.
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

// Pairs returns the metadata as a map, which is empty and not nil if there are no pairs. It
// returns an error if the stored text is not a JSON object of texts.
func (m Metadata) Pairs() (map[string]string, error) {
	pairs := map[string]string{}
	if err := json.Unmarshal([]byte(m.String()), &pairs); err != nil {
		return nil, fmt.Errorf("rolecall: metadata: %w", err)
	}
	return pairs, nil
}

// String returns the metadata as a JSON object.
func (m Metadata) String() string {
	if m.object == "" {
		return noPairs
	}
	return m.object
}

// MarshalJSON returns the metadata as a JSON object (json.Marshaler).
func (m Metadata) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON sets the metadata from a JSON object of texts (json.Unmarshaler).
func (m *Metadata) UnmarshalJSON(object []byte) error {
	var pairs map[string]string
	if err := json.Unmarshal(object, &pairs); err != nil {
		return err
	}
	*m = NewMetadata(pairs)
	return nil
}

// Value returns the metadata as a JSON text, for a database column (driver.Valuer).
func (m Metadata) Value() (driver.Value, error) { return m.String(), nil }

// Scan sets the metadata from a database column that has a text of Value (sql.Scanner).
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

// AppendJSON appends the metadata to b as a JSON object.
func (m Metadata) AppendJSON(b []byte) []byte { return append(b, m.String()...) }
