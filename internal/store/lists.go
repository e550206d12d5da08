package store

import (
	"cmp"
	"slices"

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
	l := &listing[rolecall.User]{
		tx: t, table: "users", columns: userColumns, dest: userDest,
		id:   func(u *rolecall.User) rolecall.AnyID { return rolecall.AnyID(u.ID) },
		key:  map[rolecall.UserSort]string{rolecall.SortByName: "name_key", rolecall.SortByEmail: "email_key"}[q.Sort],
		desc: q.Desc, after: q.After, limit: q.Limit,
		conditions: userConditions(&q),
	}
	var candidates []source
	l.walk, candidates = userSources(&q)
	return l.serve(candidates, q.Count)
}

// serve returns the page driven by the best of its sources, with the total if it
// is asked for.
func (l *listing[T]) serve(candidates []source, count bool) (rolecall.Page[T], error) {
	fewest, pick := l.walk, (*source)(nil)
	if len(candidates) > 0 {
		least, n, err := l.tx.smallest(candidates)
		if err != nil {
			return rolecall.Page[T]{}, err
		}
		fewest = *least
		if n <= rolecall.MaxScan {
			pick = least
		}
	}
	page, err := l.page(pick)
	if err == nil && count {
		page.Total, err = l.total(fewest)
	}
	return page, err
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
		return walk, []source{{"users", "id", []condition{where("email_key = ?", q.EmailKey)}}}
	case q.ExternalID != "":
		return walk, []source{{"users", "id", []condition{where("external_id = ?", q.ExternalID)}}}
	}
	role := source{"assignments", "user_id", []condition{where("role_id = ?", q.Role)}}
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
	return walk, append(candidates, wordSources(q.Words)...)
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
	return source{"users", "id", []condition{oneOf("department_key", keys)}}, len(keys)
}

// wordSources returns the users who have a word that begins with one of the
// longest of the words.
func wordSources(words []string) []source {
	longest := slices.Clone(words)
	slices.SortStableFunc(longest, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var sources []source
	for _, word := range longest[:min(len(longest), wordCandidates)] {
		// No character comes after U+10FFFF: the range holds what begins with word.
		within := where("word >= ? and word < ?", word, word+"\U0010FFFF")
		sources = append(sources, source{"user_words", "user_id", []condition{within}})
	}
	return sources
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
