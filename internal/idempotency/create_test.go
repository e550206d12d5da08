package idempotency_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
)

func TestAKeyReplaysUntilItExpires(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		key, draft := nodetest.NewKey(), rolecall.RoleDraft{Name: "Keyed"}
		first, err := f.Directory.CreateRole(f.Context(), f.Owner, key, draft)
		f.OK(err)
		f.Clock.Advance(rolecall.DefaultIdempotencyKept - time.Microsecond)
		again, err := f.NewNode().Directory.CreateRole(f.Context(), f.Owner, key, draft)
		f.OK(err)
		if !again.Replayed || again.Value.ID != first.Value.ID || again.Value.Name != "Keyed" || again.Value.CreatedAt != first.Value.CreatedAt {
			t.Errorf("before its end it answers %v, not %v", again, first)
		}
		f.Clock.Advance(time.Microsecond)
		_, err = f.Directory.CreateRole(f.Context(), f.Owner, key, draft)
		f.Is(err, rolecall.ErrRoleNameTaken)
		anew, err := f.Directory.CreateRole(f.Context(), f.Owner, key, rolecall.RoleDraft{Name: "Keyed anew"})
		f.OK(err)
		if anew.Replayed || anew.Value.ID == first.Value.ID {
			t.Errorf("after its end it answers %v", anew)
		}
	})
}

func TestAKeyOfAnotherRequestIsRefused(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		key := nodetest.NewKey()
		f.OK(nodetest.ErrorOf(f.Directory.CreateRole(f.Context(), f.Owner, key, rolecall.RoleDraft{Name: "Keyed"})))
		other := idempotency.Key{Text: key.Text, Fingerprint: secret.Digest([]byte("other"))}
		f.Is(nodetest.ErrorOf(f.Directory.CreateRole(f.Context(), f.Owner, other, rolecall.RoleDraft{Name: "Other"})), rolecall.ErrKeyReused)
		f.Is(nodetest.ErrorOf(f.NewNode().Directory.CreateRole(f.Context(), f.Owner, other, rolecall.RoleDraft{Name: "Other"})), rolecall.ErrKeyReused)
	})
}

func TestCreationsOnTwoNodesWithOneKeyAreOne(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		nodes := []*node.Node{f.Node, f.NewNode(), f.NewNode()}
		for range 10 {
			key := nodetest.NewKey()
			draft := rolecall.UserDraft{Email: key.Text + "@example.com", Name: "Only one"}
			ids, firsts := map[rolecall.UserID]bool{}, 0
			var mu sync.Mutex
			var running sync.WaitGroup
			for i := range 30 {
				running.Go(func() {
					created, err := nodes[i%len(nodes)].Directory.CreateUser(f.Context(), f.Owner, key, draft)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					ids[created.Value.ID] = true
					if !created.Replayed {
						firsts++
					}
				})
			}
			running.Wait()
			if len(ids) != 1 || firsts != 1 {
				t.Errorf("there are %d users of %d creations", len(ids), firsts)
			}
			for id := range ids {
				if got := f.EventTypes(id); len(got) != 1 {
					t.Errorf("the events are %v", got)
				}
			}
		}
	})
}

func TestAFailedRequestDoesNotUseItsKey(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		key, draft := nodetest.NewKey(), rolecall.UserDraft{Email: nodetest.Address("failing"), Name: "Failing"}
		f.DB.Fail(rolecall.ErrUnavailable)
		f.Is(nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), f.Owner, key, draft)), rolecall.ErrUnavailable)
		f.DB.Fail(nil)
		gone, cancel := context.WithCancel(f.Context())
		cancel()
		if err := nodetest.ErrorOf(f.Directory.CreateUser(gone, f.Owner, key, draft)); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has left gets %v", err)
		}
		created, err := f.Directory.CreateUser(f.Context(), f.Owner, key, draft)
		f.OK(err)
		if created.Replayed {
			t.Error("a failure was stored")
		}
	})
}

func TestADeletedUserIsErasedFromReplays(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		key, draft := nodetest.NewKey(), rolecall.UserDraft{Email: nodetest.Address("erased"), Name: "Erased"}
		created, err := f.Directory.CreateUser(f.Context(), f.Owner, key, draft)
		f.OK(err)
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, created.Value.ID, nil))
		again, err := f.Directory.CreateUser(f.Context(), f.Owner, key, draft)
		f.OK(err)
		if !again.Replayed || !again.Erased || again.Value.ID != created.Value.ID || again.Value.Email != "" || again.Value.Name != "" {
			t.Errorf("it answers %v", again)
		}
		f.OK(nodetest.ErrorOf(f.Directory.CreateUser(f.Context(), f.Owner, nodetest.NewKey(), draft)))
	})
}

func TestTheLimitOfKeysAppliesToNewKeysOnly(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		peer := node.New(f.DB, access.Options{Clock: f.Clock.Now, Passwords: f.Hashes, Keys: f.Keys, KeyLimit: 3})
		create := func(key idempotency.Key) (idempotency.Created[rolecall.Role], error) {
			return peer.Directory.CreateRole(f.Context(), f.Owner, key, rolecall.RoleDraft{Name: "Of " + key.Text})
		}
		key := nodetest.NewKey()
		first, err := create(key)
		f.OK(err)
		for range 2 {
			f.OK(nodetest.ErrorOf(create(nodetest.NewKey())))
		}
		f.Is(nodetest.ErrorOf(create(nodetest.NewKey())), rolecall.ErrTooManyKeys)
		again, err := create(key)
		if f.OK(err); !again.Replayed || again.Value.ID != first.Value.ID {
			t.Errorf("at the limit a repeat answers %v", again)
		}
		f.Clock.Advance(rolecall.DefaultIdempotencyKept)
		f.OK(f.Node.Purge(f.Context()))
		f.OK(nodetest.ErrorOf(create(nodetest.NewKey())))
	})
}
