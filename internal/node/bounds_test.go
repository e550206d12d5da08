package node_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/store"
)

func TestTokensPerHolderAreLimited(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		_, member, account, _ := f.programs()
		c, nodes := f.call(f.signIn("programmer")), []*node.Node{f.Node, f.node()}
		another := map[string]func(int) error{
			"a user": func(i int) error {
				return errorOf(nodes[i%2].Directory.CreateToken(f.Context(), c, newKey(), rolecall.HolderOf(member.ID), f.tokenDraft("users:read")))
			},
			"a service account": func(i int) error {
				return errorOf(nodes[i%2].Directory.CreateToken(f.Context(), f.owner, newKey(), rolecall.HolderOf(account.ID), f.tokenDraft("users:read")))
			},
		}
		for what, make := range another {
			for i := range rolecall.APITokensMax - 6 { // one token exists already
				f.ok(make(i))
			}
			var made atomic.Int32
			var running sync.WaitGroup
			for i := range 20 {
				running.Go(func() {
					if err := make(i); err == nil {
						made.Add(1)
					} else if !errors.Is(err, rolecall.ErrTooManyTokens) {
						t.Error(err)
					}
				})
			}
			if running.Wait(); made.Load() != 5 {
				t.Errorf("%s: of twenty at once %d were made where five had room", what, made.Load())
			}
		}
		page, err := f.Directory.Tokens(f.Context(), f.owner, rolecall.HolderOf(member.ID), nil, rolecall.MaxLimit)
		f.ok(err)
		f.ok(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(member.ID), page.Items[0].ID))
		f.ok(another["a user"](0))
		f.is(another["a user"](0), rolecall.ErrTooManyTokens)
	})
}

func TestServiceAccountsPerTenantAreLimited(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		made := func(i int) error {
			return errorOf(f.Directory.CreateServiceAccount(f.Context(), f.owner, newKey(), rolecall.ServiceAccountDraft{Name: fmt.Sprintf("Made %d", i)}))
		}
		f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
			for i := range rolecall.ServiceAccountsMax - 1 {
				draft := rolecall.ServiceAccountDraft{Name: fmt.Sprintf("Account %d", i)}
				tx.InsertServiceAccount(draft.ServiceAccount(start))
			}
			return nil
		}))
		f.ok(made(1))
		f.is(made(2), rolecall.ErrTooManyAccounts)
		page, err := f.Directory.ServiceAccounts(f.Context(), f.owner, rolecall.ServiceAccountQuery{Limit: 1})
		f.ok(err)
		f.ok(f.Directory.DeleteServiceAccount(f.Context(), f.owner, page.Items[0].ID, nil))
		f.ok(made(2))
	})
}

func TestOperatorKeysPerInstanceAreLimited(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		draft := rolecall.OperatorKeyDraft{Name: "Sign-ups", Lifetime: 1}
		f.ok(f.store.Update(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
			for i := range rolecall.OperatorKeysMax - 1 {
				tx.InsertOperatorKey(draft.OperatorKey(start), fmt.Appendf(nil, "%032d", i))
			}
			return nil
		}))
		key, _ := f.operatorKey("The last")
		if _, _, err := f.Directory.CreateOperatorKey(f.Context(), draft); rolecall.KindOf(err) != rolecall.Conflict {
			t.Errorf("one more: %v", err)
		}
		f.ok(f.Directory.RevokeOperatorKey(f.Context(), key.ID))
		f.operatorKey("Next")
	})
}
