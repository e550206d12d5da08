// Package store holds every query once, for both databases: SQL with $1…$n in
// order of first appearance, run through a Querier that the openers in sqlite
// and postgres provide. Each statement names the tenant.
package store

import "github.com/rolecall/rolecall"

// Querier runs the statements of one transaction.
type Querier interface {
	// Exec runs a write without a result. It may be sent only when the
	// transaction ends; its failure ends the transaction.
	Exec(query string, args ...any)
	// Query runs a statement and calls each with every row it returns; scan
	// reads the row's columns. It ends at the first error and returns it.
	Query(query string, args []any, each func(scan func(dest ...any) error) error) error
	// Announce tells other processes, once the transaction is committed, that what
	// id names has changed.
	Announce(id rolecall.AnyID)
}

// Tx is the data of one tenant inside a transaction. It implements service.Tx.
type Tx struct {
	q      Querier
	tenant rolecall.TenantID
}

// New returns the tenant's data as q sees it.
func New(q Querier, tenant rolecall.TenantID) *Tx { return &Tx{q, tenant} }

// Announce has every Watch of the store say, once the transaction is committed,
// that the tenant, user, service account, session or token has changed.
func (t *Tx) Announce(id rolecall.AnyID) { t.q.Announce(id) }

// row runs a statement that returns at most one row and scans it into dest. It
// returns ErrNotFound if there is none.
func (t *Tx) row(query string, args []any, dest ...any) error {
	found := false
	err := t.q.Query(query, args, func(scan func(dest ...any) error) error {
		found = true
		return scan(dest...)
	})
	if err == nil && !found {
		return rolecall.ErrNotFound
	}
	return err
}

// into returns what appends a row to the items, each read as dest says.
func into[T any](items *[]T, dest func(*T) []any) func(scan func(dest ...any) error) error {
	return func(scan func(dest ...any) error) error {
		var item T
		err := scan(dest(&item)...)
		*items = append(*items, item)
		return err
	}
}

// itself is the dest of rows of one column.
func itself[T any](value *T) []any { return []any{value} }

// returned runs a statement and returns how many rows it returned.
func (t *Tx) returned(query string, args ...any) (int, error) {
	n := 0
	err := t.q.Query(query, args, func(func(dest ...any) error) error {
		n++
		return nil
	})
	return n, err
}

// changed runs a write of at most one row that returns the row if it changed it,
// and reports whether it did.
func (t *Tx) changed(query string, args ...any) (bool, error) {
	n, err := t.returned(query, args...)
	return n > 0, err
}

// violations names the error that a violated constraint or unique index means.
// Both databases use these names.
var violations = map[string]*rolecall.Error{
	"users_email":            rolecall.ErrEmailTaken,
	"users_external_id":      rolecall.ErrExternalIDTaken,
	"roles_name":             rolecall.ErrRoleNameTaken,
	"roles_key":              rolecall.ErrRoleKeyTaken,
	"idempotency_keys_pkey":  rolecall.ErrKeyClaimed,
	"operator_requests_pkey": rolecall.ErrKeyClaimed,
	"tenants_name":           rolecall.ErrTenantExists,
	"assignments_user":       rolecall.ErrNotFound,
	"assignments_role":       rolecall.ErrNotFound,
	"sessions_user":          rolecall.ErrNotFound,
	"passwords_user":         rolecall.ErrNotFound,
	"invitations_user":       rolecall.ErrNotFound,
	"passkeys_pkey":          rolecall.ErrPasskeyTaken,
	"passkeys_user":          rolecall.ErrNotFound,
	"totp_user":              rolecall.ErrNotFound,
	"recovery_codes_user":    rolecall.ErrNotFound,

	"service_accounts_name":         rolecall.ErrAccountNameTaken,
	"service_account_roles_account": rolecall.ErrNotFound,
	"service_account_roles_role":    rolecall.ErrNotFound,
	"api_tokens_user":               rolecall.ErrNotFound,
	"api_tokens_service_account":    rolecall.ErrNotFound,
}

// Violation returns the error that the violated constraint means, nil if none of
// ours has that name.
func Violation(constraint string) error {
	if err, ok := violations[constraint]; ok {
		return err
	}
	return nil
}
