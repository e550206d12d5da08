package secret

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"

	"golang.org/x/text/unicode/norm"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/limiter"
)

// Passwords computes and verifies password hashes. A hash needs much processor time and
// memory on purpose, so that passwords are slow to guess. So only a limited number of
// hashes are computed at the same time, and only a limited number of requests wait.
type Passwords struct {
	cost    Parameters
	limiter *limiter.Limiter
	hashed  atomic.Uint64
	dummy   passwordHash // verified instead of the missing hash of a user without a password
}

// NewPasswords returns a Passwords that hashes with the cost. It computes at most slots
// hashes at the same time, while at most queue other calls wait.
func NewPasswords(cost Parameters, slots, queue int) *Passwords {
	return &Passwords{
		cost:    cost,
		limiter: limiter.New(slots, queue, 0),
		dummy:   passwordHash{cost, make([]byte, saltBytes), make([]byte, hashBytes)},
	}
}

// Hash returns the hash of the password as a PHC string. It returns ErrBusy if the queue
// is full, or if ctx ends while the call waits in the queue.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	h := passwordHash{p.cost, make([]byte, saltBytes), make([]byte, hashBytes)}
	_, _ = rand.Read(h.salt) // never fails: it ends the process instead
	err := p.run(ctx, func() { h.sum = h.of(norm.NFC.Bytes([]byte(password))) })
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

// Verify reports in ok whether phc is a hash of the password. If ok is true, outdated
// reports whether the hash is cheaper to guess than a new hash. If phc is empty, ok is
// false, and Verify takes as long as for a wrong password. Verify returns ErrBusy as Hash
// does, and an internal error if phc is malformed.
func (p *Passwords) Verify(ctx context.Context, phc, password string) (ok, outdated bool, err error) {
	h := p.dummy
	if phc != "" {
		if h, err = parseHash(phc); err != nil {
			return false, false, fmt.Errorf("verify a password: %w", err)
		}
	}
	err = p.run(ctx, func() { ok = h.matches(norm.NFC.Bytes([]byte(password))) })
	ok = ok && phc != ""
	return ok, ok && h.weaker(p.cost), err
}

// Hashed returns the number of hashes that Hash and Verify have computed since
// NewPasswords.
func (p *Passwords) Hashed() uint64 { return p.hashed.Load() }

func (p *Passwords) run(ctx context.Context, hash func()) error {
	if !p.limiter.Acquire(ctx) {
		return rolecall.ErrBusy
	}
	defer p.limiter.Release()
	hashing.begin()
	defer hashing.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		lowerPriority()
		hash()
	}()
	<-done
	p.hashed.Add(1)
	return nil
}
