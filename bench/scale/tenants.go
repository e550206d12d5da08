package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rolecall/rolecall/bench/load"
)

const (
	fewTenantsName, manyTenantsName = "few_tenants", "many_tenants"

	fewTenants  = 10
	perTenant   = 5 // users in addition to the owner
	connections = 32
	memoryGoal  = 150 // MiB of the node under load
	tenantGoal  = 20 * time.Millisecond
)

// manyTenants compares a store of many tenants with a store of few tenants. Both stores have the
// same number of users and sessions. Requests are spread over all sessions.
func (b *bench) manyTenants(ctx context.Context) (err error) {
	each := b.tenants * (perTenant + 1) / fewTenants
	few, err := b.filled(ctx, fewTenantsName, "--tenants", strconv.Itoa(fewTenants), "--users", strconv.Itoa(each-1), "--passwords", strconv.Itoa(b.tenants/fewTenants-1), "--roles", "2", "--assignments", "1", "--holders", "1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, few.Stop()) }()
	many, err := b.filled(ctx, manyTenantsName, "--tenants", strconv.Itoa(b.tenants), "--users", strconv.Itoa(perTenant), "--passwords", "0", "--roles", "2", "--assignments", "1", "--holders", "1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, many.Stop()) }()

	readers := [2]target{{few.Address, few.sessions}, {many.Address, many.sessions}}
	if err := b.rate(ctx, "tenants: read", readers, http.StatusOK, func(s session) string {
		return s.request(http.MethodGet, "/users/"+s.user, "")
	}); err != nil {
		return err
	}
	writers := [2]target{{few.Address, ownersOf(few.sessions)}, {many.Address, many.sessions}}
	if err := b.rate(ctx, "tenants: create", writers, http.StatusCreated, func(s session) string {
		return s.request(http.MethodPost, "/users", `{"email":"new.`+load.Number+`@example.com","name":"Newcomer `+load.Number+`"}`)
	}); err != nil {
		return err
	}
	if err := b.memories(few, many); err != nil {
		return err
	}
	return b.newTenant(ctx, many)
}

// ownersOf returns the first session of each tenant, which is the session of its owner.
func ownersOf(all []session) (owners []session) {
	seen := map[string]bool{}
	for _, s := range all {
		if !seen[s.tenant] {
			owners, seen[s.tenant] = append(owners, s), true
		}
	}
	return owners
}

// target is a node, and the sessions that the requests to the node use.
type target struct {
	address  string
	sessions []session
}

// rate measures the request rates of both nodes in turn, over many connections. The
// requests to a node use its sessions in turn.
func (b *bench) rate(ctx context.Context, name string, pair [2]target, status int, request func(session) string) error {
	var rates [2][]float64
	for range b.rounds {
		for i, n := range pair {
			plan := load.Plan{Address: n.address, Connections: connections, WarmUp: b.duration, Duration: 4 * b.duration, Status: status, AtLeast: 2}
			for _, s := range n.sessions {
				plan.Requests = append(plan.Requests, request(s))
			}
			result, err := load.RunApart(ctx, plan)
			if err == nil {
				err = result.Err()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			rates[i] = append(rates[i], result.PerSecond())
		}
	}
	b.table.rates(name, rates[0], rates[1], 0.85)
	return nil
}

// memories records the memory of the nodes and of each PostgreSQL process that serves
// them, without the memory that all of them share.
func (b *bench) memories(few, many *node) error {
	var nodes, backends [2]int
	for i, n := range []*node{few, many} {
		bytes, err := memory("Pss", n.PID())
		if err != nil {
			return err
		}
		nodes[i] = mebibytes(bytes)
	}
	b.table.memory("tenants: memory of the node", nodes[0], nodes[1], 0, memoryGoal)
	if b.server == nil {
		return nil
	}
	for i, database := range []string{fewTenantsName, manyTenantsName} {
		pids, err := b.backends(database)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return fmt.Errorf("no process of PostgreSQL serves %s", database)
		}
		bytes, err := memory("Pss_Anon", pids...)
		if err != nil {
			return err
		}
		backends[i] = mebibytes(bytes / len(pids))
	}
	b.table.memory("tenants: memory of a process of PostgreSQL", backends[0], backends[1], 1.5, 0)
	return nil
}

// newTenant measures how long it takes to create one more tenant in a large store. It creates one
// tenant, then 101 tenants, and divides the difference of the two durations by 100.
func (b *bench) newTenant(ctx context.Context, many *node) error {
	const more = 101
	var took [2]time.Duration
	for i, tenants := range []int{1, more} {
		begun := time.Now()
		if err := many.seed(ctx, fmt.Sprintf("new%d", tenants), "--tenants", strconv.Itoa(tenants), "--users", "0", "--roles", "0", "--assignments", "0"); err != nil {
			return err
		}
		took[i] = time.Since(begun)
	}
	b.table.took("tenants: one more", (took[1]-took[0])/(more-1), tenantGoal)
	return nil
}
