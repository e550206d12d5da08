package httpapi

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/wire"
)

// page is the body of one page of a list.
type pageBody[T any] struct {
	Items      []T     `json:"items" doc:"The items of the page."`
	NextCursor *string `json:"nextCursor" doc:"The cursor of the next page. Only null ends the list."`
}

// setNextCursor sets the cursor that leads to the next page.
func (p *pageBody[T]) setNextCursor(cursor string) { p.NextCursor = &cursor }

// countedPage is a page of a list that can be counted.
type countedPageBody[T any] struct {
	pageBody[T]
	Total        *int  `json:"total,omitzero" doc:"Number of items of the whole list, if it was requested."`
	TotalIsExact *bool `json:"totalIsExact,omitzero" doc:"Whether total is exact. It is exact up to 10,000."`
}

// newPage returns the response with the items of the page, each as body makes it.
func newPage[T, B any](p *rolecall.Page[T], body func(*T) B) Response[pageBody[B]] {
	return Response[pageBody[B]]{Body: pageBody[B]{Items: newBodies(p.Items, body)}, Next: p.Next}
}

// newCountedPage returns the response with the items of the page, each as body makes it,
// and with the total if it was asked for.
func newCountedPage[T, B any](p *rolecall.Page[T], body func(*T) B) Response[countedPageBody[B]] {
	counted := countedPageBody[B]{pageBody: pageBody[B]{Items: newBodies(p.Items, body)}}
	if p.Total != nil {
		counted.Total, counted.TotalIsExact = &p.Total.Count, &p.Total.Exact
	}
	return Response[countedPageBody[B]]{Body: counted, Next: p.Next}
}

// newBodies returns the body of each item.
func newBodies[T, B any](items []T, body func(*T) B) []B {
	all := make([]B, len(items))
	for i := range items {
		all[i] = body(&items[i])
	}
	return all
}

// optionalText is a text of which the empty one is null.
type optionalText string

// AppendJSON appends the text, null for the empty one.
func (t optionalText) AppendJSON(b []byte) []byte {
	if t == "" {
		return append(b, "null"...)
	}
	return wire.AppendText(b, t)
}
