package store

import (
	"strconv"
	"strings"

	"github.com/rolecall/rolecall"
)

// builder writes a statement whose shape depends on its arguments. $1 is the
// tenant; each ? becomes the next placeholder.
type builder struct {
	text  strings.Builder
	args  []any
	first [4]any // memory for args of most statements
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

// condition is a part of a where clause, with ? for each argument.
type condition struct {
	sql  string
	args []any
}

func where(sql string, args ...any) condition { return condition{sql, args} }

// oneOf is the condition that a column has one of the values.
func oneOf[T any](column string, values []T) condition {
	c := condition{sql: column + " in (" + strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ") + ")"}
	for _, value := range values {
		c.args = append(c.args, value)
	}
	return c
}

// either is the condition that one of two holds.
func either(c, d condition) condition {
	return condition{"(" + c.sql + " or " + d.sql + ")", append(c.args[:len(c.args):len(c.args)], d.args...)}
}

// both is the condition that two hold.
func both(c, d condition) condition {
	return condition{"(" + c.sql + " and " + d.sql + ")", append(c.args[:len(c.args):len(c.args)], d.args...)}
}

// all writes the conditions, each after an "and".
func (b *builder) all(conditions []condition) {
	for _, c := range conditions {
		b.write(" and "+c.sql, c.args...)
	}
}

// limit writes a limit as a number: SQLite would prepare a statement anew each
// time a placeholder of a limit is bound.
func (b *builder) limit(n int) { b.text.WriteString(" limit " + strconv.Itoa(n)) }

// joined writes the conditions on r so that they are judged only for the rows that
// c names. Else PostgreSQL, which expects few rows to fulfil them, looks for those
// in the whole table first, and reads c once for each.
func (b *builder) joined(conditions []condition) {
	for _, c := range conditions {
		b.write(" and case when r.id = c.id then "+c.sql+" end", c.args...)
	}
}

func (b *builder) query(q Querier, each func(scan func(dest ...any) error) error) (rows int, err error) {
	return q.Query(b.text.String(), b.args, each)
}

func (b *builder) exec(q Querier) { q.Exec(b.text.String(), b.args...) }
