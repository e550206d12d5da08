package secret

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"

	"golang.org/x/text/unicode/norm"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/gate"
)

// Passwords makes and checks password hashes through a gate: a hash is meant to
// be expensive, so only a few run at once and only a bounded number waits.
type Passwords struct {
	cost   Parameters
	gate   *gate.Gate
	hashed atomic.Uint64
	decoy  passwordHash // what a user without a password is checked against
}

// NewPasswords returns a gate that hashes at the cost, at most slots passwords at
// a time, with at most queue more waiting.
func NewPasswords(cost Parameters, slots, queue int) *Passwords {
	return &Passwords{
		cost:  cost,
		gate:  gate.New(slots, queue, 0),
		decoy: passwordHash{cost, make([]byte, saltBytes), make([]byte, hashBytes)},
	}
}

// Hash returns the password's hash as a PHC string. The error is ErrBusy if the
// queue is full or ctx ended before the password's turn.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	h := passwordHash{p.cost, make([]byte, saltBytes), make([]byte, hashBytes)}
	_, _ = rand.Read(h.salt) // never fails: it ends the process instead
	err := p.run(ctx, func() { h.sum = h.of(norm.NFC.Bytes([]byte(password))) })
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

// Verify reports whether the password is the one that phc was made from, and if
// so whether the hash is weaker than Hash would make it today. An empty phc costs
// as much as a wrong password and is never ok. The errors are ErrBusy as for
// Hash, and an internal one if phc cannot be read.
func (p *Passwords) Verify(ctx context.Context, phc, password string) (ok, outdated bool, err error) {
	h := p.decoy
	if phc != "" {
		if h, err = parseHash(phc); err != nil {
			return false, false, fmt.Errorf("verify a password: %w", err)
		}
	}
	err = p.run(ctx, func() { ok = h.matches(norm.NFC.Bytes([]byte(password))) })
	ok = ok && phc != ""
	return ok, ok && h.weaker(p.cost), err
}

// Hashed returns how many hashes were computed so far.
func (p *Passwords) Hashed() uint64 { return p.hashed.Load() }

func (p *Passwords) run(ctx context.Context, hash func()) error {
	if !p.gate.Enter(ctx) {
		return rolecall.ErrBusy
	}
	defer p.gate.Leave()
	beside.enter()
	defer beside.leave()
	hash()
	p.hashed.Add(1)
	return nil
}
