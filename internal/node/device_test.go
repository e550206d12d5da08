package node_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// guessBy tries a password of a user from a source address. The browser sends a
// known-device token.
func (f *fixture) guessBy(device, source, name, secret string) (signin.SignIn, error) {
	a := f.attempt()
	a.Source, a.Devices = source, []string{device}
	return f.SignIn.Login(f.Context(), a, address(name), secret)
}

func TestAnAttackOnAnAccountDoesNotStopItsOwner(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		known := f.signIn("owner").Device
		var refused atomic.Int64
		attackers := make(chan int)
		var attack sync.WaitGroup
		for range 16 {
			attack.Go(func() {
				for i := range attackers {
					err := f.guess(fmt.Sprintf("198.51.%d.%d", i/250, i%250), "owner", "wrong")
					if errors.Is(err, rolecall.ErrTooManyAttempts) {
						refused.Add(1)
					} else if !errors.Is(err, rolecall.ErrWrongCredentials) {
						t.Error(err)
					}
				}
			})
		}
		for i := range 1000 {
			attackers <- i
		}
		close(attackers)
		attack.Wait()
		if n := refused.Load(); n != 900 {
			t.Errorf("%d of 1000 guesses were not evaluated", n)
		}
		f.is(f.guess("203.0.113.1", "owner", password), rolecall.ErrTooManyAttempts)
		in, err := f.guessBy(known, "203.0.113.1", "owner", password)
		f.ok(err)
		f.ok(errorOf(f.guessBy(in.Device, "198.51.0.1", "OWNER", password)))
		f.is(f.guess("203.0.113.1", "owner", password), rolecall.ErrTooManyAttempts)
	})
}

func TestAKnownDeviceHasASeparateLimit(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		known := f.signIn("owner").Device
		before := f.hashes.Hashed()
		var evaluated atomic.Int64
		var running sync.WaitGroup
		for i := range 200 {
			running.Go(func() {
				switch _, err := f.guessBy(known, fmt.Sprintf("198.51.100.%d", i), "owner", "wrong"); {
				case errors.Is(err, rolecall.ErrWrongCredentials):
					evaluated.Add(1)
				case !errors.Is(err, rolecall.ErrTooManyAttempts):
					t.Error(err)
				}
			})
		}
		running.Wait()
		if n, spent := evaluated.Load(), f.hashes.Hashed()-before; n != 10 || spent != 10 {
			t.Errorf("%d were evaluated with %d hashes", n, spent)
		}
		f.is(errorOf(f.guessBy(known, "203.0.113.1", "owner", password)), rolecall.ErrTooManyAttempts)
		f.ok(f.guess("203.0.113.1", "owner", password))
		f.clock.advance(15 * time.Minute)
		f.ok(errorOf(f.guessBy(known, "203.0.113.1", "owner", password)))
	})
}

func TestKnownDevices(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada := f.user("ada")
		accepted, err := f.accept(f.invite(ada.ID), password)
		f.ok(err)
		mark := f.signIn("ada").Device
		of := func(tenant rolecall.Tenant) string {
			in, err := f.SignIn.Login(f.Context(), access.Anonymous{Tenant: tenant, TenantName: tenant.Name, Source: "192.0.2.1"}, address("owner"), password)
			f.ok(err)
			return in.Device
		}
		other := f.newTenant("other")
		content, err := f.keys.Open("device", mark, f.tenant.ID[:])
		f.ok(err)
		for _, c := range []struct {
			what   string
			device string
			email  string
			known  bool
		}{
			{"its own account", mark, address("ada"), true},
			{"its own account, spelled otherwise", mark, strings.ToUpper(address("ada")), true},
			{"the account that was invited", accepted.Device, address("ada"), true},
			{"another account", mark, address("owner"), false},
			{"the same account of another tenant", of(other), address("owner"), false},
			{"none", "", address("ada"), false},
			{"cut", mark[:len(mark)-1], address("ada"), false},
			{"longer", mark + "A", address("ada"), false},
			{"forged", secret.NewKeys(secret.NewKey()).Seal("device", content, f.tenant.ID[:]), address("ada"), false},
			{"sealed for something else", f.keys.Seal("cursor", content, f.tenant.ID[:]), address("ada"), false},
			{"no mark inside", f.keys.Seal("device", []byte("ada"), f.tenant.ID[:]), address("ada"), false},
		} {
			if f.knows(c.device, c.email) != c.known {
				t.Errorf("%s: known is %v", c.what, !c.known)
			}
		}
		f.clock.advance(signin.DeviceLifetime - time.Microsecond)
		if !f.knows(mark, address("ada")) {
			t.Error("it is forgotten too early")
		}
		f.clock.advance(time.Microsecond)
		if f.knows(mark, address("ada")) {
			t.Error("it is not forgotten")
		}
	})
}

