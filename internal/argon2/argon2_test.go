package argon2

import (
	"bytes"
	"encoding/hex"
	"sync"
	"testing"

	"golang.org/x/crypto/argon2"
	"pgregory.net/rapid"
)

// The expected key is from the tests of the reference implementation.
func TestIDKeyOfTheReference(t *testing.T) {
	got := IDKey([]byte("password"), []byte("somesalt"), 2, 65536, 1, 32)
	if want := "09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7"; hex.EncodeToString(got) != want {
		t.Errorf("got %x, want %s", got, want)
	}
}

func TestIDKeyEqualsTheKeyOfXCrypto(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "password")
		salt := rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "salt")
		passes := rapid.Uint32Range(1, 4).Draw(t, "passes")
		memory := rapid.Uint32Range(1, 2000).Draw(t, "memory")
		threads := rapid.Uint8Range(1, 16).Draw(t, "threads")
		length := rapid.Uint32Range(4, 300).Draw(t, "length")
		want := argon2.IDKey(password, salt, passes, memory, threads, length)
		if got := IDKey(password, salt, passes, memory, threads, length); !bytes.Equal(got, want) {
			t.Fatalf("got %x, want %x", got, want)
		}
	})
}

// Concurrent computations with different memory sizes take and return blocks of the same
// memory pool.
func TestIDKeyAtOnce(t *testing.T) {
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			memory := uint32(512 + i%3*100)
			want := argon2.IDKey([]byte{byte(i)}, []byte("somesalt"), 2, memory, 1, 32)
			for range 20 {
				if got := IDKey([]byte{byte(i)}, []byte("somesalt"), 2, memory, 1, 32); !bytes.Equal(got, want) {
					t.Errorf("got %x, want %x", got, want)
				}
			}
		})
	}
	wait.Wait()
}

func BenchmarkIDKey(b *testing.B) {
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			IDKey([]byte("password"), []byte("somesalt"), 2, 19456, 1, 32)
		}
	})
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			argon2.IDKey([]byte("password"), []byte("somesalt"), 2, 19456, 1, 32)
		}
	})
}
