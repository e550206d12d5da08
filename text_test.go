package rolecall_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
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

// pairsOfTexts says for pairs of names whether they are the same name.
var pairsOfTexts = []struct {
	a, b string
	same bool
}{
	// case
	{"Sales", "SALES", true},
	{"Straße", "STRASSE", true},
	{"Straße", "Strasse", true},
	{"Stra\u1E9Ee", "strasse", true}, // capital sharp s
	{"ΠΩΛΉΣΕΙΣ", "Πωλήσεις", true},   // final sigma
	{"ΠΩΛΉΣΕΙΣ", "πωλήσεισ", true},
	{"ΑΘΗΝΑ", "αθηνα", true},
	{"ПРОДАЖИ", "продажи", true},
	{"ՎԱՃԱՌՔ", "վաճառք", true},
	{"ᲘᲜᲐ", "ინა", true}, // Georgian
	{"ᎣᏏᏲ", "ꭳꮟᏺ", true}, // Cherokee
	{"𐐀𐐁", "𐐨𐐩", true},   // Deseret
	{"Ǆungla", "ǆungla", true},
	{"ŉgo", "ʼngo", true},
	{"K elvin", "k elvin", true},        // Kelvin sign
	{"\u212Bngström", "ångström", true}, // Ångström sign
	{"\u03B1\u0345", "\u1FB3", true},    // iota below
	{"\u1FB3", "αι", true},
	{"\u0390\u03C2", "\u1FD3Σ", true},
	// encoding
	{"É́cole", "É́cole", true},
	{"Édition", "E\u0301dition", true},
	{"한국", "\u1112\u1161\u11AB\u1100\u116E\u11A8", true},
	{"カ\u3099ード", "ガード", true},
	{"ﾊﾞｽ", "バス", true}, // half-width
	{"Ｓａｌｅｓ", "Sales", true},
	{"ﬁnance", "finance", true},
	{"𝐒𝐚𝐥𝐞𝐬", "sales", true},
	{"Team ①", "Team 1", true},
	{"R&D\u00B2", "R&D2", true},
	{"㈱", "(株)", true},
	{"ﷺ", "صلى الله عليه وسلم", true}, // one code point, 18 in the key
	{"ﻻ", "لا", true},
	{"\u2126", "Ω", true},
	{"ﾡ", "ᄀ", true},
	// invisible characters and width
	{"Owner", "Ow\u200Bner", true},
	{"Owner", "\u200EOwner\u200F", true},
	{"Owner", "O\u00ADwner", true}, // soft hyphen
	{"Owner", "Own\u2060er", true}, // word joiner
	{"Owner", "Own\uFE0Fer", true}, // variation selector
	{"Owner", "Own\u034Fer", true}, // grapheme joiner
	{"Owner", "Owner\u3164", true}, // Hangul filler
	{"Owner", "Own\U000E0041er", true},
	{"Owner", "ＯＷＮＥＲ", true},
	{"ᠮᠣᠩᠭᠣᠯ", "ᠮᠣᠩ\u180Bᠭᠣᠯ", true},
	// blanks
	{"Sales Team", " Sales   Team ", true},
	{"Sales Team", "Sales\u3000Team", true},
	{"Sales Team", "Sales\u00A0Team", true},
	{"Sales Team", "Sales \u200B Team", true},
	{"Sales Team", "Sales\u1680Team\u2003", true},
	// other letters
	{"カード事業部", "ガード事業部", false},
	{"ハス", "パス", false},
	{"ハス", "バス", false},
	{"ツ", "ッ", false},
	{"Édition", "Edition", false},
	{"Größe", "Grosse", false},
	{"Ångström", "Angstrom", false},
	{"Łódź", "Lodz", false},
	{"Ørsted", "Orsted", false},
	{"Øre", "Öre", false},
	{"İzmir", "Izmir", false},
	{"Ilgın", "ilgin", false},
	{"किताब", "कतब", false}, // vowels of Devanagari are marks
	{"কলা", "কালা", false},
	{"เก่า", "เกา", false}, // tones of Thai are marks
	{"பூ", "ப", false},
	{"\u05E9\u05C1", "\u05E9\u05C2", false}, // Hebrew shin and sin
	{"عَلَم", "عِلْم", false},
	{"й", "и", false},
	{"ё", "е", false},
	{"Sales", "Sale s", false},
	{"Sales-Team", "Sales Team", false},
	{"Οwner", "Owner", false}, // Greek omicron: another script
	{"東京", "東 京", false},
	{strings.Repeat("a", 254) + "b", strings.Repeat("a", 254) + "c", false}, // nothing is cut
	{strings.Repeat("漢", 201), strings.Repeat("漢", 200), false},
	{strings.Repeat("漢", 255), strings.Repeat("漢", 254) + "字", false},
	{strings.Repeat("ﷺ", 255), strings.Repeat("ﷺ", 254) + "ﷻ", false},
	{strings.Repeat("Ä", 255), strings.Repeat("ä", 255), true},
}

