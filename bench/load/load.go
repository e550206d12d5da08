// Package load sends many requests to an HTTP/1.1 server, checks every response, and
// measures the response times. It uses little CPU, because it shares the cores with the
// server.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Number is a placeholder in the text of a request for a unique number of 16 digits. No other
// request of this run or an earlier one has the same number.
const Number = "{number}"

const (
	patience = 30 * time.Second      // how long a run waits for the last responses after its end
	breather = 10 * time.Millisecond // pause before a broken connection is opened again
)

// Plan describes the requests, their rate and duration, and the correct responses.
type Plan struct {
	Address     string        // host and port of the server
	Connections int           // each carries one request at a time
	Rate        float64       // requests per second, of all connections together; zero: each request follows the previous response
	WarmUp      time.Duration // time in which responses are checked, but not counted
	Duration    time.Duration // time in which responses are counted
	Limit       int           // maximum number of requests; zero: no limit
	Requests    []string      // complete requests, sent in turn; see Number
	Status      int           // of a correct response
	AtLeast     int           // minimum length of a correct response's body in bytes; zero: the body may be empty
}

// Result is the outcome of a run.
type Result struct {
	Sent     int           // all requests, including the warm-up
	Right    int           // all correct responses, including the warm-up
	Statuses map[int]int   // all complete responses by status
	Short    int           // complete responses of the correct status with a body that is too short, or is not a JSON object or array
	Broken   int           // connections that were refused or ended before their response
	Reason   string        // the error of the first wrong response
	Took     time.Duration // the time in which responses were counted
	Latency  Histogram     // of the counted correct responses; at a Rate, from the time at which the request was due
	Spent    time.Duration // CPU time of the generator; only RunApart sets it
}

// Counted returns the number of counted correct responses.
func (r *Result) Counted() int { return r.Latency.Count() }

// PerSecond returns the rate of the counted correct responses.
func (r *Result) PerSecond() float64 { return float64(r.Counted()) / r.Took.Seconds() }

// Err returns an error if a response was wrong, or if no response arrived.
func (r *Result) Err() error {
	if r.Reason != "" {
		return fmt.Errorf("%d of %d answers were not right: %s", r.Sent-r.Right, r.Sent, r.Reason)
	}
	if r.Right == 0 {
		return errors.New("there was no answer")
	}
	return nil
}

// run is one run of a plan by all connections.
type run struct {
	Plan
	requests  []request
	first     uint64 // number of the first request; later numbers follow it
	tickets   atomic.Int64
	begun     time.Time
	countFrom time.Time
	end       time.Time
}

// Run runs the plan in this process. RunApart affects the measured server less. Run returns no
// error for wrong responses, but Err of the result does.
func Run(ctx context.Context, plan Plan) (*Result, error) {
	if plan.Connections < 1 || len(plan.Requests) == 0 || plan.Duration <= 0 {
		return nil, errors.New("load: a plan has connections, requests and a duration")
	}
	r := &run{Plan: plan, first: uint64(time.Now().UnixMicro())}
	for _, text := range plan.Requests {
		r.requests = append(r.requests, split(text))
	}
	r.begun = time.Now()
	r.countFrom = r.begun.Add(plan.WarmUp)
	r.end = r.countFrom.Add(plan.Duration)
	patient, cancel := context.WithDeadline(ctx, r.end.Add(patience))
	defer cancel()
	tallies := make([]Result, plan.Connections)
	var working sync.WaitGroup
	for i := range tallies {
		working.Go(func() { r.work(patient, &tallies[i]) })
	}
	working.Wait()
	return sum(tallies, min(plan.Duration, max(time.Since(r.countFrom), 1))), ctx.Err()
}

// sum adds up the counts of the connections.
func sum(tallies []Result, took time.Duration) *Result {
	total := &Result{Statuses: map[int]int{}, Took: took}
	for i := range tallies {
		t := &tallies[i]
		total.Sent += t.Sent
		total.Right += t.Right
		total.Short += t.Short
		total.Broken += t.Broken
		for status, n := range t.Statuses {
			total.Statuses[status] += n
		}
		if total.Reason == "" {
			total.Reason = t.Reason
		}
		total.Latency.Add(&t.Latency)
	}
	return total
}

