package store

import (
	"errors"
	"testing"

	"github.com/rolecall/rolecall"
)

func TestAListWithoutASizeFails(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an item of an unknown type has a size")
		}
	}()
	sizeOf(new(struct{}))
}

func TestAStaleWriteIsRepeated(t *testing.T) {
	other := errors.New("another error")
	for name, test := range map[string]struct {
		stale int // how often another transaction has changed the row
		then  error
		want  error
		tries int
	}{
		"at once":              {0, nil, nil, 1},
		"once stale":           {1, nil, nil, 2},
		"stale, then an error": {1, other, other, 2},
		"the last try":         {maxAttempts - 1, nil, nil, maxAttempts},
		"always stale":         {maxAttempts, nil, rolecall.ErrUnavailable, maxAttempts},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			err := Repeat(func() error {
				tries++
				if err := CheckVersion(tries > test.stale, nil); err != nil {
					return err
				}
				return test.then
			})
			if !errors.Is(err, test.want) || errors.Is(err, ErrStale) || tries != test.tries {
				t.Errorf("%v after %d tries, want %v after %d", err, tries, test.want, test.tries)
			}
		})
	}
	if err := CheckVersion(false, other); err != other {
		t.Errorf("a failed write is %v, want %v", err, other)
	}
}
