package wire

import (
	"testing"

	"github.com/rolecall/rolecall"
)

// BenchmarkPage measures the encoding of a page of 50 users.
func BenchmarkPage(b *testing.B) {
	department, now := "Sales", rolecall.Time(1_700_000_000_123_456)
	users := make([]rolecall.User, rolecall.DefaultLimit)
	for i := range users {
		users[i] = rolecall.User{
			ID: rolecall.NewID[rolecall.User](now), Email: "ada.lovelace@example.com", Name: "Ada Lovelace", Department: &department,
			Status: rolecall.UserActive, CreatedAt: now, UpdatedAt: now,
		}
	}
	encoder := NewEncoder[rolecall.User]()
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = out[:0]
		for i := range users {
			out = encoder.Append(out, &users[i])
		}
	}
	b.SetBytes(int64(len(out)))
}