func TestNamesAreComparedByWhatTheyShow(t *testing.T) {
	if len(pairsOfTexts) < 60 {
		t.Errorf("%d pairs", len(pairsOfTexts))
	}
	for _, pair := range pairsOfTexts {
		a, b := rolecall.TextKey(pair.a), rolecall.TextKey(pair.b)
		if (a == b) != pair.same {
			t.Errorf("%+q and %+q: the keys are %+q and %+q, want them to be the same: %t", pair.a, pair.b, a, b, pair.same)
		}
		if got := rolecall.Within(pair.a).Includes(&pair.b); got != pair.same {
			t.Errorf("the reach %q includes %q: %t", pair.a, pair.b, got)
		}
		user := rolecall.User{Department: &pair.a}
		if key := *user.DepartmentKey(); key != a || len(key) > 255 {
			t.Errorf("%q has the key %q in an index", pair.a, key)
		}
		role, other := rolecall.Role{Name: pair.a}, rolecall.Role{Name: pair.b}
		if (role.NameKey() == other.NameKey()) != pair.same {
			t.Errorf("roles %q and %q have the keys %q and %q", pair.a, pair.b, role.NameKey(), other.NameKey())
		}
		account, second := rolecall.ServiceAccount{Name: pair.a}, rolecall.ServiceAccount{Name: pair.b}
		if (account.NameKey() == second.NameKey()) != pair.same {
			t.Errorf("service accounts %q and %q have the keys %q and %q", pair.a, pair.b, account.NameKey(), second.NameKey())
		}
	}
}

// The key of each code point must be stable: databases keep keys.
func TestTheKeyOfAKeyIsTheKey(t *testing.T) {
	check := func(t rapid.TB, text string) {
		key := rolecall.TextKey(text)
		if again := rolecall.TextKey(key); again != key && !strings.HasPrefix(key, "\x01") {
			t.Errorf("the key of %+q is %+q, and the key of that %+q", text, key, again)
		}
	}
	for r := range unicode.MaxRune + 1 {
		check(t, "a"+string(r)+"b")
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "text")) })
}

func TestKeysSortLikeFoldedNames(t *testing.T) {
	names := []string{"Abel", "Äbte", "Abteilung", "Éa", "Edition", "Édition", "editions", "Zoo"}
	for i, name := range names[1:] {
		previous, role := rolecall.Role{Name: names[i]}, rolecall.Role{Name: name}
		if previous.NameKey() >= role.NameKey() {
			t.Errorf("%q is not before %q", names[i], name)
		}
	}
}

