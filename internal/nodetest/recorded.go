package nodetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// Recorded is a database that records its transactions and statements. It can also be
// made to fail.
type Recorded struct {
	store.Database
	Committed func() // runs after each Update; can be nil

	mu      sync.Mutex
	asked   []string
	mails   []rolecall.OutboxMail // that were committed
	failure error
	once    statementFailure
}

// statementFailure is the failure of the next statement with the prefix.
type statementFailure struct {
	prefix string
	err    error // nil: no statement fails
}

// View records the transaction and its statements.
func (w *Recorded) View(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	if err := w.note("view"); err != nil {
		return err
	}
	return w.Database.View(ctx, tenant, func(q store.Querier) error { return fn(recordedQuerier{q, w, &written{}}) })
}

// Update records the transaction and its statements. It rejects an event without the
// change that it records, and a mail without the event or token that caused it. If they
// were in two transactions, one of them could be lost when the process ends.
func (w *Recorded) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	if err := w.note("update"); err != nil {
		return err
	}
	var done written
	err := w.Database.Update(ctx, tenant, func(q store.Querier) error {
		done = written{}
		err := fn(recordedQuerier{q, w, &done})
		if err == nil && done.mails != nil && !done.cause {
			err = errors.New("a mail is written apart from the statements that it tells of")
		}
		if err == nil && done.event != "" && !done.change {
			err = fmt.Errorf("the event %s is written without the change that it records", done.event)
		}
		return err
	})
	if w.Committed != nil {
		w.Committed()
	}
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mails = append(w.mails, done.mails...)
	}
	return err
}

// written describes the writes of a transaction.
type written struct {
	mails  []rolecall.OutboxMail
	cause  bool   // an event, or the token of a link
	event  string // type of an event that records a change; empty if none was written
	change bool   // anything but events
}

// counted are the types of events that record no change, only an attempt.
var counted = []rolecall.EventType{rolecall.EventRefused, rolecall.EventSignInFailed, rolecall.EventResetRequested}

// note records the write of the statement.
func (w *written) note(query string, args []any) {
	switch {
	case strings.HasPrefix(query, "select "), strings.HasPrefix(query, "with "):
	case !strings.HasPrefix(query, "insert into events "):
		w.change = true
	default:
		if kind := args[2].(string); !slices.Contains(counted, rolecall.EventType(kind)) {
			w.event = kind
		}
	}
}

func (w *Recorded) note(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, what)
	return w.failure
}

// Fail makes every later transaction return the error. If err is nil, transactions succeed
// again.
func (w *Recorded) Fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = err
}

// FailOnce makes the transaction of the next query that begins with the prefix return the error.
func (w *Recorded) FailOnce(prefix string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.once = statementFailure{prefix, err}
}

// FailsOnce reports whether the query of FailOnce is still to come.
func (w *Recorded) FailsOnce() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.once.err != nil
}

// refuse returns the error of FailOnce if the query is the one.
func (w *Recorded) refuse(query string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.once.err
	if err == nil || !strings.HasPrefix(query, w.once.prefix) {
		return nil
	}
	w.once = statementFailure{}
	return err
}

// During returns the records that fn adds.
func (w *Recorded) During(fn func()) []string {
	w.mu.Lock()
	before := len(w.asked)
	w.mu.Unlock()
	fn()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked[before:])
}

// recordedQuerier records the statements that an anonymous request can cause.
type recordedQuerier struct {
	store.Querier
	database *Recorded
	written  *written // in this transaction
}

func (q recordedQuerier) note(what string) {
	q.database.mu.Lock()
	defer q.database.mu.Unlock()
	q.database.asked = append(q.database.asked, what)
}

// recordedWrites are the writes to record, by the prefix of their statements.
var recordedWrites = map[string]string{
	"insert into outbox":          "mail",
	"insert into one_time_tokens": "insert token",
	"delete from one_time_tokens where tenant_id = $1 and user_id = $2 and purpose = $3": "delete tokens",
	"update sessions set last_used_at = $1":                                              "touch",
	"update api_tokens set last_used_at":                                                 "touch of a token",
}

// Exec records the write, and stores a mail.
func (q recordedQuerier) Exec(query string, args ...any) {
	for beginning, what := range recordedWrites {
		if strings.HasPrefix(query, beginning) {
			q.note(what)
		}
	}
	switch {
	case strings.HasPrefix(query, "insert into events"), strings.HasPrefix(query, "insert into one_time_tokens"):
		q.written.cause = true
	case strings.HasPrefix(query, "insert into outbox"):
		q.written.mails = append(q.written.mails, rolecall.OutboxMail{
			ID: args[0].(rolecall.MailID), TenantID: args[1].(rolecall.TenantID), UserID: args[2].(rolecall.UserID), Sealed: args[3].([]byte),
			DueAt: args[4].(rolecall.Time), CreatedAt: args[6].(rolecall.Time), ExpiresAt: args[7].(rolecall.Time),
		})
	}
	q.written.note(query, args)
	q.Querier.Exec(query, args...)
}

// recordedReads are the reads to record, by a substring of their statements.
var recordedReads = map[string]string{
	"r.email_key = $2":                                                             "user by address",
	"a.user_id = $2\n\t\tunion all":                                                "assignments of a user",
	"from operator_keys where hash = $1":                                           "operator key by token",
	"from session_tokens t\n\t\tjoin sessions s":                                   "session by token",
	"from api_tokens t\n\t\tjoin users r":                                          "API token by hash",
	"delete from assignments where tenant_id = $1 and role_id = $2 and user_id <=": "removal of holders",
}

// Query records the statement. For a count of attempts, it includes the number of
// buckets. It records a purge of one-time tokens only if it deleted any.
func (q recordedQuerier) Query(query string, args []any, each func(scan func(dest ...any) error) error) (int, error) {
	if err := q.database.refuse(query); err != nil {
		return 0, err
	}
	for part, what := range recordedReads {
		if strings.Contains(query, part) {
			q.note(what)
		}
	}
	if strings.HasPrefix(query, "insert into attempts") {
		q.note(fmt.Sprintf("count in %d buckets", strings.Count(query, ", 1, $")))
	}
	q.written.note(query, args)
	n, err := q.Querier.Query(query, args, each)
	if n > 0 && strings.HasPrefix(query, "delete from one_time_tokens") && strings.Contains(query, "expires_at") {
		q.note("purged")
	}
	return n, err
}
