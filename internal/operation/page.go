package operation

import "github.com/rolecall/rolecall"

// Page is the body of one page of a list.
type Page[T any] struct {
	Items      []T     `json:"items" doc:"The items of the page."`
	NextCursor *string `json:"nextCursor" doc:"The cursor of the next page. It is null only on the last page."`
}

// setNextCursor sets the cursor of the next page.
func (p *Page[T]) setNextCursor(cursor string) { p.NextCursor = &cursor }

// CountedPage is a page of a list that can be counted.
type CountedPage[T any] struct {
	Page[T]
	Total        *int  `json:"total,omitzero" doc:"Number of items on all pages, with the filters of the request. Only with count=true."`
	TotalIsExact *bool `json:"totalIsExact,omitzero" doc:"Whether total is exact. It is exact up to 10,000."`
}

// NewPage returns the response with the items of the page, converted by body.
func NewPage[T, B any](p *rolecall.Page[T], body func(*T) B) Response[Page[B]] {
	return Response[Page[B]]{Body: Page[B]{Items: Bodies(p.Items, body)}, Next: p.Next}
}

// NewCountedPage returns the response with the items of the page, converted by body, and with the
// total if the page has one.
func NewCountedPage[T, B any](p *rolecall.Page[T], body func(*T) B) Response[CountedPage[B]] {
	counted := CountedPage[B]{Page: Page[B]{Items: Bodies(p.Items, body)}}
	if p.Total != nil {
		counted.Total, counted.TotalIsExact = &p.Total.Count, &p.Total.Exact
	}
	return Response[CountedPage[B]]{Body: counted, Next: p.Next}
}

// Bodies returns the body of each item.
func Bodies[T, B any](items []T, body func(*T) B) []B {
	all := make([]B, len(items))
	for i := range items {
		all[i] = body(&items[i])
	}
	return all
}
