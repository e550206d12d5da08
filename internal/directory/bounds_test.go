package directory_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/store"
)

func TestTokensPerHolderAreLimited(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		_, member, account, _ := f.Programs()
		c, nodes := f.CallerOf(f.LogIn("programmer")), []*node.Node{f.Node, f.NewNode()}
		another := map[string]func(int) error{
			"a user": func(i int) error {
				return nodetest.ErrorOf(nodes[i%2].Directory.CreateToken(f.Context(), c, nodetest.NewKey(), rolecall.HolderOf(member.ID), f.TokenDraft("users:read")))
			},
			"a service account": func(i int) error {
				return nodetest.ErrorOf(nodes[i%2].Directory.CreateToken(f.Context(), f.Owner, nodetest.NewKey(), rolecall.HolderOf(account.ID), f.TokenDraft("users:read")))
			},
		}
		for what, make := range another {
			for i := range rolecall.APITokensMax - 6 { // one token exists already
				f.OK(make(i))
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
		page, err := f.Directory.Tokens(f.Context(), f.Owner, rolecall.HolderOf(member.ID), nil, rolecall.MaxLimit)
		f.OK(err)
		f.OK(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(member.ID), page.Items[0].ID))
		f.OK(another["a user"](0))
		f.Is(another["a user"](0), rolecall.ErrTooManyTokens)
	})
}

func TestServiceAccountsPerTenantAreLimited(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		made := func(i int) error {
			return nodetest.ErrorOf(f.Directory.CreateServiceAccount(f.Context(), f.Owner, nodetest.NewKey(), rolecall.ServiceAccountDraft{Name: fmt.Sprintf("Made %d", i)}))
		}
		f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			for i := range rolecall.ServiceAccountsMax - 1 {
				draft := rolecall.ServiceAccountDraft{Name: fmt.Sprintf("Account %d", i)}
				tx.InsertServiceAccount(draft.ServiceAccount(nodetest.Start))
			}
			return nil
		}))
		f.OK(made(1))
		f.Is(made(2), rolecall.ErrTooManyAccounts)
		page, err := f.Directory.ServiceAccounts(f.Context(), f.Owner, rolecall.ServiceAccountQuery{Limit: 1})
		f.OK(err)
		f.OK(f.Directory.DeleteServiceAccount(f.Context(), f.Owner, page.Items[0].ID, nil))
		f.OK(made(2))
	})
}

func TestOperatorKeysPerInstanceAreLimited(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		draft := rolecall.OperatorKeyDraft{Name: "Sign-ups", Lifetime: 1}
		f.OK(f.Store.Update(f.Context(), rolecall.TenantID{}, func(tx *store.Tx) error {
			for i := range rolecall.OperatorKeysMax - 1 {
				tx.InsertOperatorKey(draft.OperatorKey(nodetest.Start), fmt.Appendf(nil, "%032d", i))
			}
			return nil
		}))
		key, _ := f.NewOperatorKey("The last")
		if _, _, err := f.Directory.CreateOperatorKey(f.Context(), draft); rolecall.KindOf(err) != rolecall.Conflict {
			t.Errorf("one more: %v", err)
		}
		f.OK(f.Directory.RevokeOperatorKey(f.Context(), key.ID))
		f.NewOperatorKey("Next")
	})
}
