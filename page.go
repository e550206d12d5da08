package rolecall

import "context"

// The limits of pages, and of the rows that a list reads.
const (
	DefaultLimit = 50
	MaxLimit     = 200
	MaxScan      = 5_000  // maximum number of rows that the statement of one page reads
	MaxCount     = 10_000 // a total is exact up to this number

	MaxPageBytes = 1 << 20 // a page ends before the item with which its JSON would be larger, but has at least one item
)

// Page is one page of a list. A page can have fewer items than the limit, or none, although
// other pages follow. If Next is nil, the page is the last one.
type Page[T any] struct {
	Items []T
	Next  *Position
	Total *Total // nil if the total was not requested
}

// Total is the number of items in a list with all its pages. If Exact is false, the list
// has at least Count items.
type Total struct {
	Count int
	Exact bool
}

// Position is a cursor: the place in a list after which the next page begins. Key and ID
// are the sort key and the id of the last row of the page. Key is empty in most lists that
// are sorted by id.
type Position struct {
	Key string
	ID  AnyID
}

// UserSort is a sort order of users.
type UserSort uint8

// The sort orders of users.
const (
	SortByID UserSort = iota // by time of creation, because ids begin with this time
	SortByName
	SortByEmail
)

// UserQuery selects and sorts users. The store does not check permissions. Before the
// query, the service reduces Within to the users whose filtered and sorted members the
// caller may read.
type UserQuery struct {
	TextFilter
	Within     Reach   // only users of these departments
	EmailKey   string  // only the user with this address, if set
	Department *string // only users of the department with this folded name, if set
	Status     UserStatus
	Role       RoleID // only users with an unexpired assignment of this role, if set
	HeldAt     Time   // if set, Role selects the users who had the role at this time
	Now        Time   // the time at which this assignment must be unexpired

	Words      []string // each must be the beginning of a word of the user's name or address
	NameWords  Reach    // users whose names the search may use
	EmailWords Reach    // users whose addresses the search may use

	Sort  UserSort
	Desc  bool
	After *Position
	Limit int
	Count bool
}

// EventQuery selects events, newest first. A member with its zero value does not filter.
type EventQuery struct {
	Type    EventType
	Actor   AnyID
	Subject AnyID
	From    Time // start of the time range, included
	To      Time // end of the time range, excluded
	After   *Position
	Limit   int
}

// ServiceAccountQuery selects and sorts service accounts.
type ServiceAccountQuery struct {
	Words  []string // each must be the beginning of a word of the name
	ByName bool     // sort by name; otherwise by id, which is the order of creation
	Desc   bool
	After  *Position
	Limit  int
	Count  bool
}

// APITokenQuery selects the API tokens of one holder, in the order of their creation.
type APITokenQuery struct {
	Holder Holder
	After  *Position
	Limit  int
}

// SessionQuery selects the unexpired sessions of a user, newest first.
type SessionQuery struct {
	User     UserID
	Settings TenantSettings // result of TenantSettings.For for the user; has the lifetimes of sessions
	Now      Time
	After    *Position
	Limit    int
}

// RoleQuery selects and sorts roles.
type RoleQuery struct {
	Key        string
	Words      []string    // each must be the beginning of a word of the name
	Permission *Permission // only roles with a permission that covers this one, if set
	ByName     bool        // sort by name; otherwise by id, which is the order of creation
	Desc       bool
	After      *Position
	Limit      int
	Count      bool
}

// AccessQuery selects users or service accounts, sorted by id. They have a permission
// through an unexpired assignment.
type AccessQuery struct {
	Permission Permission
	Within     Reach // only users in this reach; does not restrict service accounts
	Now        Time  // the time at which the assignments must be unexpired
	After      *Position
	Limit      int
}

// Scoped reports whether the permission of the query has an effect in an assignment that is
// limited to departments.
func (q *AccessQuery) Scoped() bool { return !q.Permission.Own() || q.Permission.BoundByReach() }

// Table is a list for an export. It is read in parts, so that a list of any length needs
// little memory.
type Table struct {
	Name    string   // users or events; part of the file name
	Columns []string // the names of the columns
	// Record stores the event of the export. It must be called before the first row is
	// sent. It must not be called for a HEAD request, whose response has no rows.
	Record func() error
	// Next returns the next part of the rows. Each row has one cell for each column. A part
	// can have no rows. The result more is false for the last part.
	Next func(ctx context.Context) (rows [][]string, more bool, err error)
}
