package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/bench/load"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// explaining makes PostgreSQL log the plan of each statement of the database, including
// those that check foreign keys.
var explaining = []string{
	"session_preload_libraries = auto_explain",
	"auto_explain.log_min_duration = 0",
	"auto_explain.log_analyze = on",
	"auto_explain.log_timing = off",
	"auto_explain.log_nested_statements = on",
}

var scanned = regexp.MustCompile(`Seq Scan on (?:\w+\.)?(\w+)`)

// few are the tables that always have few rows, so that a plan may read all of them.
var few = map[string]bool{"instance_keys": true, "instance_key_fingerprints": true, "migrations": true, "compatibility": true}

// checkPlans repeats three requests of every operation on the large store. It returns an
// error if a logged plan reads a whole table, or more rows than a list may read.
func (b *bench) checkPlans(ctx context.Context, s *survey) (err error) {
	for _, setting := range explaining {
		if err := b.asAdmin(ctx, "postgres", "alter database many set "+setting); err != nil {
			return err
		}
	}
	n := b.nodeOn(s.Database) // its connections are new, so they log their plans
	if err := n.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	before, err := b.server.Log()
	if err != nil {
		return err
	}
	for _, o := range operations {
		result, err := load.Run(ctx, load.Plan{
			Address: n.Address, Connections: 1, Duration: time.Minute, Limit: 3, Requests: o.requests(s), Status: o.status, AtLeast: 2,
		})
		if err == nil {
			err = result.Err()
		}
		if err != nil {
			return fmt.Errorf("plans of %s: %w", o.name, err)
		}
	}
	log, err := b.server.Log()
	if err != nil {
		return err
	}
	plans := strings.Split(log[len(before):], "  plan:\n")[1:]
	if len(plans) < len(operations) {
		return fmt.Errorf("PostgreSQL explained %d statements only", len(plans))
	}
	most := 0.0
	for _, plan := range plans {
		plan = textOf(plan)
		if table := scanned.FindStringSubmatch(plan); table != nil && !few[table[1]] {
			return fmt.Errorf("all of %s is read: %s", table[1], plan)
		}
		looked := pgtest.LookedAt(plan)
		if looked > rolecall.MaxScan+1 {
			return fmt.Errorf("%.0f rows are read: %s", looked, plan)
		}
		most = max(most, looked)
	}
	b.table.rows = append(b.table.rows, row{
		name: fmt.Sprintf("rows that one of %d statements looked at", len(plans)), large: fmt.Sprintf("%.0f", most), goal: fmt.Sprintf("<= %d", rolecall.MaxScan+1),
	})
	return nil
}

// textOf returns the lines of a plan in the log, which begin with a tab.
func textOf(entry string) string {
	var plan strings.Builder
	for line := range strings.Lines(entry) {
		if !strings.HasPrefix(line, "\t") {
			break
		}
		plan.WriteString(line)
	}
	return plan.String()
}
