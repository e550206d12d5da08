package web

import (
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/secret"
)

func TestSessionCookies(t *testing.T) {
	a, b := secret.NewToken(), secret.NewToken()
	for _, test := range []struct {
		name  string
		lines []string
		want  []secret.Token
	}{
		{"none", nil, nil},
		{"one", []string{"session=" + string(a)}, []secret.Token{a}},
		{"quoted", []string{`session="` + string(a) + `"`}, []secret.Token{a}},
		{"among others", []string{"theme=dark; session=" + string(a) + "; x"}, []secret.Token{a}},
		{"other programs' of the same name", []string{"session=abc; session=" + string(a) + "; session="}, []secret.Token{a}},
		{"the same twice", []string{"session=" + string(a) + "; session=" + string(a)}, []secret.Token{a}},
		{"two on two lines", []string{"session=" + string(a), "session=" + string(b)}, []secret.Token{a, b}},
		{"another case", []string{"Session=" + string(a)}, nil},
		{"no more than four", []string{strings.Repeat("session="+string(a)+"; ", 9) + "session=" + string(secret.NewToken()) + ";session=" + string(secret.NewToken()) + ";session=" + string(secret.NewToken()) + ";session=" + string(b)}, nil},
	} {
		got := appendTokens(nil, SessionCookie, test.lines)
		if test.want == nil && len(test.lines) > 0 && test.name == "no more than four" {
			if len(got) != maxTokens || slices.Contains(got, b) {
				t.Errorf("%s: %d tokens", test.name, len(got))
			}
			continue
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// FuzzTokens checks that every token that is read from an arbitrary cookie line is well-formed.
func FuzzTokens(f *testing.F) {
	seeds := []string{"", "session=", "session=a; session=b", "session=" + string(secret.NewToken()), `a="b;c"; session="`}
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		tokens := appendTokens(nil, SessionCookie, []string{line})
		if len(tokens) > maxTokens {
			t.Fatalf("%d tokens", len(tokens))
		}
		for _, token := range tokens {
			if _, ok := secret.ParseToken(string(token)); !ok || !strings.Contains(line, string(token)) {
				t.Fatalf("%q gave %q", line, token)
			}
		}
	})
}