// knows reports whether a sign-in with this address is counted by the counter of the
// device. Without a valid known-device token, other counters are used.
func (f *fixture) knows(device, email string) bool {
	f.Helper()
	a := f.attempt()
	a.Devices = []string{device}
	asked := f.db.during(func() {
		f.is(errorOf(f.SignIn.Login(f.Context(), a, email, "wrong")), rolecall.ErrWrongCredentials)
	})
	return slices.Contains(asked, "count in 1 buckets")
}

func TestAPasswordChangeInvalidatesKnownDevices(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		const another, third = "another " + password, "a third " + password
		ada := f.member("ada")
		strangers := func(device, secret string) bool {
			a := f.attempt()
			a.Devices = []string{device}
			asked := f.db.during(func() { f.ok(errorOf(f.SignIn.Login(f.Context(), a, address("ada"), secret))) })
			return slices.Contains(asked, "count in 3 buckets")
		}
		old := f.signIn("ada")
		if strangers(old.Device, password) {
			t.Error("a browser is not known")
		}
		mark, err := f.SignIn.ChangePassword(f.Context(), f.call(old), password, another)
		f.ok(err)
		if !strangers(old.Device, another) {
			t.Error("a browser is known by the password of before")
		}
		if strangers(mark, another) {
			t.Error("the browser in which the password was changed is not known")
		}
		f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, address("ada"), third))
		if !strangers(mark, third) {
			t.Error("a browser is known by a password that an operator has replaced")
		}

		// Under attack, a known-device token of an old password has no effect.
		for i := range 100 {
			f.is(f.guess(fmt.Sprintf("198.51.100.%d", i), "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		before := f.hashes.Hashed()
		f.is(errorOf(f.guessBy(old.Device, "203.0.113.1", "ada", third)), rolecall.ErrTooManyAttempts)
		if spent := f.hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent", spent)
		}
		f.ok(f.Directory.DeleteUser(f.Context(), f.owner, ada.ID, nil))
		f.is(errorOf(f.guessBy(old.Device, "203.0.113.1", "ada", third)), rolecall.ErrTooManyAttempts)
	})
}

func TestABrowserKeepsTheTokensOfOtherAccounts(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		other := f.newTenant("other")
		in, err := f.SignIn.Login(f.Context(), access.Anonymous{Tenant: other, TenantName: other.Name, Source: "192.0.2.1"}, address("owner"), password)
		f.ok(err)
		kept := []string{in.Device}
		keep := func(newest string, others ...string) []string {
			return f.SignIn.KeptDevices(f.tenant.ID, newest, others)
		}
		owner := f.signIn("owner").Device
		f.member("ada")
		ada, again := f.signIn("ada").Device, f.signIn("ada").Device
		if kept = keep(owner, kept...); !slices.Equal(kept, []string{owner, in.Device}) {
			t.Error("the token of another tenant is not kept")
		}
		if kept = keep(ada, kept...); !slices.Equal(kept, []string{ada, owner, in.Device}) {
			t.Error("the token of another account is not kept")
		}
		if kept = keep(again, append(kept, kept...)...); !slices.Equal(kept, []string{again, owner, in.Device}) {
			t.Error("the older token of the same account is kept, or one is kept twice")
		}
		a := f.attempt()
		a.Devices = kept
		for _, name := range []string{"owner", "ada"} {
			asked := f.db.during(func() {
				f.is(errorOf(f.SignIn.Login(f.Context(), a, address(name), "wrong")), rolecall.ErrWrongCredentials)
			})
			if !slices.Contains(asked, "count in 1 buckets") {
				t.Errorf("the browser is not known for %s", name)
			}
		}
		many := []string{"", "1", "2", "3", "4", "5", "6"}
		if got := keep(again, many...); !slices.Equal(got, []string{again, "1", "2", "3", "4"}) {
			t.Errorf("%d tokens are kept", len(got))
		}
		if got := keep(again, strings.Repeat("A", 3500), "1"); !slices.Equal(got, []string{again, "1"}) {
			t.Errorf("too long a token is kept: %d", len(got))
		}
	})
}
