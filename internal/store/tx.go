package store

import (
	"database/sql/driver"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/rolecall/rolecall"
)

// Tx reads and writes the data of one tenant in a transaction.
type Tx struct {
	q       Querier
	tenant  rolecall.TenantID
	effects *Effects // nil in a View
}

// NewTx returns a Tx that reads and writes the data of the tenant through q.
func NewTx(q Querier, tenant rolecall.TenantID) *Tx { return &Tx{q, tenant, new(Effects)} }

// invalidate records that cached copies of the object with the id are stale, in this
// process and in all others. A new row needs no invalidation, because it is in no cache.
// The only exception is the name of a tenant, because a cache can contain the name as
// unknown.
func (t *Tx) invalidate(id [16]byte) {
	t.invalidateHere(id)
	t.q.Announce(id)
}

// invalidateHere records that cached copies are stale in this process. That is enough for
// two changes. The first is the time of the last use: a process with an older time in its
// cache reads the stored time before it writes a new one. The second is the creation or
// the restore of a tenant, because other processes cache an unknown tenant name for less
// than a second.
func (t *Tx) invalidateHere(id [16]byte) {
	if t.effects != nil { // otherwise this is a View, and the write fails
		t.effects.Invalidated = append(t.effects.Invalidated, id)
	}
}

// mailed records that the outbox has new mail.
func (t *Tx) mailed() {
	if t.effects != nil {
		t.effects.Mailed = true
	}
}

// invalidateIf calls invalidate if the write changed something, and returns its result.
func (t *Tx) invalidateIf(changed bool, err error, id [16]byte) (bool, error) {
	if changed && err == nil {
		t.invalidate(id)
	}
	return changed, err
}

// row runs a statement that returns at most one row and scans it into dest. It returns
// ErrNotFound if the statement returns no row.
func (t *Tx) row(query string, args []any, dest ...any) error {
	n, err := t.q.Query(query, args, func(scan func(dest ...any) error) error { return scan(dest...) })
	if err == nil && n == 0 {
		return rolecall.ErrNotFound
	}
	return err
}

// into returns a function that scans each row with dest and appends it to the items.
func into[T any](items *[]T, dest func(*T) []any) func(scan func(dest ...any) error) error {
	return func(scan func(dest ...any) error) error {
		var item T
		err := scan(dest(&item)...)
		*items = append(*items, item)
		return err
	}
}

// itself is the dest function for rows of one column.
func itself[T any](value *T) []any { return []any{value} }

// returned runs a statement and returns how many rows it returned.
func (t *Tx) returned(query string, args ...any) (int, error) {
	return t.q.Query(query, args, func(func(dest ...any) error) error { return nil })
}

// changed runs a write of at most one row that returns the changed row, and reports
// whether it returned one.
func (t *Tx) changed(query string, args ...any) (bool, error) {
	n, err := t.returned(query, args...)
	return n > 0, err
}

// updateVersioned runs an update or delete of the row with the id and the version, and
// reports whether it found the row. The last three placeholders of the statement are the
// tenant, the id and the version, and the statement returns the changed row.
func (t *Tx) updateVersioned(query string, id [16]byte, version int64, args ...any) (bool, error) {
	return t.changed(query, append(args, t.tenant, rolecall.AnyID(id), version)...)
}

// document stores the value of v as JSON in a text column. An empty slice or map is []
// or {}, never null.
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

// textOf returns JSON bytes as the string for a text column, or nil for nil.
func textOf(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

// flag is a bool that is stored as 0 or 1.
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
		return fmt.Errorf("store: cannot read a bool from %T", src)
	}
	*f = n != 0
	return nil
}
