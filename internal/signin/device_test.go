package signin_test

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
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// guessBy tries a password of a user from a source address. The browser sends a
// known-device token.
func guessBy(f *nodetest.Fixture, device, source, name, secret string) (signin.SignIn, error) {
	a := f.Attempt()
	a.Source, a.Devices = source, []string{device}
	return f.SignIn.Login(f.Context(), a, nodetest.Address(name), secret)
}

func TestAnAttackOnAnAccountDoesNotStopItsOwner(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		known := f.LogIn("owner").Device
		var refused atomic.Int64
		attackers := make(chan int)
		var attack sync.WaitGroup
		for range 16 {
			attack.Go(func() {
				for i := range attackers {
					err := f.Guess(fmt.Sprintf("198.51.%d.%d", i/250, i%250), "owner", "wrong")
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
		f.Is(f.Guess("203.0.113.1", "owner", nodetest.Password), rolecall.ErrTooManyAttempts)
		in, err := guessBy(f, known, "203.0.113.1", "owner", nodetest.Password)
		f.OK(err)
		f.OK(nodetest.ErrorOf(guessBy(f, in.Device, "198.51.0.1", "OWNER", nodetest.Password)))
		f.Is(f.Guess("203.0.113.1", "owner", nodetest.Password), rolecall.ErrTooManyAttempts)
	})
}

func TestAKnownDeviceHasASeparateLimit(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		known := f.LogIn("owner").Device
		before := f.Hashes.Hashed()
		var evaluated atomic.Int64
		var running sync.WaitGroup
		for i := range 200 {
			running.Go(func() {
				switch _, err := guessBy(f, known, fmt.Sprintf("198.51.100.%d", i), "owner", "wrong"); {
				case errors.Is(err, rolecall.ErrWrongCredentials):
					evaluated.Add(1)
				case !errors.Is(err, rolecall.ErrTooManyAttempts):
					t.Error(err)
				}
			})
		}
		running.Wait()
		if n, spent := evaluated.Load(), f.Hashes.Hashed()-before; n != 10 || spent != 10 {
			t.Errorf("%d were evaluated with %d hashes", n, spent)
		}
		f.Is(nodetest.ErrorOf(guessBy(f, known, "203.0.113.1", "owner", nodetest.Password)), rolecall.ErrTooManyAttempts)
		f.OK(f.Guess("203.0.113.1", "owner", nodetest.Password))
		f.Clock.Advance(15 * time.Minute)
		f.OK(nodetest.ErrorOf(guessBy(f, known, "203.0.113.1", "owner", nodetest.Password)))
	})
}

func TestKnownDevices(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada := f.NewUser("ada")
		accepted, err := f.AcceptInvitation(f.Invite(ada.ID), nodetest.Password)
		f.OK(err)
		mark := f.LogIn("ada").Device
		of := func(tenant rolecall.Tenant) string {
			in, err := f.SignIn.Login(f.Context(), access.Anonymous{Tenant: tenant, TenantName: tenant.Name, Source: "192.0.2.1"}, nodetest.Address("owner"), nodetest.Password)
			f.OK(err)
			return in.Device
		}
		other := f.NewTenant("other")
		content, err := f.Keys.Open("device", mark, f.Tenant.ID[:])
		f.OK(err)
		for _, c := range []struct {
			what   string
			device string
			email  string
			known  bool
		}{
			{"its own account", mark, nodetest.Address("ada"), true},
			{"its own account, spelled otherwise", mark, strings.ToUpper(nodetest.Address("ada")), true},
			{"the account that was invited", accepted.Device, nodetest.Address("ada"), true},
			{"another account", mark, nodetest.Address("owner"), false},
			{"the same account of another tenant", of(other), nodetest.Address("owner"), false},
			{"none", "", nodetest.Address("ada"), false},
			{"cut", mark[:len(mark)-1], nodetest.Address("ada"), false},
			{"longer", mark + "A", nodetest.Address("ada"), false},
			{"forged", secret.NewKeys(secret.NewKey()).Seal("device", content, f.Tenant.ID[:]), nodetest.Address("ada"), false},
			{"sealed for something else", f.Keys.Seal("cursor", content, f.Tenant.ID[:]), nodetest.Address("ada"), false},
			{"no mark inside", f.Keys.Seal("device", []byte("ada"), f.Tenant.ID[:]), nodetest.Address("ada"), false},
		} {
			if knows(f, c.device, c.email) != c.known {
				t.Errorf("%s: known is %v", c.what, !c.known)
			}
		}
		f.Clock.Advance(signin.DeviceLifetime - time.Microsecond)
		if !knows(f, mark, nodetest.Address("ada")) {
			t.Error("it is forgotten too early")
		}
		f.Clock.Advance(time.Microsecond)
		if knows(f, mark, nodetest.Address("ada")) {
			t.Error("it is not forgotten")
		}
	})
}

