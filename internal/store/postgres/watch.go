package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// channel is the channel on which every process announces what it changed.
const channel = "rolecall"

const (
	// pulseEvery is how often a watch notifies itself. As notifications arrive in
	// the order of the commits, its own says that nothing before it is missing.
	pulseEvery = 250 * time.Millisecond

	// pulseLimit is how long a pulse, or the start, may take before the connection is
	// given up.
	pulseLimit = 5 * time.Second
)

var errNoPulse = errors.New("no notification arrives: if a pooler stands between, give the way past it with --direct-database")

// Watch listens on its own connection, which bypasses a pooler, and reports to w what is
// announced. It returns nil when ctx ends, and otherwise why the connection was lost.
func (d *Database) Watch(ctx context.Context, w store.Watcher) error {
	if err := d.listen(ctx, w); ctx.Err() == nil {
		return fmt.Errorf("postgres: listening: %w", err)
	}
	return nil
}

// listen is Watch on one connection, until it fails or ctx ends.
func (d *Database) listen(ctx context.Context, w store.Watcher) (err error) {
	conn, err := pgx.ConnectConfig(ctx, d.listener)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		err = errors.Join(err, conn.Close(closing))
	}()
	began := time.Now()
	l := &listening{conn: conn, own: channel + "_" + rolecall.NewID[any](rolecall.TimeOf(began)).String(), began: began, watcher: w}
	for _, name := range []string{channel, l.own} {
		if err := l.exec(ctx, "listen "+pgx.Identifier{name}.Sanitize()); err != nil {
			return err
		}
	}
	w.Invalidate(rolecall.AnyID{})
	return l.run(ctx)
}

// listening is one connection that listens.
type listening struct {
	conn    *pgx.Conn
	own     string // the channel of the pulse
	began   time.Time
	heard   time.Duration // after began: when the last pulse was sent that arrived
	watcher store.Watcher
}

// run sends the pulse and passes on what arrives, until that fails or ctx ends.
func (l *listening) run(ctx context.Context) error {
	for pulse := time.Duration(0); ; {
		if now := time.Since(l.began); now >= pulse {
			if now-l.heard > pulseLimit {
				return errNoPulse
			}
			if err := l.pulse(ctx, now); err != nil {
				return err
			}
			pulse = now + pulseEvery
		}
		if err := l.receive(ctx, pulse-time.Since(l.began)); err != nil {
			return err
		}
	}
}

// pulse notifies itself of the moment.
func (l *listening) pulse(ctx context.Context, now time.Duration) error {
	return l.exec(ctx, "select pg_notify($1, $2)", l.own, strconv.FormatInt(int64(now), 10))
}

func (l *listening) exec(ctx context.Context, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, pulseLimit)
	defer cancel()
	_, err := l.conn.Exec(ctx, statement, args...)
	return err
}

// receive passes on the next notification, if one arrives in time.
func (l *listening) receive(ctx context.Context, limit time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	n, err := l.conn.WaitForNotification(waiting)
	switch {
	case err != nil && waiting.Err() != nil && !l.conn.IsClosed():
		return ctx.Err()
	case err != nil:
		return err
	case n.Channel == l.own:
		sent, err := strconv.ParseInt(n.Payload, 10, 64)
		if err != nil {
			return fmt.Errorf("%q on the channel of the pulse: %w", n.Payload, err)
		}
		l.heard = time.Duration(sent)
		l.watcher.CaughtUp(time.Since(l.began) - l.heard)
		return nil
	}
	id, err := rolecall.ParseID[any](n.Payload)
	if err != nil {
		id = rolecall.AnyID{} // of a version that says it in another way
	}
	l.watcher.Invalidate(id)
	return nil
}
