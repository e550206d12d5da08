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
// expects that few rows meet a condition although many do, and then reads a whole table
// once for each of them. Up to PostgreSQL 17, the settings do not forbid a plan without an
// index, but raise its cost. JIT compilation starts above a certain cost, and takes a
// third of a second even if the plan reads two rows. Therefore, jit is off.
var plannerSettings = []setting{
	{"enable_seqscan", "off"}, {"enable_hashjoin", "off"}, {"enable_mergejoin", "off"}, {"enable_material", "off"},
	{"enable_bitmapscan", "off"}, {"max_parallel_workers_per_gather", "0"}, {"jit", "off"},
}

// sessionSettings are all settings of a session. With force_generic_plan, the server plans
// a prepared statement once, because planning at each execution would cost more than most
// executions. If a node disappears during a transaction, the server ends the session after
// ten seconds. This releases the locks of the transaction.
var sessionSettings = slices.Concat(plannerSettings, []setting{
	{"plan_cache_mode", "force_generic_plan"}, {"default_transaction_isolation", "read committed"}, {"idle_in_transaction_session_timeout", "10s"},
})

// citusSettings take the place of sessionSettings on Citus. Generic plans are not forced
// there, because Citus must know the tenant when it plans a statement. The last setting
// makes Citus pass the settings of a transaction on to the workers.
var citusSettings = slices.Concat(plannerSettings, []setting{
	{"plan_cache_mode", "auto"}, {"default_transaction_isolation", "read committed"}, {"idle_in_transaction_session_timeout", "10s"}, {"citus.propagate_set_commands", "local"},
})

// checkClient makes the server end a statement within a second after its client has disconnected. Otherwise, the
// statement can wait for a lock much longer, because the server ignores a cancellation that arrives between two
// statements. It is set only if the server runs on Linux, because some other systems refuse it, such as Windows.
const checkClient = `set_config('client_connection_check_interval', case when version() like '%%linux%%' then '1s' else '0' end, %s)`

// commitDurably makes a commit wait for the disk if it would not, because the default has changed since
// checkServer, or is another one behind a pooler. It keeps all other values, such as remote_apply.
const commitDurably = `set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), %s)`

type setting struct{ name, value string }

// setAll returns SQL expressions that set the settings, checkClient and commitDurably. The argument until is
// an SQL value or a placeholder. If it is true, the settings end with the transaction.
func setAll(settings []setting, until string) string {
	calls := make([]string, len(settings), len(settings)+2)
	for i, s := range settings {
		calls[i] = fmt.Sprintf("set_config('%s', '%s', %s)", s.name, s.value, until)
	}
	return strings.Join(append(calls, fmt.Sprintf(checkClient, until), fmt.Sprintf(commitDurably, until)), ", ")
}

const setTenant = `select set_config('rolecall.tenant', $1, true)`

// These statements set the settings of a transaction or a session. The parameter $1 of
// setTenant is the tenant. Its rows are visible until the transaction ends.
var (
	setTenantAndSession = setTenant + `, ` + setAll(sessionSettings, "$2")
	setSession          = `select ` + setAll(sessionSettings, "false") + ` where pg_backend_pid() = $1`
	setCitusSession     = `select ` + setAll(citusSettings, "false") + ` where pg_backend_pid() = $1`
	setCitusTransaction = `select ` + setAll(citusSettings, "true")
)

// settledKey is the key that marks a connection whose session has all settings.
const settledKey = "rolecall.settled"

// citusKey is the key with which a connection to Citus stores its preparer.
const citusKey = "rolecall.citus"

// settle sets the settings for the whole session of a new connection. Then transactions
// need not set them, which would cost as much as reading a row.
//
// Behind a pooler, settle sets nothing, because the next transaction may run in another
// session. Each transaction then sets the settings itself. To detect a pooler, settle
// compares the process id from the start of the connection with that of the server process
// that answers. They differ behind a pooler.
//
// settle has the time limit of opening a connection, because the pool reserves a place for
// the connection during both.
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

// isSettled reports whether the session of the connection has all settings, because no pooler shares it.
func isSettled(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[settledKey] == true }

func isCitus(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[citusKey] != nil }

// queueAddress queues the statement that makes users with the address visible in all tenants until the
// transaction ends.
func queueAddress(batch *pgx.Batch, conn *pgx.Conn, emailKey string) {
	if isCitus(conn) { // Citus passes only SET LOCAL on to the workers, which takes no parameters
		batch.Queue("set local rolecall.address = '" + strings.ReplaceAll(emailKey, "'", "''") + "'")
		return
	}
	batch.Queue(`select set_config('rolecall.address', $1, true)`, emailKey)
}

// queueTenant queues the statements that set the tenant at the start of a transaction, and
// also the other settings if the session does not have them. For the zero tenant, no rows
// that belong to a tenant are visible.
func queueTenant(batch *pgx.Batch, conn *pgx.Conn, tenant rolecall.TenantID) {
	name := ""
	if !tenant.IsZero() {
		name = tenant.String()
	}
	settled := isSettled(conn)
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
