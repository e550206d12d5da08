package store

import (
	"strconv"

	"github.com/rolecall/rolecall"
)

// fewRows is how many rows of a source are so few that no smaller source is looked
// for.
const fewRows = 500

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
		return l.read(l.picking(*pick), false)
	}
	if l.whole() {
		return l.read(l.plain(), false)
	}
	return l.read(l.walking(), true)
}

// whole reports whether the list holds every row of its table.
func (l *listing[T]) whole() bool { return len(l.conditions) == 0 && l.throughout() }

// throughout reports whether the walk goes through every row of the list's table.
func (l *listing[T]) throughout() bool {
	return l.walk.table == l.table && len(l.walk.conditions) == 0
}

// read runs the statement of a page. After the rows of a walk that has not ended
// comes the last place that it looked at, from which a short page goes on.
func (l *listing[T]) read(b *builder, walks bool) (rolecall.Page[T], error) {
	page := rolecall.Page[T]{Items: make([]T, 0, l.limit)}
	var item T
	var last rolecall.Position
	var reached bool
	dest := append(l.dest(&item), &last.Key)
	if walks {
		dest = append(dest, &reached)
	}
	_, err := b.query(l.tx.q, func(scan func(dest ...any) error) error {
		if len(page.Items) == l.limit {
			page.Next = &last
			return nil
		}
		item = *new(T) // shares nothing with the row before
		if err := scan(dest...); err != nil {
			return err
		}
		last.ID = l.id(&item)
		if reached {
			page.Next = &last
			return nil
		}
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
	b.write("select " + l.selected() + " from " + l.table + " r where r.tenant_id = $1")
	l.beyond(b, "r.", "id")
	l.order(b, "r.", "id")
	b.limit(l.limit + 1)
	return b
}

// walking writes the statement of a page that a walk drives through MaxScan rows,
// and, where the page is not full, of the last of them: in one statement, so that
// no row slips between two snapshots. The parts of a "union all" run in turn, and
// the second only if the first does not reach the limit.
func (l *listing[T]) walking() *builder {
	b := newBuilder(l.tx.tenant)
	b.write("select * from (")
	if l.throughout() {
		l.rows(b)
	} else {
		l.named(b, "false", 0, rolecall.MaxScan)
		b.joined(l.conditions)
		l.order(b, "c.", "id")
	}
	b.limit(l.limit + 1)
	b.write(") p union all select * from (")
	l.named(b, "true", rolecall.MaxScan-1, 1)
	b.write(") e")
	b.limit(l.limit + 1)
	return b
}

// rows writes the rows of the page, read in the order of the list.
func (l *listing[T]) rows(b *builder) {
	b.write("select " + l.selected() + ", false from (select *")
	l.along(b)
	b.limit(rolecall.MaxScan)
	b.write(") r where r.tenant_id = $1")
	b.all(l.conditions)
	l.order(b, "r.", "id")
}

// named writes n rows of the walk, with whether they are its last. The walk gives
// ids and keys only, so that an index alone has them.
func (l *listing[T]) named(b *builder, last string, offset, n int) {
	b.write("select " + l.selected() + ", " + last + " from (select " + l.walk.id + " as id")
	if l.key != "" {
		b.write(", " + l.key)
	}
	l.along(b)
	b.limit(n)
	b.write(" offset " + strconv.Itoa(offset) + ") c cross join " + l.table + " r where r.tenant_id = $1 and r.id = c.id")
}

// along writes the rows of the walk after the last page, in its order.
func (l *listing[T]) along(b *builder) {
	l.walk.from(b)
	l.beyond(b, "", l.walk.id)
	l.order(b, "", l.walk.id)
}

// picking writes the statement of a page that a pick drives. The cross join
// keeps SQLite from walking the whole table in order instead.
func (l *listing[T]) picking(pick source) *builder {
	b := newBuilder(l.tx.tenant)
	b.write("select " + l.selected() + " from (select distinct " + pick.id + " as id")
	pick.from(b)
	b.write(") c cross join " + l.table + " r where r.tenant_id = $1 and r.id = c.id")
	l.beyond(b, "r.", "id")
	b.joined(l.conditions)
	l.order(b, "r.", "id")
	b.limit(l.limit + 1)
	return b
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
// no further than MaxScan+1; no further than fewRows+1 if one of them yields few, as
// most often one of the words of a search does.
func (t *Tx) smallest(sources []source) (*source, int, error) {
	least, n, err := t.fewest(sources, fewRows)
	if err == nil && n > fewRows {
		least, n, err = t.fewest(sources, rolecall.MaxScan)
	}
	return least, n, err
}

// fewest returns the source that yields the fewest rows, and how many, counting no
// further than one more than enough.
func (t *Tx) fewest(sources []source, enough int) (*source, int, error) {
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
		b.limit(enough + 1)
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
	operator := l.direction(">", "<")
	switch {
	case l.after == nil:
	case l.key == "":
		b.write(" and "+row+id+" "+operator+" ?", l.after.ID)
	default:
		b.write(" and ("+row+l.key+", "+row+id+") "+operator+" (?, ?)", l.after.Key, l.after.ID)
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

// selected returns what a page has of each row: its columns and the sort key,
// empty where a list is sorted by id.
func (l *listing[T]) selected() string {
	if l.key == "" {
		return l.columns + ", ''"
	}
	return l.columns + ", r." + l.key
}
