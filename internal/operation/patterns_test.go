package operation

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

// eachText calls f with each text of up to length characters of the alphabet.
func eachText(alphabet string, length int, f func(text string)) {
	var extend func(text string, left int)
	extend = func(text string, left int) {
		f(text)
		if left == 0 {
			return
		}
		for _, r := range alphabet {
			extend(text+string(r), left-1)
		}
	}
	extend("", length)
}

func TestPatternsMatchWhatIsAccepted(t *testing.T) {
	compare := func(name, pattern, alphabet string, length int, accepts func(text string) bool) {
		t.Helper()
		compiled := regexp.MustCompile(pattern)
		eachText(alphabet, length, func(text string) {
			if got, want := compiled.MatchString(text), accepts(text); got != want {
				t.Errorf("%s: the pattern matches %q: %v, want %v", name, text, got, want)
			}
		})
	}
	var latin1 strings.Builder
	for r := rune(0); r < 0x100; r++ {
		latin1.WriteRune(r)
	}
	isText := func(text string) bool { code, _ := rolecall.CheckText(text, 1, 10); return code == "" }
	compare("visibleText", visibleText, latin1.String(), 2, isText)
	compare("visibleText", visibleText, "a é\u00a0\u00ad\n", 4, isText)
	compare("emptyOrVisibleText", emptyOrVisibleText, "a é\u00a0\u00ad\n", 4, func(text string) bool { return text == "" || isText(text) })
	compare("searchPattern", searchPattern, latin1.String(), 1, func(text string) bool { return len(rolecall.Words(text)) > 0 })
	compare("keyPattern", keyPattern, "a\"\\ ]#", 6, func(text string) bool { _, code, _ := parseKey(text); return code == "" })
	compare("tagsPattern", tagsPattern, `a"*,/W `, 6, func(text string) bool {
		code, _ := readTags(&tags{}, text)
		return code == ""
	})
}

func TestPatternsOfPermissionsMatchThoseThatAreKnown(t *testing.T) {
	names := map[string]bool{"*": true, "a": true, "Ab": true, "a_9": true}
	fields := map[string]bool{"": true, "*": true, "a": true}
	for _, p := range rolecall.OwnPermissions() {
		names[p.Resource], names[p.Action], fields[p.Field] = true, true, true
	}
	withWildcards, single := regexp.MustCompile(permissionPattern(true)), regexp.MustCompile(permissionPattern(false))
	for _, application := range []string{"", "shop/", "*/", "/", "1/"} {
		for resource := range names {
			for field := range fields {
				for action := range names {
					text := application + resource
					if field != "" {
						text += "." + field
					}
					text += ":" + action
					p, err := rolecall.ParsePermission(text)
					isKnown := err == nil && p.Known()
					if got := withWildcards.MatchString(text); got != isKnown {
						t.Fatalf("the pattern of permissions matches %s: %v", text, got)
					}
					if got := single.MatchString(text); got != (isKnown && !strings.Contains(text, "*")) {
						t.Fatalf("the pattern of single permissions matches %s: %v", text, got)
					}
				}
			}
		}
	}
	for _, text := range []string{"", "users", "users:", ":read", "users:read:read", "users.:read", "a/b/c:d", "shop/" + strings.Repeat("a", 65) + ":b"} {
		if withWildcards.MatchString(text) || single.MatchString(text) {
			t.Errorf("a pattern matches %q", text)
		}
	}
	if !slices.ContainsFunc(rolecall.OwnPermissions(), func(p rolecall.Permission) bool { return p.Field != "" && p.Resource == "users" }) {
		t.Error("no field of users has permissions")
	}
}
