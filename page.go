package rolecall

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
