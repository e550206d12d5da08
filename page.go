package rolecall

// The bounds of a page and of the work behind it.
const (
	DefaultLimit = 50
	MaxLimit     = 200
	MaxScan      = 5_000  // rows that one statement of a list looks at
	MaxCount     = 10_000 // up to which a total is exact
)

// Page is one page of a list. It may hold fewer items than asked for, even none,
// while Next is set: only a nil Next ends the walk.
type Page[T any] struct {
	Items []T
	Next  *Position
	Total *Total // if asked for
}

// Total is how many items match: exactly, or at least.
type Total struct {
	Count int
	Exact bool
}

// Position is a place in a list: after the row with this sort key and id. Key is
// empty where a list is sorted by id.
type Position struct {
	Key string
	ID  AnyID
}

// UserSort is an order of users.
type UserSort uint8

// The orders of users. Ids are in order of creation.
const (
	SortByID UserSort = iota
	SortByName
	SortByEmail
)

// UserQuery selects and orders users. The service has intersected Within with
// the reach of every member that a filter or the order uses.
type UserQuery struct {
	Within     Reach   // only users of these departments
	EmailKey   string  // only the user of this address, if set
	ExternalID string  // only the user of this external id, if set
	Department *string // only users of this department, by its key, if set
	Status     UserStatus
	Role       RoleID // only users with a live assignment of this role, if set
	Now        Time   // the moment at which assignments must be live

	Words      []string // each must begin a word of the name or of the address
	NameWords  Reach    // where words of names may be used
	EmailWords Reach    // where words of addresses may be used

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
	From    Time // not before
	To      Time // before
	After   *Position
	Limit   int
}

// ServiceAccountQuery selects and orders service accounts.
type ServiceAccountQuery struct {
	Words  []string // each must begin a word of the name
	ByName bool     // else by id, the order of creation
	Desc   bool
	After  *Position
	Limit  int
	Count  bool
}

// APITokenQuery selects the API tokens of one holder, by id, the order of creation.
type APITokenQuery struct {
	Holder Holder
	After  *Position
	Limit  int
}

// SessionQuery selects the sessions of a user that live, newest first.
type SessionQuery struct {
	User     UserID
	Settings TenantSettings // for the user: how long sessions live
	Now      Time
	After    *Position
	Limit    int
}

// RoleQuery selects and orders roles.
type RoleQuery struct {
	Key    string
	Words  []string // each must begin a word of the name
	ByName bool     // else by id, the order of creation
	Desc   bool
	After  *Position
	Limit  int
	Count  bool
}
