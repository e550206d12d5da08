package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/rolecall/rolecall/bench/load"
)

const (
	nodesOfMany = 4
	revocations = 20
	seenWithin  = time.Second
)

// manyNodes compares four nodes on one PostgreSQL database with one node. It also measures how soon
// all nodes refuse a session that was ended on one of them. On SQLite, it uses one node.
func (b *bench) manyNodes(ctx context.Context) (err error) {
	first, err := b.filled(ctx, "nodes", "--users", "1000", "--passwords", strconv.Itoa(revocations))
	if err != nil {
		return err
	}
	nodes := []*node{first}
	defer func() {
		for _, n := range nodes {
			err = errors.Join(err, n.Stop())
		}
	}()
	if b.server != nil { // only one process can serve a SQLite file
		for range nodesOfMany - 1 {
			n := b.nodeOn(first.Database)
			if err := n.Start(ctx); err != nil {
				return err
			}
			nodes = append(nodes, n)
		}
		owner := first.owner()
		for _, o := range []struct {
			name    string
			status  int
			request string
		}{
			{"nodes: read", http.StatusOK, owner.request(http.MethodGet, "/users/"+owner.user, "")},
			{"nodes: create", http.StatusCreated, owner.request(http.MethodPost, "/users", `{"email":"new.`+load.Number+`@example.com","name":"Newcomer `+load.Number+`"}`)},
		} {
			if err := b.shared(ctx, o.name, nodes, o.status, o.request); err != nil {
				return err
			}
		}
	}
	return b.revoke(ctx, nodes)
}

// shared compares the rate of one node with the total rate of all nodes, over the same number of
// connections.
func (b *bench) shared(ctx context.Context, name string, nodes []*node, status int, request string) error {
	var rates [2][]float64
	for range b.rounds {
		for i, among := range [][]*node{nodes[:1], nodes} {
			results, errs := make([]*load.Result, len(among)), make([]error, len(among))
			var all sync.WaitGroup
			for j, n := range among {
				all.Go(func() {
					results[j], errs[j] = load.RunApart(ctx, load.Plan{
						Address: n.Address, Connections: connections / len(among), WarmUp: b.duration, Duration: 4 * b.duration,
						Requests: []string{request}, Status: status, AtLeast: 2,
					})
				})
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				return err
			}
			rate := 0.0
			for _, result := range results {
				if err := result.Err(); err != nil {
					return err
				}
				rate += result.PerSecond()
			}
			rates[i] = append(rates[i], rate)
		}
	}
	b.table.rates(name+", 1 and 4", rates[0], rates[1], 0)
	return nil
}

// revoke ends sessions on the first node. All nodes have these sessions in their
// caches. It measures how long any node still accepts an ended session.
func (b *bench) revoke(ctx context.Context, nodes []*node) error {
	var longest time.Duration
	for _, s := range nodes[0].sessions[1:] {
		for _, n := range nodes {
			if _, err := n.send(ctx, s, http.MethodGet, "/auths/session", ""); err != nil {
				return err
			}
		}
		if _, err := nodes[0].send(ctx, s, http.MethodPost, "/auths/logout", ""); err != nil {
			return err
		}
		begun := time.Now()
		for _, n := range nodes {
			for status := 0; status != http.StatusUnauthorized; {
				var err error
				if status, _, err = n.exchange(ctx, s, http.MethodGet, "/auths/session", ""); err != nil {
					return err
				}
				if time.Since(begun) > 10*seenWithin {
					return fmt.Errorf("%s still answers %v after the session ended", n.Address, time.Since(begun))
				}
			}
		}
		longest = max(longest, time.Since(begun))
	}
	b.table.took(fmt.Sprintf("nodes: the slowest of %d ends of a session, seen by all", revocations), longest, seenWithin)
	return nil
}
