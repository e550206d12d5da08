package store

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall"
)

// wordCandidates bounds how many words of a search are tried as the driver of a
// page. The longest are tried, as they are likely the rarest.
const wordCandidates = 4

// Users returns a page of the users that q selects, in bounded work. It counts the
// candidates by word, role and department. It reads the smallest group if it fits in
// the work of one page, and otherwise follows the order of the list.
func (t *Tx) Users(q rolecall.UserQuery) (rolecall.Page[rolecall.User], error) {
	if q.Within.IsNowhere() || len(q.Words) > 0 && q.NameWords.IsNowhere() && q.EmailWords.IsNowhere() {
		return nothing[rolecall.User](q.Count), nil
	}
	if !q.Role.IsZero() { // a deleted role can still have assignments
		if _, err := t.RoleByID(q.Role); errors.Is(err, rolecall.ErrNotFound) {
			return nothing[rolecall.User](q.Count), nil
		} else if err != nil {
			return rolecall.Page[rolecall.User]{}, err
		}
	}
	l := &listing[rolecall.User]{
		tx: t, table: "users", columns: userColumns, dest: userDest,
		id:   func(u *rolecall.User) rolecall.AnyID { return rolecall.AnyID(u.ID) },
		key:  map[rolecall.UserSort]string{rolecall.SortByName: "name_key", rolecall.SortByEmail: "email_key"}[q.Sort],
		desc: q.Desc, after: q.After, limit: q.Limit,
		conditions: userConditions(&q),
	}
	var candidates []source
	l.walk, candidates = userSources(&q)
	if len(q.Words) > 0 && len(l.conditions) == len(q.Words) && q.Sort == rolecall.SortByID && canReadWords(&q) {
		l.shortcut = func() (*source, error) { return t.wordInOrder(q.Words) }
	}
	return l.serve(candidates, q.Count)
}

// serve returns the page driven by the best of its sources, with the total if it
// is asked for.
func (l *listing[T]) serve(candidates []source, count bool) (rolecall.Page[T], error) {
	pick, err := l.choose(candidates)
	if err != nil {
		return rolecall.Page[T]{}, err
	}
	from := l.walk
	if pick != nil {
		from = *pick
	}
	page, err := l.page(pick)
	if err == nil && count {
		page.Total, err = l.total(from)
	}
	return page, err
}

// choose returns the candidate that drives the page, or nil if the walk does. A shortcut
// replaces the walk. It comes first if no other candidate can be smaller.
func (l *listing[T]) choose(candidates []source) (*source, error) {
	if len(candidates) == 0 {
		return nil, nil
	}
	if len(candidates) == 1 {
		if found, err := l.takeShortcut(); found || err != nil {
			return nil, err
		}
	}
	least, n, err := l.tx.fewest(candidates, fewRows)
	if err != nil || n <= fewRows {
		return least, err
	}
	if len(candidates) > 1 {
		if found, err := l.takeShortcut(); found || err != nil {
			return nil, err
		}
	}
	least, n, err = l.tx.fewest(candidates, rolecall.MaxScan)
	if err != nil || n <= rolecall.MaxScan {
		return least, err
	}
	return nil, nil
}

// takeShortcut makes the shortcut the walk, if there is one.
func (l *listing[T]) takeShortcut() (bool, error) {
	if l.shortcut == nil {
		return false, nil
	}
	walk, err := l.shortcut()
	if err != nil || walk == nil {
		return false, err
	}
	l.walk = *walk
	return true, nil
}

// nothing returns the page of a list that holds nothing.
func nothing[T any](count bool) rolecall.Page[T] {
	if !count {
		return rolecall.Page[T]{}
	}
	return rolecall.Page[T]{Total: &rolecall.Total{Exact: true}}
}

