package rolecall_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
)

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"Ada Lovelace":           "ada lovelace",
		"ÉCOLE":                  "ecole",
		"e\u0301cole":            "ecole", // decomposed
		"Straße":                 "strasse",
		"ŁÓDŹ Ørsted Đoković":    "lodz orsted dokovic",
		"Æsir Œuvre Þór ıl Ð":    "aesir oeuvre thor il d",
		"ΠΩΛΉΣΕΙΣ Πωλήσεις":      "πωλησεισ πωλησεισ",
		"Ow\u200bn\u00ader":      "owner",
		"ﬁne":                    "fine", // a ligature
		"Ｆｕｌｌ":                   "full", // wide forms
		"İstanbul":               "istanbul",
		"Ångström \u212B":        "angstrom a",
		"한국어":                    "한국어",
		"\u1112\u1161\u11ab":     "한", // Hangul spelt by letter
		"が":                      "か",
		"\U0001D400\U0001D41A":   "aa", // mathematical letters
		strings.Repeat("A", 201): strings.Repeat("a", 200),
		strings.Repeat("a", 201): strings.Repeat("a", 200),
		strings.Repeat("漢", 201): strings.Repeat("漢", 200),
	} {
		if got := rolecall.Fold(text); got != want {
			t.Errorf("Fold(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestFoldingTwiceChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		once := rolecall.Fold(text)
		if twice := rolecall.Fold(once); twice != once {
			t.Errorf("Fold(%q) = %q, and of that %q", text, once, twice)
		}
		if n := utf8.RuneCountInString(once); n > 200 {
			t.Errorf("Fold(%q) has %d characters", text, n)
		}
	})
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                         {},
		" - ":                      {},
		"Ada Lovelace":             {"ada", "lovelace"},
		"ada.lovelace@example.com": {"ada", "lovelace", "example", "com"},
		"Ada ADA áda":              {"ada"},
		"O’Neill-Smith 3rd":        {"o", "neill", "smith", "3rd"},
		"李小龙":                      {"李小龙"},
		strings.Repeat("x", 70):    {strings.Repeat("x", 64)},
	} {
		if got := rolecall.Words(text); !slices.Equal(got, want) {
			t.Errorf("Words(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestWordsToFind(t *testing.T) {
	for text, want := range map[string][]string{
		"":               {},
		"Ada Lovelace":   {"ada", "lovelace"},
		"山田太郎":           {"山田太郎", "田太郎", "太郎", "郎"},
		"김철수":            {"김철수", "철수", "수"},
		"ヤマダ タロウ":        {"ヤマタ", "マタ", "タ", "タロウ", "ロウ", "ウ"}, // marks do not count
		"สมชาย":          {"สมชาย", "มชาย", "ชาย", "าย", "ย"},
		"ABC株式会社":        {"abc株式会社", "株式会社", "式会社", "会社", "社"},
		"李Ada":           {"李ada", "ada"},
		"सीता":           {"सत"}, // Devanagari has spaces
		"山山山":            {"山山山", "山山", "山"},
		"O’Neill 山田":     {"o", "neill", "山田", "田"},
		"ada@例え.example": {"ada", "例え", "え", "example"},
	} {
		if got := rolecall.WordsToFind(text); !slices.Equal(got, want) {
			t.Errorf("WordsToFind(%q) = %q, want %q", text, got, want)
		}
	}
}

// Joining words and splitting them again must give the same words. Otherwise, the words of
// a search would not match those of the stored texts.
func TestSplittingWordsAgainChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rolecall.Words(rapid.String().Draw(t, "text"))
		if again := rolecall.Words(strings.Join(words, " ")); len(words) > 0 && !slices.Equal(again, words) && len(strings.Join(words, " ")) <= 200 {
			t.Errorf("words of %q are %q", words, again)
		}
		for _, word := range words {
			if word == "" || utf8.RuneCountInString(word) > 64 {
				t.Errorf("%q is a word", word)
			}
		}
	})
}

