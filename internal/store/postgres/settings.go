package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
)

// plannerSettings keep the planner to the indexes: conditions whose selectivity it
// cannot know make it take few rows for granted and read a table once for each of
// them. What has no index then looks dear enough to be compiled first, a third of a
// second for two rows.
var plannerSettings = []setting{
	{"enable_seqscan", "off"}, {"enable_hashjoin", "off"}, {"enable_mergejoin", "off"}, {"enable_material", "off"},
	{"enable_bitmapscan", "off"}, {"max_parallel_workers_per_gather", "0"}, {"jit", "off"},
}

// sessionSettings are all that a session has. Since the planner is not to know the
// values, it plans a statement once instead of each time, which costs more than most
// statements do. A node that vanishes in a transaction keeps its locks no longer than
// ten seconds.
var sessionSettings = slices.Concat(plannerSettings, []setting{
	{"plan_cache_mode", "force_generic_plan"}, {"idle_in_transaction_session_timeout", "10s"},
})

// citusSettings are sessionSettings on Citus, which has to know the tenant when it plans
// a statement, and passes on to the workers what a transaction sets only if it is told to.
var citusSettings = slices.Concat(plannerSettings, []setting{
	{"plan_cache_mode", "auto"}, {"idle_in_transaction_session_timeout", "10s"}, {"citus.propagate_set_commands", "local"},
})

type setting struct{ name, value string }

// setAll returns the expressions that set the settings. Whether they end with the
// transaction is the parameter that until names.
func setAll(settings []setting, until string) string {
	calls := make([]string, len(settings))
	for i, s := range settings {
		calls[i] = fmt.Sprintf("set_config('%s', '%s', %s)", s.name, s.value, until)
	}
	return strings.Join(calls, ", ")
}

const setTenant = `select set_config('rolecall.tenant', $1, true)`

// Statements that set what holds for a transaction or a session. The tenant, $1,
// makes its rows visible until the transaction ends.
var (
	setTenantAndSession = setTenant + `, ` + setAll(sessionSettings, "$2")
	setSession          = `select ` + setAll(sessionSettings, "false") + ` where pg_backend_pid() = $1`
	setCitusSession     = `select ` + setAll(citusSettings, "false") + ` where pg_backend_pid() = $1`
	setCitusTransaction = `select ` + setAll(citusSettings, "true")
)

// settledKey is where a connection keeps that its session has the sessionSettings.
const settledKey = "rolecall.settled"

// citusKey is where a connection to Citus keeps which statements it has prepared.
const citusKey = "rolecall.citus"

// settle gives the session the sessionSettings, so that no transaction has to: they
// cost as much as reading a row. Behind a pooler the next transaction may be in
// another session, so there each has them for itself. A pooler shows by naming
// another process than the one that answers. It takes no longer than a connection
// may: the pool waits for both with a place taken.
func settle(ctx context.Context, conn *pgx.Conn, citus bool) error {
	ctx, cancel := context.WithTimeout(ctx, conn.Config().ConnectTimeout)
	defer cancel()
	statement := setSession
	if citus {
		statement = setCitusSession
		conn.PgConn().CustomData()[citusKey] = &preparer{known: map[string]bool{}}
	}
	tag, err := conn.Exec(ctx, statement, pgx.QueryExecModeExec, int32(conn.PgConn().PID()))
	if err == nil && tag.RowsAffected() == 1 {
		conn.PgConn().CustomData()[settledKey] = true
	}
	return err
}

// isCitus reports whether the connection is one to Citus.
func isCitus(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[citusKey] != nil }

// queueTenant queues the settings of a transaction of the tenant. The zero tenant
// sees no rows.
func queueTenant(batch *pgx.Batch, conn *pgx.Conn, tenant rolecall.TenantID) {
	name := ""
	if !tenant.IsZero() {
		name = tenant.String()
	}
	settled := conn.PgConn().CustomData()[settledKey] == true
	switch {
	case isCitus(conn):
		if !settled {
			batch.Queue(setCitusTransaction)
		}
		batch.Queue("set local rolecall.tenant = '" + name + "'") // takes no parameter; the name is an id
	case settled:
		batch.Queue(setTenant, name)
	default:
		batch.Queue(setTenantAndSession, name, true)
	}
}
