package node_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

func TestEveryRefusedSignInIsTheSameWork(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.user("pending")
		suspended := f.member("suspended")
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, suspended.ID, "")))
		unknown := access.Anonymous{TenantName: "nobody", RequestID: "request", Source: "192.0.2.1"}
		var wanted []string
		for _, c := range []struct {
			what    string
			attempt access.Anonymous
			email   string
			secret  string
		}{
			{"a wrong password", f.attempt(), address("owner"), "wrong"},
			{"an unknown address", f.attempt(), address("ghost"), password},
			{"what is no address", f.attempt(), "ghost", password},
			{"a pending user", f.attempt(), address("pending"), password},
			{"a wrong password of a suspended user", f.attempt(), address("suspended"), "wrong"},
			{"an unknown tenant", unknown, address("owner"), password},
			{"an empty password", f.attempt(), address("owner"), ""},
		} {
			before := f.hashes.Hashed()
			asked := f.db.during(func() {
				_, err := f.SignIn.Login(f.Context(), c.attempt, c.email, c.secret)
				f.is(err, rolecall.ErrWrongCredentials)
			})
			if spent := f.hashes.Hashed() - before; spent != 1 {
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
	onEachStore(t, func(f *fixture) {
		foreign := f.signIn("owner").Token
		other := f.newTenant("other")
		for what, tenant := range map[string]rolecall.Tenant{"another tenant": other, "an unknown tenant": {}} {
			asked := f.db.during(func() {
				_, err := f.node().SignIn.Authenticate(f.Context(), tenant, []secret.Token{foreign}, true)
				f.is(err, rolecall.ErrUnauthenticated)
			})
			if want := []string{"view", "session by token"}; !slices.Equal(asked, want) {
				t.Errorf("%s: the store was asked %q", what, asked)
			}
		}
	})
}

func TestEveryUnknownTokenIsTheSameWork(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, member, _, tokens := f.programs()
		revoked := f.userToken(f.call(f.signIn("programmer")), "users:read")
		f.ok(f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(member.ID), revoked.ID))
		other := f.newTenant("other")
		for _, c := range []struct {
			what   string
			tenant rolecall.Tenant
			token  secret.Token
		}{
			{"another tenant's", other, tokens[0].Secret}, {"an unknown tenant's", rolecall.Tenant{}, tokens[1].Secret},
			{"a revoked one", f.tenant, revoked.Secret}, {"one that nobody has", f.tenant, secret.NewAPIToken()},
		} {
			asked := f.db.during(func() {
				_, err := f.node().SignIn.AuthenticateBearer(f.Context(), c.tenant, string(c.token), "192.0.2.1")
				f.is(err, rolecall.ErrUnauthenticated)
			})
			if want := []string{"view", "API token by hash"}; !slices.Equal(asked, want) {
				t.Errorf("%s: the store was asked %q", c.what, asked)
			}
		}
	})
}

func TestASignInComputesOneHashAndReplacesAWeakOne(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		before := f.hashes.Hashed()
		f.signIn("owner")
		if spent := f.hashes.Hashed() - before; spent != 1 {
			t.Errorf("%d hashes", spent)
		}
		stored := func() (hash string) {
			f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
				hash, err = tx.PasswordHash(f.owner.User.ID)
				return err
			}))
			return hash
		}
		weak := stored()
		f.Node = f.nodeWith(secret.Parameters{Time: 2, MemoryKiB: 64, Threads: 1})
		f.signIn("owner")
		strong := stored()
		if strong == weak {
			t.Error("a weak hash was kept")
		}
		f.signIn("owner")
		if stored() != strong {
			t.Error("a strong hash was made again")
		}
	})
}
