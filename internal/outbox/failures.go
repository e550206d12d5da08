package outbox

import (
	"errors"
	"maps"
	"sync"

	"github.com/rolecall/rolecall"
)

// failuresMax is the number of failures that are remembered. When there are more, all are forgotten and can be
// logged again.
const failuresMax = 1_000

// failure identifies failed attempts with the same cause.
type failure struct {
	user  rolecall.UserID // zero: the cause concerns the mail to all users
	cause string
}

// failureOf returns the failure of a mail to the user.
func failureOf(user rolecall.UserID, err error) failure {
	if errors.Is(err, rolecall.ErrMailRefused) {
		return failure{user, err.Error()}
	}
	return failure{cause: err.Error()}
}

// failures are those that were logged and have not ended. The zero value is empty. It is safe for concurrent use.
type failures struct {
	mu    sync.Mutex
	known map[failure]bool
}

// isFirst remembers the failure, and reports whether it was unknown.
func (f *failures) isFirst(which failure) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[which] {
		return false
	}
	if f.known == nil || len(f.known) >= failuresMax {
		f.known = map[failure]bool{}
	}
	f.known[which] = true
	return true
}

// end forgets the failures that a sent mail to the user ends: those of the user, and those of all users. It reports
// whether there was one of all users.
func (f *failures) end(user rolecall.UserID) (ofAll bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.known, func(which failure, _ bool) bool {
		ofAll = ofAll || which.user.IsZero()
		return which.user.IsZero() || which.user == user
	})
	return ofAll
}
