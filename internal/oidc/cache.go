package oidc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"
)

const (
	// documentFresh and keysFresh are how long metadata and keys are used without a new request.
	documentFresh = time.Hour
	keysFresh     = time.Hour

	// keysPause is the time between two requests for keys because of a token whose key is not known.
	keysPause = time.Minute

	// failurePause is the time after a failed request in which no other one is sent.
	failurePause = 5 * time.Second

	// cachedBytes is about the maximum size of the documents in a cache, which providers choose.
	cachedBytes = 16 << 20

	// entryBytes is about the size of an entry without the document.
	entryBytes = 1024
)

// sized is a document. Its size is about the number of bytes of memory that it uses.
type sized interface{ size() int }

// cache has fetched documents by URL. At most one request per URL is sent at a time.
type cache[T sized] struct {
	now     func() time.Time
	timeout time.Duration
	entries *otter.Cache[string, entry[T]]
	flights singleflight.Group
}

// entry is the last document of a URL, and the last failure to fetch it. It does not change.
type entry[T sized] struct {
	value     T
	fetchedAt time.Time // zero: never
	failure   error
	failedAt  time.Time
}

func newCache[T sized](now func() time.Time, timeout time.Duration) *cache[T] {
	return &cache[T]{now: now, timeout: timeout, entries: otter.Must(&otter.Options[string, entry[T]]{
		MaximumWeight: cachedBytes,
		Weigher: func(url string, e entry[T]) uint32 {
			size := entryBytes + len(url)
			if !e.fetchedAt.IsZero() {
				size += e.value.size()
			}
			if e.failure != nil {
				size += len(e.failure.Error())
			}
			return uint32(size)
		},
	})}
}

// get returns the document of the URL. It calls fetch if the cached one is older than age, unless
// fetch has just failed. A fetch continues if the caller's context ends, because others wait for it too.
func (c *cache[T]) get(ctx context.Context, url string, age time.Duration, fetch func(ctx context.Context, url string) (T, error)) (T, error) {
	if value, err, known := c.look(url, age); known {
		return value, err
	}
	flight := c.flights.DoChan(url, func() (any, error) {
		if value, err, known := c.look(url, age); known { // another flight has ended since
			return value, err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
		value, err := fetch(ctx, url)
		c.keep(url, value, err)
		return value, err
	})
	var none T
	select {
	case <-ctx.Done():
		return none, unavailable("waiting", ctx.Err())
	case result := <-flight:
		if result.Err != nil {
			return none, result.Err
		}
		return result.Val.(T), nil
	}
}

// look returns the cached result for the URL, and false if a request is needed.
func (c *cache[T]) look(url string, age time.Duration) (value T, err error, known bool) {
	e, found := c.entries.GetIfPresent(url)
	if !found {
		return value, nil, false
	}
	now := c.now()
	switch {
	case !e.fetchedAt.IsZero() && now.Sub(e.fetchedAt) < age:
		return e.value, nil, true
	case e.failure != nil && now.Sub(e.failedAt) < failurePause:
		return value, e.failure, true
	}
	return value, nil, false
}

// keep stores the result of a fetch. After a failure, the last document is kept.
func (c *cache[T]) keep(url string, value T, err error) {
	e, _ := c.entries.GetIfPresent(url)
	if e.failure = err; err != nil {
		e.failedAt = c.now()
	} else {
		e.value, e.fetchedAt = value, c.now()
	}
	c.entries.Set(url, e)
}

// unavailable returns ErrUnavailable with what failed, and why.
func unavailable(what string, cause error) error {
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, what, cause)
}

func unavailableBecause(what, cause string) error { return unavailable(what, errors.New(cause)) }