// knows reports whether a sign-in with this address is counted by the counter of the
// device. Without a valid known-device token, other counters are used.
func knows(f *nodetest.Fixture, device, email string) bool {
	f.Helper()
	a := f.Attempt()
	a.Devices = []string{device}
	asked := f.DB.During(func() {
		f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), a, email, "wrong")), rolecall.ErrWrongCredentials)
	})
	return slices.Contains(asked, "count in 1 buckets")
}

func TestAPasswordChangeInvalidatesKnownDevices(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		const another, third = "another " + nodetest.Password, "a third " + nodetest.Password
		ada := f.NewMember("ada")
		strangers := func(device, secret string) bool {
			a := f.Attempt()
			a.Devices = []string{device}
			asked := f.DB.During(func() { f.OK(nodetest.ErrorOf(f.SignIn.Login(f.Context(), a, nodetest.Address("ada"), secret))) })
			return slices.Contains(asked, "count in 3 buckets")
		}
		old := f.LogIn("ada")
		if strangers(old.Device, nodetest.Password) {
			t.Error("a browser is not known")
		}
		mark, err := f.SignIn.ChangePassword(f.Context(), f.CallerOf(old), nodetest.Password, another)
		f.OK(err)
		if !strangers(old.Device, another) {
			t.Error("a browser is known by the password of before")
		}
		if strangers(mark, another) {
			t.Error("the browser in which the password was changed is not known")
		}
		f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address("ada"), third))
		if !strangers(mark, third) {
			t.Error("a browser is known by a password that an operator has replaced")
		}

		// Under attack, a known-device token of an old password has no effect.
		for i := range 100 {
			f.Is(f.Guess(fmt.Sprintf("198.51.100.%d", i), "ada", "wrong"), rolecall.ErrWrongCredentials)
		}
		before := f.Hashes.Hashed()
		f.Is(nodetest.ErrorOf(guessBy(f, old.Device, "203.0.113.1", "ada", third)), rolecall.ErrTooManyAttempts)
		if spent := f.Hashes.Hashed() - before; spent != 0 {
			t.Errorf("%d hashes were spent", spent)
		}
		f.OK(f.Directory.DeleteUser(f.Context(), f.Owner, ada.ID, nil))
		f.Is(nodetest.ErrorOf(guessBy(f, old.Device, "203.0.113.1", "ada", third)), rolecall.ErrTooManyAttempts)
	})
}

func TestABrowserKeepsTheTokensOfOtherAccounts(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		other := f.NewTenant("other")
		in, err := f.SignIn.Login(f.Context(), access.Anonymous{Tenant: other, TenantName: other.Name, Source: "192.0.2.1"}, nodetest.Address("owner"), nodetest.Password)
		f.OK(err)
		kept := []string{in.Device}
		keep := func(newest string, others ...string) []string {
			return f.SignIn.KeptDevices(f.Tenant.ID, newest, others)
		}
		owner := f.LogIn("owner").Device
		f.NewMember("ada")
		ada, again := f.LogIn("ada").Device, f.LogIn("ada").Device
		if kept = keep(owner, kept...); !slices.Equal(kept, []string{owner, in.Device}) {
			t.Error("the token of another tenant is not kept")
		}
		if kept = keep(ada, kept...); !slices.Equal(kept, []string{ada, owner, in.Device}) {
			t.Error("the token of another account is not kept")
		}
		if kept = keep(again, append(kept, kept...)...); !slices.Equal(kept, []string{again, owner, in.Device}) {
			t.Error("the older token of the same account is kept, or one is kept twice")
		}
		a := f.Attempt()
		a.Devices = kept
		for _, name := range []string{"owner", "ada"} {
			asked := f.DB.During(func() {
				f.Is(nodetest.ErrorOf(f.SignIn.Login(f.Context(), a, nodetest.Address(name), "wrong")), rolecall.ErrWrongCredentials)
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
