package rolecall

import (
	"bytes"
	"crypto/rand"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
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
	ConnectionID     = ID[Connection]
	IdentityID       = ID[Identity]

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

// Time is a time in UTC, in microseconds since 1970. Both databases store times with this
// resolution. The text form is RFC 3339 with six decimals.
type Time int64

// Never is later than every other Time. It is the expiry of objects that do not expire.
const Never Time = 1<<63 - 1

// TimeOf returns t truncated to microseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMicro()) }

// Std returns the time as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMicro(int64(t)).UTC() }

// Add returns t plus d. Never plus d is Never.
func (t Time) Add(d time.Duration) Time {
	if t == Never {
		return Never
	}
	return t + Time(d.Microseconds())
}

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// String returns the time in the form of RFC 3339 with six decimals.
func (t Time) String() string { return string(t.Append(nil)) }

// Append appends the time to b, in the form of RFC 3339 with six decimals. It does not use
// time.Format, which is slower: a page can have hundreds of times.
func (t Time) Append(b []byte) []byte {
	std := t.Std()
	year, month, day := std.Date()
	if year < 0 || year > 9999 {
		return std.AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	}
	hour, minute, second := std.Clock()
	micro := std.Nanosecond() / 1000
	text := [...]byte{4: '-', 7: '-', 10: 'T', 13: ':', 16: ':', 19: '.', 26: 'Z'}
	putTwo(text[0:2], year/100)
	putTwo(text[2:4], year%100)
	putTwo(text[5:7], int(month))
	putTwo(text[8:10], day)
	putTwo(text[11:13], hour)
	putTwo(text[14:16], minute)
	putTwo(text[17:19], second)
	putTwo(text[20:22], micro/10_000)
	putTwo(text[22:24], micro/100%100)
	putTwo(text[24:26], micro%100)
	return append(b, text[:]...)
}

// putTwo writes n as two decimal digits into text.
func putTwo(text []byte, n int) {
	text[0], text[1] = '0'+byte(n/10), '0'+byte(n%10)
}

// MarshalText returns the time in the form of RFC 3339 (encoding.TextMarshaler).
func (t Time) MarshalText() ([]byte, error) { return t.Append(nil), nil }

// UnmarshalText sets the time from its form of RFC 3339, with any time zone offset
// (encoding.TextUnmarshaler). It returns an error if the year in UTC is not from 0 to 9999.
func (t *Time) UnmarshalText(text []byte) error {
	// RFC 3339 requires two digits for the hour and a decimal point. time.Parse also
	// accepts one digit and a comma.
	parsed, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil || text[len("2006-01-02T15")] != ':' || bytes.IndexByte(text, ',') >= 0 {
		return errors.New("not a moment of RFC 3339")
	}
	if year := parsed.UTC().Year(); year < 0 || year > 9999 {
		return errors.New("not a moment of RFC 3339 in UTC")
	}
	*t = TimeOf(parsed)
	return nil
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

// IdempotencyKey is a stored idempotency key with the result of the first request that had
// the key. A repeated request with the key gets the same result.
type IdempotencyKey struct {
	UserID      UserID        // the user who sent the key, which is unique per tenant, user and operation
	Operator    OperatorKeyID // set instead of UserID if an operator sent the key in a request that manages tenants
	Operation   string
	Hash        []byte // SHA-256 of the key
	Fingerprint []byte // SHA-256 of the request; requests with equal JSON values have the same fingerprint
	ExpiresAt   Time
	ResourceID  AnyID
	EventID     EventID // the event of the creation; zero if Operator is set
	Resource    []byte  // the created object as JSON, with all members and without secrets; nil after an erasure
}

// ErrKeyClaimed is the error of the store for an idempotency key that is stored already.
// Clients never see this error. They get the stored result, or ErrKeyReused.
var ErrKeyClaimed = &Error{Kind: Conflict, Code: "idempotency-key-claimed", Detail: "This idempotency key is stored already."}
