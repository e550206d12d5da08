package rolecall

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// keyMax is the maximum length of a key of a text, in bytes. One code point of a name can become 18 in the key, and
// indexes hold keys of a limited length.
const keyMax = 255

// hashed begins each part of a key that names cannot contain, because they have no control characters.
const hashed = "\x01"

// TextKey returns the key by which departments and names are compared. Texts that a reader takes for the same name
// have the same key: the key ignores case, invisible characters, the number of blanks, and the Unicode encoding of a
// character. Marks such as accents count, because they make other letters in many scripts: カード and ガード differ.
//
// The key is the text as toNFKC_Casefold of Unicode (UAX #31), trimmed and with single blanks. In place of a key of
// more than 255 bytes, TextKey returns its SHA-256.
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

// aLabels converts domains to A-labels for a look-up (UTS #46, nontransitional).
var aLabels = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// DomainKey returns the key by which domains of addresses are compared: the domain with A-labels, such as
// xn--bcher-kva.example for bücher.example. A domain that UTS #46 does not allow stays in NFC and in lower case.
func DomainKey(domain string) string {
	lower := strings.ToLower(norm.NFC.String(domain))
	if isPlain(lower) && !strings.Contains(lower, "xn--") {
		return lower
	}
	key, err := aLabels.ToASCII(lower)
	if err != nil {
		return lower
	}
	return key
}
