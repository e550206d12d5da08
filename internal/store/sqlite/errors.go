package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// constraints maps the columns of a unique index to the name of the index, because an
// error of SQLite contains only the columns.
var constraints = map[string]string{
	"users.tenant_id, users.email_key":                                                       "users_email",
	"users.tenant_id, users.external_id":                                                     "users_external_id",
	"roles.tenant_id, roles.name_key":                                                        "roles_name",
	"groups.tenant_id, groups.source, groups.name_key":                                       "groups_source_name",
	"groups.tenant_id, groups.external_id, groups.source":                                    "groups_external_id",
	"directories.tenant_id, directories.name_key":                                            "directories_name",
	"directory_users.tenant_id, directory_users.directory_id, directory_users.user_name_key": "directory_users_name",
	"roles.tenant_id, roles.key":                                                             "roles_key",
	"tenants.name":                                                                           "tenants_name",
	"passkeys.tenant_id, passkeys.id":                                                        "passkeys_pkey",
	"service_accounts.tenant_id, service_accounts.name_key":                                  "service_accounts_name",
	"connections.tenant_id, connections.name_key":                                            "connections_name",
	"connections.tenant_id, connections.issuer":                                              "connections_issuer",
	"identities.tenant_id, identities.issuer, identities.subject":                            "identities_subject",
	"idempotency_keys.tenant_id, idempotency_keys.user_id, idempotency_keys.operation, idempotency_keys.hash": "idempotency_keys_pkey",
	"operator_requests.key_id, operator_requests.operation, operator_requests.hash":                           "operator_requests_pkey",
}

// translate returns the error of package rolecall for an error of the driver. It returns
// ErrNotFound for a violated foreign key, and the error from store.Violation for a
// violated unique index. If SQLite cannot work at the moment, it returns an error that
// wraps ErrUnavailable and has the text of the cause. It returns all other errors
// unchanged.
func translate(err error) error {
	failure, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	switch failure.Code() {
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return rolecall.ErrNotFound
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		_, columns, _ := strings.Cut(failure.Error(), "UNIQUE constraint failed: ")
		columns, _, _ = strings.Cut(columns, " (")
		if conflict := store.Violation(constraints[columns]); conflict != nil {
			return conflict
		}
	}
	switch failure.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL:
		return rolecall.ErrUnavailable.Because(fmt.Errorf("sqlite: %w", err))
	}
	return err
}

// isConstraint reports whether err is a violated constraint. After such an error, SQLite
// undoes only the statement, and the transaction continues.
func isConstraint(err error) bool {
	failure, ok := errors.AsType[*sqlite.Error](err)
	return ok && failure.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

// isBusy reports whether err means that another process holds a lock that the statement
// needs.
func isBusy(err error) bool {
	failure, ok := errors.AsType[*sqlite.Error](err)
	return ok && failure.Code()&0xff == sqlite3.SQLITE_BUSY
}
