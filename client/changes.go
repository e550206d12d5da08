package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Change is an item of a change feed: an event as a CloudEvent 1.0.
type Change struct {
	ID      string     `json:"id"`
	Source  string     `json:"source"`  // the service and the tenant; together with ID, it identifies the event everywhere
	Type    string     `json:"type"`    // such as user.updated; later versions can add types
	Subject string     `json:"subject"` // kind and ID, such as user/019d83e6-1ef1-7004-a1b2-3c4d5e6f7a44
	Time    time.Time  `json:"time"`    // times can be out of order
	Data    ChangeData `json:"data"`
}

// ChangeData is the content of a Change. Before and After have the changed members that the caller may
// read.
type ChangeData struct {
	Tenant    string                     `json:"tenant"`
	Subject   ChangeSubject              `json:"subject"`
	Members   []string                   `json:"members"`
	Actor     ChangeActor                `json:"actor"`
	RequestID string                     `json:"requestId"` // empty: unknown
	Reason    string                     `json:"reason"`    // empty: none
	ExpiresAt *time.Time                 `json:"expiresAt"` // when the assigned role expires; no change follows then
	Before    map[string]json.RawMessage `json:"before"`
	After     map[string]json.RawMessage `json:"after"`
}

// ChangeSubject is the object that a change is about.
type ChangeSubject struct {
	Type string `json:"type"` // such as user, role or tenant; later versions can add types
	ID   string `json:"id"`
}

// ChangeActor is who caused a change.
type ChangeActor struct {
	Type    string `json:"type"` // user, service_account, operator, anonymous or directory; later versions can add types
	ID      string `json:"id"`   // empty for commands and for anonymous callers
	Via     string `json:"via"`  // http, token, command, mail or scim; later versions can add values
	TokenID string `json:"tokenId"`
}

// ChangePage is a part of a change feed. Store Cursor in the same transaction as the effect of Items,
// also if Items is empty.
type ChangePage struct {
	Items    []Change `json:"items"`
	Cursor   string   `json:"nextCursor"` // the place after Items
	UpToDate bool     `json:"upToDate"`   // whether the feed had no further changes
}

// ChangeFilter selects a change feed. A cursor is valid only for the filter with which it was created.
type ChangeFilter struct {
	Type       string // only changes of this type; empty: all
	AllTenants bool   // the feed of all tenants, which needs an operator key with the scope changes
	Limit      int    // maximum number of items of a page; zero means the default of the service. It can be changed at any time.
}

// ErrChangesExpired is the error of FollowChanges if changes after the cursor cannot be read without a
// gap. Get a new cursor with ChangesNow, read the lists again, and follow from there.
var ErrChangesExpired = errors.New("rolecall: the changes after the cursor have expired")

// errNoCursor is the error of an answer that is not a page of changes, for example of a proxy.
var errNoCursor = errors.New("rolecall: the answer to a request for changes has no nextCursor")

const (
	changesWait  = 20 * time.Second // of a request
	changesSpare = 5 * time.Second  // from the end of the wait to the timeout of the HTTP client
	changesPause = 1 * time.Second  // between requests that do not wait
)

func (f ChangeFilter) path() string {
	if f.AllTenants {
		return "/operator/changes"
	}
	return "/changes"
}

func (f ChangeFilter) query() url.Values {
	query := url.Values{}
	if f.Type != "" {
		query.Set("type", f.Type)
	}
	return query
}

// ChangesNow returns the cursor after all changes of this moment. Call it before you read the lists,
// and follow the changes from there: otherwise, you miss the changes in between.
func (c *Client) ChangesNow(ctx context.Context, filter ChangeFilter) (cursor string, err error) {
	query := filter.query()
	query.Set("at", "now")
	var page ChangePage
	_, err = c.do(ctx, call{method: http.MethodGet, path: filter.path(), query: query, into: &page})
	return page.Cursor, err
}

// FollowChanges yields the changes after the cursor, page by page. When there are no more, it waits for
// the next ones, and yields an empty page from time to time. If the timeout of the HTTP client is below
// six seconds, it asks once a second instead. An empty cursor begins with the oldest changes that are kept.
// To stop, break the loop, or end ctx, which yields its error.
//
// If the service is unreachable, too busy or restarting, FollowChanges tries again until ctx ends. It
// waits as long as the response tells, or longer and longer, and for a random part of this time more.
// After any other error, it yields the error and ends. If errors.Is(err, ErrChangesExpired), the caller
// must read the lists again.
//
//	for page, err := range c.FollowChanges(ctx, cursor, client.ChangeFilter{}) {
//		if err != nil { … }
//		// in one transaction: apply page.Items, store page.Cursor
//	}
func (c *Client) FollowChanges(ctx context.Context, cursor string, filter ChangeFilter) iter.Seq2[ChangePage, error] {
	return func(yield func(ChangePage, error) bool) {
		query := filter.query()
		if filter.Limit > 0 {
			query.Set("limit", strconv.Itoa(filter.Limit))
		}
		held := c.changesWait()
		if held > 0 {
			query.Set("wait", strconv.Itoa(int(held/time.Second)))
		}
		for failures := 0; ; {
			if cursor != "" {
				query.Set("after", cursor)
			}
			var page ChangePage
			_, err := c.once(ctx, call{method: http.MethodGet, path: filter.path(), query: query, into: &page})
			problem, refused := errors.AsType[*Problem](err)
			_, lost := errors.AsType[*lostError](err)
			if err == nil && page.Cursor == "" {
				err = errNoCursor
			}
			switch {
			case err == nil:
				failures, cursor = 0, page.Cursor
				if !yield(page, nil) {
					return
				}
				if held == 0 && page.UpToDate {
					err = wait(ctx, changesPause)
				}
				if err == nil {
					continue
				}
			case ctx.Err() != nil:
				yield(ChangePage{}, ctx.Err())
				return
			case refused && problem.Status == http.StatusGone:
				yield(ChangePage{}, fmt.Errorf("%w: %w", ErrChangesExpired, err))
				return
			case refused && (problem.Status == http.StatusTooManyRequests || problem.Status == http.StatusServiceUnavailable):
				err = wait(ctx, pauseAfter(failures, problem.RetryAfter))
			case lost:
				err = wait(ctx, pauseAfter(failures, 0))
			}
			if failures++; err != nil {
				yield(ChangePage{}, err)
				return
			}
		}
	}
}

// changesWait returns how long a request for changes can wait, in whole seconds, so that the HTTP client
// does not end it. Zero means that the timeout is too short for a wait.
func (c *Client) changesWait() time.Duration {
	if c.http.Timeout == 0 {
		return changesWait
	}
	return max(0, min(changesWait, c.http.Timeout-changesSpare)).Truncate(time.Second)
}
