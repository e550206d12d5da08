package sqlite

import (
	"context"
	"database/sql"
)

// preparedMax is the maximum number of prepared statements of a connection. Fewer than a
// hundred statements are constant. The others are built for lists.
const preparedMax = 256

// conn is a connection with its prepared statements. One goroutine at a time uses it. A
// running statement is never interrupted, because its work is bounded, and because an
// interrupted write would roll back all updates that are committed together with it.
type conn struct {
	*sql.Conn
	prepared map[string]*sql.Stmt
}

func newConn(c *sql.Conn) *conn { return &conn{c, make(map[string]*sql.Stmt)} }

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if stmt, ok := c.prepared[query]; ok {
		return stmt, nil
	}
	if len(c.prepared) >= preparedMax {
		for old, stmt := range c.prepared { // any statement; if it is still in use, the next call prepares it again
			delete(c.prepared, old)
			if err := stmt.Close(); err != nil {
				return nil, err
			}
			break
		}
	}
	stmt, err := c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	c.prepared[query] = stmt
	return stmt, nil
}

func (c *conn) exec(query string, args ...any) error {
	stmt, err := c.prepare(query)
	if err != nil {
		return err
	}
	_, err = stmt.ExecContext(context.Background(), args...)
	return err
}

func (c *conn) query(query string, args []any, each func(scan func(dest ...any) error) error) (n int, err error) {
	stmt, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	defer func() {
		if closed := rows.Close(); err == nil {
			err = closed
		}
	}()
	for rows.Next() {
		n++
		if err := each(rows.Scan); err != nil {
			return n, err
		}
	}
	return n, rows.Err()
}
