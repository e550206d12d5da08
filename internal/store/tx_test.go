package store

import "testing"

func TestAListWithoutASizeFails(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an item of an unknown type has a size")
		}
	}()
	sizeOf(new(struct{}))
}
