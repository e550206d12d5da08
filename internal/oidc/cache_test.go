package oidc

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTheCacheBoundsBytes fetches large documents of many providers. The cache keeps about as many as it has room for.
func TestTheCacheBoundsBytes(t *testing.T) {
	filler := strings.Repeat("x", documentBytes/2)
	documents, keys := newCache[*document](time.Now, time.Minute), newCache[*keySet](time.Now, time.Minute)
	for i := range 100 {
		url := fmt.Sprintf("https://%d.example", i)
		_, err := documents.get(t.Context(), url, time.Hour, func(context.Context, string) (*document, error) {
			return &document{Issuer: url, Algorithms: []string{filler}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = keys.get(t.Context(), url, time.Hour, func(context.Context, string) (*keySet, error) {
			return parseKeys([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"` + filler + `","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	documents.entries.CleanUp()
	keys.entries.CleanUp()
	for what, kept := range map[string]int{"documents": documents.entries.EstimatedSize(), "keys": keys.entries.EstimatedSize()} {
		if most := cachedBytes / len(filler); kept > most || kept < most/2 {
			t.Errorf("%d large %s are cached", kept, what)
		}
	}
}

// TestKeysKeepNoUnusedMembers parses a key with a large member that nothing uses.
func TestKeysKeepNoUnusedMembers(t *testing.T) {
	set, err := parseKeys([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x5u":"https://example.com/` + strings.Repeat("x", 1000) + `","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
	if err != nil || len(set.keys) != 1 || set.keys[0].KeyID != "1" || set.keys[0].CertificatesURL != nil {
		t.Errorf("the keys are %v, %v", set, err)
	}
}

// TestAFailureKeepsTheDocument fetches a document, and then fails to fetch a newer one.
func TestAFailureKeepsTheDocument(t *testing.T) {
	now := time.Now()
	c := newCache[*document](func() time.Time { return now }, time.Minute)
	get := func(age time.Duration, err error) (*document, error) {
		return c.get(t.Context(), "https://example.com", age, func(context.Context, string) (*document, error) { return &document{Issuer: "first"}, err })
	}
	if _, err := get(time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if _, err := get(time.Second, ErrUnavailable); err == nil {
		t.Error("a failed fetch returned a document that is too old")
	}
	if d, err := get(time.Hour, ErrUnavailable); err != nil || d.Issuer != "first" {
		t.Errorf("the document is %v, %v", d, err)
	}
}
