package secret

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
)

// leastWord is the minimum length of a word in code points. Shorter words are ignored,
// because good passwords also contain them by chance.
const leastWord = 3

// Words is a set of words that make a password no harder to guess. CheckPassword removes
// them from a password before it counts the characters. The zero value is an empty set.
type Words struct {
	set     map[string]bool // the words, in folded form
	longest int             // length of the longest word, in code points
}

// ReadWords reads one word from each line of r. It ignores words of fewer than 3 code
// points. It returns an error with the number of the line if a word is not UTF-8 or has
// more than 200 code points.
func ReadWords(r io.Reader) (Words, error) {
	const most = 200 // Fold cuts longer texts
	var w Words
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		word := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\uFEFF"))
		if !utf8.ValidString(word) || utf8.RuneCountInString(word) > most {
			return Words{}, fmt.Errorf("line %d is not a word of at most %d characters in UTF-8", number, most)
		}
		w.add(word)
	}
	return w, lines.Err()
}

// wordsOf returns the words of texts such as names and email addresses. For each text,
// these are the text itself, each run of letters and digits in it, and the parts of an
// email address, split at "@" and at ".".
func wordsOf(texts ...string) Words {
	var w Words
	for _, text := range texts {
		w.add(text)
		w.add(strings.Split(text, "@")...)
		w.add(strings.FieldsFunc(text, func(r rune) bool { return r == '@' || r == '.' })...)
		w.add(rolecall.Words(text)...)
	}
	return w
}

func (w *Words) add(words ...string) {
	for _, word := range words {
		word = rolecall.Fold(word)
		if length := utf8.RuneCountInString(word); length >= leastWord {
			if w.set == nil {
				w.set = map[string]bool{}
			}
			w.set[word], w.longest = true, max(w.longest, length)
		}
	}
}
