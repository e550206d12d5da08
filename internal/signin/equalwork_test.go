package signin_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

func TestEveryRefusedSignInIsTheSameWork(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewUser("pending")
		suspended := f.NewMember("suspended")
		f.OK(nodetest.ErrorOf(f.Directory.SuspendUser(f.Context(), f.Owner, suspended.ID, "")))
		unknown := access.Anonymous{TenantName: "nobody", RequestID: "request", Source: "192.0.2.1"}
		var wanted []string
		for _, c := range []struct {
			what    string
			attempt access.Anonymous
			email   string
			secret  string
		}{
			{"a wrong password", f.Attempt(), nodetest.Address("owner"), "wrong"},
			{"an unknown address", f.Attempt(), nodetest.Address("ghost"), nodetest.Password},
			{"what is no address", f.Attempt(), "ghost", nodetest.Password},
			{"a pending user", f.Attempt(), nodetest.Address("pending"), nodetest.Password},
			{"a wrong password of a suspended user", f.Attempt(), nodetest.Address("suspended"), "wrong"},
			{"an unknown tenant", unknown, nodetest.Address("owner"), nodetest.Password},
			{"an empty password", f.Attempt(), nodetest.Address("owner"), ""},
		} {
			before := f.Hashes.Hashed()
			asked := f.DB.During(func() {
				_, err := f.SignIn.Login(f.Context(), c.attempt, c.email, c.secret)
				f.Is(err, rolecall.ErrWrongCredentials)
			})
			if spent := f.Hashes.Hashed() - before; spent != 1 {
				t.Errorf("%s: %d hashes", c.what, spent)
			}
			if wanted == nil {
				wanted = asked
			}
			if !slices.Equal(asked, wanted) {
				t.Errorf("%s: the store was asked %q, and for a wrong password %q", c.what, asked, wanted)
			}
		}
		if want := []string{"update", "count in 3 buckets", "view", "user by address"}; !slices.Equal(wanted, want) {
			t.Errorf("the work is %q, not %q", wanted, want)
		}
	})
}

func TestEveryUnknownSessionIsTheSameWork(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		foreign := f.LogIn("owner").Token
		other := f.NewTenant("other")
		for what, tenant := range map[string]rolecall.Tenant{"another tenant": other, "an unknown tenant": {}} {
			asked := f.DB.During(func() {
				_, err := f.NewNode().SignIn.Authenticate(f.Context(), tenant, []secret.Token{foreign}, true)
				f.Is(err, rolecall.ErrUnauthenticated)
			})
			if want := []string{"view", "session by token"}; !slices.Equal(asked, want) {
				t.Errorf("%s: the store was asked %q", what, asked)
			}
		}
	})
}

func TestEveryUnknownTokenIsTheSameWork(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, member, _, tokens := f.Programs()
		revoked := f.NewUserToken(f.CallerOf(f.LogIn("programmer")), "users:read")
		f.OK(f.Directory.RevokeToken(f.Context(), f.Owner, rolecall.HolderOf(member.ID), revoked.ID))
		other := f.NewTenant("other")
		for _, c := range []struct {
			what   string
			tenant rolecall.Tenant
			token  secret.Token
		}{
			{"another tenant's", other, tokens[0].Secret}, {"an unknown tenant's", rolecall.Tenant{}, tokens[1].Secret},
			{"a revoked one", f.Tenant, revoked.Secret}, {"one that nobody has", f.Tenant, secret.NewAPIToken()},
		} {
			asked := f.DB.During(func() {
				_, err := f.NewNode().SignIn.AuthenticateBearer(f.Context(), c.tenant, string(c.token), "192.0.2.1")
				f.Is(err, rolecall.ErrUnauthenticated)
			})
			if want := []string{"view", "API token by hash"}; !slices.Equal(asked, want) {
				t.Errorf("%s: the store was asked %q", c.what, asked)
			}
		}
	})
}

func TestASignInComputesOneHashAndReplacesAWeakOne(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		before := f.Hashes.Hashed()
		f.LogIn("owner")
		if spent := f.Hashes.Hashed() - before; spent != 1 {
			t.Errorf("%d hashes", spent)
		}
		stored := func() (hash string) {
			f.OK(f.Store.View(f.Context(), f.Tenant.ID, func(tx *store.Tx) (err error) {
				hash, err = tx.PasswordHash(f.Owner.User.ID)
				return err
			}))
			return hash
		}
		weak := stored()
		f.Node = f.NewNodeWith(secret.Parameters{Time: 2, MemoryKiB: 64, Threads: 1})
		f.LogIn("owner")
		strong := stored()
		if strong == weak {
			t.Error("a weak hash was kept")
		}
		f.LogIn("owner")
		if stored() != strong {
			t.Error("a strong hash was made again")
		}
	})
}
