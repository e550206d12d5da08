package store

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall"
)

// builder builds a statement whose text depends on its arguments. The placeholder $1 is
// the tenant. Each ? in the text becomes the next numbered placeholder.
type builder struct {
	text  strings.Builder
	args  []any
	first [4]any // avoids an allocation for statements with few arguments
}

func newBuilder(tenant rolecall.TenantID) *builder {
	b := new(builder)
	b.args = append(b.first[:0], tenant)
	return b
}

func (b *builder) write(sql string, args ...any) {
	for _, arg := range args {
		before, after, _ := strings.Cut(sql, "?")
		b.args = append(b.args, arg)
		b.text.WriteString(before)
		b.text.WriteByte('$')
		b.text.WriteString(strconv.Itoa(len(b.args)))
		sql = after
	}
	b.text.WriteString(sql)
}

// numbered returns the statement with a numbered placeholder for each ?.
func numbered(sql string) string {
	var b builder
	b.write(sql, make([]any, strings.Count(sql, "?"))...)
	return b.text.String()
}

// condition is a part of a where clause. Its text has a ? for each argument.
type condition struct {
	sql  string
	args []any
}

func where(sql string, args ...any) condition { return condition{sql, args} }

// oneOf returns an SQL condition that is true if the column has one of the values.
func oneOf[T any](column string, values []T) condition {
	c := condition{sql: column + " in (" + strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ") + ")"}
	for _, value := range values {
		c.args = append(c.args, value)
	}
	return c
}

// either returns an SQL condition that is true if c or d is true.
func either(c, d condition) condition {
	return condition{"(" + c.sql + " or " + d.sql + ")", append(c.args[:len(c.args):len(c.args)], d.args...)}
}

// both returns an SQL condition that is true if c and d are true.
func both(c, d condition) condition {
	return condition{"(" + c.sql + " and " + d.sql + ")", append(c.args[:len(c.args):len(c.args)], d.args...)}
}

// all writes each condition with " and " before it.
func (b *builder) all(conditions []condition) {
	for _, c := range conditions {
		b.write(" and "+c.sql, c.args...)
	}
}

// limit writes a limit clause. The number is part of the text and not an argument, because
// SQLite prepares a statement again each time an argument of a limit is bound.
func (b *builder) limit(n int) { b.text.WriteString(" limit " + strconv.Itoa(n)) }

// joined writes conditions on the row r so that the database evaluates them only for rows
// whose ids are in c. Without the case expression, PostgreSQL assumes that few rows meet
// the conditions. It then searches the whole table for these rows, and reads c once for
// each row that it finds.
func (b *builder) joined(conditions []condition) {
	for _, c := range conditions {
		b.write(" and case when r.id = c.id then "+c.sql+" end", c.args...)
	}
}

func (b *builder) query(q Querier, each func(scan func(dest ...any) error) error) (rows int, err error) {
	return q.Query(b.text.String(), b.args, each)
}

func (b *builder) exec(q Querier) { q.Exec(b.text.String(), b.args...) }

// rowsAtOnce is the maximum number of rows in one insert statement, and of ids in one
// list. COPY of PostgreSQL is not used for many rows, because it does not support tables
// with row-level security. An insert of many rows works in both databases. Most of its
// cost is the update of the indexes.
const rowsAtOnce = 250

// insertRows inserts all rows, rowsAtOnce per statement.
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
