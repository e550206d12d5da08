package store

import "github.com/rolecall/rolecall"

// source is an index range that yields the ids of rows that a list may hold.
type source struct {
	table      string
	id         string // the column with the id
	conditions []condition
}

// listing is a list of the rows of a table, called r in its conditions:
// filtered, sorted by a key and the id, in pages, in bounded work.
//
// A page is driven by one source and looks at no more than MaxScan of its rows.
// Either the source is in the order of the list and read until the page is full
// (a walk), or all of it fits and is sorted (a pick).
type listing[T any] struct {
	tx         *Tx
	table      string
	columns    string
	id         func(*T) rolecall.AnyID
	dest       func(*T) []any
	key        string // the column by which rows are sorted before their id; empty for none
	desc       bool
	after      *rolecall.Position
	limit      int
	walk       source
	conditions []condition
}

// page returns the next page, driven by the pick if there is one.
func (l *listing[T]) page(pick *source) (rolecall.Page[T], error) {
	if pick != nil {
		return l.read(l.picking(*pick), nil)
	}
	if l.whole() {
		return l.read(l.plain(), nil)
	}
	page, err := l.read(l.walking(nil), nil)
	if err != nil || page.Next != nil {
		return page, err
	}

	// A short page: find out how far the walk got, and read again exactly that
	// far, so that no row slips between two snapshots.
	last, ended, err := l.reach()
	if err != nil || last == nil {
		return page, err
	}
	if ended {
		return l.read(l.walking(last), nil)
	}
	return l.read(l.walking(last), last)
}

// whole reports whether the list holds every row of its table.
func (l *listing[T]) whole() bool {
	return len(l.conditions) == 0 && l.walk.table == l.table && len(l.walk.conditions) == 0
}

// read runs the statement of a page; next is where the list goes on after a page
// that is not full.
func (l *listing[T]) read(b *builder, next *rolecall.Position) (rolecall.Page[T], error) {
	page := rolecall.Page[T]{Items: make([]T, 0, l.limit), Next: next}
	var item T
	var last rolecall.Position
	dest := append(l.dest(&item), &last.Key)
	err := b.query(l.tx.q, func(scan func(dest ...any) error) error {
		if len(page.Items) == l.limit {
			page.Next = &last
			return nil
		}
		item = *new(T) // shares nothing with the row before
		if err := scan(dest...); err != nil {
			return err
		}
		last.ID = l.id(&item)
		page.Items = append(page.Items, item)
		return nil
	})
	if err != nil {
		return rolecall.Page[T]{}, err
	}
	return page, nil
}

// plain writes the statement of a list that holds every row.
func (l *listing[T]) plain() *builder {
	b := newBuilder(l.tx.tenant)
	b.write("select " + l.columns + ", " + l.keyOf("r.") + " from " + l.table + " r where r.tenant_id = $1")
	l.beyond(b, "r.", "id")
	l.order(b, "r.", "id")
	b.limit(l.limit + 1)
	return b
}

// walking writes the statement of a page that a walk drives: through MaxScan
// rows, or up to the last place.
func (l *listing[T]) walking(last *rolecall.Position) *builder {
	b := newBuilder(l.tx.tenant)
	b.write("select " + l.columns + ", " + l.keyOf("r.") + " from (")
	l.window(b, last)
	b.write(") c cross join " + l.table + " r where r.tenant_id = $1 and r.id = c.id")
	b.joined(l.conditions)
	l.order(b, "c.", "id")
	b.limit(l.limit + 1)
	return b
}

// picking writes the statement of a page that a pick drives. The cross join
// keeps SQLite from walking the whole table in order instead.
func (l *listing[T]) picking(pick source) *builder {
	b := newBuilder(l.tx.tenant)
	b.write("select " + l.columns + ", " + l.keyOf("r.") + " from (select distinct " + pick.id + " as id")
	pick.from(b)
	b.write(") c cross join " + l.table + " r where r.tenant_id = $1 and r.id = c.id")
	l.beyond(b, "r.", "id")
	b.joined(l.conditions)
	l.order(b, "r.", "id")
	b.limit(l.limit + 1)
	return b
}

