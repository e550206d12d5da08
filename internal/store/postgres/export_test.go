package postgres

import (
	"context"
	"maps"
	"slices"
)

// Settings is the statement with the settings of a transaction. Its arguments are the
// tenant and true.
var Settings = setTenantAndSession

// NewestMigration is the number of the newest migration.
var NewestMigration = newestMigration

// Placed returns the names of the tables in placements.
func Placed() []string { return slices.Sorted(maps.Keys(placements)) }

// RegisterIDs makes a connection that is not from the pool send and receive ids like one
// from the pool.
var RegisterIDs = registerIDs

// TenantLeft returns the tenant that is set on a connection from the pool outside of a
// transaction. It should be empty.
func (d *Database) TenantLeft(ctx context.Context) (tenant string, err error) {
	err = d.pool.QueryRow(ctx, "select coalesce(current_setting('rolecall.tenant', true), '')").Scan(&tenant)
	return tenant, err
}

// SettingAtRest returns the value of a setting on a connection from the pool outside of a
// transaction.
func (d *Database) SettingAtRest(ctx context.Context, name string) (setting string, err error) {
	err = d.pool.QueryRow(ctx, selectSetting, name).Scan(&setting)
	return setting, err
}

// SettingInView returns the value of a setting in a View.
func (d *Database) SettingInView(ctx context.Context, name string) (setting string, err error) {
	v := &view{ctx: ctx, pool: d.pool}
	_, err = v.Query(selectSetting, []any{name}, func(scan func(dest ...any) error) error { return scan(&setting) })
	return setting, err
}

// Renew closes the connections of the pool.
func (d *Database) Renew() { d.pool.Reset() }

const selectSetting = "select current_setting($1)"
