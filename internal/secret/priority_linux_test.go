package secret

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlyTheThreadOfAHashHasALowerPriority(t *testing.T) {
	priority := func() int {
		p, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the system call returns 20 minus the niceness
		if err != nil {
			t.Error(err)
		}
		return p
	}
	usual := priority()
	var hashing int
	if err := NewPasswords(cheap, 1, 0).run(t.Context(), func() { hashing = priority() }); err != nil {
		t.Fatal(err)
	}
	if want := max(usual-niceness, 1); hashing != want {
		t.Errorf("a hash ran at priority %d, want %d", hashing, want)
	}
	if got := priority(); got != usual {
		t.Errorf("the caller has priority %d after a hash, want %d", got, usual)
	}
}
