package storetest

import (
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// everyPage returns what a list holds, page by page from the first. between, if not
// nil, runs after each page but the last.
func everyPage[T any](f *fixture, limit int, look func(tx *store.Tx, after *rolecall.Position) (rolecall.Page[T], error), between func()) (all []T) {
	f.Helper()
	var after *rolecall.Position
	for {
		page := read(f, func(tx *store.Tx) (rolecall.Page[T], error) { return look(tx, after) })
		if len(page.Items) > limit {
			f.Fatalf("a page of %d items, want at most %d", len(page.Items), limit)
		}
		all = append(all, page.Items...)
		if page.Next == nil {
			return all
		}
		if after != nil && *after == *page.Next {
			f.Fatalf("the walk stands still at %+v", *page.Next)
		}
		after = page.Next
		if between != nil {
			between()
		}
	}
}

// pagesInOrder holds that n things are listed by id and by the key of their names,
// both ways, whatever the size of a page.
func pagesInOrder[T any](f *fixture, n int, list func(byName, desc bool, limit int) []T, place func(*T) (id [16]byte, key string)) {
	f.Helper()
	for _, byName := range []bool{false, true} {
		for _, desc := range []bool{false, true} {
			all := list(byName, desc, rolecall.MaxLimit)
			same(f, len(all), n)
			order := func(a, b T) int {
				id, key := place(&a)
				otherID, otherKey := place(&b)
				c := slices.Compare(id[:], otherID[:])
				if byName {
					c = slices.Compare([]byte(key), []byte(otherKey))
				}
				if desc {
					return -c
				}
				return c
			}
			if !slices.IsSortedFunc(all, order) {
				f.Errorf("by name %t, descending %t: out of order", byName, desc)
			}
			same(f, list(byName, desc, 3), all)
		}
	}
}
