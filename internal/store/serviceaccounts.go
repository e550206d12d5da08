package store

import "github.com/rolecall/rolecall"

const (
	serviceAccountColumns = `r.id, r.name, r.description, r.status, r.created_at, r.updated_at, r.version`

	selectServiceAccounts = `select ` + serviceAccountColumns + ` from service_accounts r where r.tenant_id = $1`

	selectServiceAccount = selectServiceAccounts + ` and r.id = $2`

	insertServiceAccount = `insert into service_accounts (tenant_id, id, name, name_key, words, description, status, created_at, updated_at, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

	updateServiceAccount = `update service_accounts set name = $1, name_key = case when name = $1 then name_key else $2 end, words = $3, description = $4, status = $5,
			updated_at = $6, version = $7
		where tenant_id = $8 and id = $9 and version = $10 returning version`

	deleteServiceAccount = `delete from service_accounts where tenant_id = $1 and id = $2 and version = $3 returning version`

	releaseAccountName = `update service_accounts set name_key = $1 where tenant_id = $2 and name_key = (
		select min(name_key) from service_accounts where tenant_id = $2 and name_key > $3 and name_key < $4)`

	countServiceAccountRoles = `select departments from service_account_roles where tenant_id = $1 and service_account_id = $2 limit $3`

	selectServiceAccountRoles = `select a.service_account_id, ` + heldColumns + `, null, ''
		from service_account_roles a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where a.tenant_id = $1 and a.service_account_id = $2 order by a.role_id`

	selectServiceAccountRole = `select a.service_account_id, ` + heldColumns + `, null, ''
		from service_account_roles a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where a.tenant_id = $1 and a.service_account_id = $2 and a.role_id = $3`

	upsertServiceAccountRole = `insert into service_account_roles
			(tenant_id, service_account_id, role_id, departments, expires_at, granted_by, granted_at)
		values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant_id, service_account_id, role_id) do update set departments = excluded.departments,
			expires_at = excluded.expires_at, granted_by = excluded.granted_by, granted_at = excluded.granted_at`

	deleteServiceAccountRole = `delete from service_account_roles
		where tenant_id = $1 and service_account_id = $2 and role_id = $3 returning role_id`

	selectAccountHolders = `select service_account_id from service_account_roles where tenant_id = $1 and role_id = $2
		order by service_account_id limit $3`

	deleteServiceAccountRoles = `delete from service_account_roles where tenant_id = $1 and role_id = $2 and service_account_id <= $3
		returning service_account_id, departments, expires_at, granted_by, granted_at`
)

func serviceAccountDest(a *rolecall.ServiceAccount) []any {
	return []any{&a.ID, &a.Name, &a.Description, &a.Status, &a.CreatedAt, &a.UpdatedAt, &a.Version}
}

// ServiceAccountByID returns the service account with this id, or ErrNotFound.
func (t *Tx) ServiceAccountByID(id rolecall.ServiceAccountID) (a rolecall.ServiceAccount, err error) {
	err = t.row(selectServiceAccount, []any{t.tenant, id}, serviceAccountDest(&a)...)
	return a, err
}

// ServiceAccountsByID returns the service accounts with these ids that exist, in no
// particular order.
func (t *Tx) ServiceAccountsByID(ids []rolecall.ServiceAccountID) ([]rolecall.ServiceAccount, error) {
	return byIDs(t, selectServiceAccounts, "r.id", ids, serviceAccountDest)
}

// ServiceAccounts returns a page of the service accounts that q selects. It reads a
// bounded number of rows.
func (t *Tx) ServiceAccounts(q rolecall.ServiceAccountQuery) (rolecall.Page[rolecall.ServiceAccount], error) {
	l := &listing[rolecall.ServiceAccount]{
		tx: t, table: "service_accounts", columns: serviceAccountColumns, dest: serviceAccountDest,
		id:   func(a *rolecall.ServiceAccount) rolecall.AnyID { return rolecall.AnyID(a.ID) },
		desc: q.Desc, after: q.After, limit: q.Limit,
		indexScan: source{table: "service_accounts", id: "id"},
	}
	if q.ByName {
		l.key = "name_key"
	}
	for _, word := range q.Words {
		l.conditions = append(l.conditions, nameWord(word))
	}
	return l.serve(nil, q.Count)
}

// InsertServiceAccount inserts a service account. Update returns ErrAccountNameTaken if
// another service account of the tenant has the name.
func (t *Tx) InsertServiceAccount(a rolecall.ServiceAccount) {
	t.q.Exec(insertServiceAccount, t.tenant, a.ID, a.Name, a.NameKey(), NameWords(a.Name), a.Description, string(a.Status),
		a.CreatedAt, a.UpdatedAt, a.Version)
}

// UpdateServiceAccount stores changed in place of old. It returns false if the stored
// version is not old.Version, or if the service account does not exist. Update returns
// ErrAccountNameTaken if another service account has the new name.
func (t *Tx) UpdateServiceAccount(old, changed rolecall.ServiceAccount) (bool, error) {
	ok, err := t.updateVersioned(updateServiceAccount, old.ID, old.Version, changed.Name, changed.NameKey(), NameWords(changed.Name), changed.Description,
		string(changed.Status), changed.UpdatedAt, changed.Version)
	if ok && old.NameKey() != changed.NameKey() {
		t.releaseName(releaseAccountName, old.NameKey())
	}
	return t.invalidateIf(ok, err, old.ID)
}

// DeleteServiceAccount deletes the service account, its API tokens and its assignments. It
// returns false if the stored version is not a.Version, or if the service account does not
// exist.
func (t *Tx) DeleteServiceAccount(a rolecall.ServiceAccount) (bool, error) {
	ok, err := t.updateVersioned(deleteServiceAccount, a.ID, a.Version)
	if ok {
		t.releaseName(releaseAccountName, a.NameKey())
	}
	return t.invalidateIf(ok, err, a.ID)
}

// DeleteServiceAccountRoles deletes up to limit assignments of the role to service
// accounts, and returns the deleted assignments. Like DeleteAssignments, it invalidates no
// cached data.
func (t *Tx) DeleteServiceAccountRoles(role rolecall.RoleID, limit int) ([]rolecall.Assignment, error) {
	return t.deleteAssignments(selectAccountHolders, deleteServiceAccountRoles, rolecall.Assignment{Holder: rolecall.Holder{Kind: rolecall.HolderAccount}, Role: rolecall.Role{ID: role}}, 0, limit)
}