// next waits until the next request is due. It returns the number of the request, and the time from
// which its response time is measured. ok is false at the end of the run.
func (r *run) next(ctx context.Context) (ticket int64, due time.Time, ok bool) {
	ticket = r.tickets.Add(1) - 1
	now := time.Now()
	due = now
	if r.Rate > 0 {
		due = r.begun.Add(time.Duration(float64(ticket) / r.Rate * float64(time.Second)))
	}
	if !now.Before(r.end) || due.After(r.end) || r.Limit > 0 && ticket >= int64(r.Limit) || ctx.Err() != nil {
		return 0, due, false
	}
	if wait := due.Sub(now); wait > 0 {
		time.Sleep(wait)
	}
	return ticket, due, true
}

// work sends one request after the other on one connection. If the connection has ended, work opens
// a new one.
func (r *run) work(ctx context.Context, t *Result) {
	t.Statuses = map[int]int{}
	var c *connection
	var out []byte
	for {
		ticket, due, ok := r.next(ctx)
		if !ok {
			break
		}
		out = r.requests[ticket%int64(len(r.requests))].append(out[:0], r.first+uint64(ticket))
		t.Sent++
		got, err := r.exchange(ctx, &c, out)
		if err != nil {
			t.Broken++
			t.wrong(err.Error())
			t.hangUp(&c)
			time.Sleep(breather)
			continue
		}
		r.count(t, got, due)
		if got.closes {
			t.hangUp(&c)
		}
	}
	t.hangUp(&c)
}

// exchange sends the request on the connection, which it opens if necessary, and returns
// the response.
func (r *run) exchange(ctx context.Context, c **connection, out []byte) (answer, error) {
	if *c == nil {
		dialed, err := dial(ctx, r.Address)
		if err != nil {
			return answer{}, err
		}
		*c = dialed
	}
	if _, err := (*c).Write(out); err != nil {
		return answer{}, err
	}
	return (*c).read()
}

// hangUp closes the connection if there is one.
func (r *Result) hangUp(c **connection) {
	if *c == nil {
		return
	}
	if err := (*c).close(); err != nil {
		r.wrong(err.Error())
	}
	*c = nil
}

// count records the status of an answer, whether the answer is correct, and its response time.
func (r *run) count(t *Result, got answer, due time.Time) {
	t.Statuses[got.status]++
	switch {
	case got.status != r.Status:
		t.wrong(fmt.Sprintf("status %d, not %d: %.300s", got.status, r.Status, got.body))
		return
	case len(got.body) < r.AtLeast || len(got.body) > 0 && !isJSON(got.body):
		t.Short++
		t.wrong(fmt.Sprintf("a body of %d bytes, not an object or array of at least %d: %.300s", len(got.body), r.AtLeast, got.body))
		return
	}
	t.Right++
	if now := time.Now(); !now.Before(r.countFrom) && now.Before(r.end) {
		t.Latency.Record(now.Sub(due))
	}
}

func (r *Result) wrong(reason string) {
	if r.Reason == "" {
		r.Reason = reason
	}
}

// isJSON reports whether the body looks like a whole JSON object or array.
func isJSON(body []byte) bool {
	body = bytes.TrimSpace(body)
	if len(body) < 2 {
		return false
	}
	first, last := body[0], body[len(body)-1]
	return first == '{' && last == '}' || first == '[' && last == ']'
}

// request is the text of a request, split at the placeholders for its unique number.
type request [][]byte

func split(text string) request { return bytes.Split([]byte(text), []byte(Number)) }

// append appends the request to b, with number in the place of each placeholder.
func (q request) append(b []byte, number uint64) []byte {
	for i, part := range q {
		if i > 0 {
			b = strconv.AppendUint(b, number, 10)
		}
		b = append(b, part...)
	}
	return b
}
