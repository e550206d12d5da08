package conventions

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// hardToRead has the phrases that readers had to read twice, and words to use instead.
var hardToRead = []struct{ pattern, instead string }{
	{`\b(is|are|was|were|be) none\b`, "does not exist, is not enrolled, was revoked"},
	{`\bthere (is|are|was|were) none\b`, "does not exist"},
	{`\bis no longer one\b`, "was revoked, was removed"},
	{`\b(who|what|which|where)(so)?ever\b`, "name the person or thing"},
	{`\bwho (may|can|must|does|is|has|holds) not?\b`, "callers without …"},
	{`(?:^|[,;:(] |\b(?:of|to|by|with|for|from|on|in|and|or|returns|has|have|holds|gets|sees|shows|says|tells|writes|reads|takes|makes|does|knows|wants) )what (?:is|are|was|were|has|have|may|can|must|does|do|comes|goes|it|they|he|she|a|an|the|nobody|somebody|others|another) `, "name the thing"},
	{`\bwho (it|he|she|they) (is|are|was|were)\b`, "identity, the caller"},
	{`\bsomebody\b|\bsomeone\b`, "user, caller"},
	{`\bnobody\b|\bno one\b`, "no user, no caller"},
	{`\bbeside\b`, "next to, in addition to, compared with"},
	{`\bgone\b`, "deleted, expired, ended"},
	{`\bso many\b|\bso much\b`, "limit, number of"},
	{`\bat (one|a) glance\b`, "summary"},
	{`\b(held|holds?|holding) back\b`, "redacted"},
	{`\bsays (yes|no)\b`, "confirms, declines"},
	{`\bis not to be\b|\bare not to be\b`, "must not be, or say what it is"},
	{`\b(is|are|was|were|be) (told|asked|asked for|looked at|looked for|put)\b`, "notified, requested, read, searched, stored"},
	{`\bmeanwhile\b`, "until then, at the same time"},
	{`\bthe like\b|\bof its own\b|\bof their own\b|\bof one's own\b`, "own, separate"},
	{`\bthat there is\b|\bthere is to\b`, "available, existing"},
	{`\bpast (it|its|that|this|them|the)\b`, "after, beyond, bypassing"},
	{`\bover (with)?[.;,]`, "expired, ended"},
}

// otherTexts are the checked files other than Go files. text matches the part of a line that is
// checked.
var otherTexts = []struct {
	suffix, kind string
	text         *regexp.Regexp
}{
	{".md", "documents", regexp.MustCompile(`.*`)},
	{".toml", "strings", regexp.MustCompile(`=.*`)},
	{".html", "strings", regexp.MustCompile(`.*`)},
	{".txt", "strings", regexp.MustCompile(`.*`)},
	{".js", "comments", regexp.MustCompile(`(//|^ *\*|/\*).*`)},
	{".ts", "comments", regexp.MustCompile(`(//|^ *\*|/\*).*`)},
	{".css", "comments", regexp.MustCompile(`(^ *\*|/\*).*`)},
	{".templ", "comments", regexp.MustCompile(`//.*`)},
	{".sql", "comments", regexp.MustCompile(`--.*`)},
	{".sh", "comments", regexp.MustCompile(`#.*`)},
	{"Makefile", "comments", regexp.MustCompile(`#.*`)},
}

// most is the maximum number of hardToRead phrases in each kind of text. Lower these
// numbers when you can, and never raise them.
var most = map[string]int{"comments": 0, "documents": 0, "strings": 0}

func TestTextsAreEasyToRead(t *testing.T) {
	var all []string
	for _, h := range hardToRead {
		all = append(all, "(?:"+h.pattern+")")
	}
	hard := regexp.MustCompile("(?i)" + strings.Join(all, "|"))
	found := map[string][]string{}
	look := func(kind, place, text string) {
		for _, match := range hard.FindAllString(text, -1) {
			found[kind] = append(found[kind], fmt.Sprintf("%s: %s", place, strings.TrimSpace(match)))
		}
	}
	for _, f := range sources(t) {
		if ast.IsGenerated(f.syntax) && !strings.HasSuffix(f.path, "_templ.go") || f.path == "internal/conventions/language_test.go" {
			continue
		}
		for _, group := range f.syntax.Comments {
			look("comments", f.files.Position(group.Pos()).String(), strings.ReplaceAll(group.Text(), "\n", " "))
		}
		if f.isTest() {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING || !strings.Contains(literal.Value, " ") {
				return true
			}
			if text, err := strconv.Unquote(literal.Value); err == nil {
				look("strings", f.files.Position(literal.Pos()).String(), text)
			}
			return true
		})
	}
	for _, o := range otherTexts {
		err := walk(o.suffix, func(path string) error {
			if strings.Contains(path, ".min.") || strings.HasSuffix(path, "-license.txt") || strings.HasPrefix(path, "internal/secret/") || path == "clients/typescript/src/openapi.ts" { // the last one is generated
				return nil
			}
			content, err := fs.ReadFile(root, path)
			for i, line := range strings.Split(string(content), "\n") {
				look(o.kind, fmt.Sprintf("%s:%d", path, i+1), o.text.FindString(line))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for kind, n := range most {
		t.Logf("%s: %d", kind, len(found[kind]))
		if len(found[kind]) > n {
			t.Errorf("%s have %d phrases that are hard to read, want at most %d:\n%s", kind, len(found[kind]), n, strings.Join(found[kind], "\n"))
		}
	}
}
