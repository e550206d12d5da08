package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
)

// plannerSettings make the planner use indexes. Without these settings, the planner
// underestimates the rows that meet some conditions, and reads a whole table once for
// each of them. Up to PostgreSQL 17, these settings raise the cost of a plan without an
// index. JIT compilation starts above a certain cost, and takes a third of a second even
// if the plan reads two rows. Therefore, jit is off.
var plannerSettings = []setting{
	{"enable_seqscan", "off"}, {"enable_hashjoin", "off"}, {"enable_mergejoin", "off"}, {"enable_material", "off"},
	{"enable_bitmapscan", "off"}, {"max_parallel_workers_per_gather", "0"}, {"jit", "off"},
}

// sessionSettings are all settings of a session. With force_generic_plan, the server
// plans a prepared statement once and not for each execution, because planning costs more
// than most executions. If a node disappears during a transaction, the server releases
// the locks of the transaction after ten seconds.
var sessionSettings = slices.Concat(plannerSettings, []setting{
	{"plan_cache_mode", "force_generic_plan"}, {"idle_in_transaction_session_timeout", "10s"},
})

// citusSettings are the sessionSettings on Citus. Citus has to know the tenant when it
// plans a statement. By default, it does not pass settings of a transaction on to the
// workers.
var citusSettings = slices.Concat(plannerSettings, []setting{
	{"plan_cache_mode", "auto"}, {"idle_in_transaction_session_timeout", "10s"}, {"citus.propagate_set_commands", "local"},
})

type setting struct{ name, value string }

// setAll returns the expressions that set the settings. until is the parameter or value
// that decides whether they end with the transaction.
func setAll(settings []setting, until string) string {
	calls := make([]string, len(settings))
	for i, s := range settings {
		calls[i] = fmt.Sprintf("set_config('%s', '%s', %s)", s.name, s.value, until)
	}
	return strings.Join(calls, ", ")
}

const setTenant = `select set_config('rolecall.tenant', $1, true)`

// Statements that set the settings of a transaction or a session. The rows of the tenant,
// $1, are visible until the transaction ends.
var (
	setTenantAndSession = setTenant + `, ` + setAll(sessionSettings, "$2")
	setSession          = `select ` + setAll(sessionSettings, "false") + ` where pg_backend_pid() = $1`
	setCitusSession     = `select ` + setAll(citusSettings, "false") + ` where pg_backend_pid() = $1`
	setCitusTransaction = `select ` + setAll(citusSettings, "true")
)

// settledKey marks a connection whose session has the sessionSettings.
const settledKey = "rolecall.settled"

// citusKey is the key of the preparer of a connection to Citus.
const citusKey = "rolecall.citus"

// settle sets the sessionSettings of the session, so that transactions need not set
// them: that costs as much as reading a row. Behind a pooler, the next transaction may
// run in another session, so there each transaction sets them itself. settle detects a
// pooler by its process id, which differs from that of the server process that answers.
// settle has the time limit of a new connection, because the pool reserves a place
// during both.
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

func isCitus(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[citusKey] != nil }

// queueTenant queues the settings of a transaction of the tenant. The zero tenant sees no
// rows.
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
		batch.Queue("set local rolecall.tenant = '" + name + "'") // the statement takes no parameters; the name is an id, so it needs no escaping
	case settled:
		batch.Queue(setTenant, name)
	default:
		batch.Queue(setTenantAndSession, name, true)
	}
}
