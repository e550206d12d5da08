package floor

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"runtime"

	_ "modernc.org/sqlite" // the driver
)

const groupMax = 128 // maximum number of inserts in one commit

// sqliteTable is the table in SQLite: a reader for each core, and one writer. The writer
// commits all waiting inserts together, because an fsync is expensive.
type sqliteTable struct {
	db        *sql.DB
	one, many *sql.Stmt
	tenant    id
	inserts   chan insert
	written   chan error // receives the result of the writer after the last insert
}

// insert is a user to insert, and the channel for the result.
type insert struct {
	user user
	done chan error
}

func openFile(file string) (*sql.DB, error) {
	pragmas := url.Values{"_pragma": {"journal_mode(wal)", "synchronous(full)", "busy_timeout(5000)"}}
	db, err := sql.Open("sqlite", "file:"+file+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	connections := runtime.GOMAXPROCS(0) + 1
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// copySQLite creates the table in a new file, with the users of Rolecall's file.
func copySQLite(ctx context.Context, source, file string) (err error) {
	db, err := openFile(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // because attach affects only one connection
	if _, err := db.ExecContext(ctx, `create table floor_users (
			tenant_id blob not null, id blob not null, email text not null, email_key text not null, name text not null,
			name_key text not null, department text, external_id text, metadata text not null, status text not null,
			words text not null, created_at integer not null, updated_at integer not null, primary key (tenant_id, id)
		) strict, without rowid;
		create unique index floor_users_email on floor_users (tenant_id, email_key)`); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `attach $1 as rolecall`, source); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `insert into floor_users
		select tenant_id, id, email, email_key, name, name_key, department, external_id, metadata, status, words, created_at, updated_at
		from rolecall.users order by tenant_id, id`)
	return err
}

func openSQLite(ctx context.Context, file string, tenant id) (_ table, err error) {
	t := &sqliteTable{tenant: tenant, inserts: make(chan insert, groupMax), written: make(chan error, 1)}
	if t.db, err = openFile(file); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.db.Close())
		}
	}()
	if t.one, err = t.db.PrepareContext(ctx, `select `+columns+` from floor_users where tenant_id = $1 and id = $2`); err != nil {
		return nil, err
	}
	if t.many, err = t.db.PrepareContext(ctx, `select `+columns+` from floor_users where tenant_id = $1 order by id limit $2`); err != nil {
		return nil, err
	}
	w, err := t.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	put, err := w.PrepareContext(ctx, insertion)
	if err != nil {
		return nil, err
	}
	go t.write(w, put)
	return t, nil
}

func (t *sqliteTable) user(_ context.Context, key id) (u user, err error) {
	err = t.one.QueryRow(t.tenant[:], key[:]).Scan(u.dest()...)
	return u, err
}

func (t *sqliteTable) page(_ context.Context, size int) (_ []user, err error) {
	rows, err := t.many.Query(t.tenant[:], size)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	users := make([]user, 0, size)
	for rows.Next() {
		users = append(users, user{})
		if err := rows.Scan(users[len(users)-1].dest()...); err != nil {
			return nil, err
		}
	}
	return users, rows.Err()
}

func (t *sqliteTable) insert(_ context.Context, u user) error {
	done := make(chan error, 1)
	t.inserts <- insert{u, done}
	return <-done
}

// write commits the waiting inserts until t.inserts is closed.
func (t *sqliteTable) write(w *sql.Conn, put *sql.Stmt) {
	for first := range t.inserts {
		group := []insert{first}
		for len(group) < groupMax && len(t.inserts) > 0 {
			group = append(group, <-t.inserts)
		}
		err := t.commit(w, put, group)
		for _, i := range group {
			i.done <- err
		}
	}
	t.written <- w.Close()
}

// commit inserts the users of the group in one transaction. If one insert fails, no user is
// inserted.
func (t *sqliteTable) commit(w *sql.Conn, put *sql.Stmt, group []insert) error {
	ctx := context.Background() // the end of one request must not cancel the inserts of the others
	if _, err := w.ExecContext(ctx, "begin immediate"); err != nil {
		return err
	}
	for _, i := range group {
		if _, err := put.ExecContext(ctx, i.user.arguments(t.tenant[:])...); err != nil {
			_, rollbackErr := w.ExecContext(ctx, "rollback")
			return errors.Join(err, rollbackErr)
		}
	}
	_, err := w.ExecContext(ctx, "commit")
	return err
}

func (t *sqliteTable) close() error {
	close(t.inserts)
	return errors.Join(<-t.written, t.db.Close())
}
