//go:build linux || darwin

package sqlite

import (
	"os"
	"syscall"
	"time"
)

// turnMax is how long a process lets another process go first. SQLite pauses for up to
// 100 ms between two attempts to get the write lock, so the other process needs less.
const turnMax = 500 * time.Millisecond

// turn lets processes that write the same file take turns. SQLite grants the write lock to
// the first process that asks after it is free, and a waiting process asks only now and then. So
// without turns, a busy server keeps the lock, and commands such as "rolecall tenant
// create" fail after busyTimeout.
//
// A process holds the turn while it waits for the write lock. The turn is a lock of flock on
// the database file, which is independent of the locks of SQLite.
type turn struct{ file *os.File }

func openTurn(path string) (turn, error) {
	file, err := os.Open(path)
	return turn{file}, err
}

// take waits for the turn. It gives up after turnMax, because a stopped process can hold the
// turn.
func (t turn) take() {
	for began := time.Now(); syscall.Flock(int(t.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil && time.Since(began) < turnMax; {
		time.Sleep(time.Millisecond)
	}
}

// pass ends the turn. It ignores errors: without the turn, there is nothing to pass.
func (t turn) pass() { _ = syscall.Flock(int(t.file.Fd()), syscall.LOCK_UN) }

func (t turn) close() error { return t.file.Close() }
