package store

import (
	"fmt"
	"testing"
)

func TestTheFilterOfBeginningsKeepsEveryMatch(t *testing.T) {
	user := Words{"ada", "lovelace", "übersee", "x", "42"}
	for _, word := range user {
		for i := range word {
			if begins := (Words{word[:i]}).Beginnings(); user.Beginnings()&begins != begins {
				t.Errorf("%q is ruled out", word[:i])
			}
		}
		if begins := (Words{word}).Beginnings(); user.Beginnings()&begins != begins {
			t.Errorf("%q is ruled out", word)
		}
	}
}

func TestTheFilterOfBeginningsExcludesMostOthers(t *testing.T) {
	user := Words{"grace", "hopper", "ghopper", "example", "com"}
	in, all := 0, 0
	for a := 'a'; a <= 'z'; a++ {
		for _, rest := range []string{"lan", "eter", "ina", "oris"} {
			word := fmt.Sprintf("%c%s", a, rest)
			all++
			if begins := (Words{word}).Beginnings(); user.Beginnings()&begins == begins {
				in++
			}
		}
	}
	if in > all/10 {
		t.Errorf("%d of %d words are not ruled out", in, all)
	}
}
