package store

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
)

// The letters that say which member of a user a word is of.
const (
	memberOfName   = "n"
	memberOfEmail  = "e"
	memberOfEither = "_" // in a pattern
)

const insertWords = `insert into user_words (tenant_id, word, user_id) values `

// words are the words by which a user is found: member letter and word, each
// once.
type words []string

func userWords(u *rolecall.User) words {
	var all words
	for _, word := range rolecall.Words(u.Name) {
		all = append(all, memberOfName+word)
	}
	for _, word := range rolecall.Words(u.Email) {
		all = append(all, memberOfEmail+word)
	}
	return all
}

// text returns the words as a row of users keeps them, for conditions that are
// checked beside those of an index.
func (w words) text() string {
	if len(w) == 0 {
		return ""
	}
	return " " + strings.Join(w, " ")
}

// rows returns what the user has a row for: each word once, whichever member it is
// of. Whose members a search may use is checked at the user.
func (w words) rows() words {
	var rows words
	for _, word := range w {
		rows = append(rows, word[1:])
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

func (w words) without(others words) words {
	return slices.DeleteFunc(slices.Clone(w), func(word string) bool { return slices.Contains(others, word) })
}

// insertWords writes the rows in one statement, which names the user once.
func (t *Tx) insertWords(id rolecall.UserID, rows words) {
	if len(rows) == 0 {
		return
	}
	b := newBuilder(t.tenant)
	b.write(insertWords+"($1, ?, ?)", rows[0], id)
	for _, word := range rows[1:] {
		b.write(", ($1, ?, $3)", word)
	}
	b.exec(t.q)
}

// deleteWords removes the rows in one statement.
func (t *Tx) deleteWords(id rolecall.UserID, rows words) {
	if len(rows) == 0 {
		return
	}
	b := newBuilder(t.tenant)
	b.write("delete from user_words where tenant_id = $1")
	b.all([]condition{oneOf("word", rows), where("user_id = ?", id)})
	b.exec(t.q)
}