// userSources returns the source in the order of the list, and the candidates
// that may drive it instead.
func userSources(q *rolecall.UserQuery) (walk source, candidates []source) {
	walk = source{table: "users", id: "id"}
	switch {
	case q.EmailKey != "":
		return walk, []source{{table: "users", id: "id", conditions: []condition{where("email_key = ?", q.EmailKey)}}}
	case q.ExternalID != "":
		return walk, []source{{table: "users", id: "id", conditions: []condition{where("external_id = ?", q.ExternalID)}}}
	}
	role := source{table: "assignments", id: "user_id", conditions: []condition{where("role_id = ?", q.Role)}}
	department, narrowed := departmentSource(q)
	byID := q.Sort == rolecall.SortByID
	switch {
	case byID && !q.Role.IsZero():
		walk = role
	case byID && narrowed == 1:
		walk = department
	}
	if !q.Role.IsZero() && walk.table != role.table {
		candidates = append(candidates, role)
	}
	if narrowed > 0 && (walk.table != "users" || walk.conditions == nil) {
		candidates = append(candidates, department)
	}
	words := wordSources(q.Words)
	if !canReadWords(q) { // then beginnings of words would count that the caller may not read
		for i := range words {
			words[i].also = nil
		}
	}
	return walk, append(candidates, words...)
}

// canReadWords reports whether the caller can read all words of all users of q.
func canReadWords(q *rolecall.UserQuery) bool {
	return q.NameWords.Covers(q.Within) && q.EmailWords.Covers(q.Within)
}

// departmentSource returns the users of the departments to which q is narrowed,
// and how many departments that are; none if it is not.
func departmentSource(q *rolecall.UserQuery) (source, int) {
	keys := q.Within.DepartmentKeys()
	if q.Department != nil {
		keys = []string{*q.Department}
	}
	if len(keys) == 0 {
		return source{}, 0
	}
	return source{table: "users", id: "id", conditions: []condition{oneOf("department_key", keys)}}, len(keys)
}

