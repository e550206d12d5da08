package postgres

import (
	"context"
	"maps"
	"slices"
)

// Settings are what holds in every transaction; the arguments are the tenant, and
// true.
var Settings = setTenantAndSession

// NewestMigration is the oldest schema that this program serves.
const NewestMigration = newestMigration

// Placed returns the tables that have a place of their own on Citus.
func Placed() []string { return slices.Sorted(maps.Keys(placements)) }

// RegisterIDs makes a plain connection read and write ids as those of the pool do.
var RegisterIDs = registerIDs

// TenantLeft returns the tenant that is still set on a connection of the pool when
// it is taken.
func (d *Database) TenantLeft(ctx context.Context) (tenant string, err error) {
	err = d.pool.QueryRow(ctx, "select coalesce(current_setting('rolecall.tenant', true), '')").Scan(&tenant)
	return tenant, err
}

// SettingAtRest returns what a session of the pool is set to while no transaction is
// under way.
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
