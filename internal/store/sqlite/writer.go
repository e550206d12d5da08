package sqlite

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	queueMax = 1024 // maximum number of waiting updates
	groupMax = 128  // maximum number of updates per commit
)

// writer runs a group of waiting updates in one transaction, so that they share one fsync.
// Until the group is committed, it can be rolled back and run again. So no caller gets a
// result before that, not even an error.
type writer struct {
	conn  *conn
	turn  turn
	wrote func() // called after a group
	queue chan *job
	looks chan func() // functions to run between groups
	ended chan struct{}

	mu     sync.RWMutex
	closed bool
}

func startWriter(c *conn, turn turn, wrote func()) *writer {
	w := &writer{conn: c, turn: turn, wrote: wrote, queue: make(chan *job, queueMax), looks: make(chan func()), ended: make(chan struct{})}
	go w.loop()
	return w
}

// job is one update.
type job struct {
	fn      func(store.Querier) error
	claimed atomic.Bool // set by the writer that runs the job, or by the caller that has given up
	done    chan struct{}

	err      error
	panicked any // the caller's goroutine panics with it again
}

// do queues fn and returns when it was committed or has failed. The end of ctx cancels fn
// only while it is in the queue.
func (w *writer) do(ctx context.Context, fn func(store.Querier) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{fn: fn, done: make(chan struct{})}
	if !w.enqueue(j) {
		return rolecall.ErrUnavailable
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if j.claimed.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		<-j.done
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	return j.err
}

func (w *writer) enqueue(j *job) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return false
	}
	select {
	case w.queue <- j:
		return true
	default:
		return false
	}
}

// close rejects new updates, waits until all queued updates have run, and closes the
// connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	close(w.queue)
	w.mu.Unlock()
	<-w.ended
	return errors.Join(w.conn.Close(), w.turn.close())
}

func (w *writer) loop() {
	defer close(w.ended)
	for {
		select {
		case first, open := <-w.queue:
			if !open {
				return
			}
			group := w.gather(first)
			w.serve(group)
			for _, j := range group {
				close(j.done)
			}
			w.wrote()
		case look := <-w.looks:
			look()
		}
	}
}

// dataVersion returns a number that changes when another process changes the file. It
// reads the number on the writer's connection. On all other connections, the number also
// changes when this process writes.
func (w *writer) dataVersion(ctx context.Context) (version int64, err error) {
	done := make(chan struct{})
	look := func() {
		defer close(done)
		_, err = w.conn.query("pragma data_version", nil, func(scan func(dest ...any) error) error { return scan(&version) })
	}
	select {
	case w.looks <- look:
		<-done
		return version, translate(err)
	case <-w.ended:
		return 0, rolecall.ErrUnavailable
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// gather returns a group of up to groupMax updates: first, and the updates that are in the
// queue. It omits updates whose callers have given up.
func (w *writer) gather(first *job) []*job {
	var group []*job
	for j, ok := first, true; ok && j != nil; {
		if j.claimed.CompareAndSwap(false, true) {
			group = append(group, j)
		}
		if len(group) == groupMax {
			break
		}
		select {
		case j, ok = <-w.queue:
		default:
			j = nil
		}
	}
	return group
}

// verdict is the outcome of an attempt to commit a group.
type verdict int

const (
	committed verdict = iota
	rejected          // an update of the group failed, and all updates were rolled back
	lost              // a statement failed in a way that may have ended the transaction
	down              // nothing can be written, and every update of the group has its error
)

// serve commits the group. It first tries without savepoints, because savepoints halve the
// rate. Only if an update of the group has failed, it tries again with savepoints.
func (w *writer) serve(group []*job) {
	if len(group) == 0 {
		return
	}
	verdict := w.attempt(group, false)
	if len(group) == 1 {
		return
	}
	if verdict == rejected {
		verdict = w.attempt(group, true)
	}
	if verdict != lost {
		return
	}
	for i := range group {
		if w.attempt(group[i:i+1], false) == down {
			fail(group[i:], group[i].err)
			return
		}
	}
}

// attempt runs the group in one transaction. If an update fails with savepoints, only its
// own writes are undone. If an update that has written something fails without savepoints,
// the whole group is rolled back.
func (w *writer) attempt(group []*job, savepoints bool) verdict {
	if err := w.begin(); err != nil {
		return w.giveUp(group, err)
	}
	for _, j := range group {
		u := &update{conn: w.conn}
		if savepoints {
			u.try("savepoint member")
		}
		j.run(u)
		failed := j.err != nil || j.panicked != nil
		switch {
		case u.err != nil && !isConstraint(u.err):
			w.rollBack()
			return lost
		case failed && u.wrote && !savepoints:
			w.rollBack()
			return rejected
		case !savepoints:
			continue
		}
		end := &update{conn: w.conn}
		if failed {
			end.try("rollback to member")
		}
		end.try("release member")
		if end.err != nil {
			w.rollBack()
			return lost
		}
	}
	if err := w.conn.exec("commit"); err != nil {
		return w.giveUp(group, err)
	}
	return committed
}

func (w *writer) begin() error {
	w.turn.take()
	defer w.turn.pass()
	return w.conn.exec("begin immediate")
}

func (w *writer) giveUp(group []*job, err error) verdict {
	w.rollBack()
	fail(group, translate(err))
	return down
}

func fail(group []*job, err error) {
	for _, j := range group {
		j.err, j.panicked = err, nil
	}
}

// rollBack rolls back the transaction. It ignores errors. If the transaction has already
// ended, the rollback fails without harm. After any other failure, the next "begin" fails
// too.
func (w *writer) rollBack() { _ = w.conn.exec("rollback") }

// run calls the function of the update and stores its error or panic.
func (j *job) run(u *update) {
	j.err, j.panicked = nil, nil
	defer func() { j.panicked = recover() }()
	j.err = j.fn(u)
	if j.err == nil && u.err != nil {
		j.err = translate(u.err)
	}
}

// update is the Querier of one Update. After the first failed statement, it runs no more
// statements.
type update struct {
	conn  *conn
	err   error // the first failure, not translated
	wrote bool
}

func (u *update) Exec(query string, args ...any) {
	u.try(query, args...)
	u.wrote = u.wrote || u.err == nil
}

func (u *update) try(query string, args ...any) {
	if u.err == nil {
		u.err = u.conn.exec(query, args...)
	}
}

// Announce does nothing. Watch in other processes detects that the file has changed.
func (u *update) Announce(rolecall.AnyID) {}

// AnnounceChanges does nothing, like Announce.
func (u *update) AnnounceChanges(rolecall.TenantID) {}

// SetTenant does nothing, because SQLite has no row security.
func (u *update) SetTenant(rolecall.TenantID) {}

// AllowAddressInAllTenants does nothing, because SQLite has no row security.
func (u *update) AllowAddressInAllTenants(string) {}

func (u *update) Query(query string, args []any, each func(scan func(dest ...any) error) error) (rows int, err error) {
	if u.err == nil {
		u.wrote = u.wrote || !strings.HasPrefix(query, "select")
		rows, u.err = u.conn.query(query, args, each)
	}
	return rows, translate(u.err)
}
