package secret

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall"
)

// cheap is a cost that keeps tests fast.
var cheap = Parameters{Time: 1, MemoryKiB: 64, Threads: 1}

// The hashes are from the tests of the reference implementation of Argon2
// (phc-winner-argon2).
func TestVerifyKnownAnswers(t *testing.T) {
	passwords := NewPasswords(cheap, 1, 0)
	for _, test := range []struct {
		phc, password string
		want          bool
	}{
		{"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "password", true},
		{"$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc", "password", true},
		{"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password", true},
		{"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "passwore", false},
		{"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHU$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", "password", false},
	} {
		if ok, _, err := passwords.Verify(t.Context(), test.phc, test.password); ok != test.want || err != nil {
			t.Errorf("Verify(%s, %q) = %v, %v; want %v", test.phc, test.password, ok, err, test.want)
		}
	}
}

func TestHashThenVerify(t *testing.T) {
	passwords := NewPasswords(cheap, 2, 2)
	phc, err := passwords.Hash(t.Context(), "Ame\u0301lie's passphrase")
	if err != nil {
		t.Fatal(err)
	}
	again, err := passwords.Hash(t.Context(), "Ame\u0301lie's passphrase")
	if err != nil || again == phc {
		t.Errorf("the same password twice: %s, %s, %v; want another salt", phc, again, err)
	}
	for password, want := range map[string]bool{
		"Ame\u0301lie's passphrase": true,
		"Am\u00e9lie's passphrase":  true,
		"Amelie's passphrase":       false,
		"":                          false,
	} {
		if ok, outdated, err := passwords.Verify(t.Context(), phc, password); ok != want || outdated || err != nil {
			t.Errorf("Verify(%q) = %v, %v, %v; want %v, false", password, ok, outdated, err, want)
		}
	}
}

func TestWeakerHashesAreOutdated(t *testing.T) {
	phc, err := NewPasswords(cheap, 1, 0).Hash(t.Context(), "a long passphrase")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		cost Parameters
		want bool
	}{
		{cheap, false},
		{Parameters{Time: 2, MemoryKiB: 64, Threads: 1}, true},
		{Parameters{Time: 1, MemoryKiB: 128, Threads: 1}, true},
		{Parameters{Time: 1, MemoryKiB: 64, Threads: 2}, true},
		{Parameters{Time: 1, MemoryKiB: 32, Threads: 1}, false},
	} {
		passwords := NewPasswords(test.cost, 1, 0)
		if ok, outdated, err := passwords.Verify(t.Context(), phc, "a long passphrase"); !ok || outdated != test.want || err != nil {
			t.Errorf("at %+v: ok %v, outdated %v, %v; want outdated %v", test.cost, ok, outdated, err, test.want)
		}
		if _, outdated, err := passwords.Verify(t.Context(), phc, "another passphrase"); outdated || err != nil {
			t.Errorf("at %+v: a wrong password called the hash outdated (%v)", test.cost, err)
		}
	}
}

func TestNoPasswordCostsOneHash(t *testing.T) {
	passwords := NewPasswords(cheap, 1, 0)
	if ok, outdated, err := passwords.Verify(t.Context(), "", ""); ok || outdated || err != nil {
		t.Errorf("Verify without a hash = %v, %v, %v", ok, outdated, err)
	}
	if n := passwords.Hashed(); n != 1 {
		t.Errorf("%d hashes computed, want 1", n)
	}
}

func TestHashesAreLimited(t *testing.T) {
	const slots, queue = 2, 3
	passwords := NewPasswords(cheap, slots, queue)
	release, entered := make(chan struct{}), make(chan struct{}, slots+queue)
	errs := make(chan error, slots+queue)
	var group sync.WaitGroup
	for range slots + queue {
		group.Go(func() {
			errs <- passwords.run(t.Context(), func() { entered <- struct{}{}; <-release })
		})
	}
	for range slots {
		<-entered
	}
	for passwords.limiter.Active() < slots+queue { // wait until the other goroutines are in the queue
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	if len(entered) != 0 {
		t.Errorf("more than %d hash at once", slots)
	}
	if _, err := passwords.Hash(t.Context(), "one too many here"); !errors.Is(err, rolecall.ErrBusy) {
		t.Errorf("past the queue: %v, want ErrBusy", err)
	}
	close(release)
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Errorf("within the queue: %v", err)
		}
	}
	if n := passwords.Hashed(); n != slots+queue {
		t.Errorf("%d hashes computed, want %d", n, slots+queue)
	}
	if passwords.limiter.Active() != 0 {
		t.Error("places are still held")
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	passwords := NewPasswords(cheap, 1, 1)
	passwords.limiter.Acquire(t.Context()) // the only slot is taken
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := passwords.Hash(ctx, "a long passphrase"); !errors.Is(err, rolecall.ErrBusy) {
		t.Errorf("cancelled while waiting: %v, want ErrBusy", err)
	}
	if passwords.limiter.Active() != 1 {
		t.Error("the place in the queue is still held")
	}
}

// hashSeeds contains texts for parseHash. The value is true if the text is valid.
var hashSeeds = map[string]bool{
	"$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA": true,
	"$argon2id$v=19$m=1048576,t=64,p=16$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":                             true,
	"":                                 false,
	"$argon2id$v=19$m=19456,t=2,p=1$$": false,
	"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ":                            false,
	"$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":      false,
	"$argon2id$v=16$m=19456,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":     false,
	"$argon2id$v=19$m=1048577,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":   false,
	"$argon2id$v=19$m=19456,t=65,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":    false,
	"$argon2id$v=19$m=19456,t=2,p=257$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":   false,
	"$argon2id$v=19$m=19456,t=0,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":     false,
	"$argon2id$v=19$m=019456,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":    false,
	"$argon2id$v=19$m=19456,t=2$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":         false,
	"$argon2id$v=19$t=2,m=19456,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":     false,
	"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAA":      false,
	"$argon2id$v=19$m=19456,t=2,p=1$c29t\nZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA":   false,
	"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA$AAA": false,
}

func TestParseHash(t *testing.T) {
	for text, want := range hashSeeds {
		if _, err := parseHash(text); (err == nil) != want {
			t.Errorf("parseHash(%q): %v, want ok %v", text, err, want)
		}
	}
	if _, _, err := NewPasswords(cheap, 1, 0).Verify(t.Context(), "plain text", "plain text"); !errors.Is(err, errHash) {
		t.Errorf("Verify of an unreadable hash: %v", err)
	}
}

func FuzzParseHash(f *testing.F) {
	for text := range hashSeeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHash(text)
		if err != nil {
			return
		}
		if h.String() != text {
			t.Errorf("parseHash(%q) is written %q", text, h.String())
		}
		if h.MemoryKiB > mostParameters.MemoryKiB || h.Time > mostParameters.Time || h.Threads > mostParameters.Threads {
			t.Errorf("parseHash(%q) took a cost past the bounds: %+v", text, h.Parameters)
		}
	})
}

// Release builds have no build tags, so they use the cost that this test checks.
func TestTheDefaultCostIsTheOneThatOWASPRecommends(t *testing.T) {
	if full := (Parameters{Time: 2, MemoryKiB: 19 * 1024, Threads: 1}); CheapHashes || DefaultParameters != full {
		t.Errorf("the default cost is %+v, want %+v", DefaultParameters, full)
	}
}

func BenchmarkVerify(b *testing.B) {
	passwords := NewPasswords(DefaultParameters, 1, 0)
	phc, err := passwords.Hash(b.Context(), strings.Repeat("long ", 4))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if ok, _, err := passwords.Verify(b.Context(), phc, strings.Repeat("long ", 4)); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
