package secret

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
)

// leastWord is the minimum length of a word in code points. Shorter words occur in good
// passwords by chance.
const leastWord = 3

// Words are forbidden words. CheckPassword removes them from a password before it counts
// the characters. The zero value is empty.
type Words struct {
	set     map[string]bool // folded
	longest int             // code points
}

// ReadWords reads one word from each line. It ignores words of fewer than 3 characters. If
// a word is not UTF-8 or is longer than 200 characters, the error names the line.
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

// wordsOf returns the words of texts such as names and addresses: the text itself, its runs
// of letters and digits, and the local part and the domain labels of an address.
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
