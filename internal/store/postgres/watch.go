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

// channel is the notification channel on which each process publishes the ids of changed
// objects.
const channel = "rolecall"

// changesChannel is the notification channel on which each process publishes the tenants whose
// feeds have new changes. Older programs do not listen to it.
const changesChannel = "rolecall_changes"

const (
	// pulseEvery is how often a watch sends a notification to itself. Notifications arrive
	// in the order of the commits. So when this one arrives, the notifications of all
	// earlier commits have arrived.
	pulseEvery = 250 * time.Millisecond

	// pulseLimit is the time within which each statement must succeed and each
	// notification to itself must arrive. Otherwise, the watch ends with an error.
	pulseLimit = 5 * time.Second
)

var errNoPulse = errors.New("no notifications arrive: if a connection pooler is in between, set --direct-database to a URL that bypasses it")

// Watch listens on a separate connection, which must bypass a pooler, and reports the
// published changes to w. It returns nil when ctx ends. If the connection fails before, it
// returns the error.
func (d *Database) Watch(ctx context.Context, w store.Watcher) error {
	if err := d.listen(ctx, w); ctx.Err() == nil {
		err = fmt.Errorf("postgres: cannot listen for notifications: %w", err)
		if errors.Is(err, errNoPulse) {
			return err
		}
		return rolecall.ErrUnavailable.Because(err)
	}
	return nil
}

// listen opens a connection and reports the published changes to w until the connection
// fails or ctx ends.
func (d *Database) listen(ctx context.Context, w store.Watcher) (err error) {
	conn, err := pgx.ConnectConfig(ctx, d.listener)
	if err != nil {
		return explain(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		err = errors.Join(err, conn.Close(closing))
	}()
	began := time.Now()
	l := &listening{conn: conn, own: channel + "_" + rolecall.NewID[any](rolecall.TimeOf(began)).String(), began: began, watcher: w}
	for _, name := range []string{channel, changesChannel, l.own} {
		if err := l.exec(ctx, "listen "+pgx.Identifier{name}.Sanitize()); err != nil {
			return err
		}
	}
	w.Invalidate(rolecall.AnyID{})
	w.Changed(rolecall.TenantID{})
	return l.run(ctx)
}

// listening is the state of a watch and its connection.
type listening struct {
	conn    *pgx.Conn
	own     string // the channel of the pulse
	began   time.Time
	heard   time.Duration // when the last received pulse was sent, as the time since began
	watcher store.Watcher
}

// run sends pulses and passes received notifications to the watcher, until the connection
// fails or ctx ends.
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

// pulse sends a notification to its own connection. The notification contains the time
// now.
func (l *listening) pulse(ctx context.Context, now time.Duration) error {
	return l.exec(ctx, "select pg_notify($1, $2)", l.own, strconv.FormatInt(int64(now), 10))
}

func (l *listening) exec(ctx context.Context, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, pulseLimit)
	defer cancel()
	_, err := l.conn.Exec(ctx, statement, args...)
	return err
}

// receive waits for the next notification, at most for the limit, and passes it to the
// watcher.
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
			return fmt.Errorf("unexpected notification %q: %w", n.Payload, err)
		}
		l.heard = time.Duration(sent)
		l.watcher.CaughtUp(time.Since(l.began) - l.heard)
		return nil
	}
	id, err := rolecall.ParseID[any](n.Payload)
	if err != nil {
		id = rolecall.AnyID{} // from a program of another version, with another format
	}
	if n.Channel == changesChannel {
		l.watcher.Changed(rolecall.TenantID(id))
	} else {
		l.watcher.Invalidate(id)
	}
	return nil
}
