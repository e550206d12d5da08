package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
)

// sessionSettings keep the planner to the indexes: conditions whose selectivity it
// cannot know make it take few rows for granted and read a table once for each of
// them. What has no index then looks dear enough to be compiled first, a third of a
// second for two rows. Since it is not to know the values, it plans a statement once
// instead of each time, which costs more than most statements do.
//
// A node that vanishes in a transaction keeps its locks no longer than ten seconds.
// $2 says whether the settings end with the transaction.
const sessionSettings = `set_config('enable_seqscan', 'off', $2), set_config('enable_hashjoin', 'off', $2),
	set_config('enable_mergejoin', 'off', $2), set_config('enable_material', 'off', $2),
	set_config('enable_bitmapscan', 'off', $2), set_config('max_parallel_workers_per_gather', '0', $2),
	set_config('jit', 'off', $2), set_config('plan_cache_mode', 'force_generic_plan', $2),
	set_config('idle_in_transaction_session_timeout', '10s', $2)`

// Statements that set what holds for a transaction or a session. The tenant, $1,
// makes its rows visible until the transaction ends.
const (
	setTenant           = `select set_config('rolecall.tenant', $1, true)`
	setTenantAndSession = setTenant + `, ` + sessionSettings
	setSession          = `select ` + sessionSettings + ` where pg_backend_pid() = $1`
)

// settledKey is where a connection keeps that its session has the sessionSettings.
const settledKey = "rolecall.settled"

// settle gives the session the sessionSettings, so that no transaction has to: they
// cost as much as reading a row. Behind a pooler the next transaction may be in
// another session, so there each has them for itself. A pooler shows by naming
// another process than the one that answers. It takes no longer than a connection
// may: the pool waits for both with a place taken.
func settle(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, conn.Config().ConnectTimeout)
	defer cancel()
	tag, err := conn.Exec(ctx, setSession, pgx.QueryExecModeExec, int32(conn.PgConn().PID()), false)
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
		batch.Queue(setTenantAndSession, name, true)
	}
}