func TestCheckText(t *testing.T) {
	for _, test := range []struct{ name, text, code string }{
		{"shortest", "abc", ""},
		{"too short", "ab", "length"},
		{"empty", "", "length"},
		{"longest", strings.Repeat("a", 255), ""},
		{"too long", strings.Repeat("a", 256), "length"},
		{"longest of three bytes each", strings.Repeat("漢", 255), ""},
		{"too long of three bytes each", strings.Repeat("漢", 256), "length"},
		{"longest of four bytes each", strings.Repeat("😀", 255), ""},
		{"letters with marks count them", "a\u0301b\u0301", ""},
		{"right-to-left text", "עדה לאבלייס", ""},
		{"right-to-left mark among letters", "Ada\u200FB", ""},
		{"only right-to-left marks", "\u200F\u200F\u200F", "blank"},
		{"zero width joiner inside an emoji", "👩\u200D💻", ""},
		{"only zero width", "\u200B\u200D\uFEFF", "blank"},
		{"only spaces", "   ", "blank"},
		{"only wide and narrow spaces", "\u3000\u2009\u00A0", "blank"},
		{"only fillers that are letters", "\u3164\u115F\uFFA0", "blank"},
		{"only blank braille", "\u2800\u2800\u2800", "blank"},
		{"only variation selectors", "\uFE0F\uFE0F\uFE0F", "blank"},
		{"nul", "Ada\x00", "control-character"},
		{"line feed", "Ada\nB", "control-character"},
		{"tab", "Ada\tB", "control-character"},
		{"delete", "Ada\x7f", "control-character"},
		{"next line", "Ada\u0085", "control-character"},
		{"line separator", "Ada\u2028", "control-character"},
		{"paragraph separator", "Ada\u2029", "control-character"},
		{"not UTF-8", "Ada\xff", "encoding"},
		{"lone surrogate", "Ada\xed\xa0\x80", "encoding"},
	} {
		code, detail := rolecall.CheckText(test.text, 3, 255)
		if code != test.code || (code == "") != (detail == "") {
			t.Errorf("%s: %q gives %q, %q, want %q", test.name, test.text, code, detail, test.code)
		}
	}
}

func TestFieldErrorsBecomeAValidationError(t *testing.T) {
	var faults rolecall.FieldErrors
	faults.Add("/name", "", "")
	if err := faults.Err(); err != nil {
		t.Errorf("no fault gives %v", err)
	}
	faults.Text("/name", "ab", 3, 255)
	err := faults.Err()
	if rolecall.KindOf(err) != rolecall.Invalid {
		t.Errorf("KindOf(%v) = %v", err, rolecall.KindOf(err))
	}
	if len(rolecall.ErrValidation.FieldErrors) != 0 {
		t.Error("the shared error was changed")
	}
}

// codes returns one text for each field error, with its pointer and its code.
func codes(faults rolecall.FieldErrors) []string {
	texts := []string{}
	for _, f := range faults {
		texts = append(texts, f.Pointer+" "+f.Code)
	}
	return texts
}

func TestMetadataIsOneObjectInOneForm(t *testing.T) {
	for want, pairs := range map[string]map[string]string{
		`{}`:                            nil,
		`{"a":"1","b":"2"}`:             {"b": "2", "a": "1"},
		`{"quote\"\\":"línea <☃> & '"}`: {`quote"\`: "línea <☃> & '"},
		`{"":"","\u0000":"\t"}`:         {"": "", "\x00": "\t"},
	} {
		if got := rolecall.NewMetadata(pairs).String(); got != want {
			t.Errorf("%v became %s, want %s", pairs, got, want)
		}
	}
}

func TestMetadataKeepsEveryPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "pairs")
		m := rolecall.NewMetadata(pairs)
		value, err := m.Value()
		if err != nil {
			t.Fatal(err)
		}
		var stored, read rolecall.Metadata
		if err := stored.Scan(value); err != nil || stored != m {
			t.Fatalf("%s was stored, %s came back: %v", m, stored, err)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &read); err != nil || read != m {
			t.Fatalf("%s was written, %s read: %v", m, read, err)
		}
		if got, err := m.Pairs(); err != nil || !maps.Equal(got, pairs) {
			t.Fatalf("%v became %v: %v", pairs, got, err)
		}
	})
}

func TestInvalidMetadataIsRefused(t *testing.T) {
	var m rolecall.Metadata
	if err := m.Scan([]byte("{}")); err == nil {
		t.Error("bytes were taken")
	}
	if err := m.Scan("[]"); err != nil {
		t.Fatal(err)
	}
	if pairs, err := m.Pairs(); err == nil {
		t.Errorf("a list became %v", pairs)
	}
	if err := json.Unmarshal([]byte(`{"a":1}`), &m); err == nil {
		t.Errorf("a number became %s", m)
	}
}
