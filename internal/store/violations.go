package store

import "github.com/rolecall/rolecall"

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
