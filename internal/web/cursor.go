package web

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// CursorDetail is the detail of the field error for an invalid cursor.
const CursorDetail = "must be the nextCursor of a page of the same list, requested by the same caller with the same filters and order"

const (
	cursorPurpose = "cursor"
	cursorVersion = 1
)

// SealCursor encrypts the position into a cursor. The cursor is valid only for the list that the
// digest in list identifies.
func SealCursor(keys *secret.Keys, at *rolecall.Position, list []byte) string {
	return keys.Seal(cursorPurpose, appendPosition(nil, at), list)
}

// OpenCursor decrypts a cursor and returns its position. It returns false if the cursor is invalid
// or belongs to another list.
func OpenCursor(keys *secret.Keys, cursor string, list []byte) (*rolecall.Position, bool) {
	plain, err := keys.Open(cursorPurpose, cursor, list)
	at, ok := parsePosition(plain)
	return at, ok && err == nil
}

// appendPosition appends the plaintext of a cursor: a version, an id and a sort key.
func appendPosition(b []byte, at *rolecall.Position) []byte {
	b = append(b, cursorVersion)
	b = append(b, at.ID[:]...)
	return append(b, at.Key...)
}

// parsePosition parses the plaintext that appendPosition wrote.
func parsePosition(plain []byte) (*rolecall.Position, bool) {
	var at rolecall.Position
	if len(plain) < 1+len(at.ID) || plain[0] != cursorVersion {
		return nil, false
	}
	copy(at.ID[:], plain[1:])
	at.Key = string(plain[1+len(at.ID):])
	return &at, true
}
