package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rolecall/rolecall/bench/load"
)

const (
	feedLoad   = 0.6 // of the peak rate of creates
	feedProbes = 200 // changes whose time is measured
	creators   = 16  // owners that send the creates in turn, so that none has too many idempotency keys

	leastWithFollowers = 0.9 // of the rate of creates without followers

	medianOfFeed = 50 * time.Millisecond
	p99OfFeed    = 250 * time.Millisecond
)

// followers measures how soon a request that waits on one node has a change, after the response to the
// change on another node. Other clients create users at 60 % of the peak rate at the same time. On
// SQLite, there is one node.
func (b *bench) followers(ctx context.Context) (err error) {
	near, err := b.filled(ctx, "followed", "--users", "1000", "--passwords", strconv.Itoa(creators-1))
	if err != nil {
		return err
	}
	nodes := []*node{near}
	defer func() {
		for _, n := range nodes {
			err = errors.Join(err, n.Stop())
		}
	}()
	if b.server != nil {
		far := b.nodeOn(near.Database)
		if err := far.Start(ctx); err != nil {
			return err
		}
		nodes = append(nodes, far)
	}
	output, err := near.Run(ctx, "", "operator-key", "create", "Follower", "--scope", "changes", "--json")
	if err != nil {
		return err
	}
	var key struct{ Key string }
	if err := json.Unmarshal([]byte(output), &key); err != nil {
		return err
	}
	owner := near.owner()
	plan := load.Plan{
		Address: near.Address, Connections: connections, WarmUp: b.duration, Duration: 4 * b.duration, Status: http.StatusCreated, AtLeast: 2,
	}
	for _, s := range near.sessions {
		if err := near.makeOwner(ctx, s); err != nil {
			return err
		}
		plan.Requests = append(plan.Requests, s.request(http.MethodPost, "/users", `{"email":"new.`+load.Number+`@example.com","name":"Newcomer `+load.Number+`"}`))
	}
	peak, err := load.RunApart(ctx, plan)
	if err == nil {
		err = peak.Err()
	}
	if err != nil {
		return err
	}
	plan.Rate = feedLoad * peak.PerSecond()
	for _, f := range []struct {
		name, path string
		header     http.Header
	}{
		{"feed of a tenant", "/changes", http.Header{"X-Tenant-Schema": {owner.tenant}, "Cookie": {"session=" + owner.token}}},
		{"feed of all tenants", "/operator/changes", http.Header{"Authorization": {"Bearer " + key.Key}}},
	} {
		took, err := b.probe(ctx, plan, near, &feedFollower{url: nodes[len(nodes)-1].URL() + f.path, header: f.header, seen: map[string]time.Time{}})
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		slices.Sort(took)
		at := fmt.Sprintf(" at %.0f creates per second", plan.Rate)
		b.table.took(f.name+": the median until a change is read,"+at, took[len(took)/2], medianOfFeed)
		b.table.took(f.name+": the p99 until a change is read,"+at, took[len(took)*99/100], p99OfFeed)
	}
	plan.Rate = 0
	followed := http.Header{"X-Tenant-Schema": {owner.tenant}, "Cookie": {"session=" + owner.token}}
	return b.costOfFollowers(ctx, plan, nodes[len(nodes)-1].URL()+"/changes", followed)
}

// makeOwner makes the user of the session an owner of the tenant.
func (n *node) makeOwner(ctx context.Context, s session) error {
	var user struct{ Email string }
	if err := n.get(ctx, n.owner(), "/users/"+s.user, &user); err != nil {
		return err
	}
	_, err := n.Run(ctx, "", "tenant", "add-owner", s.tenant, "--email", user.Email)
	return err
}

// costOfFollowers compares the rate of creates without followers, with one and with four. Each of them
// reads all changes.
func (b *bench) costOfFollowers(ctx context.Context, plan load.Plan, url string, header http.Header) error {
	counts := []int{0, 1, 4}
	rates := make([][]float64, len(counts))
	for range b.rounds {
		for i, followers := range counts {
			result, err := b.whileFollowed(ctx, plan, url, header, followers)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], result.PerSecond())
		}
	}
	b.table.rates("feed: creates, without and with one follower", rates[0], rates[1], leastWithFollowers)
	b.table.rates("feed: creates, without and with four followers", rates[0], rates[2], leastWithFollowers)
	return nil
}

