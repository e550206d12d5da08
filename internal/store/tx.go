package store

import (
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/rolecall/rolecall"
)

// Tx reads and writes the data of one tenant in a transaction. Each method runs one or a
// few statements.
type Tx struct {
	q       Querier
	tenant  rolecall.TenantID
	effects *Effects         // nil in a View
	events  []queuedEvent    // that were inserted and are not queued yet
	log     []rolecall.Event // of the operators' log, which are not inserted yet

	eventsAtLeast time.Duration // of every tenant that is read
}

// NewTx returns a Tx that reads and writes the data of the tenant through q.
func NewTx(q Querier, tenant rolecall.TenantID) *Tx {
	return &Tx{q: q, tenant: tenant, effects: new(Effects)}
}

// invalidate records that cached copies of the object with the id are stale, in this
// process and in all others. A new row needs no invalidation, because no cache contains
// it. The name of a tenant is the only exception: a cache can record that no tenant has
// this name.
func (t *Tx) invalidate(id [16]byte) {
	t.invalidateHere(id)
	t.q.Announce(id)
}

// invalidateHere records that cached copies of the object with the id are stale in this
// process only. Two kinds of change need no more. The first is the time of the last use: a
// process with an older time in its cache reads the stored time before it writes a new
// one. The second is a tenant name that begins to exist: other processes cache for less
// than a second that a name is unknown.
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

// webhooksDue records that webhooks can have new items, or new places in the feed.
func (t *Tx) webhooksDue() {
	if t.effects != nil {
		t.effects.WebhooksDue = true
	}
}

// invalidateIf calls invalidate if changed is true and err is nil. It returns changed and
// err.
func (t *Tx) invalidateIf(changed bool, err error, id [16]byte) (bool, error) {
	if changed && err == nil {
		t.invalidate(id)
	}
	return changed, err
}

// row runs a statement that returns at most one row, and scans the row into dest. It
// returns ErrNotFound if there is no row.
func (t *Tx) row(query string, args []any, dest ...any) error {
	n, err := t.q.Query(query, args, func(scan func(dest ...any) error) error { return scan(dest...) })
	if err == nil && n == 0 {
		return rolecall.ErrNotFound
	}
	return err
}

// into returns a function for the argument each of Query. The function scans each row with
// dest and appends the result to the items.
func into[T any](items *[]T, dest func(*T) []any) func(scan func(dest ...any) error) error {
	return func(scan func(dest ...any) error) error {
		var item T
		err := scan(dest(&item)...)
		*items = append(*items, item)
		return err
	}
}

// oneColumn returns the scan destination for rows with a single column.
func oneColumn[T any](value *T) []any { return []any{value} }

// countRows runs a statement and returns the number of rows of its result.
func (t *Tx) countRows(query string, args ...any) (int, error) {
	return t.q.Query(query, args, func(func(dest ...any) error) error { return nil })
}

// changed runs a write that changes and returns at most one row. It reports whether a row
// was changed.
func (t *Tx) changed(query string, args ...any) (bool, error) {
	n, err := t.countRows(query, args...)
	return n > 0, err
}

// updateVersioned runs an update or a delete of the row with the id and the version, and
// reports whether this row exists. The last three placeholders of the statement are the
// tenant, the id and the version. The statement returns the changed row.
func (t *Tx) updateVersioned(query string, id [16]byte, version int64, args ...any) (bool, error) {
	return t.changed(query, append(args, t.tenant, rolecall.AnyID(id), version)...)
}

// document stores the value that v points to as JSON in a text column. An empty or nil
// slice becomes [], and an empty or nil map becomes {}.
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

// once scans a column that only the first row has. The column of the other rows is null, and keeps the value.
type once struct{ scanner }

// scanner reads a column (sql.Scanner).
type scanner interface{ Scan(column any) error }

// Scan scans the column, if it is not null (sql.Scanner).
func (o once) Scan(src any) error {
	if src == nil {
		return nil
	}
	return o.scanner.Scan(src)
}

// textOf returns JSON as a string for a text column. It returns nil if data is nil.
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

// sizeOf returns about how many bytes the item has in a response. It panics for a type that it does not know, so
// that no list is without a size.
func sizeOf(item any) int {
	const others = 600 // the other members together
	switch item := item.(type) {
	case *rolecall.User:
		size := others + len(item.Name) + len(item.Email) + len(item.Metadata.String())
		for m := range rolecall.OptionalTexts.All() {
			if text := m.Text(item); text != nil {
				size += len(*text)
			}
		}
		return size
	case *rolecall.Tombstone:
		return sizeOf(&item.User)
	case *rolecall.Invited:
		return sizeOf(&item.User)
	case *rolecall.Role:
		return others + len(item.Name) + len(item.Description) + sizeOfPermissions(item.Permissions) + sizeOfPermissions(item.Grants)
	case *rolecall.Group:
		return others + len(item.Name) + len(item.Description)
	case *rolecall.APIToken:
		return others + len(item.Name) + sizeOfPermissions(item.Permissions)
	case *eventRow:
		return others + len(item.values.Before) + len(item.values.After)
	case *rolecall.Job:
		return others + len(item.Filter.Department) + len(item.Reason) + sizeOfTexts(item.Filter.Words) + sizeOfTexts(item.Assignment.Departments)
	case *rolecall.ServiceAccount:
		return others + len(item.Name) + len(item.Description)
	case *rolecall.Webhook:
		return others + len(item.URL) + sizeOfTexts(item.Types) + len(item.IgnoreActors)*len(`"01234567-89ab-cdef-0123-456789abcdef",`)
	case *rolecall.Session:
		return others + len(item.Client)
	}
	panic(fmt.Sprintf("store: the size of a %T is unknown", item))
}

// sizeOfTexts returns about how many bytes the list has in JSON.
func sizeOfTexts[T ~string](texts []T) (size int) {
	for _, text := range texts {
		size += len(text) + len(`"",`)
	}
	return size
}

// sizeOfPermissions returns at least the number of bytes of the permissions in JSON.
func sizeOfPermissions(permissions []rolecall.Permission) (size int) {
	for i := range permissions {
		p := &permissions[i]
		size += len(p.Application) + len(p.Resource) + len(p.Field) + len(p.Action) + len(`"/.:",`)
	}
	return size
}
