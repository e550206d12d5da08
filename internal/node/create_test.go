package node_test

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
	"github.com/rolecall/rolecall/internal/secret"
)

func TestAKeyReplaysUntilItExpires(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		key, draft := newKey(), rolecall.RoleDraft{Name: "Keyed"}
		first, err := f.Directory.CreateRole(f.Context(), f.owner, key, draft)
		f.ok(err)
		f.clock.advance(rolecall.DefaultIdempotencyKept - time.Microsecond)
		again, err := f.node().Directory.CreateRole(f.Context(), f.owner, key, draft)
		f.ok(err)
		if !again.Replayed || again.Value.ID != first.Value.ID || again.Value.Name != "Keyed" || again.Value.CreatedAt != first.Value.CreatedAt {
			t.Errorf("before its end it answers %v, not %v", again, first)
		}
		f.clock.advance(time.Microsecond)
		_, err = f.Directory.CreateRole(f.Context(), f.owner, key, draft)
		f.is(err, rolecall.ErrRoleNameTaken)
		anew, err := f.Directory.CreateRole(f.Context(), f.owner, key, rolecall.RoleDraft{Name: "Keyed anew"})
		f.ok(err)
		if anew.Replayed || anew.Value.ID == first.Value.ID {
			t.Errorf("after its end it answers %v", anew)
		}
	})
}

func TestAKeyOfAnotherRequestIsRefused(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		key := newKey()
		f.ok(errorOf(f.Directory.CreateRole(f.Context(), f.owner, key, rolecall.RoleDraft{Name: "Keyed"})))
		other := idempotency.Key{Text: key.Text, Fingerprint: secret.Digest([]byte("other"))}
		f.is(errorOf(f.Directory.CreateRole(f.Context(), f.owner, other, rolecall.RoleDraft{Name: "Other"})), rolecall.ErrKeyReused)
		f.is(errorOf(f.node().Directory.CreateRole(f.Context(), f.owner, other, rolecall.RoleDraft{Name: "Other"})), rolecall.ErrKeyReused)
	})
}

func TestCreationsOnTwoNodesWithOneKeyAreOne(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		nodes := []*node.Node{f.Node, f.node(), f.node()}
		for range 10 {
			key := newKey()
			draft := rolecall.UserDraft{Email: key.Text + "@example.com", Name: "Only one"}
			ids, firsts := map[rolecall.UserID]bool{}, 0
			var mu sync.Mutex
			var running sync.WaitGroup
			for i := range 30 {
				running.Go(func() {
					created, err := nodes[i%len(nodes)].Directory.CreateUser(f.Context(), f.owner, key, draft)
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
				if got := f.eventTypes(id); len(got) != 1 {
					t.Errorf("the events are %v", got)
				}
			}
		}
	})
}

func TestAFailedRequestDoesNotUseItsKey(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		key, draft := newKey(), rolecall.UserDraft{Email: address("failing"), Name: "Failing"}
		f.db.fail(rolecall.ErrUnavailable)
		f.is(errorOf(f.Directory.CreateUser(f.Context(), f.owner, key, draft)), rolecall.ErrUnavailable)
		f.db.fail(nil)
		gone, cancel := context.WithCancel(f.Context())
		cancel()
		if err := errorOf(f.Directory.CreateUser(gone, f.owner, key, draft)); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has left gets %v", err)
		}
		created, err := f.Directory.CreateUser(f.Context(), f.owner, key, draft)
		f.ok(err)
		if created.Replayed {
			t.Error("a failure was stored")
		}
	})
}

func TestADeletedUserIsErasedFromReplays(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		key, draft := newKey(), rolecall.UserDraft{Email: address("erased"), Name: "Erased"}
		created, err := f.Directory.CreateUser(f.Context(), f.owner, key, draft)
		f.ok(err)
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, created.Value.ID, nil))
		again, err := f.Directory.CreateUser(f.Context(), f.owner, key, draft)
		f.ok(err)
		if !again.Replayed || !again.Erased || again.Value.ID != created.Value.ID || again.Value.Email != "" || again.Value.Name != "" {
			t.Errorf("it answers %v", again)
		}
		f.ok(errorOf(f.Directory.CreateUser(f.Context(), f.owner, newKey(), draft)))
	})
}

func TestTheLimitOfKeysAppliesToNewKeysOnly(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		peer := node.New(f.db, access.Options{Clock: f.clock.Now, Passwords: f.hashes, Keys: f.keys, KeyLimit: 3})
		create := func(key idempotency.Key) (idempotency.Created[rolecall.Role], error) {
			return peer.Directory.CreateRole(f.Context(), f.owner, key, rolecall.RoleDraft{Name: "Of " + key.Text})
		}
		key := newKey()
		first, err := create(key)
		f.ok(err)
		for range 2 {
			f.ok(errorOf(create(newKey())))
		}
		f.is(errorOf(create(newKey())), rolecall.ErrTooManyKeys)
		again, err := create(key)
		if f.ok(err); !again.Replayed || again.Value.ID != first.Value.ID {
			t.Errorf("at the limit a repeat answers %v", again)
		}
		f.clock.advance(rolecall.DefaultIdempotencyKept)
		f.ok(f.Node.Purge(f.Context()))
		f.ok(errorOf(create(newKey())))
	})
}

func TestThePermissionForAMemberComesBeforeItsValue(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		maker := f.role("maker", "users:create", "users.name:update")
		made := f.member("maker")
		f.assign(made.ID, maker.ID, rolecall.AssignmentDraft{})
		c := f.call(f.signIn("maker"))
		wrong := rolecall.Some(new("\x00"))
		for name, id := range map[string]rolecall.UserID{"oneself": made.ID, "somebody else": f.owner.User.ID, "nobody": {15: 1}} {
			_, err := f.Directory.UpdateUser(f.Context(), c, id, rolecall.UserPatch{Department: wrong}, nil)
			if !errors.Is(err, rolecall.ErrPermissionDenied) {
				f.Errorf("of %s: %v", name, err)
			}
		}
		f.is(errorOf(f.Directory.UpdateUser(f.Context(), c, made.ID, rolecall.UserPatch{Name: rolecall.Some("")}, nil)), rolecall.ErrValidation)
		f.is(errorOf(f.Directory.CreateUser(f.Context(), c, newKey(), rolecall.UserDraft{Invite: true})), rolecall.ErrPermissionDenied)
		f.is(errorOf(f.Directory.CreateUser(f.Context(), c, newKey(), rolecall.UserDraft{})), rolecall.ErrValidation)
	})
}