// whileFollowed runs the plan while a number of followers read the feed at the URL.
func (b *bench) whileFollowed(ctx context.Context, plan load.Plan, url string, header http.Header, followers int) (result *load.Result, err error) {
	following, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	failures := make([]error, followers)
	for i := range followers {
		f := &feedFollower{url: url, header: header, seen: map[string]time.Time{}}
		if err := f.begin(ctx); err != nil {
			return nil, err
		}
		running.Go(func() { failures[i] = f.run(following) })
	}
	if result, err = load.RunApart(ctx, plan); err == nil {
		err = result.Err()
	}
	stop()
	running.Wait()
	return result, errors.Join(err, errors.Join(failures...))
}

// probe runs the plan, and creates users one after the other in the meantime. It returns how long it took
// from the response to each of them until the follower had the change.
func (b *bench) probe(ctx context.Context, plan load.Plan, n *node, follower *feedFollower) (took []time.Duration, err error) {
	if err := follower.begin(ctx); err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	var followed, loaded error
	running.Go(func() { followed = follower.run(following) })
	plan.Duration = time.Hour // until the probes have ended
	loading, end := context.WithCancel(ctx)
	defer end()
	running.Go(func() { _, loaded = load.RunApart(loading, plan) })
	created := map[string]time.Time{}
	pause := time.NewTicker(25 * time.Millisecond)
	defer pause.Stop()
	for i := range feedProbes {
		var user struct{ ID string }
		answer, err := n.send(ctx, n.owner(), http.MethodPost, "/users", fmt.Sprintf(`{"email":"probe.%d.%d@example.com","name":"Probe"}`, time.Now().UnixNano(), i))
		if err == nil {
			err = json.Unmarshal(answer, &user)
		}
		if err != nil {
			return nil, err
		}
		created["user/"+user.ID] = time.Now()
		<-pause.C
	}
	end()
	if err := follower.await(ctx, created); err != nil {
		return nil, err
	}
	stop()
	running.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if followed != nil {
		return nil, followed
	}
	if loaded == nil {
		return nil, errors.New("the load ended before the probes")
	}
	for subject, at := range created {
		took = append(took, max(0, follower.seen[subject].Sub(at)))
	}
	return took, nil
}

// feedFollower follows a change feed, and notes when it has read the changes about each subject.
type feedFollower struct {
	url    string
	header http.Header
	cursor string

	mu   sync.Mutex
	seen map[string]time.Time
}

// feedPage is a page of a change feed.
type feedPage struct {
	Items      []struct{ Subject string }
	NextCursor string
}

func (f *feedFollower) get(ctx context.Context, query string) (page feedPage, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+query, nil)
	if err != nil {
		return page, err
	}
	request.Header = f.header
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return page, err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", f.url, answer.Status)
	} else {
		err = json.NewDecoder(answer.Body).Decode(&page)
	}
	return page, errors.Join(err, answer.Body.Close())
}

func (f *feedFollower) begin(ctx context.Context) error {
	page, err := f.get(ctx, "?at=now")
	f.cursor = page.NextCursor
	return err
}

// run follows until ctx ends.
func (f *feedFollower) run(ctx context.Context) error {
	for {
		page, err := f.get(ctx, "?limit=200&wait=20&after="+url.QueryEscape(f.cursor))
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		now := time.Now()
		f.cursor = page.NextCursor
		f.mu.Lock()
		for _, item := range page.Items {
			if _, before := f.seen[item.Subject]; !before {
				f.seen[item.Subject] = now
			}
		}
		f.mu.Unlock()
	}
}

// await returns when the follower has read the changes about all subjects.
func (f *feedFollower) await(ctx context.Context, subjects map[string]time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		missing := 0
		f.mu.Lock()
		for subject := range subjects {
			if _, ok := f.seen[subject]; !ok {
				missing++
			}
		}
		f.mu.Unlock()
		if missing == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d changes were not read: %w", missing, ctx.Err())
		case <-look.C:
		}
	}
}
