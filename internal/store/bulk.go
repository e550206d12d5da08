package store

import (
	"cmp"
	"slices"

	"github.com/rolecall/rolecall"
)

// rowsAtOnce is how many rows one statement writes in bulk. PostgreSQL's COPY is
// no choice: it refuses tables under row-level security. A statement of many rows
// is the same on both databases, and costs what its indexes cost.
const rowsAtOnce = 250

// InsertUsers inserts many users in few statements. Update returns the same errors
// as for InsertUser.
func (t *Tx) InsertUsers(users []rolecall.User) {
	var found []foundBy
	insertRows(t, insertUsers, users, func(b *builder, u rolecall.User) {
		words := userWords(&u)
		for _, word := range words.rows() {
			found = append(found, foundBy{word, u.ID})
		}
		b.write("($1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)", u.ID, u.Email, u.EmailKey(), u.Name, u.NameKey(),
			u.Department, u.DepartmentKey(), u.ExternalID, u.Metadata, string(u.Status), words.text(),
			u.CreatedAt, u.UpdatedAt, u.Version)
	})
	// In the order of the index each page of it is visited once.
	slices.SortStableFunc(found, func(a, b foundBy) int { return cmp.Compare(a.word, b.word) })
	insertRows(t, insertWords, found, func(b *builder, f foundBy) { b.write("($1, ?, ?)", f.word, f.user) })
}

// foundBy is a row of user_words.
type foundBy struct {
	word string
	user rolecall.UserID
}

// InsertAssignments inserts many assignments in few statements. Update returns
// ErrNotFound if a user or a role does not exist.
func (t *Tx) InsertAssignments(assignments []rolecall.Assignment) {
	insertRows(t, insertAssignments, assignments, func(b *builder, a rolecall.Assignment) {
		b.write("($1, ?, ?, ?, ?, ?, ?)", a.Holder.ID, a.Role.ID, departments{&a.Reach}, a.ExpiresAt, a.GrantedBy, a.GrantedAt)
	})
}

// insertRows writes the rows of all, rowsAtOnce in a statement.
func insertRows[T any](t *Tx, insertion string, all []T, row func(*builder, T)) {
	for chunk := range slices.Chunk(all, rowsAtOnce) {
		b := newBuilder(t.tenant)
		b.write(insertion)
		for i, item := range chunk {
			if i > 0 {
				b.write(", ")
			}
			row(b, item)
		}
		b.exec(t.q)
	}
}
