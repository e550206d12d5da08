package limiter

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrLostShare is the cause of the end of an operation that made room for another owner.
var ErrLostShare = errors.New("the operation made room for another owner")

// Shares limits how many operations run at once, and shares them between owners, such as tenants. While
// there is room, an owner can have any number. When there is no room, the owner with most operations loses
// the newest one. It is safe for concurrent use.
type Shares[K comparable] struct {
	limit int

	mu      sync.Mutex
	running int
	of      map[K][]*share // the operations of an owner, the oldest first
}

// share is one operation.
type share struct{ cancel context.CancelCauseFunc }

// NewShares returns shares of the number of operations.
func NewShares[K comparable](limit int) *Shares[K] {
	return &Shares[K]{limit: limit, of: map[K][]*share{}}
}

// Begin begins an operation of the owner. The operation must stop when the returned context ends, and the
// caller must call end after it. Begin returns false if there is no room, and no owner has more operations
// than this owner would have.
func (s *Shares[K]) Begin(ctx context.Context, owner K) (running context.Context, end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= s.limit && !s.makeRoom(len(s.of[owner])+1) {
		return nil, nil, false
	}
	running, cancel := context.WithCancelCause(ctx)
	begun := &share{cancel}
	s.running++
	s.of[owner] = append(s.of[owner], begun)
	return running, func() { s.end(owner, begun) }, true
}

// makeRoom ends the newest operation of the owner with most operations, if it has more than n. It reports
// whether it has ended one. The caller must hold s.mu.
func (s *Shares[K]) makeRoom(n int) bool {
	var most K
	var newest *share
	for owner, all := range s.of {
		if len(all) > n {
			most, newest, n = owner, all[len(all)-1], len(all)
		}
	}
	if newest == nil {
		return false
	}
	newest.cancel(ErrLostShare)
	s.remove(most, newest)
	return true
}

// end ends the operation. It does nothing to one that has made room already.
func (s *Shares[K]) end(owner K, begun *share) {
	begun.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(owner, begun)
}

// remove removes the operation, if it is not removed yet. The caller must hold s.mu.
func (s *Shares[K]) remove(owner K, begun *share) {
	all := s.of[owner]
	i := slices.Index(all, begun)
	if i < 0 {
		return
	}
	s.running--
	if s.of[owner] = slices.Delete(all, i, i+1); len(all) == 1 {
		delete(s.of, owner)
	}
}
