package postgres

import "context"

// Settings are what holds in every transaction; the arguments are the tenant, and
// true.
const Settings = setTenantAndPlanner

// RegisterIDs makes a plain connection read and write ids as those of the pool do.
var RegisterIDs = registerIDs

// TenantLeft returns the tenant that is still set on a connection of the pool when
// it is taken.
func (s *Store) TenantLeft(ctx context.Context) (tenant string, err error) {
	err = s.pool.QueryRow(ctx, "select coalesce(current_setting('rolecall.tenant', true), '')").Scan(&tenant)
	return tenant, err
}

// SeqScanAtRest returns whether a session of the pool may read whole tables while no
// transaction is under way: on or off.
func (s *Store) SeqScanAtRest(ctx context.Context) (setting string, err error) {
	err = s.pool.QueryRow(ctx, selectSeqScan).Scan(&setting)
	return setting, err
}

// SeqScanInView is SeqScanAtRest inside of a View.
func (s *Store) SeqScanInView(ctx context.Context) (setting string, err error) {
	v := &view{ctx: ctx, pool: s.pool}
	err = v.Query(selectSeqScan, nil, func(scan func(dest ...any) error) error { return scan(&setting) })
	return setting, err
}

const selectSeqScan = "select current_setting('enable_seqscan')"
