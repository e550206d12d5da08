package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// writingPlanner is a planner for statements that write.
type writingPlanner struct{ *planner }

// Exec runs the statement and records its plan.
func (p *writingPlanner) Exec(query string, args ...any) {
	if _, err := p.Query(query, args, nil); err != nil {
		p.Error(err)
	}
}

// Announce does nothing.
func (p *writingPlanner) Announce(rolecall.AnyID) {}

// AnnounceChanges does nothing.
func (p *writingPlanner) AnnounceChanges(rolecall.TenantID) {}

// SetTenant does nothing: no statement that is tested follows it.
func (p *writingPlanner) SetTenant(rolecall.TenantID) {}

func (p *writingPlanner) AllowAddressInAllTenants(string) {}

// needed are the beginnings of the statements whose rows later statements depend on.
var needed = []string{"select e.occurred_at", "insert into feeds", "insert into changes", "delete from event_queue where tenant_id = $1\n", "select coalesce(max(c.number)",
	"select r.id, r.name, r.description, r.external_id, r.source", "select r.name_key, ''", "update users set managed_by"}

// Query runs the statement and records its plan. It returns no rows, except of a needed statement.
func (p *writingPlanner) Query(query string, args []any, each func(scan func(dest ...any) error) error) (int, error) {
	if slices.ContainsFunc(needed, func(beginning string) bool { return strings.HasPrefix(query, beginning) }) {
		return p.queryTwice(query, args, each)
	}
	return 0, p.explain(p.tx, query, args)
}

// explain runs the statement in the transaction and records its plan.
func (p *writingPlanner) explain(tx pgx.Tx, query string, args []any) error {
	rows, err := tx.Query(p.Context(), "explain (analyze, timing off, costs off, buffers off, summary off) "+query, args...)
	if err != nil {
		return err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	p.plans = append(p.plans, query+"\n"+strings.Join(lines, "\n"))
	return err
}

// queryTwice runs the statement for its plan, undoes that, and runs it again for its rows.
func (p *writingPlanner) queryTwice(query string, args []any, each func(scan func(dest ...any) error) error) (n int, err error) {
	nested, err := p.tx.Begin(p.Context())
	if err != nil {
		return 0, err
	}
	if err := errors.Join(p.explain(nested, query, args), nested.Rollback(p.Context())); err != nil {
		return 0, err
	}
	rows, err := p.tx.Query(p.Context(), query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		n++
		if err := each(rows.Scan); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}

// TestPurgesAreDrivenByAnIndex checks the plans of the purges twice: in a database without
// expired rows, and in one with expired rows.
func TestPurgesAreDrivenByAnIndex(t *testing.T) {
	t.Parallel()
	url := pgtest.Migrated(t)
	tenant, _ := crowd(t, open(t, url, postgres.Options{}))
	busy := rolecall.NewID[rolecall.User](now)
	run(t, connect(t, pgtest.Admin(t, url)),
		`insert into sessions (tenant_id, id, user_id, generation, authenticated_at, confirmed_at, last_used_at, expires_at, source, client, second_factor)
			select tenant_id, id, id, 1, 1, 0, 1, 1, '', '', 0 from users`,
		`insert into session_tokens (tenant_id, hash, session_id, generation, retired_at) select tenant_id, uuid_send(id), id, 1, 1 from users`,
		`insert into idempotency_keys (tenant_id, user_id, operation, hash, fingerprint, expires_at, status, location, resource_id)
			select tenant_id, id, 'createUser', uuid_send(id), '', 1, 201, '', id from users`,
		`insert into invitations (tenant_id, user_id, hash, created_at, expires_at) select tenant_id, id, uuid_send(id), 1, 1 from users`,
		`insert into one_time_tokens (tenant_id, hash, purpose, user_id, data, created_at, expires_at)
			select tenant_id, uuid_send(id), 'password-reset', id, '', 1, 1 from users`,
		`insert into api_tokens (tenant_id, id, user_id, hash, name, permissions, created_at, expires_at, last_used_at)
			select tenant_id, id, id, uuid_send(id), '', '[]', 1, 1, 0 from users`,
		`insert into events (tenant_id, id, type, occurred_at, actor_type, actor_via, subject_type, subject_id, members, request_id, source, reason)
			select tenant_id, id, 'user.created', 1, 'operator', 'command', 'user', id, '[]', '', '', '' from users`,
		`insert into events (tenant_id, id, type, occurred_at, actor_type, actor_id, actor_via, subject_type, subject_id, members, request_id, source, reason)
			select tenant_id, gen_random_uuid(), 'user.updated', 1, 'user', '`+busy.String()+`', 'http', 'user', id, '[]', '', '192.0.2.1', '' from users`,
		`insert into tombstones (tenant_id, user_id, id, deleted_at, content) select tenant_id, id, id, 1, '{}' from users`,
		`insert into outbox (id, tenant, user_id, sealed, due_at, attempts, created_at, expires_at) select id, tenant_id, id, '', 1, 0, 1, 1 from users`,
		`insert into passwords (tenant_id, user_id, hash, changed_at) select tenant_id, id, '', 1 from users`,
		`insert into passkeys (tenant_id, id, user_id, name, credential, created_at, last_used_at) select tenant_id, uuid_send(id), id, '', '', 1, 1 from users`,
		`insert into recovery_codes (tenant_id, user_id, hash) select tenant_id, id, uuid_send(id) from users`,
		`insert into totp (tenant_id, user_id, confirmed_at, last_step) select tenant_id, id, 1, 1 from users`,
		`insert into attempts (bucket, n, ends_at) select uuid_send(id), 1, 1 from users`,
		`insert into operator_requests (key_id, operation, hash, fingerprint, expires_at, status, location, resource_id)
			select id, '', '', '', 1, 201, '', id from users`,
		`analyze`,
	)
	const limit = 100
	p := plannerOf(t, url, tenant)
	purge := store.NewTx(&writingPlanner{p}, tenant)
	erase := func(id rolecall.UserID) error {
		_, _, err := purge.EraseTraces(id, rolecall.EventID{}, limit)
		return err
	}
	for _, err := range []error{
		errorOf(purge.PurgeExpired(0, 0, limit)), errorOf(purge.PurgeAttempts(0, limit)), errorOf(purge.PurgeRequests(0, limit)), errorOf(purge.ExpiredMail(0, limit)),
		errorOf(purge.PurgeExpired(now, now, limit)), errorOf(purge.PurgeAttempts(now, limit)), errorOf(purge.PurgeRequests(now, limit)), errorOf(purge.ExpiredMail(now, limit)),
		erase(busy), erase(rolecall.NewID[rolecall.User](now)), errorOf(purge.PurgeTenant(now, limit)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(p.plans) < 40 {
		t.Errorf("there are only %d plans", len(p.plans))
	}
	for _, plan := range p.plans {
		most := float64(limit)
		if strings.Contains(plan, "changes") { // a purge of events first gives numbers
			most = store.NumbersAtOnce
		}
		if strings.Contains(plan, "Seq Scan") || pgtest.LookedAt(plan) > most {
			t.Error(plan)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }
