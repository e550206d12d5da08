package store

import (
	"database/sql/driver"
	"fmt"

	"github.com/go-json-experiment/json"
)

// document keeps what v points to in a text column, as JSON. An empty slice or
// map is [] or {}, never null.
type document[T any] struct{ v *T }

func asJSON[T any](v *T) document[T] { return document[T]{v} }

// Value returns the JSON text (driver.Valuer).
func (d document[T]) Value() (driver.Value, error) {
	text, err := json.Marshal(d.v)
	return string(text), err
}

// Scan reads the JSON text (sql.Scanner).
func (d document[T]) Scan(src any) error {
	switch src := src.(type) {
	case string:
		return json.Unmarshal([]byte(src), d.v)
	case []byte:
		return json.Unmarshal(src, d.v)
	}
	return fmt.Errorf("store: cannot read JSON from %T", src)
}

// textOf returns JSON bytes as the text that a text column takes, nil for none.
func textOf(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

// flag is a truth that is stored as 0 or 1.
type flag bool

// Value returns 0 or 1 (driver.Valuer).
func (f flag) Value() (driver.Value, error) {
	if f {
		return int64(1), nil
	}
	return int64(0), nil
}

// Scan reads an integer (sql.Scanner).
func (f *flag) Scan(src any) error {
	n, ok := src.(int64)
	if !ok {
		return fmt.Errorf("store: cannot read a truth from %T", src)
	}
	*f = n != 0
	return nil
}
