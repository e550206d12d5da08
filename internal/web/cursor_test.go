package web

import "testing"

// FuzzPosition checks that no plaintext of a cursor is read as two positions.
func FuzzPosition(f *testing.F) {
	seeds := [][]byte{nil, {1}, append([]byte{1}, make([]byte, 16)...), append([]byte{2}, make([]byte, 20)...), append([]byte{1}, make([]byte, 40)...)}
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, plain []byte) {
		at, ok := parsePosition(plain)
		if ok != (len(plain) >= 17 && plain[0] == cursorVersion) {
			t.Fatalf("%x: %v", plain, ok)
		}
		if ok && string(appendPosition(nil, at)) != string(plain) {
			t.Fatalf("%x is written as %x", plain, appendPosition(nil, at))
		}
	})
}
