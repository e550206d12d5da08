package postgres

import (
	"context"
	"maps"
	"slices"
)

// Settings is the statement that sets the settings of a transaction. Its arguments are
// the tenant, and true.
var Settings = setTenantAndSession

// NewestMigration is the number of the newest migration.
const NewestMigration = newestMigration

// Placed returns the tables with an entry in placements.
func Placed() []string { return slices.Sorted(maps.Keys(placements)) }

// RegisterIDs makes a plain connection send and receive ids like those of the pool.
var RegisterIDs = registerIDs

// TenantLeft returns the tenant that is still set on a connection from the pool.
func (d *Database) TenantLeft(ctx context.Context) (tenant string, err error) {
	err = d.pool.QueryRow(ctx, "select coalesce(current_setting('rolecall.tenant', true), '')").Scan(&tenant)
	return tenant, err
}

// SettingAtRest returns a setting of a session of the pool outside of a transaction.
func (d *Database) SettingAtRest(ctx context.Context, name string) (setting string, err error) {
	err = d.pool.QueryRow(ctx, selectSetting, name).Scan(&setting)
	return setting, err
}

// SettingInView is SettingAtRest inside of a View.
func (d *Database) SettingInView(ctx context.Context, name string) (setting string, err error) {
	v := &view{ctx: ctx, pool: d.pool}
	_, err = v.Query(selectSetting, []any{name}, func(scan func(dest ...any) error) error { return scan(&setting) })
	return setting, err
}

const selectSetting = "select current_setting($1)"
