package floor

import (
	"context"
	"errors"
	"runtime"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connectionsPerCore is the number of connections per core that gives the highest rate of inserts.
// Reads need fewer connections.
const connectionsPerCore = 8

// postgresTable is the table in PostgreSQL. Each statement is prepared at its first
// use on each connection.
type postgresTable struct {
	pool   *pgxpool.Pool
	tenant id
}

// copyPostgres creates the table, and copies Rolecall's users into it. The URL must be that of an
// administrator, because row-level security hides the users from other roles.
func copyPostgres(ctx context.Context, url string) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	for _, statement := range []string{
		`create table floor_users as
			select tenant_id, id, email, email_key, name, name_key, department, external_id, metadata, status, words, created_at, updated_at
			from users order by tenant_id, id`,
		`alter table floor_users add primary key (tenant_id, id)`,
		`create unique index on floor_users (tenant_id, email_key)`,
		`vacuum (analyze)`,
		`checkpoint`,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func openPostgres(ctx context.Context, url string, tenant id) (table, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(connectionsPerCore * runtime.GOMAXPROCS(0))
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &postgresTable{pool, tenant}, nil
}

func (t *postgresTable) user(ctx context.Context, key id) (u user, err error) {
	err = t.pool.QueryRow(ctx, `select `+columns+` from floor_users where tenant_id = $1 and id = $2`, t.tenant, key).Scan(u.postgresDest()...)
	return u, err
}

func (t *postgresTable) page(ctx context.Context, size int) ([]user, error) {
	rows, err := t.pool.Query(ctx, `select `+columns+` from floor_users where tenant_id = $1 order by id limit $2`, t.tenant, size)
	if err != nil {
		return nil, err
	}
	users := make([]user, 0, size)
	for rows.Next() {
		users = append(users, user{})
		if err := rows.Scan(users[len(users)-1].postgresDest()...); err != nil {
			rows.Close()
			return nil, err
		}
	}
	return users, rows.Err()
}

// postgresDest is like dest, but scans the id as bytes, which pgx reads directly.
func (u *user) postgresDest() []any {
	dest := u.dest()
	dest[0] = (*[16]byte)(&u.ID)
	return dest
}

func (t *postgresTable) insert(ctx context.Context, u user) error {
	arguments := u.arguments([16]byte(t.tenant))
	arguments[1] = [16]byte(u.ID)
	_, err := t.pool.Exec(ctx, insertion, arguments...)
	return err
}

func (t *postgresTable) close() error {
	t.pool.Close()
	return nil
}
