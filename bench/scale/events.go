package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/progress"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

// eventsApart is the time between two events about a user. It is longer than the time in which the
// generated users were created, so all events of a pass are later than those of the pass before.
const eventsApart = 12 * 24 * time.Hour

// fillEvents adds events about the generated users to the database. Each pass adds one event per
// user. The small tenant gets as many passes as the large one, so all users have the same number
// of events. It writes the rows directly, because 10 million are too many for requests.
func (b *bench) fillEvents(ctx context.Context, database string, n *node) (err error) {
	passes := b.events / b.users
	if passes == 0 {
		return nil
	}
	execute := func(statement string) error { return b.asAdmin(ctx, database, statement) }
	id := `(lpad(to_hex(%d + u.created_at / 1000), 12, '0') || substr(replace(u.id::text, '-', ''), 13))::uuid`
	actor := "'" + n.owner().user + "'"
	if b.server == nil {
		file, err := sqlite.Open(ctx, n.Database, sqlite.Options{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		execute = func(statement string) error {
			return file.Update(ctx, rolecall.TenantID{}, func(q store.Querier) error {
				q.Exec(statement)
				return nil
			})
		}
		id = `unhex(printf('%%012x', %d + u.created_at / 1000) || substr(hex(u.id), 13))`
		actor = "unhex('" + strings.ReplaceAll(n.owner().user, "-", "") + "')"
	}
	bar := progress.Start(os.Stderr, "events", passes)
	defer bar.End()
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC) // when the first generated user was created
	for pass := range passes {
		shift := time.Since(begin) - time.Duration(passes-pass)*eventsApart
		statement := fmt.Sprintf(`insert into events (tenant_id, id, type, occurred_at, actor_type, actor_id, actor_via,
				subject_type, subject_id, members, request_id, source, reason, before, after)
			select u.tenant_id, `+id+`, 'user.updated', %d + u.created_at, 'user', %s, 'http',
				'user', u.id, '["name"]', 'made-up', '192.0.2.1', '', '{"name":"Before"}', '{"name":"After"}'
			from users u where u.external_id is not null order by u.id`, shift.Milliseconds(), shift.Milliseconds()*1000, actor)
		if err := execute(statement); err != nil {
			return err
		}
		bar.Add(1)
	}
	return nil
}
