package floor

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"time"
)

// user is a user in a response.
type user struct {
	ID         id              `json:"id"`
	Email      string          `json:"email"`
	Name       string          `json:"name"`
	Department *string         `json:"department"`
	ExternalID *string         `json:"externalId"`
	Metadata   json.RawMessage `json:"metadata"`
	Status     string          `json:"status"`
	CreatedAt  timestamp       `json:"createdAt"`
	UpdatedAt  timestamp       `json:"updatedAt"`
}

const columns = `id, email, name, department, external_id, metadata, status, created_at, updated_at`

// dest returns pointers to the fields for Scan, in the order of columns.
func (u *user) dest() []any {
	return []any{&u.ID, &u.Email, &u.Name, &u.Department, &u.ExternalID, (*[]byte)(&u.Metadata), &u.Status, (*int64)(&u.CreatedAt), (*int64)(&u.UpdatedAt)}
}

const insertion = `insert into floor_users (tenant_id, id, email, email_key, name, name_key, department, external_id, metadata, status,
		words, created_at, updated_at)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// arguments returns the values for the parameters of insertion.
func (u *user) arguments(tenant any) []any {
	email, name := strings.ToLower(u.Email), strings.ToLower(u.Name)
	return []any{tenant, u.ID[:], u.Email, email, u.Name, name, u.Department, u.ExternalID, string(u.Metadata), u.Status,
		name + " " + email, int64(u.CreatedAt), int64(u.UpdatedAt)}
}

// newUser returns a user with an id, and with values for the members that a request does not
// contain.
func newUser() user {
	now := time.Now()
	u := user{Metadata: json.RawMessage("{}"), Status: "pending", CreatedAt: timestamp(now.UnixMicro()), UpdatedAt: timestamp(now.UnixMicro())}
	binary.BigEndian.PutUint64(u.ID[:], uint64(now.UnixMilli())<<16|0x7000|rand.Uint64()&0xfff)
	binary.BigEndian.PutUint64(u.ID[8:], rand.Uint64()>>2|1<<63)
	return u
}

// timestamp is a time in microseconds since 1970.
type timestamp int64

// MarshalText writes the time as RFC 3339 does.
func (m timestamp) MarshalText() ([]byte, error) {
	return time.UnixMicro(int64(m)).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000000Z07:00"), nil
}

// id is a UUID.
type id [16]byte

// MarshalText writes the id in its usual form.
func (i id) MarshalText() ([]byte, error) {
	text := make([]byte, 36)
	hex.Encode(text, i[:4])
	hex.Encode(text[9:], i[4:6])
	hex.Encode(text[14:], i[6:8])
	hex.Encode(text[19:], i[8:10])
	hex.Encode(text[24:], i[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return text, nil
}

func parseID(text string) (i id, err error) {
	digits := strings.ReplaceAll(text, "-", "")
	if len(text) != 36 || len(digits) != 32 {
		return i, errors.New("not an id: " + text)
	}
	_, err = hex.Decode(i[:], []byte(digits))
	return i, err
}

// Scan sets the id from a column of 16 bytes. It implements sql.Scanner.
func (i *id) Scan(value any) error {
	content, ok := value.([]byte)
	if !ok || len(content) != len(i) {
		return errors.New("a column holds no id")
	}
	copy(i[:], content)
	return nil
}
