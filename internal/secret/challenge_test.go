package secret

import (
	"testing"

	"github.com/rolecall/rolecall"
)

func TestChallenges(t *testing.T) {
	const until rolecall.Time = 1 << 50
	old := NewKeys(knownKey)
	challenge := old.Challenge("sign in", until, "acme", "ada")
	if _, ok := ParseToken(string(challenge)); !ok || challenge == old.Challenge("sign in", until, "acme", "ada") {
		t.Errorf("%s has not the shape of a token, or is not random", challenge)
	}
	for _, test := range []struct {
		name    string
		keys    *Keys
		purpose string
		token   Token
		now     rolecall.Time
		parts   []string
		ok      bool
	}{
		{"in time", old, "sign in", challenge, until - 1, []string{"acme", "ada"}, true},
		{"after a rotation", NewKeys(NewKey(), knownKey), "sign in", challenge, until - 1, []string{"acme", "ada"}, true},
		{"over", old, "sign in", challenge, until, []string{"acme", "ada"}, false},
		{"other key", NewKeys(NewKey()), "sign in", challenge, 0, []string{"acme", "ada"}, false},
		{"other purpose", old, "register", challenge, 0, []string{"acme", "ada"}, false},
		{"other tenant", old, "sign in", challenge, 0, []string{"globex", "ada"}, false},
		{"other parts", old, "sign in", challenge, 0, []string{"acmeada"}, false},
		{"prolonged", old, "sign in", "B" + challenge[1:], 0, []string{"acme", "ada"}, false},
		{"no token", old, "sign in", "", 0, []string{"acme", "ada"}, false},
		{"any token", old, "sign in", NewToken(), 0, []string{"acme", "ada"}, false},
	} {
		if ok := test.keys.VerifyChallenge(test.purpose, test.token, test.now, test.parts...); ok != test.ok {
			t.Errorf("%s: %v, want %v", test.name, ok, test.ok)
		}
	}
}
