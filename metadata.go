package rolecall

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
)

// Metadata are the pairs of texts that an application keeps with a user, in the
// form in which they are stored and answered: one JSON object, its keys sorted. So
// they need not be read on the way from a store to an answer, and equal ones are
// equal by ==. The zero value has no pairs.
type Metadata struct{ object string } // empty for {}

const noPairs = "{}"

// NewMetadata returns the metadata of the pairs.
func NewMetadata(pairs map[string]string) Metadata {
	if len(pairs) == 0 {
		return Metadata{}
	}
	var object bytes.Buffer
	encoder := json.NewEncoder(&object) // which sorts the keys
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(pairs) // never fails: texts can always be encoded, and a Buffer takes all
	return Metadata{strings.TrimSuffix(object.String(), "\n")}
}

// Pairs returns the pairs, never nil. The error says that what the store gave is
// no such object.
func (m Metadata) Pairs() (map[string]string, error) {
	pairs := map[string]string{}
	if err := json.Unmarshal([]byte(m.String()), &pairs); err != nil {
		return nil, fmt.Errorf("rolecall: metadata: %w", err)
	}
	return pairs, nil
}

// String returns the JSON object.
func (m Metadata) String() string {
	if m.object == "" {
		return noPairs
	}
	return m.object
}

// MarshalJSON returns the JSON object (json.Marshaler).
func (m Metadata) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON reads a JSON object of texts (json.Unmarshaler).
func (m *Metadata) UnmarshalJSON(object []byte) error {
	var pairs map[string]string
	if err := json.Unmarshal(object, &pairs); err != nil {
		return err
	}
	*m = NewMetadata(pairs)
	return nil
}

// Value stores the JSON object as text (driver.Valuer).
func (m Metadata) Value() (driver.Value, error) { return m.String(), nil }

// Scan takes over the object that Value has stored (sql.Scanner).
func (m *Metadata) Scan(src any) error {
	object, ok := src.(string)
	if !ok {
		return fmt.Errorf("rolecall: cannot scan %T into metadata", src)
	}
	if object == noPairs {
		object = ""
	}
	*m = Metadata{object}
	return nil
}

// AppendJSON appends the pairs as a JSON object.
func (m Metadata) AppendJSON(b []byte) []byte { return append(b, m.String()...) }
