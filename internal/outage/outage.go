// Package outage logs one warning for each outage of the database, although many tasks in the background
// fail during it. The package may import the root package.
package outage

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
)

// Log logs the failures of tasks in the background that run again and again. It is safe for concurrent use.
type Log struct {
	log *slog.Logger

	mu      sync.Mutex
	failing map[string]bool // the tasks whose last run failed because the database was unavailable
	since   time.Time       // when the first of them failed
}

// New returns a Log that writes to log.
func New(log *slog.Logger) *Log { return &Log{log: log, failing: map[string]bool{}} }

// Warn logs the failure of a task that does not run again soon, except if the outage that caused it was
// logged before.
func (l *Log) Warn(ctx context.Context, text string, err error, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failing) == 0 || !errors.Is(err, rolecall.ErrUnavailable) {
		l.log.WarnContext(ctx, text, append(args, "error", err)...)
	}
}

// Report records the result of a run of the task. The task is the text of the warning.
//
// If the database was unavailable, Report logs the first failure of the first task, and when the last of
// the failing tasks has succeeded, that the outage ended. It logs each other error.
func (l *Log) Report(ctx context.Context, task string, err error, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, rolecall.ErrUnavailable) {
		first := len(l.failing) == 0
		l.failing[task] = true
		if first {
			l.since = time.Now()
			l.log.WarnContext(ctx, task, append(args, "error", err)...)
		}
		return
	}
	if l.failing[task] {
		delete(l.failing, task)
		if len(l.failing) == 0 {
			l.log.InfoContext(ctx, "the database works again", "after", time.Since(l.since).Round(time.Millisecond).String())
		}
	}
	if err != nil {
		l.log.WarnContext(ctx, task, append(args, "error", err)...)
	}
}
