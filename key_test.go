package rolecall_test

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
)

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
	if unicode.Version != norm.Version || unicode.Version != cases.UnicodeVersion {
		t.Errorf("unicode has version %s, norm %s, cases %s", unicode.Version, norm.Version, cases.UnicodeVersion)
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
		{"unassigned", "Ada\u0378", "unassigned"},
		{"not a character", "Ada\uFFFF", "unassigned"},
		{"not a character of a higher plane", "Ada\U0001FFFE", "unassigned"},
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