// wordSources returns the users who have a word that begins with one of the
// longest of the words, and who can have the others.
func wordSources(all []string) []source {
	longest := slices.Clone(all)
	slices.SortStableFunc(longest, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var sources []source
	for i := range longest[:min(len(longest), wordCandidates)] {
		sources = append(sources, wordSource(startingWith(longest[i]), slices.Delete(slices.Clone(longest), i, i+1)))
	}
	return sources
}

// startingWith is the condition that a word begins with the text.
func startingWith(text string) condition {
	// No character comes after U+10FFFF.
	return where("word >= ? and word < ?", text, text+"\U0010FFFF")
}

// wordSource returns the users who have such a word, and who can have the others.
func wordSource(word condition, others words) source {
	s := source{table: "user_words", id: "user_id", conditions: []condition{word}}
	if bits := others.beginnings(); bits != 0 {
		s.also = []condition{where("(beginnings & ?) = ?", bits, bits)}
	}
	return s
}

// wordInOrder returns the users who have one of the words, in the order of their ids, and
// who can have the others. It returns nil if all words have several continuations.
func (t *Tx) wordInOrder(words []string) (*source, error) {
	for i, word := range words[:min(len(words), wordCandidates)] {
		b := newBuilder(t.tenant)
		for _, end := range []string{"select (select min", ", (select max"} {
			b.write(end + "(word) from user_words where tenant_id = $1")
			b.all([]condition{startingWith(word)})
			b.write(")")
		}
		var least, greatest *string
		if err := t.row(b.text.String(), b.args, &least, &greatest); err != nil {
			return nil, err
		}
		if least != nil && *least == *greatest {
			s := wordSource(where("word = ?", *least), slices.Delete(slices.Clone(words), i, i+1))
			return &s, nil
		}
	}
	return nil, nil
}

// userConditions returns everything that a user of the list must fulfil.
func userConditions(q *rolecall.UserQuery) []condition {
	var all []condition
	if !q.Within.IsEverywhere() {
		all = append(all, inReach(q.Within))
	}
	if q.EmailKey != "" {
		all = append(all, where("r.email_key = ?", q.EmailKey))
	}
	if q.ExternalID != "" {
		all = append(all, where("r.external_id = ?", q.ExternalID))
	}
	if q.Department != nil {
		all = append(all, where("r.department_key = ?", *q.Department))
	}
	if q.Status != "" {
		all = append(all, where("r.status = ?", string(q.Status)))
	}
	if !q.Role.IsZero() {
		// Were it "exists", PostgreSQL might read all holders of the role to hash them.
		all = append(all, where("(select a.expires_at from assignments a where a.tenant_id = $1"+
			" and a.user_id = r.id and a.role_id = ?) > ?", q.Role, q.Now))
	}
	names, emails := wordReach(q.NameWords, q.Within), wordReach(q.EmailWords, q.Within)
	for _, word := range q.Words {
		all = append(all, wordCondition(word, names, emails))
	}
	return all
}

// wordReach returns where words of a member may be used among users within: there
// is nothing to check where they may be used for all of those.
func wordReach(reach, within rolecall.Reach) rolecall.Reach {
	if reach.Covers(within) {
		return rolecall.Everywhere()
	}
	return reach
}

func inReach(reach rolecall.Reach) condition {
	return oneOf("r.department_key", reach.DepartmentKeys())
}

// wordCondition returns that a user has a word that begins with word, in the name
// or the address, as far as these may be searched.
func wordCondition(word string, names, emails rolecall.Reach) condition {
	inName, inEmail := memberWord(memberOfName, word, names), memberWord(memberOfEmail, word, emails)
	switch {
	case names.IsEverywhere() && emails.IsEverywhere():
		return memberWord(memberOfEither, word, names)
	case names.IsNowhere():
		return inEmail
	case emails.IsNowhere():
		return inName
	}
	return either(inName, inEmail)
}

// memberWord returns that the name or the address of a user within reach has a
// word that begins with word. A word is letters and digits: nothing to escape.
func memberWord(member, word string, reach rolecall.Reach) condition {
	has := where("r.words like ?", "% "+member+word+"%")
	if reach.IsEverywhere() || reach.IsNowhere() {
		return has
	}
	return both(has, inReach(reach))
}

// fewRows is how many rows of a source are so few that no smaller source is looked
// for.
const fewRows = 500

// source is an index range that yields the ids of rows that a list may hold.
type source struct {
	table      string
	id         string // the column with the id
	conditions []condition
	also       []condition // on its columns; few of its rows meet them, and no index has these
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
	shortcut   func() (*source, error) // returns a shorter walk, or nil
	conditions []condition
	common     []condition // conditions that nearly every row meets, so a page is soon full
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

// whole reports whether the list holds every row of its table, but for the few that do
// not meet its common conditions.
func (l *listing[T]) whole() bool { return len(l.conditions) == 0 && l.throughout() }

// filters returns all conditions that a row must meet.
func (l *listing[T]) filters() []condition { return slices.Concat(l.conditions, l.common) }

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
	b.all(l.common)
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
		b.all(l.walk.also)
		b.joined(l.filters())
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
	b.all(l.filters())
	l.order(b, "r.", "id")
}

// named writes n rows of the walk, with whether they are its last. The walk gives
// ids and keys only, so that an index alone has them.
func (l *listing[T]) named(b *builder, last string, offset, n int) {
	b.write("select " + l.selected() + ", " + last + " from (select " + l.walk.id + " as id")
	if l.key != "" {
		b.write(", " + l.key)
	}
	if len(l.walk.also) > 0 {
		b.write(", beginnings")
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
	b.all(pick.also)
	b.write(") c cross join " + l.table + " r where r.tenant_id = $1 and r.id = c.id")
	l.beyond(b, "r.", "id")
	b.joined(l.filters())
	l.order(b, "r.", "id")
	b.limit(l.limit + 1)
	return b
}

// total counts the rows of the list among those that the source yields.
func (l *listing[T]) total(from source) (*rolecall.Total, error) {
	b := newBuilder(l.tx.tenant)
	b.write("select coalesce(max(c.looked), 0), count(case when r.tenant_id = $1")
	b.all(l.filters())
	b.write(" then 1 end) from (select distinct s.id, count(*) over () as looked from (select " + from.id + " as id")
	from.from(b)
	b.limit(rolecall.MaxCount + 1)
	b.write(") s) c cross join " + l.table + " r where r.tenant_id = $1 and r.id = c.id")

	var looked, matched int
	err := l.tx.row(b.text.String(), b.args, &looked, &matched)
	return &rolecall.Total{Count: min(matched, rolecall.MaxCount), Exact: looked <= rolecall.MaxCount}, err
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
