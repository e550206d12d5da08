package conventions

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
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

// wordy has phrases that documents must not have, with what to write in their place. Comments and the texts of the
// console may have them.
var wordy = []struct{ pattern, instead string }{
	{`\b(?:are|can|could|did|does|do|had|has|have|is|must|should|was|were|wo|would)n['’]t\b`, "the words without a contraction"},
	{`\b(?:it|that|there|what|here|who|how|let)['’]s\b`, "the words without a contraction"},
	{`\b(?:I|you|we|they)['’](?:re|ve|ll|d)\b`, "the words without a contraction"},
	{`\b(?:basically|easily|just|obviously|of course|please|quite|simply|very)\b`, "the sentence without it"},
	{`\bwill (?:be|get|have|not|then)\b`, "the present tense"},
	{`\be\.g\.|\bi\.e\.|\betc\b|\bvs\b|\bcf\.|\bviz\.`, "the words in English"},
	{`\be-mails?\b|\bweb site\b|\btime stamp\b|\bback-?end of\b|\bblacklist\b|\bwhitelist\b`, "email, website, timestamp, back end, blocklist, allowlist"},
	{`\ba (?:large )?number of\b`, "many, some"},
	{`\balong the lines of\b`, "like"},
	{`\bas a consequence of\b|\bdue to the fact that\b`, "because"},
	{`\bas to whether\b|\bwhether or not\b`, "whether"},
	{`\bas well as\b`, "and"},
	{`\bat (?:this|that) point in time\b`, "now, then"},
	{`\bby means of\b`, "with, by"},
	{`\bfor the purpose of\b`, "for"},
	{`\bhas the ability to\b|\b(?:is|are) (?:able to|capable of)\b`, "can"},
	{`\bin accordance with\b`, "by, as"},
	{`\bin addition to that\b`, "also"},
	{`\bin case of\b|\bin the event (?:that|of)\b|\bprovided that\b`, "if"},
	{`\bin order to\b`, "to"},
	{`\b(?:in|with) regard to\b|\bwith respect to\b`, "about"},
	{`\bin spite of\b`, "despite"},
	{`\bmakes? use of\b|\butili[sz](?:e|es|ed|ing)\b`, "use"},
	{`\bon a regular basis\b`, "regularly"},
	{`\bprior to\b|\bsubsequent to\b`, "before, after"},
	{`\bthe fact that\b`, "that"},
	{`\bwith the exception of\b`, "except"},
}

// longestSentence is the maximum number of words of a sentence in a document.
const longestSentence = 35

// otherTexts are the checked files other than Go files. text matches the part of a line that is checked.
var otherTexts = []struct {
	suffix string
	text   *regexp.Regexp
}{
	{".md", regexp.MustCompile(`.*`)},
	{".toml", regexp.MustCompile(`=.*`)},
	{".html", regexp.MustCompile(`.*`)},
	{".txt", regexp.MustCompile(`.*`)},
	{".js", regexp.MustCompile(`(//|^ *\*|/\*).*`)},
	{".ts", regexp.MustCompile(`(//|^ *\*|/\*).*`)},
	{".css", regexp.MustCompile(`(^ *\*|/\*).*`)},
	{".templ", regexp.MustCompile(`//.*`)},
	{".sql", regexp.MustCompile(`--.*`)},
	{".sh", regexp.MustCompile(`#.*`)},
	{"Makefile", regexp.MustCompile(`#.*`)},
}

// anyOf returns an expression for all patterns, in any case.
func anyOf(phrases []struct{ pattern, instead string }) *regexp.Regexp {
	all := make([]string, len(phrases))
	for i, p := range phrases {
		all[i] = "(?:" + p.pattern + ")"
	}
	return regexp.MustCompile("(?i)" + strings.Join(all, "|"))
}

// instead returns what to write in place of the found text.
func instead(found string) string {
	for _, p := range slices.Concat(hardToRead, wordy) {
		if regexp.MustCompile("(?i)" + p.pattern).MatchString(found) {
			return p.instead
		}
	}
	return "other words"
}

func TestTextsAreEasyToRead(t *testing.T) {
	hard := anyOf(hardToRead)
	look := func(place, text string) {
		for _, match := range hard.FindAllString(text, -1) {
			t.Errorf("%s: %q: write %s", place, strings.TrimSpace(match), instead(match))
		}
	}
	for _, f := range sources(t) {
		if ast.IsGenerated(f.syntax) && !strings.HasSuffix(f.path, "_templ.go") || f.path == "internal/conventions/language_test.go" {
			continue
		}
		for _, group := range f.syntax.Comments {
			look(f.files.Position(group.Pos()).String(), strings.ReplaceAll(group.Text(), "\n", " "))
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
				look(f.files.Position(literal.Pos()).String(), text)
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
				look(fmt.Sprintf("%s:%d", path, i+1), o.text.FindString(line))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var (
	codeText    = regexp.MustCompile("(?s)```.*?```|`[^`]*`|<!--.*?-->")
	linkTarget  = regexp.MustCompile(`\]\([^)]*\)`)
	newBlock    = regexp.MustCompile(`\n(?:[ \t]*\n|[ \t]*(?:[-*+>#|]|\d+\.)[ \t])|\|`) // a paragraph, a heading, an item or a cell
	sentenceEnd = regexp.MustCompile(`[.!?]["”)*]*\s`)
	word        = regexp.MustCompile(`[\p{L}][^\s]*`)
)

// sentences returns the sentences of a document in Markdown, without code.
func sentences(document string) (all []string) {
	text := linkTarget.ReplaceAllString(codeText.ReplaceAllString(document, ""), "]")
	for _, block := range newBlock.Split(text, -1) {
		all = append(all, sentenceEnd.Split(block, -1)...)
	}
	return all
}

func TestDocumentsAreConcise(t *testing.T) {
	long := anyOf(wordy)
	for document, text := range documents(t) {
		for _, match := range long.FindAllString(codeText.ReplaceAllString(text, ""), -1) {
			t.Errorf("%s: %q: write %s", document, match, instead(match))
		}
		for _, sentence := range sentences(text) {
			if n := len(word.FindAllString(sentence, -1)); n > longestSentence {
				t.Errorf("%s: split the sentence, which has %d words: %s", document, n, strings.Join(strings.Fields(sentence), " "))
			}
		}
	}
}
