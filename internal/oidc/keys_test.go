package oidc_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

func TestKeyRotation(t *testing.T) {
	f := newFlow(t)
	if _, err := f.signIn(t, attempt()); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(time.Minute)
	f.RotateKeys()
	if _, err := f.signIn(t, attempt()); err != nil || f.Requests(oidctest.PathKeys) != 2 {
		t.Errorf("after %d requests for keys: %v", f.Requests(oidctest.PathKeys), err)
	}
	f.Set(func(s *oidctest.Settings) { s.Token = (*oidctest.Token).SignWithRetiredKey })
	if _, err := f.signIn(t, attempt()); reason(err) != oidc.ReasonKey {
		t.Errorf("with the key from before: %s", reason(err))
	}
}

func TestKeyRotationWithoutKeyIDs(t *testing.T) {
	f := newFlow(t)
	withoutID := func(token *oidctest.Token) { token.KeyID = "" }
	f.Set(func(s *oidctest.Settings) { s.Token = withoutID })
	if _, err := f.signIn(t, attempt()); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(time.Minute)
	f.RotateKeys()
	if _, err := f.signIn(t, attempt()); err != nil || f.Requests(oidctest.PathKeys) != 2 {
		t.Errorf("after %d requests for keys: %v", f.Requests(oidctest.PathKeys), err)
	}
	f.AddKeys()
	f.client = f.newClient()
	if _, err := f.signIn(t, attempt()); reason(err) != oidc.ReasonKey {
		t.Errorf("with two keys for the algorithm: %s", reason(err))
	}
	f.Set(func(s *oidctest.Settings) { s.Token = nil })
	if _, err := f.signIn(t, attempt()); err != nil {
		t.Errorf("with two keys and an ID: %v", err)
	}
}

func TestUnknownKeysDoNotCauseAFloodOfFetches(t *testing.T) {
	f := newFlow(t)
	f.Set(func(s *oidctest.Settings) { s.Token = func(token *oidctest.Token) { token.KeyID = "unknown" } })
	try := func(want int) {
		t.Helper()
		for range 100 {
			if _, err := f.signIn(t, attempt()); reason(err) != oidc.ReasonKey {
				t.Fatal(err)
			}
		}
		if n := f.Requests(oidctest.PathKeys); n != want {
			t.Errorf("%d requests for keys, want %d", n, want)
		}
	}
	try(1)
	f.now = f.now.Add(59 * time.Second)
	try(1)
	f.now = f.now.Add(time.Second)
	try(2)
	f.Set(func(s *oidctest.Settings) { s.Token = nil })
	if _, err := f.signIn(t, attempt()); err != nil {
		t.Errorf("a valid token after them: %v", err)
	}
}

func TestKnownKeysAreUsedWhileTheKeysCannotBeFetched(t *testing.T) {
	f := newFlow(t)
	if _, err := f.signIn(t, attempt()); err != nil {
		t.Fatal(err)
	}
	f.now = f.now.Add(time.Minute)
	f.Set(func(s *oidctest.Settings) {
		s.Handlers = map[string]http.HandlerFunc{oidctest.PathKeys: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }}
		s.Token = func(token *oidctest.Token) { token.KeyID = "unknown" }
	})
	if _, err := f.signIn(t, attempt()); reason(err) != "unavailable" {
		t.Errorf("an unknown key: %s", reason(err))
	}
	f.Set(func(s *oidctest.Settings) { s.Token = nil })
	if _, err := f.signIn(t, attempt()); err != nil {
		t.Errorf("a known key: %v", err)
	}
}

func TestKeysThatAreNotUsed(t *testing.T) {
	f := newFlow(t)
	for name, test := range map[string]struct {
		keys func(all []any) any
		want string
	}{
		"other keys next to them":  {func(all []any) any { return set(append(all, weak, symmetric, unknown, map[string]any{}, 7, nil)...) }, "accepted"},
		"for encryption":           {func(all []any) any { return set(change(all[0], "use", "enc")) }, oidc.ReasonKey},
		"for another algorithm":    {func(all []any) any { return set(change(all[0], "alg", "RS512")) }, oidc.ReasonKey},
		"with another ID":          {func(all []any) any { return set(change(all[0], "kid", "other")) }, oidc.ReasonKey},
		"weak":                     {func([]any) any { return set(change(weak, "kid", "first-RS256")) }, oidc.ReasonKey},
		"symmetric":                {func([]any) any { return set(change(symmetric, "kid", "first-RS256")) }, oidc.ReasonKey},
		"without keys":             {func([]any) any { return set() }, oidc.ReasonKey},
		"null":                     {func([]any) any { return map[string]any{"keys": nil} }, oidc.ReasonKey},
		"after a hundred others":   {func(all []any) any { return set(append(hundred(all[0]), all[0])...) }, oidc.ReasonKey},
		"two keys with one ID":     {func(all []any) any { return set(change(weak, "kid", "first-RS256"), all[0]) }, "accepted"},
		"two kinds with one ID":    {func(all []any) any { return set(change(all[1], "kid", "first-RS256"), all[0]) }, "accepted"},
		"without use and with alg": {func(all []any) any { return set(change(change(all[0], "use", ""), "alg", "RS256")) }, "accepted"},
	} {
		f.Set(func(s *oidctest.Settings) { s.Keys = test.keys })
		f.client = f.newClient()
		if _, err := f.signIn(t, attempt()); reason(err) != test.want {
			t.Errorf("%s: %s, want %s", name, reason(err), test.want)
		}
	}
}

// Keys that are not used: an RSA key of 1024 bits, a symmetric one, and one of an unknown kind.
var (
	weak      = map[string]any{"kty": "RSA", "kid": "weak", "e": "AQAB", "n": base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 128))}
	symmetric = map[string]any{"kty": "oct", "kid": "symmetric", "k": base64.RawURLEncoding.EncodeToString(make([]byte, 32))}
	unknown   = map[string]any{"kty": "AKP", "kid": "unknown", "alg": "ML-DSA-44", "pub": "AA"}
)

func set(keys ...any) any { return map[string]any{"keys": keys} }

// change returns a copy of the key with another member.
func change(key any, member string, value any) any {
	text, err := json.Marshal(key)
	if err != nil {
		panic(err)
	}
	var changed map[string]any
	if err := json.Unmarshal(text, &changed); err != nil {
		panic(err)
	}
	changed[member] = value
	return changed
}

func hundred(key any) (keys []any) {
	for i := range 100 {
		keys = append(keys, change(key, "kid", strconv.Itoa(i)))
	}
	return keys
}
