package client

import (
	"context"
	"crypto/rand"
	"errors"
	random "math/rand/v2"
	"net/http"
	"time"
)

const (
	retries      = 3                // repetitions of a call
	shortestRest = time.Second / 2  // before a repetition
	longestRest  = 30 * time.Second // before a repetition; a longer Retry-After ends the call
)

// attempts decides whether a call is repeated.
type attempts struct {
	call     call
	failures int
}

// rest waits before the next attempt of the call. If the call must not be repeated, or ctx ends, rest
// returns an error.
func (a *attempts) rest(ctx context.Context, err error) error {
	var retryAfter time.Duration
	isRepeated := false
	if problem, ok := errors.AsType[*Problem](err); ok {
		retryAfter = problem.RetryAfter
		isRepeated = problem.Status == http.StatusTooManyRequests || problem.Status == http.StatusServiceUnavailable
	} else if _, ok := errors.AsType[*lostError](err); ok {
		isRepeated = a.call.method == http.MethodGet || a.call.header["Idempotency-Key"] != ""
	}
	if !isRepeated || a.failures >= retries || retryAfter > longestRest || ctx.Err() != nil {
		return err
	}
	a.failures++
	if wait(ctx, pauseAfter(a.failures-1, retryAfter)) != nil {
		return err
	}
	return nil
}

// pauseAfter returns how long to wait after a request that has failed. The argument failures is how many
// requests before it have failed, one after the other.
func pauseAfter(failures int, retryAfter time.Duration) time.Duration {
	pause := max(retryAfter, min(longestRest, shortestRest<<min(failures, 10)))
	return pause + random.N(pause/2+1)
}

// wait waits for the time. It returns the error of ctx if ctx ends first.
func wait(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// idempotent returns the header with the key, or with a new key if key is empty.
func idempotent(key string) map[string]string {
	if key == "" {
		key = rand.Text()
	}
	return map[string]string{"Idempotency-Key": key}
}
