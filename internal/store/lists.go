package store

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall"
)

// wordCandidates is the maximum number of search words for which a page tries the users
// with that word as its source. The longest words are tried, because they are likely the
// rarest.
const wordCandidates = 4

// Users returns a page of the users that q selects. It counts how many users have each
// search word, the role, the group and the department of q. If the smallest of these groups is small
// enough for one page, Users reads only this group. Otherwise, it scans the users in the
// order of the list. In both cases, it reads a bounded number of rows.
func (t *Tx) Users(q rolecall.UserQuery) (rolecall.Page[rolecall.User], error) {
	if q.Within.IsNowhere() || len(q.Words) > 0 && q.NameWords.IsNowhere() && q.EmailWords.IsNowhere() {
		return nothing[rolecall.User](q.Count), nil
	}
	if !q.Role.IsZero() && q.HeldAt == 0 { // a deleted role can still have assignments
		if _, err := t.RoleByID(q.Role); errors.Is(err, rolecall.ErrNotFound) {
			return nothing[rolecall.User](q.Count), nil
		} else if err != nil {
			return rolecall.Page[rolecall.User]{}, err
		}
		if !q.Direct { // without the groups, the list can be read in its order
			throughGroups, err := t.exists(selectGroupsOfRole, q.Role)
			if err != nil {
				return rolecall.Page[rolecall.User]{}, err
			}
			q.Direct = !throughGroups
		}
	}
	if !q.Group.IsZero() { // a deleted group can still have members
		if _, err := t.GroupByID(q.Group); errors.Is(err, rolecall.ErrNotFound) {
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
	l.indexScan, candidates = userSources(&q)
	if len(q.Words) > 0 && len(l.conditions) == len(q.Words) && q.Sort == rolecall.SortByID && canReadWords(&q) {
		l.shortcut = func() (*source, error) { return t.wordInOrder(q.Words) }
	}
	return l.serve(candidates, q.Count)
}

// serve chooses the source of the rows and returns a page. If count is true, the page
// includes the total.
func (l *listing[T]) serve(candidates []source, count bool) (rolecall.Page[T], error) {
	candidate, err := l.choose(candidates)
	if err != nil {
		return rolecall.Page[T]{}, err
	}
	from := l.indexScan
	if candidate != nil {
		from = *candidate
	}
	page, err := l.page(candidate)
	if err == nil && count {
		page.Total, err = l.total(from)
	}
	return page, err
}

// choose returns the candidate from which the page is read, or nil if the page is read
// from the index scan. The candidate with the fewest rows is used if it has at most
// MaxScan rows. If the shortcut finds a shorter scan, this replaces the index scan, and no
// candidate is used. A single candidate is counted only after the shortcut has found
// nothing. Of several candidates, one with at most fewRows rows is preferred to the
// shortcut.
func (l *listing[T]) choose(candidates []source) (*source, error) {
	if len(candidates) == 0 {
		return nil, nil
	}
	if len(candidates) == 1 {
		if found, err := l.useShortcut(); found || err != nil {
			return nil, err
		}
	}
	least, n, err := l.tx.fewest(candidates, fewRows)
	if err != nil || n <= fewRows {
		return least, err
	}
	if len(candidates) > 1 {
		if found, err := l.useShortcut(); found || err != nil {
			return nil, err
		}
	}
	least, n, err = l.tx.fewest(candidates, rolecall.MaxScan)
	if err != nil || n <= rolecall.MaxScan {
		return least, err
	}
	return nil, nil
}

// useShortcut replaces the index scan with the result of the shortcut. It returns false if
// the list has no shortcut, or if the shortcut found no shorter scan.
func (l *listing[T]) useShortcut() (bool, error) {
	if l.shortcut == nil {
		return false, nil
	}
	scan, err := l.shortcut()
	if err != nil || scan == nil {
		return false, err
	}
	l.indexScan = *scan
	return true, nil
}

// nothing returns the page of an empty list. If count is true, the page includes the total
// 0.
func nothing[T any](count bool) rolecall.Page[T] {
	if !count {
		return rolecall.Page[T]{}
	}
	return rolecall.Page[T]{Total: &rolecall.Total{Exact: true}}
}

// userSources returns the index scan, which has the users in the order of the list, and
// the candidates that can replace it.
func userSources(q *rolecall.UserQuery) (scan source, candidates []source) {
	scan = source{table: "users", id: "id"}
	switch {
	case q.EmailKey != "":
		return scan, []source{{table: "users", id: "id", conditions: []condition{emailIs("email_key", q.EmailKey)}}}
	case q.ExternalID != "":
		return scan, []source{{table: "users", id: "id", conditions: []condition{where("external_id = ?", q.ExternalID)}}}
	}
	role := tablesOfUsers(!q.Direct).holders(where("role_id = ?", q.Role))
	if q.HeldAt != 0 {
		role = heldSource(q.Role, q.Direct)
	}
	group := source{table: "group_members", id: "user_id", conditions: []condition{where("group_id = ?", q.Group)}}
	department, narrowed := departmentSource(q)
	byID := q.Sort == rolecall.SortByID
	switch {
	case byID && !q.Role.IsZero() && q.HeldAt == 0 && q.Direct:
		scan = role
	case byID && !q.Group.IsZero():
		scan = group
	case byID && narrowed == 1:
		scan = department
	}
	if !q.Role.IsZero() && scan.table != role.table {
		candidates = append(candidates, role)
	}
	if !q.Group.IsZero() && scan.table != group.table {
		candidates = append(candidates, group)
	}
	if narrowed > 0 && (scan.table != "users" || scan.conditions == nil) {
		candidates = append(candidates, department)
	}
	words := wordSources(q.Words)
	if !canReadWords(q) { // otherwise, beginnings would also match words that the caller may not read
		for i := range words {
			words[i].also = nil
		}
	}
	return scan, append(candidates, words...)
}

// canReadWords reports whether the caller may read the words of the names and addresses of
// all users that q selects.
func canReadWords(q *rolecall.UserQuery) bool {
	return q.NameWords.Covers(q.Within) && q.EmailWords.Covers(q.Within)
}

// departmentSource returns the source with all users of the departments to which q is
// restricted, and the number of these departments. The number is 0 if q is not restricted
// to departments.
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

// wordSources returns one source for each of the longest search words. A source has the
// users with a word that begins with this search word. From the bits in the column
// beginnings, it recognizes and skips most users who do not match the other search words.
func wordSources(all []string) []source {
	longest := slices.Clone(all)
	slices.SortStableFunc(longest, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var sources []source
	for i := range longest[:min(len(longest), wordCandidates)] {
		sources = append(sources, wordSource(startingWith(longest[i]), slices.Delete(slices.Clone(longest), i, i+1)))
	}
	return sources
}

// startingWith returns an SQL condition that is true if the column word begins with the
// text.
func startingWith(text string) condition {
	// U+10FFFF is the last character.
	return where("word >= ? and word < ?", text, text+"\U0010FFFF")
}

// wordSource returns the source with the users who have a word that meets the condition.
// The source checks the bits in the column beginnings, which exclude most users who do not
// have the other words.
func wordSource(word condition, others Words) source {
	s := source{table: "user_words", id: "user_id", conditions: []condition{word}}
	if bits := others.Beginnings(); bits != 0 {
		s.also = []condition{where("(beginnings & ?) = ?", bits, bits)}
	}
	return s
}

// wordInOrder looks for a search word that is the beginning of exactly one stored word. It
// returns the source with the users who have this stored word, in the order of their ids.
// It checks the first wordCandidates search words, and returns nil if it finds none.
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

// userConditions returns SQL conditions on the user r. The list of q has the users who
// meet all of them.
func userConditions(q *rolecall.UserQuery) []condition {
	var all []condition
	if !q.Within.IsEverywhere() {
		all = append(all, inReach(q.Within))
	}
	if q.EmailKey != "" {
		all = append(all, emailIs("r.email_key", q.EmailKey))
	}
	for m, text := range q.TextFilter.All() {
		all = append(all, where("r."+columnOf(m)+" = ?", text))
	}
	if q.Department != nil {
		all = append(all, where("r.department_key = ?", *q.Department))
	}
	if q.Status != "" {
		all = append(all, where("r.status = ?", string(q.Status)))
	}
	switch {
	case q.Role.IsZero():
	case q.HeldAt != 0:
		all = append(all, heldAt(q.Role, q.HeldAt, q.Direct))
	default:
		// With "exists", PostgreSQL might read all holders of the role to hash them.
		holds := where("(select a.expires_at from assignments a where a.tenant_id = $1"+
			" and a.user_id = r.id and a.role_id = ?) > ?", q.Role, q.Now)
		if !q.Direct {
			holds = either(holds, where("(select max(a.expires_at) from group_members m join group_roles a on a.tenant_id = $1 and a.group_id = m.group_id"+
				" and a.role_id = ? where m.tenant_id = $1 and m.user_id = r.id) > ?", q.Role, q.Now))
		}
		all = append(all, holds)
	}
	if !q.Group.IsZero() {
		all = append(all, where("(select m.added_at from group_members m where m.tenant_id = $1 and m.user_id = r.id and m.group_id = ?) is not null", q.Group))
	}
	names, emails := wordReach(q.NameWords, q.Within), wordReach(q.EmailWords, q.Within)
	for _, word := range q.Words {
		all = append(all, wordCondition(word, names, emails))
	}
	return all
}

// wordReach returns the departments in which a search may use the words of a member. It
// returns Everywhere if reach covers within, because the statement then needs no condition
// on the department.
func wordReach(reach, within rolecall.Reach) rolecall.Reach {
	if reach.Covers(within) {
		return rolecall.Everywhere()
	}
	return reach
}

func inReach(reach rolecall.Reach) condition {
	return oneOf("r.department_key", reach.DepartmentKeys())
}

// wordCondition returns an SQL condition that is true if the name or the email address of
// the user r has a word that begins with word. The condition uses the name only for users
// in the reach names, and the address only for users in the reach emails.
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

// memberWord returns an SQL condition that is true if the user r is in reach and a member
// has a word that begins with word. The argument member is the letter of the name, of the
// address or of either. Words contain only letters and digits, so the pattern needs no
// escaping.
func memberWord(member, word string, reach rolecall.Reach) condition {
	has := where("r.words like ?", "% "+member+word+"%")
	if reach.IsEverywhere() || reach.IsNowhere() {
		return has
	}
	return both(has, inReach(reach))
}

// fewRows is the number of rows up to which a candidate is read without a search for a
// better source.
const fewRows = 500

// source is a range of an index. It contains the ids of all rows that can be in a list.
type source struct {
	table      string
	id         string // the column with the id
	conditions []condition
	also       []condition // conditions on columns of the table that no index serves; few rows meet them
}

// listing is a list of rows of one table. The list filters the rows, sorts them by a key
// and the id, and returns them in pages. SQL conditions of the list refer to a row as r.
//
// A page is read from one source. If the source is in the order of the list, it is scanned
// until the page is full or MaxScan rows were read. Any other source has at most MaxScan
// rows, which are all read and then sorted.
type listing[T any] struct {
	tx         *Tx
	table      string
	columns    string
	id         func(*T) rolecall.AnyID
	dest       func(*T) []any
	key        string // the first sort column, before the id; empty to sort by id only
	desc       bool
	after      *rolecall.Position
	limit      int
	indexScan  source
	shortcut   func() (*source, error) // returns a shorter index scan, or nil
	conditions []condition
	common     []condition // conditions that nearly every row meets, so that a page fills quickly
}

// page returns the next page. It reads from the candidate, or from the index scan if
// candidate is nil.
func (l *listing[T]) page(candidate *source) (rolecall.Page[T], error) {
	if candidate != nil {
		return l.read(l.candidatePage(*candidate), false)
	}
	if l.isComplete() {
		return l.read(l.plain(), false)
	}
	return l.read(l.scanPage(), true)
}

// isComplete reports whether the only conditions of the list are the common ones, and its
// index scan reads the whole table.
func (l *listing[T]) isComplete() bool { return len(l.conditions) == 0 && l.scansTable() }

// filters returns the conditions of the list together with the common ones.
func (l *listing[T]) filters() []condition { return slices.Concat(l.conditions, l.common) }

// scansTable reports whether the index scan reads the whole table of the list.
func (l *listing[T]) scansTable() bool {
	return l.indexScan.table == l.table && len(l.indexScan.conditions) == 0
}

// read runs the statement of a page. If isScan is true, the last row of the result can be
// the last one that the index scan has read. This row is not part of the page. If the page
// is not full, the next page starts after this row. The page is also full before the item with which it
// would have more than MaxPageBytes bytes.
func (l *listing[T]) read(b *builder, isScan bool) (rolecall.Page[T], error) {
	page := rolecall.Page[T]{Items: make([]T, 0, l.limit)}
	var item T
	var last, previous rolecall.Position
	var reached bool
	var size int
	dest := append(l.dest(&item), &last.Key)
	if isScan {
		dest = append(dest, &reached)
	}
	_, err := b.query(l.tx.q, func(scan func(dest ...any) error) error {
		if page.Next != nil {
			return nil
		}
		if len(page.Items) == l.limit {
			page.Next = &last
			return nil
		}
		previous = last
		item = *new(T) // the fields must not share memory with the previous row
		if err := scan(dest...); err != nil {
			return err
		}
		last.ID = l.id(&item)
		if reached {
			page.Next = &last
			return nil
		}
		if size += sizeOf(&item); size > rolecall.MaxPageBytes && len(page.Items) > 0 {
			page.Next = &previous
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

// plain builds the statement of a page of a list for which isComplete returns true.
func (l *listing[T]) plain() *builder {
	b := newBuilder(l.tx.tenant)
	b.write("select " + l.selected() + " from " + l.table + " r where r.tenant_id = $1")
	b.all(l.common)
	l.keyset(b, "r.", "id")
	l.order(b, "r.", "id")
	b.limit(l.limit + 1)
	return b
}

// scanPage builds the statement of a page that reads up to MaxScan rows of the index scan.
// If these rows do not fill the page, the statement also returns the last of them. One
// statement does both, because two statements could see different snapshots and skip a
// row. The parts of a "union all" run in order, and the second part runs only if the first
// part returns fewer rows than the limit.
func (l *listing[T]) scanPage() *builder {
	b := newBuilder(l.tx.tenant)
	b.write("select * from (")
	if l.scansTable() {
		l.rows(b)
	} else {
		l.named(b, "false", 0, rolecall.MaxScan)
		b.all(l.indexScan.also)
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

// rows writes the query for the rows of the page, in the order of the list. It is used if
// the index scan reads the table of the list.
func (l *listing[T]) rows(b *builder) {
	b.write("select " + l.selected() + ", false from (select *")
	l.scanRange(b)
	b.limit(rolecall.MaxScan)
	b.write(") r where r.tenant_id = $1")
	b.all(l.filters())
	l.order(b, "r.", "id")
}

// named writes the query for n rows of the index scan, after the first offset rows. The
// argument last is the SQL value of an additional column, which is true for the last row
// that was read. The index scan selects only ids and keys, so the database can read them
// from the index alone.
func (l *listing[T]) named(b *builder, last string, offset, n int) {
	b.write("select " + l.selected() + ", " + last + " from (select " + l.indexScan.id + " as id")
	if l.key != "" {
		b.write(", " + l.key)
	}
	if len(l.indexScan.also) > 0 {
		b.write(", beginnings")
	}
	l.scanRange(b)
	b.limit(n)
	b.write(" offset " + strconv.Itoa(offset) + ") c cross join " + l.table + " r where r.tenant_id = $1 and r.id = c.id")
}

// scanRange writes the part of a query that selects the rows of the index scan after the
// previous page, in the order of the list.
func (l *listing[T]) scanRange(b *builder) {
	l.indexScan.from(b)
	l.keyset(b, "", l.indexScan.id)
	l.order(b, "", l.indexScan.id)
}

// candidatePage builds the statement of a page that is read from the candidate. The cross
// join prevents SQLite from scanning the whole table in the order of the list.
func (l *listing[T]) candidatePage(candidate source) *builder {
	b := newBuilder(l.tx.tenant)
	b.write("select " + l.selected() + " from (select distinct " + candidate.id + " as id")
	candidate.from(b)
	b.all(candidate.also)
	b.write(") c cross join " + l.table + " r where r.tenant_id = $1 and r.id = c.id")
	l.keyset(b, "r.", "id")
	b.joined(l.filters())
	l.order(b, "r.", "id")
	b.limit(l.limit + 1)
	return b
}

// total counts the rows of the source that are in the list, up to MaxCount. The total is
// not exact if the source has more than MaxCount rows.
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

// fewest returns the source with the fewest rows, and the number of its rows. In each
// source, it counts at most enough + 1 rows.
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

// from writes the from clause and the where clause of the source.
func (s source) from(b *builder) {
	b.write(" from " + s.table + " where tenant_id = $1")
	b.all(s.conditions)
}

// keyset writes the condition that a row comes after the last row of the previous page.
func (l *listing[T]) keyset(b *builder, row, id string) {
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

// selected returns the columns of a page: the columns of the row, and then the sort key.
// The key is empty if the list is sorted by id.
func (l *listing[T]) selected() string {
	if l.key == "" {
		return l.columns + ", ''"
	}
	return l.columns + ", r." + l.key
}
