package directory

import (
	"github.com/rolecall/rolecall"
)

// Match reports whether a precondition holds for what is stored now. A nil Match
// holds for everything.
type Match[T any] func(*T) bool

func (m Match[T]) check(value *T) error {
	if m != nil && !m(value) {
		return rolecall.ErrPreconditionFailed
	}
	return nil
}
