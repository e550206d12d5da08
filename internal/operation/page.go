package operation

import "github.com/rolecall/rolecall"

// Page is the body of one page of a list.
type Page[T any] struct {
	Items      []T     `json:"items" doc:"The items of the page."`
	NextCursor *string `json:"nextCursor" doc:"The cursor of the next page. It is null only on the last page."`
}

func (p *Page[T]) setNextCursor(cursor string) { p.NextCursor = &cursor }

// CountedPage is the body of one page of a list. If the request has count=true, it also has the
// total number of items on all pages.
type CountedPage[T any] struct {
	Page[T]
	Total        *int  `json:"total,omitzero" doc:"Number of items on all pages, with the filters of the request. Only with count=true."`
	TotalIsExact *bool `json:"totalIsExact,omitzero" doc:"Whether total is exact. It is exact up to 10,000."`
}

// NewPage returns a response with the page p of a list. The function body converts an item to its
// JSON form.
func NewPage[T, B any](p *rolecall.Page[T], body func(*T) B) Response[Page[B]] {
	return Response[Page[B]]{Body: Page[B]{Items: Bodies(p.Items, body)}, Next: p.Next}
}

// NewCountedPage is like NewPage. If p has a total, the response has it too.
func NewCountedPage[T, B any](p *rolecall.Page[T], body func(*T) B) Response[CountedPage[B]] {
	counted := CountedPage[B]{Page: Page[B]{Items: Bodies(p.Items, body)}}
	if p.Total != nil {
		counted.Total, counted.TotalIsExact = &p.Total.Count, &p.Total.Exact
	}
	return Response[CountedPage[B]]{Body: counted, Next: p.Next}
}

// Bodies converts each item with the function body.
func Bodies[T, B any](items []T, body func(*T) B) []B {
	all := make([]B, len(items))
	for i := range items {
		all[i] = body(&items[i])
	}
	return all
}