// If the tables were of different versions, a code point that one of them does not know would get another key later.
func TestTheTablesOfUnicodeHaveOneVersion(t *testing.T) {
	for _, version := range []string{norm.Version, cases.UnicodeVersion} {
		if version != unicode.Version {
			t.Errorf("unicode has the version %s, and a table %s", unicode.Version, version)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, test := range []struct{ name, text, code string }{
		{"shortest", "abc", ""},
		{"two letters and blanks", " ab ", "length"},
		{"three letters and blanks", "\u3000abc  ", ""},
		{"longest and a blank", strings.Repeat("a", 255) + " ", ""},
		{"joiner in an emoji", "👩\u200D💻 Ada", ""},
		{"non-joiner in Persian", "می\u200Cخواهم", ""},
		{"left-to-right mark", "Ada\u200E", ""},
		{"right-to-left mark", "\u200Fעדה", ""},
		{"zero-width space", "Ada\u200BB", ""},
		{"right-to-left override", "Ada\u202Eeva", "control-character"},
		{"left-to-right embedding", "\u202AAda\u202C", "control-character"},
		{"isolate", "\u2066Ada\u2069", "control-character"},
		{"first strong isolate", "Ada\u2068B", "control-character"},
		{"byte order mark", "\uFEFFAda", "control-character"},
		{"line feed", "Ada\nB", "control-character"},
		{"line feed at the end", "Ada\n", "control-character"},
		{"unassigned", "Ada\u0378", "unassigned"},
		{"not a character", "Ada\uFFFF", "unassigned"},
		{"not a character of a higher plane", "Ada\U0001FFFE", "unassigned"},
		{"blank braille", "Ada\u2800B", "control-character"},
		{"an annotation", "Ada\uFFF9B", "control-character"},
		{"a control of hieroglyphs", "Ada\U00013430", "control-character"},
		{"a blank of hieroglyphs", "Ada\U00013442", "control-character"},
		{"the filler of Khitan", "Ada\U00016FE4", "control-character"},
		{"a notehead that is not drawn", "Ada\U0001D159", "control-character"},
		{"private use", "Ada\uE000", ""},
		{"only blanks", "     ", "blank"},
		{"only hidden", "\u200B\u200B\u200B", "blank"},
	} {
		code, detail := rolecall.CheckName(test.text, 3, 255)
		if code != test.code || (code == "") != (detail == "") {
			t.Errorf("%s: %q gives %q, %q, want %q", test.name, test.text, code, detail, test.code)
		}
	}
}

func TestNamesAreStoredWithoutBlanksAtTheirEnds(t *testing.T) {
	const given, want = " \u3000Ada  B ", "Ada  B"
	user := rolecall.UserDraft{Email: "ada@example.com", Name: given, Department: new(given)}
	patched, _, err := (&rolecall.UserPatch{Name: rolecall.Some(given), Department: rolecall.Some(new(given))}).Apply(rolecall.User{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	role, faults := (&rolecall.RoleDraft{Name: given}).Role(1, 1)
	if faults != nil {
		t.Fatal(faults)
	}
	renamed, _ := (&rolecall.RolePatch{Name: rolecall.Some(given)}).Apply(rolecall.Role{}, 1)
	account, _ := (&rolecall.ServiceAccountPatch{Name: rolecall.Some(given)}).Apply(rolecall.ServiceAccount{}, 1)
	tenant, _ := (&rolecall.TenantPatch{DisplayName: rolecall.Some(given)}).Apply(rolecall.Tenant{}, 1)
	created, name := user.User(1), given
	for what, got := range map[string]string{
		"user": created.Name, "department": *created.Department, "changed user": patched.Name, "changed department": *patched.Department,
		"role": role.Name, "changed role": renamed.Name, "changed service account": account.Name,
		"service account": (&rolecall.ServiceAccountDraft{Name: given}).ServiceAccount(1).Name,
		"connection":      (&rolecall.ConnectionDraft{Name: given}).Connection(0).Name,
		"reach":           (&rolecall.AssignmentDraft{Departments: []string{given}}).Reach().Departments()[0],
		"tenant":          (&rolecall.TenantDraft{DisplayName: &name}).Tenant(1).DisplayName, "changed tenant": tenant.DisplayName,
	} {
		if got != want {
			t.Errorf("%s: stored %q, want %q", what, got, want)
		}
	}
}

// A name of two letters is common in many languages, such as 李明 and Li, and so are departments such as HR.
func TestTheMinimumOfNamesIsASetting(t *testing.T) {
	two, one := int64(2), int64(1)
	for _, test := range []struct {
		settings rolecall.TenantSettings
		refused  string // the longest name that is refused
		allowed  string
	}{
		{rolecall.TenantSettings{}, "李明", "李小明"},
		{rolecall.TenantSettings{NameMin: &two}, "李", "李明"},
		{rolecall.TenantSettings{NameMin: &one}, "", "李"},
	} {
		minimum := test.settings.NameMinimum()
		for name, valid := range map[string]bool{test.refused: false, test.allowed: true} {
			user, patch := rolecall.UserDraft{Email: "li@example.com", Name: name, Department: &name}, rolecall.UserPatch{Name: rolecall.Some(name), Department: rolecall.Some(&name)}
			role, rolePatch := rolecall.RoleDraft{Name: name}, rolecall.RolePatch{Name: rolecall.Some(name)}
			account, accountPatch := rolecall.ServiceAccountDraft{Name: name}, rolecall.ServiceAccountPatch{Name: rolecall.Some(name)}
			tenant := rolecall.TenantDraft{Name: "acme", Owner: rolecall.UserDraft{Email: "li@example.com", Name: name}, NameMin: minimum}
			if got := tenant.Tenant(1).Settings.NameMinimum(); got != minimum {
				t.Errorf("a tenant with the minimum %d has %d", minimum, got)
			}
			for what, faults := range map[string]rolecall.FieldErrors{
				"user": user.Check(minimum), "change of a user": patch.Check(minimum), "role": role.Check(minimum), "change of a role": rolePatch.Check(minimum),
				"service account": account.Check(minimum), "change of a service account": accountPatch.Check(minimum), "tenant": tenant.Check(),
			} {
				if (faults == nil) != valid {
					t.Errorf("minimum %d, %s %q: %v", minimum, what, name, faults)
				}
			}
		}
	}
}
