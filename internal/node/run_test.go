package node_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

func TestTheBackgroundWorkEndsWithItsContext(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ctx, stop := context.WithCancel(f.Context())
		done := make(chan error, 1)
		go func() { done <- f.Node.Run(ctx) }()
		stop()
		f.OK(<-done)
	})
}

func TestRefusalsAreRecordedEverySecondAndAtTheEnd(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ctx, stop := context.WithCancel(f.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Node.Run(ctx) }()
		f.Access.Refused(f.Owner, f.Owner.User.ID, "first", "permission-denied")
		f.Eventually(func() bool { return len(f.Refusals(rolecall.EventRefused)) == 1 })
		f.Access.Refused(f.Owner, f.Owner.User.ID, "last", "permission-denied")
		stop()
		f.OK(<-ended)
		f.ExpectRefusals(rolecall.EventRefused, map[string]int{"user: first: permission-denied": 1, "user: last: permission-denied": 1})
	})
}

// unbounded is a store that counts updates without a deadline.
type unbounded struct {
	store.Database
	count atomic.Int64
}

// Update counts the update if ctx has no deadline.
func (s *unbounded) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		s.count.Add(1)
	}
	return s.Database.Update(ctx, tenant, fn)
}

func TestDetachedWorkHasADeadline(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		store := &unbounded{Database: f.DB}
		f.Node = node.New(store, access.Options{
			Clock: f.Clock.Now, Keys: f.Keys, Passwords: secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 64, Threads: 1}, 0, 0),
		})
		ctx, cancel := context.WithTimeout(f.Context(), patience.Limit)
		defer cancel()
		f.Is(nodetest.ErrorOf(f.SignIn.Login(ctx, f.Attempt(), nodetest.Address("owner"), nodetest.Password)), rolecall.ErrBusy)
		f.Access.Refused(f.Owner, f.Owner.User.ID, "test", "forbidden")
		cancel()
		f.OK(f.Node.Run(ctx))
		if n := store.count.Load(); n != 0 {
			t.Errorf("%d updates had no end", n)
		}
	})
}