// window writes the rows of the walk that a page looks at: ids and keys only, so
// that an index alone gives them.
func (l *listing[T]) window(b *builder, last *rolecall.Position) {
	b.write("select " + l.walk.id + " as id")
	if l.key != "" {
		b.write(", " + l.key)
	}
	l.walk.from(b)
	l.beyond(b, "", l.walk.id)
	if last != nil {
		l.compare(b, "", l.walk.id, l.direction("<=", ">="), last)
	}
	l.order(b, "", l.walk.id)
	if last == nil {
		b.limit(rolecall.MaxScan)
	}
}

// reach returns the last place that a page of the walk looks at, nil if there is
// none, and whether the walk ends there.
func (l *listing[T]) reach() (last *rolecall.Position, ended bool, err error) {
	backward := *l
	backward.desc = !l.desc
	b := newBuilder(l.tx.tenant)
	b.write("select count(*) over (), c.id, " + l.keyOf("c.") + " from (")
	l.window(b, nil)
	b.write(") c")
	backward.order(b, "c.", "id")
	b.limit(1)

	err = b.query(l.tx.q, func(scan func(dest ...any) error) error {
		var looked int
		last = new(rolecall.Position)
		err := scan(&looked, &last.ID, &last.Key)
		ended = looked < rolecall.MaxScan
		return err
	})
	return last, ended, err
}

// total counts the rows of the list among those that the source yields.
func (l *listing[T]) total(from source) (*rolecall.Total, error) {
	b := newBuilder(l.tx.tenant)
	b.write("select coalesce(max(c.looked), 0), count(case when r.tenant_id = $1")
	b.all(l.conditions)
	b.write(" then 1 end) from (select distinct s.id, count(*) over () as looked from (select " + from.id + " as id")
	from.from(b)
	b.limit(rolecall.MaxCount + 1)
	b.write(") s) c cross join " + l.table + " r where r.tenant_id = $1 and r.id = c.id")

	var looked, matched int
	err := l.tx.row(b.text.String(), b.args, &looked, &matched)
	return &rolecall.Total{Count: min(matched, rolecall.MaxCount), Exact: looked <= rolecall.MaxCount}, err
}

// smallest returns the source that yields the fewest rows, and how many, counting
// no further than MaxScan+1.
func (t *Tx) smallest(sources []source) (*source, int, error) {
	b := newBuilder(t.tenant)
	counts := make([]int, len(sources))
	dest := make([]any, len(sources))
	b.write("select ")
	for i, s := range sources {
		if i > 0 {
			b.write(", ")
		}
		b.write("(select count(*) from (select 1")
		s.from(b)
		b.limit(rolecall.MaxScan + 1)
		b.write(") c)")
		dest[i] = &counts[i]
	}
	if err := t.row(b.text.String(), b.args, dest...); err != nil {
		return nil, 0, err
	}
	least := 0
	for i, n := range counts {
		if n < counts[least] {
			least = i
		}
	}
	return &sources[least], counts[least], nil
}

// from writes the table of the source and its conditions.
func (s source) from(b *builder) {
	b.write(" from " + s.table + " where tenant_id = $1")
	b.all(s.conditions)
}

// beyond restricts rows to those after the place where the last page ended.
func (l *listing[T]) beyond(b *builder, row, id string) {
	if l.after != nil {
		l.compare(b, row, id, l.direction(">", "<"), l.after)
	}
}

func (l *listing[T]) compare(b *builder, row, id, operator string, place *rolecall.Position) {
	if l.key == "" {
		b.write(" and "+row+id+" "+operator+" ?", place.ID)
	} else {
		b.write(" and ("+row+l.key+", "+row+id+") "+operator+" (?, ?)", place.Key, place.ID)
	}
}

func (l *listing[T]) order(b *builder, row, id string) {
	direction := l.direction("", " desc")
	b.write(" order by ")
	if l.key != "" {
		b.write(row + l.key + direction + ", ")
	}
	b.write(row + id + direction)
}

func (l *listing[T]) direction(ascending, descending string) string {
	if l.desc {
		return descending
	}
	return ascending
}

// keyOf returns the sort key of a row, empty where a list is sorted by id.
func (l *listing[T]) keyOf(row string) string {
	if l.key == "" {
		return "''"
	}
	return row + l.key
}
