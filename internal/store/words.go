package store

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
)

// The letters that say which member of a user a word is of.
const (
	memberOfName  = "n"
	memberOfEmail = "e"
)

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

func (w words) without(others words) words {
	return slices.DeleteFunc(slices.Clone(w), func(word string) bool { return slices.Contains(others, word) })
}

// insertWords writes one row for each of the words, in one statement.
func (t *Tx) insertWords(id rolecall.UserID, all words) {
	if len(all) == 0 {
		return
	}
	b := newBuilder(t.tenant)
	b.write("insert into user_words (tenant_id, word, member, user_id) values ")
	for i, word := range all {
		if i > 0 {
			b.write(", ")
		}
		b.write("($1, ?, ?, ?)", word[1:], word[:1], id)
	}
	b.exec(t.q)
}

// deleteWords removes the rows of the words, one statement for each member.
func (t *Tx) deleteWords(id rolecall.UserID, all words) {
	for _, member := range []string{memberOfName, memberOfEmail} {
		var gone []string
		for _, word := range all {
			if strings.HasPrefix(word, member) {
				gone = append(gone, word[1:])
			}
		}
		if gone == nil {
			continue
		}
		b := newBuilder(t.tenant)
		b.write("delete from user_words where tenant_id = $1")
		b.all([]condition{oneOf("word", gone), where("member = ?", member), where("user_id = ?", id)})
		b.exec(t.q)
	}
}
