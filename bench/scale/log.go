package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/rolecall/rolecall/bench/load"
)

const (
	fewEvents  = 1_000
	verifyGoal = time.Minute
)

// oneLog measures how long it takes to verify a large audit log, and compares proofs of its events with those
// of a small log.
func (b *bench) oneLog(ctx context.Context) (err error) {
	var pair [2]*node
	var proofs [2][]string
	for i, events := range []int{fewEvents, b.logged} {
		n, err := b.filled(ctx, fmt.Sprintf("log%d", i), "--users", "10", "--passwords", "0")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.Stop()) }()
		if err := n.cause(ctx, events); err != nil {
			return err
		}
		var page list[struct{ ID string }]
		if err := n.get(ctx, n.owner(), "/events?limit=200", &page); err != nil {
			return err
		}
		for _, e := range page.Items {
			proofs[i] = append(proofs[i], n.owner().request(http.MethodGet, "/events/"+e.ID+"/proof", ""))
		}
		pair[i] = n
	}
	begun := time.Now()
	size, err := pair[1].verify(ctx)
	if err != nil {
		return err
	}
	b.table.took(fmt.Sprintf("log: verify %d events", size), time.Since(begun), verifyGoal)
	var took [2][]time.Duration
	for range b.rounds {
		for i, n := range pair {
			middle, err := b.medianTime(ctx, n.Address, proofs[i], http.StatusOK)
			if err != nil {
				return err
			}
			took[i] = append(took[i], middle)
		}
	}
	b.table.times("log: a proof", took[0], took[1], 1.5)
	return nil
}

// cause creates events by changes of a user, and waits until the log has them.
func (n *node) cause(ctx context.Context, events int) error {
	owner := n.owner()
	var page list[user]
	if err := n.get(ctx, owner, "/users?limit=10", &page); err != nil {
		return err
	}
	plan := load.Plan{Address: n.Address, Connections: connections, Duration: time.Hour, Limit: events, Status: http.StatusOK, AtLeast: 2}
	for _, u := range page.Items {
		if u.ID != owner.user {
			plan.Requests = append(plan.Requests, owner.request(http.MethodPatch, "/users/"+u.ID, `{"metadata":{"n":"`+load.Number+`"}}`))
		}
	}
	result, err := load.RunApart(ctx, plan)
	if err == nil {
		err = result.Err()
	}
	for size := 0; err == nil && size < events; {
		size, err = n.verify(ctx)
	}
	return err
}

// verify runs rolecall events verify, and returns the number of events in the log.
func (n *node) verify(ctx context.Context) (size int, err error) {
	output, err := n.Run(ctx, "", "events", "verify", "--tenant", n.owner().tenant, "--json")
	if err != nil {
		return 0, err
	}
	var log struct {
		Verified bool
		Size     int
	}
	if err := json.Unmarshal([]byte(output), &log); err != nil {
		return 0, err
	}
	if !log.Verified {
		return 0, errors.New("the log does not verify: " + output)
	}
	return log.Size, nil
}
