package rolecall

import "context"

// The limits of a page, and of the number of rows that a list reads.
const (
	DefaultLimit = 50
	MaxLimit     = 200
	MaxScan      = 5_000  // rows that one statement of a list reads at most
	MaxCount     = 10_000 // a total is exact up to this number
)

// Page is one page of a list. A page can have fewer items than the limit, or no items,
// although other pages follow. The list ends when Next is nil.
type Page[T any] struct {
	Items []T
	Next  *Position
	Total *Total // nil unless it was requested
}

// Total is the number of items in the whole list. If Exact is false, the number is a
// lower bound.
type Total struct {
	Count int
	Exact bool
}

// Position is a cursor: the sort key and the id of the last row of a page. Key is
// empty in lists that are sorted by id.
type Position struct {
	Key string
	ID  AnyID
}

// UserSort is a sort order of users.
type UserSort uint8

// The sort orders of users.
const (
	SortByID UserSort = iota // by time of creation, because ids begin with it
	SortByName
	SortByEmail
)

// UserQuery selects and sorts users. Before the query, the service restricts Within to
// the users of whom the caller may read every member that a filter or the sort order
// uses.
type UserQuery struct {
	Within     Reach   // only users of these departments
	EmailKey   string  // only the user with this address, if set
	ExternalID string  // only the user with this external id, if set
	Department *string // only users of the department with this key, if set
	Status     UserStatus
	Role       RoleID // only users with a live assignment of this role, if set
	Now        Time   // the time at which assignments must be live

	Words      []string // each must be the beginning of a word of the user's name or address
	NameWords  Reach    // users whose names the search may use
	EmailWords Reach    // users whose addresses the search may use

	Sort  UserSort
	Desc  bool
	After *Position
	Limit int
	Count bool
}

// EventQuery selects events, newest first. Zero members do not filter.
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

// SessionQuery selects the live sessions of a user, newest first.
type SessionQuery struct {
	User     UserID
	Settings TenantSettings // with the session lifetimes of the user
	Now      Time
	After    *Position
	Limit    int
}

// RoleQuery selects and sorts roles.
type RoleQuery struct {
	Key        string
	Words      []string    // each must be the beginning of a word of the name
	Permission *Permission // only roles with a permission that covers it, unless nil
	ByName     bool        // sort by name; otherwise by id, which is the order of creation
	Desc       bool
	After      *Position
	Limit      int
	Count      bool
}

// AccessQuery selects the users or the service accounts that have a permission through a
// live assignment, in the order of their ids.
type AccessQuery struct {
	Permission Permission
	Within     Reach // only users of these departments
	Now        Time  // the time at which assignments must be live
	After      *Position
	Limit      int
}

// Scoped reports whether an assignment that is limited to departments can give the
// permission of the query.
func (q *AccessQuery) Scoped() bool { return !q.Permission.Own() || q.Permission.BoundByReach() }

// Table is a list to export, with rows and columns. It is read in parts, so its length is
// not limited.
type Table struct {
	Name    string   // names the file: users or events
	Columns []string // the names of the columns
	// Record writes the event of the export. It must be called before the first row is sent.
	// A request for only the headers of the response does not call it.
	Record func() error
	// Next returns the next rows, each with one cell for each column. A part can be
	// empty. After the last part, more is false.
	Next func(ctx context.Context) (rows [][]string, more bool, err error)
}
