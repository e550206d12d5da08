package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
)

// plannerSettings keep the planner to the indexes: conditions whose selectivity it
// cannot know make it take few rows for granted and read a table once for each of
// them. What has no index then looks dear enough to be compiled first, a third of a
// second for two rows. $2 says whether they end with the transaction.
const plannerSettings = `set_config('enable_seqscan', 'off', $2), set_config('enable_hashjoin', 'off', $2),
	set_config('enable_mergejoin', 'off', $2), set_config('enable_material', 'off', $2),
	set_config('enable_bitmapscan', 'off', $2), set_config('max_parallel_workers_per_gather', '0', $2),
	set_config('jit', 'off', $2), set_config('plan_cache_mode', 'force_generic_plan', $2)`

// Statements that set what holds for a transaction or a session. The tenant, $1,
// makes its rows visible until the transaction ends.
const (
	setTenant           = `select set_config('rolecall.tenant', $1, true)`
	setTenantAndPlanner = setTenant + `, ` + plannerSettings
	setPlanner          = `select ` + plannerSettings + ` where pg_backend_pid() = $1`
)

// settledKey is where a connection keeps that its session has the plannerSettings.
const settledKey = "rolecall.settled"

// settle gives the session the plannerSettings, so that no transaction has to: they
// cost as much as reading a row. Behind a pooler the next transaction may be in
// another session, so there each has them for itself. A pooler shows by naming
// another process than the one that answers.
func settle(ctx context.Context, conn *pgx.Conn) error {
	tag, err := conn.Exec(ctx, setPlanner, pgx.QueryExecModeExec, int32(conn.PgConn().PID()), false)
	if err == nil && tag.RowsAffected() == 1 {
		conn.PgConn().CustomData()[settledKey] = true
	}
	return err
}

// queueTenant queues the settings of a transaction of the tenant. The zero tenant
// sees no rows.
func queueTenant(batch *pgx.Batch, conn *pgx.Conn, tenant rolecall.TenantID) {
	name := ""
	if !tenant.IsZero() {
		name = tenant.String()
	}
	if conn.PgConn().CustomData()[settledKey] == true {
		batch.Queue(setTenant, name)
	} else {
		batch.Queue(setTenantAndPlanner, name, true)
	}
}
