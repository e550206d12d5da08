package rolecall

import (
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
)

// ID is a UUIDv7 (RFC 9562) that identifies an object of type T. Ids sort by the time at
// which their objects were created. An id is not a secret, and knowing it gives no access
// to the object.
type ID[T any] [16]byte

// The id types of the objects.
type (
	TenantID  = ID[Tenant]
	UserID    = ID[User]
	RoleID    = ID[Role]
	SessionID = ID[Session]
	EventID   = ID[Event]
	MailID    = ID[Mail]

	TombstoneID      = ID[Tombstone]
	APITokenID       = ID[APIToken]
	ServiceAccountID = ID[ServiceAccount]
	OperatorKeyID    = ID[OperatorKey]
	JobID            = ID[Job]
	WebhookID        = ID[Webhook]
	GroupID          = ID[Group]
	ConnectionID     = ID[Connection]
	IdentityID       = ID[Identity]
	DirectoryID      = ID[Directory]
	DirectoryTokenID = ID[DirectoryToken]

	WebhookDeliveryID = ID[WebhookDelivery]

	AnyID = ID[any] // the id of an object whose type follows from the context
)

// idState has the time and the counter of the last id of this process, so that each new id
// is greater, even if the clock stands still or goes back. The counter has 12 bits and
// carries into the milliseconds of the time (RFC 9562, section 6.2, method 1).
var idState struct {
	sync.Mutex
	last uint64 // milliseconds << 12 | counter
}

// NewID returns a new id that contains the time now. Each id is greater than all earlier
// ids of this process. If now is not later than the time in the last id, NewID increments
// the last time and uses the result instead of now.
func NewID[T any](now Time) ID[T] {
	idState.Lock()
	next := uint64(now/1000) << 12
	if next <= idState.last {
		next = idState.last + 1
	}
	idState.last = next
	idState.Unlock()

	var id ID[T]
	_, _ = rand.Read(id[8:]) // crypto/rand.Read never returns an error: it ends the process instead
	binary.BigEndian.PutUint64(id[:8], next>>12<<16|next&0xfff)
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseID parses the 36-character form of a UUID, in upper or lower case. It accepts every
// version of UUID. For a UUID of another system, the API then responds that the object was
// not found, and not that the id is malformed.
func ParseID[T any](text string) (ID[T], error) {
	var id ID[T]
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, fmt.Errorf("not a UUID")
	}
	compact := make([]byte, 0, 32)
	compact = append(compact, text[:8]...)
	compact = append(compact, text[9:13]...)
	compact = append(compact, text[14:18]...)
	compact = append(compact, text[19:23]...)
	compact = append(compact, text[24:]...)
	if _, err := hex.Decode(id[:], compact); err != nil {
		return ID[T]{}, fmt.Errorf("not a UUID")
	}
	return id, nil
}

// IsZero reports whether the id is zero, which means that it is not set.
func (id ID[T]) IsZero() bool { return id == ID[T]{} }

// String returns the 36-character form in lower case.
func (id ID[T]) String() string {
	text := id.text()
	return string(text[:])
}

// Append appends the 36-character form in lower case to b.
func (id ID[T]) Append(b []byte) []byte {
	text := id.text()
	return append(b, text[:]...)
}

func (id ID[T]) text() [36]byte {
	text := [36]byte{8: '-', 13: '-', 18: '-', 23: '-'}
	hex.Encode(text[0:], id[:4])
	hex.Encode(text[9:], id[4:6])
	hex.Encode(text[14:], id[6:8])
	hex.Encode(text[19:], id[8:10])
	hex.Encode(text[24:], id[10:])
	return text
}

// MarshalText returns the 36-character form (encoding.TextMarshaler).
func (id ID[T]) MarshalText() ([]byte, error) { return id.Append(nil), nil }

// UnmarshalText sets the id from its 36-character form (encoding.TextUnmarshaler).
func (id *ID[T]) UnmarshalText(text []byte) error {
	parsed, err := ParseID[T](string(text))
	if err == nil {
		*id = parsed
	}
	return err
}

// CreatedAt returns the time that NewID put into the id, truncated to milliseconds.
func (id ID[T]) CreatedAt() Time {
	return Time(binary.BigEndian.Uint64(id[:8])>>16) * 1000
}

// Value returns the id as it is stored in a database column: 16 bytes, or NULL for the zero
// id (driver.Valuer).
func (id ID[T]) Value() (driver.Value, error) {
	if id.IsZero() {
		return nil, nil
	}
	return id[:], nil
}

// Scan sets the id from a database column: 16 bytes, the 36-character form, or NULL, which
// gives the zero id (sql.Scanner).
func (id *ID[T]) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*id = ID[T]{}
		return nil
	case []byte:
		if len(src) == len(id) {
			copy(id[:], src)
			return nil
		}
	case string:
		return id.UnmarshalText([]byte(src))
	}
	return fmt.Errorf("rolecall: cannot scan %T into an id", src)
}

// FirstID returns a lower bound of the ids that NewID returns for the given time or a later
// time. Queries use it to select rows by time with an index on the id.
func FirstID[T any](at Time) ID[T] {
	var id ID[T]
	binary.BigEndian.PutUint64(id[:8], uint64(max(at, 0)/1000)<<16)
	return id
}

// AppendText appends the 36-character form (encoding.TextAppender).
func (id ID[T]) AppendText(b []byte) ([]byte, error) { return id.Append(b), nil }
